#include "train/config/resolve.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "nn/spec/suggest.h"
#include "train/config/checks.h"
#include "train/config/keys.h"

namespace waymark::train {

using nn::Options;
using nn::printable;
using nn::SpecValue;
using Kind = SpecValue::Kind;
using Layers = std::vector<std::vector<Options>>;

namespace {

constexpr const char* kLengths[] = {"train.steps", "train.epochs", "train.tokens", "train.minutes"};
constexpr size_t kSuggestionsUpTo = 1000;  // problems; a hostile file may have a million

bool is_length(std::string_view key) {
  return std::find(std::begin(kLengths), std::end(kLengths), key) != std::end(kLengths);
}

// How a raw value is shown in a message.
std::string shown(const RawValue& raw) {
  if (!raw.unusable.empty()) return printable(raw.written, 60);
  if (raw.is_table) return "{...}";
  if (raw.is_table_list) return "[{...}]";
  return printable(to_string(raw.value), 60);
}

// Text of a spec error without its "spec: ".
std::string without_op(const Error& e) {
  const std::string text = e.what(), head = e.op() + ": ";
  return !e.op().empty() && text.rfind(head, 0) == 0 ? text.substr(head.size()) : text;
}

const nn::OptionTable& group_table() {
  static const nn::OptionTable table{
      "group",
      {{"match", nn::text_option({}), "glob of parameter names"},
       {"lr_scale", nn::real_option(1, 0.0), "factor on the learning rate"},
       {"weight_decay", nn::real_option("default", 0.0).or_word({"default"}), "instead of the optimizer's"},
       {"freeze", nn::bool_option(false), "no gradient, no state"}},
      "parameters with settings of their own"};
  return table;
}

const nn::SpecTables& init_tables() {
  static const nn::SpecTables tables(
      "kind of initial values",
      {{"pytorch",
        {{"token_std", nn::real_option(1).greater_than(0), "of the token table"},
         {"learned_std", nn::real_option(0.02).greater_than(0), "of the table of `learned`"},
         {"zero", nn::word_list_option(std::vector<std::string>{}, {}), "globs of parameters that start at 0"}},
        "as PyTorch's modules"},
       {"xavier", {}, "uniform, by fan in and fan out"},
       {"normal", {{"std", nn::real_option(0.02).greater_than(0), "standard deviation"}}, "normal"},
       {"lra", {}, "as the Long Range Arena code"}});
  return tables;
}

}  // namespace

class Resolver {
 public:
  Resolver(Problems& problems, const Registries& registries) : problems_(problems), registries_(registries) {}

  Config resolve(const std::vector<Source>& sources) {
    for (const Source& source : sources) merge(source);
    resolve_task();
    for (const KeyInfo& key : config_keys())
      if (key.shape == KeyShape::plain && key.rule.fallback) plain(key, *key.rule.fallback);
    derived_defaults();
    special_keys();
    replaced_values();
    CheckContext context{config_, registries_, facts_, bad_, problems_};
    check_config(context);
    return std::move(config_);
  }

 private:
  // Sources -----------------------------------------------------------------------------------------------------------

  void merge(const Source& source) {
    const RawEntry* length = nullptr;
    for (const RawEntry& entry : source.entries) {
      if (entry.key == "format") {
        check_format(entry);
        continue;
      }
      if (!find_key(entry.key)) {
        unknown(entry);
        continue;
      }
      if (is_length(entry.key)) {
        // Within one source at most one of the four; a later source replaces whichever an earlier one has set.
        if (length && length->key != entry.key)
          add(entry, fmt::format("{} and {} are both given: exactly one of train.steps, epochs, tokens, minutes may be",
                                 length->key, entry.key));
        else
          for (const char* other : kLengths)
            if (const auto found = raw_.find(other); found != raw_.end()) {
              replaced_.push_back(found->second);
              raw_.erase(found);
            }
        length = &entry;
      }
      const RawEntry*& place = raw_[entry.key];
      if (place) replaced_.push_back(place);
      place = &entry;
    }
  }
  void check_format(const RawEntry& entry) {
    if (!(entry.value.value == SpecValue::quoted("waymark-config-1")))
      add(entry, fmt::format("format = {}: this version reads \"waymark-config-1\"", shown(entry.value)));
  }
  void unknown(const RawEntry& entry) {
    std::string hint;
    if (problems_.size() < kSuggestionsUpTo) hint = suggest_key(entry.key);
    add(entry, fmt::format("{} = {}: unknown key.{}", printable(entry.key), shown(entry.value), hint));
  }

  void add(const RawEntry& entry, std::string text) { problems_.push_back({entry.origin, std::move(text)}); }
  const RawEntry* raw(std::string_view key) const {
    const auto found = raw_.find(key);
    return found == raw_.end() ? nullptr : found->second;
  }

  // Plain keys --------------------------------------------------------------------------------------------------------

  void plain(const KeyInfo& key, const SpecValue& fallback) {
    Config::Entry entry;
    std::string problem;
    const auto usual = nn::convert(key.rule, fallback, problem);
    entry.plain = usual ? *usual : fallback;
    finish(entry);
    if (const RawEntry* written = raw(key.name)) {
      if (const auto value = converted(key, *written)) {
        const std::string usual_text = entry.canonical;
        entry.plain = *value;
        finish(entry);
        entry.is_default = entry.canonical == usual_text;
        entry.origin = written->origin;
      }
    }
    config_.entries_[key.name] = std::move(entry);
  }
  void plain(std::string_view key, const SpecValue& fallback) { plain(*find_key(key), fallback); }

  static void finish(Config::Entry& entry) {
    entry.set = true;
    entry.canonical = nn::value_text(entry.plain);
    const bool is_text = entry.plain.kind() == Kind::word || entry.plain.kind() == Kind::text;
    entry.short_form = is_text ? entry.plain.text() : entry.canonical;
  }

  // The written value in the type of its key; otherwise a problem, and the key counts as bad.
  std::optional<SpecValue> converted(const KeyInfo& key, const RawEntry& written) {
    std::string problem;
    std::optional<SpecValue> value;
    if (unfit(written.value, problem, key.rule.describe()))
      value = std::nullopt;
    else
      value = nn::convert(key.rule, written.value.value, problem);
    if (value && value->kind() == Kind::word && !nn::is_utf8(value->text())) {
      problem = "is no UTF-8 text";
      value = std::nullopt;
    }
    if (!value) {
      add(written, fmt::format("{} = {}: {}", key.name, shown(written.value), problem));
      bad_.insert(key.name);
    }
    return value;
  }
  static bool unfit(const RawValue& raw, std::string& problem, const std::string& wanted) {
    if (!raw.unusable.empty())
      problem = fmt::format("must be {}, not {}", wanted, raw.unusable);
    else if (raw.is_table || raw.is_table_list)
      problem = fmt::format("must be {}, not a table", wanted);
    return !problem.empty();
  }

  i64 integer(std::string_view key) const { return config_.integer(key); }
  const SpecValue& plain_value(std::string_view key) const { return config_.entry(key).plain; }

  // Task --------------------------------------------------------------------------------------------------------------

  void resolve_task() {
    if (const RawEntry* written = raw("task")) {
      if (auto task = spec(*find_key("task"), *written, registries_.tasks)) {
        store("task", {{std::move(*task)}}, written->origin, false);
        if (registries_.task_facts) facts_ = registries_.task_facts(config_.spec("task"));
        return;
      }
    } else {
      const std::string known =
          registries_.tasks ? fmt::format("{}", fmt::join(registries_.tasks->names(), ", ")) : std::string();
      problems_.push_back({"", "task must be given: --task NAME, or task = \"NAME\" in a file. Known: " + known + "."});
    }
    bad_.insert("task");
  }

  void derived_defaults() {
    plain("data.train_size", facts_.train_size);
    plain("data.val_size", facts_.val_size);
    plain("data.test_size", facts_.test_size);
    plain("data.max_len", facts_.max_len);
    const bool towers = facts_.kind == "pair-classify";
    plain("model.kind", towers ? "dual-encoder" : facts_.kind == "lm" ? "decoder" : "encoder");
    plain("model.causal", facts_.causal);
    const i64 width = integer("model.embed_dim"), heads = integer("model.num_heads");
    plain("model.head_dim", std::max<i64>(1, width / heads));
    plain("model.ffn_dim", std::min<i64>(4 * width, i64{1} << 20));
    plain("model.num_kv_heads", heads);
    plain("model.embedding_dropout", plain_value("model.dropout"));
    plain("model.head_hidden", plain_value("model.ffn_dim"));
    plain("model.max_len", plain_value("data.max_len"));
    lengths();
    const bool known = config_.has("train.steps");
    plain("train.eval_every", known ? SpecValue(std::max<i64>(1, integer("train.steps") / 10)) : SpecValue("auto"));
    plain("train.save_every", plain_value("train.eval_every"));
    plain("train.select",
          !facts_.has_validation || facts_.metric.empty() ? SpecValue("last") : SpecValue("val." + facts_.metric));
  }

  void lengths() {
    const bool any = std::any_of(std::begin(kLengths), std::end(kLengths), [&](const char* k) { return raw(k); });
    for (const char* key : kLengths) {
      if (!any && key == kLengths[0])
        plain(key, SpecValue(2000));
      else if (raw(key)) {
        plain(key, SpecValue(1));
        config_.entries_[key].is_default = std::string_view(key) == "train.steps" && integer(key) == 2000;
      } else
        config_.entries_[key] = Config::Entry{};
    }
  }

  // Keys whose values are specs
  // -----------------------------------------------------------------------------------------

  void special_keys() {
    defaults_ = {{"model.max_len", plain_value("model.max_len")},
                 {"model.embed_dim", plain_value("model.embed_dim")},
                 {"model.head_dim", plain_value("model.head_dim")},
                 {"model.num_heads", plain_value("model.num_heads")}};
    if (integer("model.max_len") == 0) defaults_.erase("model.max_len");  // unknown before the data is read
    one("optim.optimizer", registries_.optimizers);
    one("optim.schedule", registries_.schedules);
    one("model.init", &init_tables());
    pattern("model.position", registries_.encodings, false);
    pattern("model.attention", registries_.attentions, true);
    sum("model.cross_position", registries_.encodings);
    sum("train.regularizer", registries_.regularizers);
    groups();
    config_.entries_["name"] = Config::Entry{};
    if (const RawEntry* written = raw("name")) {
      if (const auto value = converted(*find_key("name"), *written)) {
        Config::Entry& entry = config_.entries_["name"];
        entry.plain = *value;
        finish(entry);
        entry.is_default = false;
        entry.origin = written->origin;
      }
    }
  }

  std::string example(const KeyInfo& key) const {
    const bool task = key.name == "task" && registries_.tasks && !registries_.tasks->names().empty();
    return task ? registries_.tasks->names().front() : key.fallback;
  }
  const std::string* spec_text(const KeyInfo& key, const RawEntry& written) {
    const Kind kind = written.value.value.kind();
    std::string problem;
    if (!unfit(written.value, problem, "text") && kind != Kind::text && kind != Kind::word)
      problem = fmt::format("must be text, as in {} = \"{}\"", key.name, example(key));
    if (problem.empty()) return &written.value.value.text();
    add(written, fmt::format("{} = {}: {}", key.name, shown(written.value), problem));
    bad_.insert(key.name);
    return nullptr;
  }

  // What a later source replaces never counts, but it is checked by itself: a mistake in a file is a mistake, and
  // would come up as soon as the option that hides it is left out.
  void replaced_values() {
    const auto known_bad = bad_;
    for (const RawEntry* entry : replaced_) {
      const KeyInfo& key = *find_key(entry->key);
      switch (key.shape) {
        case KeyShape::plain: (void)converted(key, *entry); break;
        case KeyShape::spec: (void)spec(key, *entry, tables_of(key.name)); break;
        case KeyShape::groups: break;  // the fields of tables have no meaning alone
        default: check_names(key, *entry, tables_of(key.name));
      }
    }
    bad_ = known_bad;  // what counts is not bad for that
  }
  const nn::SpecTables* tables_of(std::string_view key) const {
    if (key == "task") return registries_.tasks;
    if (key == "optim.optimizer") return registries_.optimizers;
    if (key == "optim.schedule") return registries_.schedules;
    if (key == "model.init") return &init_tables();
    if (key == "model.attention") return registries_.attentions;
    return key == "train.regularizer" ? registries_.regularizers : registries_.encodings;
  }
  // Names and options of a sum or a pattern; not its length, which belongs to a model.
  void check_names(const KeyInfo& key, const RawEntry& entry, const nn::SpecTables* tables) {
    const std::string* text = spec_text(key, entry);
    nn::SpecPattern pattern;
    if (!text || !tables || !parsed(key, entry.origin, [&] { pattern = nn::parse_pattern(*text); })) return;
    resolved(key, entry.origin, [&](auto& texts) {
      for (const nn::SpecSum& sum : pattern) (void)tables->resolve_sum(sum, texts, defaults_);
    });
  }

  // Runs a parser; its error becomes a problem.
  template <class F> bool parsed(const KeyInfo& key, const std::string& origin, F parse) {
    try {
      parse();
      return true;
    } catch (const Error& e) {
      problems_.push_back({origin, fmt::format("{}: {}", key.name, without_op(e))});
      bad_.insert(key.name);
      return false;
    }
  }

  // Appends what `resolve` finds wrong, each text once.
  template <class F> bool resolved(const KeyInfo& key, const std::string& origin, F resolve) {
    std::vector<std::string> texts;
    resolve(texts);
    std::set<std::string> said;
    for (const std::string& text : texts)
      if (said.insert(text).second) problems_.push_back({origin, key.name + ": " + text});
    if (!texts.empty()) bad_.insert(key.name);
    return texts.empty();
  }

  bool present(const KeyInfo& key, const nn::SpecTables* tables) {
    if (!tables && bad_.insert(key.name).second) problems_.push_back({"", key.name + ": nothing is registered for it"});
    return tables != nullptr;
  }
  std::optional<Options> spec(const KeyInfo& key, const RawEntry& written, const nn::SpecTables* tables) {
    const std::string* text = spec_text(key, written);
    return text ? spec(key, *text, written.origin, tables) : std::nullopt;
  }
  std::optional<Options> spec(const KeyInfo& key, const std::string& text, const std::string& origin,
                              const nn::SpecTables* tables) {
    nn::Spec spec;
    std::optional<Options> options;
    if (!present(key, tables) || !parsed(key, origin, [&] { spec = nn::parse_spec(text); })) return std::nullopt;
    resolved(key, origin, [&](auto& texts) { options = tables->resolve(spec, texts, defaults_); });
    return options;
  }

  void one(std::string_view name, const nn::SpecTables* tables) {
    const KeyInfo& key = *find_key(name);
    auto usual = spec(key, key.fallback, "default", tables);
    const std::string usual_text = usual ? usual->canonical() : "";
    if (usual) store(key.name, {{std::move(*usual)}}, "default", true);
    const RawEntry* written = raw(name);
    if (!written) return;
    if (auto value = spec(key, *written, tables)) {
      const bool same = value->canonical() == usual_text;
      store(key.name, {{std::move(*value)}}, written->origin, same);
    }
  }

  // A sum that may be absent: `none` without a table.
  void sum(std::string_view name, const nn::SpecTables* tables) {
    const KeyInfo& key = *find_key(name);
    const RawEntry* written = raw(name);
    std::string text = "none";
    if (written) {
      const std::string* given = spec_text(key, *written);
      if (given) text = *given;
    }
    const std::string origin = written ? written->origin : "default";
    nn::SpecSum sum;
    if (!parsed(key, origin, [&] { sum = nn::parse_sum(text); })) sum = {nn::Spec{"none", {}}};
    std::optional<std::vector<Options>> options;
    if (tables) {
      resolved(key, origin, [&](auto& texts) { options = tables->resolve_sum(sum, texts, defaults_); });
    } else if (!(sum == nn::SpecSum{nn::Spec{"none", {}}})) {
      problems_.push_back({origin, fmt::format("{} = {}: this version has none", key.name, printable(text))});
      bad_.insert(key.name);
    }
    if (!options) options = std::vector<Options>{nn::OptionTable{"none"}.resolve(nn::Spec{"none", {}})};
    const bool same = sum_text(*options, true) == "none";
    store(key.name, {std::move(*options)}, origin, same);
  }

  void pattern(std::string_view name, const nn::SpecTables* tables, bool single) {
    const KeyInfo& key = *find_key(name);
    std::string usual_text;
    if (auto usual = layers(key, key.fallback, "default", tables, single)) {
      store(key.name, std::move(*usual), "default", true);
      usual_text = config_.entries_[key.name].canonical;
    }
    const RawEntry* written = raw(name);
    const std::string* text = written ? spec_text(key, *written) : nullptr;
    if (!text) return;
    if (auto value = layers(key, *text, written->origin, tables, single)) {
      store(key.name, std::move(*value), written->origin, false);
      config_.entries_[key.name].is_default = config_.entries_[key.name].canonical == usual_text;
    }
  }

  std::optional<Layers> layers(const KeyInfo& key, const std::string& text, const std::string& origin,
                               const nn::SpecTables* tables, bool single) {
    nn::SpecPattern pattern;
    if (!present(key, tables) || !parsed(key, origin, [&] { pattern = nn::parse_pattern(text); })) return std::nullopt;
    std::map<std::string, std::vector<Options>> known;  // equal items are resolved once
    Layers out;
    const bool fine = resolved(key, origin, [&](auto& texts) {
      for (const nn::SpecSum& sum : pattern) {
        const std::string written = to_string(sum);
        auto found = known.find(written);
        if (found == known.end()) {
          auto options = tables->resolve_sum(sum, texts, defaults_);
          if (single && sum.size() > 1)
            texts.push_back(fmt::format("{} joins {} specs, but a layer has one {}", printable(written), sum.size(),
                                        tables->kind()));
          found = known.emplace(written, options ? std::move(*options) : std::vector<Options>{}).first;
        }
        out.push_back(found->second);
      }
      const i64 layers = integer("model.num_layers"), items = static_cast<i64>(out.size());
      if (bad_.count("model.num_layers")) return;
      if (items == 1)
        out.resize(static_cast<size_t>(layers), out[0]);
      else if (items != layers)
        texts.push_back(fmt::format("the pattern has {} items, but model.num_layers = {}", items, layers));
    });
    if (!fine) return std::nullopt;
    return out;
  }

  void store(const std::string& key, Layers layers, const std::string& origin, bool is_default) {
    Config::Entry entry;
    entry.set = true;
    entry.is_default = is_default;
    entry.origin = origin;
    std::vector<std::string> canonical, shorts;
    for (const auto& sum : layers) {
      canonical.push_back(sum_text(sum, true));
      shorts.push_back(sum_text(sum, false));
    }
    entry.canonical = nn::pattern_to_string(canonical);
    entry.short_form = nn::pattern_to_string(shorts);
    entry.layers = std::move(layers);
    config_.entries_[key] = std::move(entry);
  }

  void groups() {
    const KeyInfo& key = *find_key("optim.groups");
    Config::Entry entry;
    entry.set = true;
    entry.canonical = entry.short_form = "[]";
    const RawEntry* written = raw(key.name);
    const bool is_empty_list = written && !written->value.is_table && !written->value.is_table_list &&
                               written->value.unusable.empty() &&
                               written->value.value == SpecValue(std::vector<SpecValue>{});
    if (written && !written->value.is_table_list && !is_empty_list) {
      add(*written, fmt::format("{} = {}: must be a list of tables, as in [{{match = \"*.bias\", lr_scale = 0.5}}]",
                                key.name, shown(written->value)));
      bad_.insert(key.name);
    } else if (written) {
      entry.origin = written->origin;
      std::vector<std::string> texts;
      for (size_t i = 0; i < written->value.tables.size(); ++i) {
        auto options = group(written->value.tables[i], *written, fmt::format("{}[{}]", key.name, i));
        if (!options) continue;
        texts.push_back(options->canonical());
        ParameterGroup g{options->word("match"), options->real("lr_scale"), std::nullopt, options->boolean("freeze")};
        if (!options->is_word("weight_decay", "default")) g.weight_decay = options->real("weight_decay");
        entry.groups.push_back(std::move(g));
        entry.layers.push_back({std::move(*options)});
      }
      entry.canonical = entry.short_form = fmt::format("[{}]", fmt::join(texts, ", "));
      entry.is_default = texts.empty();
    }
    config_.entries_[key.name] = std::move(entry);
  }

  std::optional<Options> group(const std::vector<RawField>& table, const RawEntry& written, const std::string& place) {
    nn::Spec spec{"group", {}};
    std::vector<std::string> texts;
    for (const auto& [name, raw] : table) {
      std::string problem;
      if (unfit(raw, problem, "a plain value"))
        texts.push_back(fmt::format("{} {}", printable(name), problem));
      else
        spec.args.push_back({name, raw.value});
    }
    auto options = group_table().resolve(spec, texts);
    for (const std::string& text : texts) add(written, place + ": " + text);
    if (!texts.empty()) bad_.insert("optim.groups");
    return texts.empty() ? options : std::nullopt;
  }

  Problems& problems_;
  const Registries& registries_;
  std::map<std::string, const RawEntry*, std::less<>> raw_;
  std::vector<const RawEntry*> replaced_;  // by a later source
  std::set<std::string, std::less<>> bad_;  // keys that have a problem; rules that need them are skipped
  TaskFacts facts_;
  nn::Defaults defaults_;
  Config config_;
};

std::optional<Config> resolve_config(const std::vector<Source>& sources, Problems& problems,
                                     const Registries& registries) {
  const size_t before = problems.size();
  Config config = Resolver(problems, registries).resolve(sources);
  if (problems.size() > before) return std::nullopt;
  return config;
}

std::optional<Config> resolve_cell(const std::vector<Source>& sources, Problems& problems,
                                   const Registries& registries) {
  Problems own;
  Config config = Resolver(own, registries).resolve(sources);
  const bool usable = std::all_of(own.begin(), own.end(), [](const Problem& p) { return p.refusal; });
  problems.insert(problems.end(), own.begin(), own.end());
  return usable ? std::optional(std::move(config)) : std::nullopt;
}

Config resolve_or_throw(const std::vector<Source>& sources, Problems problems, const Registries& registries) {
  auto config = resolve_config(sources, problems, registries);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return std::move(*config);
}

}  // namespace waymark::train
