#include "nn/spec/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/tensor/error.h"
#include "nn/spec/suggest.h"

namespace waymark::nn {

using Kind = SpecValue::Kind;

namespace {

// 1e+22, 10000, 0.5: shortest text that gives the same double; an int is accepted for a float, so "10000" will do.
std::string number_text(double v) { return fmt::format("{}", v); }

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string bound_text(double v) {
  return std::abs(v) < 1e15 && v == std::floor(v) ? fmt::format("{}", static_cast<i64>(v)) : number_text(v);
}

// " 0..16", " >= 1", " > 0 and < 1", or nothing.
std::string range_text(const OptionRule& rule) {
  const bool low = std::isfinite(rule.min), high = std::isfinite(rule.max);
  if (low && high && !rule.above && !rule.below)
    return fmt::format(" {}..{}", bound_text(rule.min), bound_text(rule.max));
  std::string text;
  if (low) text += fmt::format(" {} {}", rule.above ? ">" : ">=", bound_text(rule.min));
  if (high) text += fmt::format("{} {} {}", low ? " and" : "", rule.below ? "<" : "<=", bound_text(rule.max));
  return text;
}

const char* kind_name(const SpecValue& v) {
  switch (v.kind()) {
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::boolean: return "bool";
    case Kind::word: return "word";
    case Kind::text: return "text";
    case Kind::list: return "list";
    default: return "spec";
  }
}

std::string shown(const SpecValue& v) { return fmt::format("{} {}", kind_name(v), printable(to_string(v), 40)); }

bool in_range(const OptionRule& rule, double v) {
  return (rule.above ? v > rule.min : v >= rule.min) && (rule.below ? v < rule.max : v <= rule.max);
}

// The value in the declared type, or nothing and what is wrong: "must be int 0..16, not float 1.5".
class Converter {
 public:
  Converter(const OptionRule& rule, std::string& problem) : rule_(rule), problem_(problem) {}

  std::optional<SpecValue> operator()(const SpecValue& v) {
    if ((v.kind() == Kind::word || v.kind() == Kind::text) && contains(rule_.choices, v.text()))
      return SpecValue(v.text());
    switch (rule_.type) {
      case OptionType::integer:
      case OptionType::real:
      case OptionType::boolean: return scalar(rule_.type, v);
      case OptionType::word: return word(v);
      case OptionType::text: return text(v);
      case OptionType::integers:
        if (rule_.one && v.kind() == Kind::integer) return list(SpecValue(std::vector<SpecValue>{v}), OptionType::integer);
        return list(v, OptionType::integer);
      case OptionType::reals: return list(v, OptionType::real);
      case OptionType::words: return list(v, OptionType::word);
      case OptionType::spec: break;
    }
    if (v.kind() == Kind::spec) return v;
    if (v.kind() == Kind::word) return SpecValue(Spec{v.text(), {}, v.column});
    return wrong(v);
  }

 private:
  std::optional<SpecValue> wrong(const SpecValue& v) {
    problem_ = fmt::format("must be {}, not {}", rule_.describe(), shown(v));
    if (v.kind() == Kind::word || v.kind() == Kind::text)
      if (const std::string hint = did_you_mean(v.text(), rule_.choices); !hint.empty()) problem_ += "." + hint;
    return std::nullopt;
  }
  std::optional<SpecValue> scalar(OptionType type, const SpecValue& v) {
    if (type == OptionType::boolean) return v.kind() == Kind::boolean ? std::optional(v) : wrong(v);
    if (type == OptionType::integer) {
      if (v.kind() != Kind::integer || !in_range(rule_, static_cast<double>(v.integer()))) return wrong(v);
      return v;
    }
    if (v.kind() != Kind::integer && v.kind() != Kind::real) return wrong(v);
    const double number = v.kind() == Kind::integer ? static_cast<double>(v.integer()) : v.real();
    if (!std::isfinite(number) || !in_range(rule_, number)) return wrong(v);
    return SpecValue(number == 0 ? 0.0 : number);  // one zero, one text
  }
  std::optional<SpecValue> word(const SpecValue& v) {
    if (rule_.type == OptionType::words && rule_.choices.empty()) return text(v);
    return wrong(v);
  }
  // Words and quoted text; a number is refused: it was probably meant as one.
  std::optional<SpecValue> text(const SpecValue& v) {
    return v.kind() == Kind::word || v.kind() == Kind::text ? std::optional(SpecValue(v.text())) : wrong(v);
  }
  std::optional<SpecValue> list(const SpecValue& v, OptionType element) {
    if (v.kind() != Kind::list) return wrong(v);
    const i64 n = static_cast<i64>(v.list().size());
    if (n < rule_.min_length || n > rule_.max_length) {
      problem_ = fmt::format("must be {}, not a list of {}", rule_.describe(), n);
      return std::nullopt;
    }
    std::vector<SpecValue> out;
    for (const SpecValue& item : v.list()) {
      std::optional<SpecValue> converted;
      if (element != OptionType::word)
        converted = scalar(element, item);
      else if ((item.kind() == Kind::word || item.kind() == Kind::text) && contains(rule_.choices, item.text()))
        converted = SpecValue(item.text());
      else
        converted = word(item);
      if (!converted) return std::nullopt;
      out.push_back(*converted);
    }
    return SpecValue(std::move(out));
  }

  const OptionRule& rule_;
  std::string& problem_;
};

OptionRule make_rule(OptionType type, std::optional<SpecValue> fallback, double min, double max) {
  OptionRule rule;
  rule.type = type;
  rule.fallback = std::move(fallback);
  rule.min = min;
  rule.max = max;
  return rule;
}
template <class T> std::optional<SpecValue> list_value(const std::optional<std::vector<T>>& list) {
  if (!list) return std::nullopt;
  std::vector<SpecValue> values(list->begin(), list->end());
  return SpecValue(std::move(values));
}

constexpr double kInf = std::numeric_limits<double>::infinity();

[[noreturn]] void throw_problems(const std::vector<std::string>& problems) {
  fail("spec", "{}", fmt::join(problems, "\n      "));
}

}  // namespace

std::optional<SpecValue> convert(const OptionRule& rule, const SpecValue& value, std::string& problem) {
  return Converter(rule, problem)(value);
}

std::string value_text(const SpecValue& v) {
  if (v.kind() == Kind::real) return number_text(v.real());
  if (v.kind() != Kind::list) return to_string(v);
  std::string out = "[";
  for (const SpecValue& item : v.list()) {
    if (out.size() > 1) out += ',';
    out += value_text(item);
  }
  return out + "]";
}

// Rules ---------------------------------------------------------------------------------------------------------------

OptionRule OptionRule::or_word(std::vector<std::string> words) const {
  OptionRule rule = *this;
  rule.choices.insert(rule.choices.end(), words.begin(), words.end());
  return rule;
}
OptionRule OptionRule::greater_than(double bound) const {
  OptionRule rule = *this;
  rule.min = bound;
  rule.above = true;
  return rule;
}
OptionRule OptionRule::or_one() const {
  OptionRule rule = *this;
  rule.one = true;
  return rule;
}
OptionRule OptionRule::less_than(double bound) const {
  OptionRule rule = *this;
  rule.max = bound;
  rule.below = true;
  return rule;
}
OptionRule OptionRule::default_from(std::string key) const {
  OptionRule rule = *this;
  rule.from = std::move(key);
  return rule;
}

std::string OptionRule::describe() const {
  const std::string words = fmt::format("{}", fmt::join(choices, " | "));
  const std::string beside = choices.empty() ? "" : " or " + words;
  std::string length;
  if (min_length == max_length)
    length = fmt::format(" of {}", min_length);
  else if (min_length > 0)
    length = fmt::format(" of at least {}", min_length);
  switch (type) {
    case OptionType::integer: return "int" + range_text(*this) + beside;
    case OptionType::real: return "float" + range_text(*this) + beside;
    case OptionType::boolean: return "bool (true or false)" + beside;
    case OptionType::word: return words;
    case OptionType::text: return "text" + beside;
    case OptionType::integers: return fmt::format("{}list{} of int{}", one ? "int or " : "", length, range_text(*this));
    case OptionType::reals: return fmt::format("list{} of float{}", length, range_text(*this));
    case OptionType::words: return fmt::format("list{} of {}", length, choices.empty() ? "words" : words);
    default: return tables ? tables->kind() + beside : "spec" + beside;
  }
}

OptionRule int_option(Fallback fallback, i64 min, i64 max) {
  constexpr i64 kLow = std::numeric_limits<i64>::min(), kHigh = std::numeric_limits<i64>::max();
  return make_rule(OptionType::integer, fallback.value, min == kLow ? -kInf : static_cast<double>(min),
                   max == kHigh ? kInf : static_cast<double>(max));
}
OptionRule real_option(Fallback fallback, double min, double max) {
  if (fallback.value && fallback.value->kind() == Kind::integer)
    fallback.value = SpecValue(static_cast<double>(fallback.value->integer()));
  return make_rule(OptionType::real, fallback.value, min, max);
}
OptionRule bool_option(Fallback fallback) { return make_rule(OptionType::boolean, fallback.value, -kInf, kInf); }
OptionRule word_option(Fallback fallback, std::vector<std::string> choices) {
  OptionRule rule = make_rule(OptionType::word, fallback.value, -kInf, kInf);
  rule.choices = std::move(choices);
  return rule;
}
OptionRule text_option(std::optional<std::string> fallback) {
  return make_rule(OptionType::text, fallback ? std::optional(SpecValue(*fallback)) : std::nullopt, -kInf, kInf);
}
OptionRule int_list_option(std::optional<std::vector<i64>> fallback, i64 min, i64 max, i64 min_length, i64 max_length) {
  OptionRule rule =
      make_rule(OptionType::integers, list_value(fallback), static_cast<double>(min), static_cast<double>(max));
  rule.min_length = min_length;
  rule.max_length = max_length;
  return rule;
}
OptionRule real_list_option(std::optional<std::vector<double>> fallback, double min, double max, i64 min_length,
                            i64 max_length) {
  OptionRule rule = make_rule(OptionType::reals, list_value(fallback), min, max);
  rule.min_length = min_length;
  rule.max_length = max_length;
  return rule;
}
OptionRule word_list_option(std::optional<std::vector<std::string>> fallback, std::vector<std::string> choices) {
  OptionRule rule = make_rule(OptionType::words, list_value(fallback), -kInf, kInf);
  rule.choices = std::move(choices);
  return rule;
}
OptionRule spec_option(std::optional<std::string> fallback, const SpecTables& tables) {
  OptionRule rule = make_rule(OptionType::spec, std::nullopt, -kInf, kInf);
  if (fallback) rule.fallback = SpecValue(parse_spec(*fallback));
  rule.tables = &tables;
  return rule;
}

// Options -------------------------------------------------------------------------------------------------------------

const Options::Entry& Options::entry(std::string_view option) const {
  for (const Entry& e : entries_)
    if (e.name == option) return e;
  fail(name_, "has no option {}", option);
}
const Options::Entry& Options::entry(std::string_view option, OptionType type) const {
  const Entry& e = entry(option);
  if (e.type != type && !(e.type == OptionType::text && type == OptionType::word))
    fail(name_, "option {} was asked for in another type than it has", option);
  return e;
}
bool Options::has(std::string_view option) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.name == option; });
}
const SpecValue& Options::value(std::string_view option) const { return entry(option).value; }
bool Options::given(std::string_view option) const { return entry(option).given; }
bool Options::is_word(std::string_view option, std::string_view word) const {
  const SpecValue& v = entry(option).value;
  return v.kind() == Kind::word && v.text() == word;
}

i64 Options::integer(std::string_view option) const {
  const SpecValue& v = entry(option, OptionType::integer).value;
  if (v.kind() != Kind::integer) fail(name_, "option {} is {}, not a number", option, to_string(v));
  return v.integer();
}
double Options::real(std::string_view option) const {
  const SpecValue& v = entry(option, OptionType::real).value;
  if (v.kind() != Kind::real) fail(name_, "option {} is {}, not a number", option, to_string(v));
  return v.real();
}
bool Options::boolean(std::string_view option) const {
  const SpecValue& v = entry(option, OptionType::boolean).value;
  if (v.kind() != Kind::boolean) fail(name_, "option {} is {}, not true or false", option, to_string(v));
  return v.boolean();
}
const std::string& Options::word(std::string_view option) const {
  const SpecValue& v = entry(option).value;
  if (v.kind() != Kind::word) fail(name_, "option {} is {}, not a word", option, to_string(v));
  return v.text();
}
std::vector<i64> Options::integers(std::string_view option) const {
  std::vector<i64> out;
  for (const SpecValue& v : entry(option, OptionType::integers).value.list()) out.push_back(v.integer());
  return out;
}
std::vector<double> Options::reals(std::string_view option) const {
  std::vector<double> out;
  for (const SpecValue& v : entry(option, OptionType::reals).value.list()) out.push_back(v.real());
  return out;
}
std::vector<std::string> Options::words(std::string_view option) const {
  std::vector<std::string> out;
  for (const SpecValue& v : entry(option, OptionType::words).value.list()) out.push_back(v.text());
  return out;
}
const Options& Options::spec(std::string_view option) const {
  const Entry& e = entry(option, OptionType::spec);
  if (!e.nested) fail(name_, "option {} is {}, not a spec", option, to_string(e.value));
  return *e.nested;
}

namespace {

std::string joined(const std::string& name, const std::vector<std::string>& args) {
  return args.empty() ? name : fmt::format("{}({})", name, fmt::join(args, ", "));
}

}  // namespace

std::string Options::short_form() const {
  std::vector<std::string> args;
  for (const Entry& e : entries_)
    if (e.shown || !e.fallback || !(e.value == *e.fallback))
      args.push_back(e.name + "=" + (e.nested ? e.nested->short_form() : value_text(e.value)));
  return joined(name_, args);
}
std::string Options::canonical() const {
  std::vector<std::string> args;
  for (const Entry& e : entries_)
    args.push_back(e.name + "=" + (e.nested ? e.nested->canonical() : value_text(e.value)));
  return joined(name_, args);
}

bool operator==(const Options& a, const Options& b) { return a.canonical() == b.canonical(); }

// Tables --------------------------------------------------------------------------------------------------------------

const OptionDef* OptionTable::find(std::string_view option) const {
  for (const OptionDef& def : options)
    if (def.name == option) return &def;
  return nullptr;
}
std::vector<std::string> OptionTable::option_names() const {
  std::vector<std::string> names;
  for (const OptionDef& def : options) names.push_back(def.name);
  return names;
}

std::optional<Options> OptionTable::resolve(const Spec& spec, std::vector<std::string>& problems,
                                            const Defaults& defaults) const {
  const size_t before = problems.size();
  for (const SpecArg& arg : spec.args) {
    if (find(arg.key)) continue;
    const std::string key = printable(arg.key, 40);
    if (options.empty())
      problems.push_back(fmt::format("{}: unknown option {}; it has no options", name, key));
    else
      problems.push_back(fmt::format(
          "{}: unknown option {}.{}{}", name, key, did_you_mean(arg.key, option_names()),
          suggest(arg.key, option_names()).empty() ? fmt::format(" It has {}.", fmt::join(option_names(), ", ")) : ""));
  }
  Options out;
  out.name_ = name;
  for (const OptionDef& def : options) {
    Options::Entry entry;
    entry.name = def.name;
    entry.type = def.rule.type;
    entry.fallback = def.rule.fallback;
    entry.shown = !def.rule.from.empty();
    if (const auto outer = defaults.find(def.rule.from); entry.shown && outer != defaults.end()) {
      entry.value = outer->second;
    } else if (def.rule.fallback) {
      entry.value = *def.rule.fallback;
    }
    const SpecValue* written = spec.find(def.name);
    if (!written && !def.rule.fallback && defaults.find(def.rule.from) == defaults.end()) {
      problems.push_back(fmt::format("{}: option {} must be given ({})", name, def.name, def.rule.describe()));
      continue;
    }
    if (written) {
      entry.given = true;
      entry.value = *written;
    }
    std::string problem;
    const auto value = convert(def.rule, entry.value, problem);
    if (!value) {
      problems.push_back(fmt::format("{}: option {} {}", name, def.name, problem));
      continue;
    }
    entry.value = *value;
    if (value->kind() == Kind::spec) {
      auto nested = def.rule.tables->resolve(value->spec(), problems, defaults);
      if (!nested) continue;
      entry.nested = std::make_shared<const Options>(std::move(*nested));
      // unit(depth=1) is the default `unit`, if 1 is the default of depth.
      std::vector<std::string> none;
      const auto usual = def.rule.fallback && def.rule.fallback->kind() == Kind::spec
                             ? def.rule.tables->resolve(def.rule.fallback->spec(), none, defaults)
                             : std::nullopt;
      if (usual && usual->canonical() == entry.nested->canonical()) entry.fallback = entry.value;
    }
    out.entries_.push_back(std::move(entry));
  }
  if (problems.size() == before && check) {
    std::vector<std::string> texts;
    check(out, texts);
    for (const std::string& text : texts) problems.push_back(name + ": " + text);
  }
  if (problems.size() > before) return std::nullopt;
  return out;
}

Options OptionTable::resolve(const Spec& spec, const Defaults& defaults) const {
  std::vector<std::string> problems;
  if (spec.name != name) problems.push_back(fmt::format("{} is not {}", printable(spec.name), name));
  auto options_or = resolve(spec, problems, defaults);
  if (!problems.empty()) throw_problems(problems);
  return std::move(*options_or);
}

std::string OptionTable::signature() const {
  std::vector<std::string> args;
  for (const OptionDef& def : options) {
    std::string text = def.name + "=";
    if (!def.rule.from.empty())
      text += def.rule.from;
    else if (!def.rule.fallback)
      text = def.name;
    else if (def.rule.type == OptionType::word && !def.rule.choices.empty())
      text += fmt::format("{}", fmt::join(def.rule.choices, "|"));
    else
      text += value_text(*def.rule.fallback);
    args.push_back(text);
  }
  return joined(name, args);
}

SpecTables::SpecTables(std::string kind, std::vector<OptionTable> tables) : kind_(std::move(kind)) {
  for (OptionTable& table : tables) add(std::move(table));
}

void SpecTables::add(OptionTable table) {
  if (find(table.name) || find_alias(table.name)) fail("spec", "the {} {} exists already", kind_, table.name);
  for (const OptionDef& def : table.options) {
    if (!def.rule.fallback) continue;
    std::string problem;
    if (!convert(def.rule, *def.rule.fallback, problem))
      fail("spec", "{} {}: the default of {} {}", kind_, table.name, def.name, problem);
  }
  tables_.push_back(std::make_unique<const OptionTable>(std::move(table)));
}
void SpecTables::add_alias(std::string name, std::string_view spec) {
  if (find(name) || find_alias(name)) fail("spec", "the {} {} exists already", kind_, name);
  Spec target = parse_spec(spec);
  (void)resolve(target);
  aliases_.emplace_back(std::move(name), std::move(target));
}

const OptionTable* SpecTables::find(std::string_view name) const {
  const i64 i = order_of(name);
  return i < 0 ? nullptr : tables_[static_cast<size_t>(i)].get();
}
const Spec* SpecTables::find_alias(std::string_view name) const {
  for (const auto& [alias, spec] : aliases_)
    if (alias == name) return &spec;
  return nullptr;
}
i64 SpecTables::order_of(std::string_view name) const {
  for (size_t i = 0; i < tables_.size(); ++i)
    if (tables_[i]->name == name) return static_cast<i64>(i);
  return -1;
}
std::vector<std::string> SpecTables::names() const {
  std::vector<std::string> out;
  for (const auto& table : tables_) out.push_back(table->name);
  return out;
}

std::optional<Options> SpecTables::resolve(const Spec& spec, std::vector<std::string>& problems,
                                           const Defaults& defaults) const {
  if (const OptionTable* table = find(spec.name)) return table->resolve(spec, problems, defaults);
  if (const Spec* alias = find_alias(spec.name)) {
    // What is written beside the alias wins over what the alias stands for.
    Spec merged = *alias;
    for (const SpecArg& arg : spec.args) {
      auto same =
          std::find_if(merged.args.begin(), merged.args.end(), [&](const SpecArg& a) { return a.key == arg.key; });
      if (same == merged.args.end())
        merged.args.push_back(arg);
      else
        *same = arg;
    }
    return find(merged.name)->resolve(merged, problems, defaults);
  }
  if (contains(planned_, spec.name)) {
    problems.push_back(
        fmt::format("the {} {} is not part of this version. Known: {}.", kind_, spec.name, fmt::join(names(), ", ")));
    return std::nullopt;
  }
  std::vector<std::string> known = names();
  for (const auto& [alias, target] : aliases_) known.push_back(alias);
  std::string hint = did_you_mean(spec.name, known);
  if (hint.empty()) hint = fmt::format(" Known: {}.", fmt::join(known, ", "));
  problems.push_back(fmt::format("unknown {} {}.{}", kind_, printable(spec.name, 40), hint));
  return std::nullopt;
}

Options SpecTables::resolve(const Spec& spec, const Defaults& defaults) const {
  std::vector<std::string> problems;
  auto options = resolve(spec, problems, defaults);
  if (!options) throw_problems(problems);
  return std::move(*options);
}

std::optional<std::vector<Options>> SpecTables::resolve_sum(const SpecSum& sum, std::vector<std::string>& problems,
                                                            const Defaults& defaults) const {
  const size_t before = problems.size();
  std::vector<Options> out;
  for (const Spec& spec : sum) {
    auto options = resolve(spec, problems, defaults);
    if (!options) continue;
    const bool twice =
        std::any_of(out.begin(), out.end(), [&](const Options& o) { return o.name() == options->name(); });
    if (twice)
      problems.push_back(fmt::format("{} appears twice in the sum", options->name()));
    else
      out.push_back(std::move(*options));
  }
  if (problems.size() > before) return std::nullopt;
  std::stable_sort(out.begin(), out.end(),
                   [&](const Options& a, const Options& b) { return order_of(a.name()) < order_of(b.name()); });
  return out;
}

std::string sum_text(const std::vector<Options>& sum, bool canonical) {
  std::vector<std::string> parts;
  for (const Options& o : sum) parts.push_back(canonical ? o.canonical() : o.short_form());
  return fmt::format("{}", fmt::join(parts, " + "));
}

}  // namespace waymark::nn
