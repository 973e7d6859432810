// char-mlm: masked symbols of a text.
//
// * train: windows of `context` symbols with a start drawn uniformly, one per item; without data.train_size there is
//   no end to them. val, test: consecutive windows without overlap; test@N: windows of N symbols of the test part. With
//   data.val_size or data.test_size = n, windows spread evenly, as many as have the symbols of n windows of `context`.
// * mask_rate of the positions are masked, each by itself. Training masks are drawn anew in every step, from (seed,
//   stream data.mask, step); those of the other splits from (data.seed, stream data.mask.<split>, item).
#include <algorithm>
#include <cmath>

#include "core/random/generator.h"
#include "nn/spec/suggest.h"
#include "train/config/hash.h"
#include "train/tasks/corpus.h"
#include "train/tasks/registry.h"

namespace waymark::train {

namespace {

// What is done to the positions of one batch or item.
struct MaskDraws {
  Draw masked, action, symbol;
};

class CharMlm final : public Task {
 public:
  CharMlm(const TaskRequest& request, TaskFacts facts, Corpus corpus)
      : Task(*request.spec, std::move(facts)), corpus_(std::move(corpus)), train_size_(request.train_size),
        seed_(request.seed), data_seed_(request.data_seed), context_(spec().integer("context")),
        rate_(spec().real("mask_rate")), bert_(spec().boolean("bert")) {
    mask_id_ = corpus_.vocabulary().add_special("[MASK]");
    const auto add = [&](const std::string& name, TextPart part, i64 length, i64 limit) {
      const i64 same_symbols = std::max(i64{1}, limit * context_ / length);
      windows_.emplace_back(name, Windows(part, length, limit > 0 ? same_symbols : 0));
      splits_.push_back({name, windows_.back().second.count, length});
    };
    splits_.push_back({"train", train_size_, context_});
    add("val", corpus_.val, context_, request.val_size);
    add("test", corpus_.test, context_, request.test_size);
    for (const i64 length : spec().integers("test_lengths"))
      add(fmt::format("test@{}", length), corpus_.test, length, request.test_size);
    // The canonical spec without `path`: the place of a file is no part of the data.
    train_stream_ = "data.generate." + spec().name();
    for (const std::string& option : task_tables().find(spec().name())->option_names())
      if (option != "path") train_stream_ += fmt::format(",{}={}", option, nn::value_text(spec().value(option)));
    train_stream_ += ".train";
    if (train_size_ == 0) train_stream_ += fmt::format(".{}", seed_);  // unlimited: another stream for every seed
  }

  const std::vector<SplitFacts>& splits() const override { return splits_; }
  i64 inputs() const override { return corpus_.vocabulary().size(); }
  i64 outputs() const override { return corpus_.vocabulary().size(); }
  i64 pad_id() const override { return mask_id_; }  // all windows of a batch are equally long
  bool test_is_validation() const override { return corpus_.test_is_val; }

  Batch training_batch(std::span<const i64> items, i64 step) const override {
    Generator generator(seed_);
    const u64 number = static_cast<u64>(step);
    const MaskDraws draws{generator.fixed_draw("data.mask", number), generator.fixed_draw("data.mask.action", number),
                          generator.fixed_draw("data.mask.symbol", number)};
    Batch batch = empty_batch(static_cast<i64>(items.size()), context_);
    for (size_t row = 0; row < items.size(); ++row)
      fill(batch, static_cast<i64>(row), train_start(items[row]), draws, row);
    return counted(batch);
  }

  Batch evaluation_batch(std::string_view name, std::span<const i64> items) const override {
    const SplitFacts& facts = split(name);
    Batch batch = empty_batch(static_cast<i64>(items.size()), facts.length);
    Generator generator(data_seed_);
    const std::string stream = fmt::format("data.mask.{}", name);
    for (size_t row = 0; row < items.size(); ++row) {
      check_item(facts, items[row]);
      const u64 number = static_cast<u64>(items[row]);
      const MaskDraws draws{generator.fixed_draw(stream, number), generator.fixed_draw(stream + ".action", number),
                            generator.fixed_draw(stream + ".symbol", number)};
      fill(batch, static_cast<i64>(row), start(facts, items[row]), draws, 0);
    }
    return counted(batch);
  }

  std::string item_id(std::string_view name, i64 item) const override {
    const SplitFacts& facts = split(name);
    check_item(facts, item);
    return fmt::format("{}:{}:{}", name, item, start(facts, item));
  }

  std::string describe(std::string_view name, i64 item) const override {
    const i64 items[] = {item};
    const Batch batch = evaluation_batch(name, items);
    const std::vector<i64> tokens = batch.tokens.to_vector<i64>(), targets = batch.targets.to_vector<i64>();
    const Vocabulary& v = corpus_.vocabulary();
    std::string shown, answer;
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool scored = targets[i] != kNotScored;
      const std::string letter = v.name_of(scored ? targets[i] : tokens[i]);
      shown += scored ? "_" : letter;
      answer += letter;
    }
    return fmt::format("{}  ({} symbols from {} on, {} masked)\n  input   {}\n  answer  {}\n", item_id(name, item),
                       tokens.size(), start(split(name), item), batch.scored, shown, answer);
  }

  // `_` is a masked symbol, unless the text has that letter.
  Batch batch_of_text(std::string_view text) const override {
    std::vector<i64> tokens;
    const bool underscore = has_symbol(U"_");
    for (const std::u32string& part : prepared(text)) {
      if (part == U"_" && !underscore) tokens.push_back(mask_id_);
      else tokens.push_back(corpus_.vocabulary().encode(part).front());
    }
    if (tokens.empty()) fail(spec().name(), "the text is empty");
    return unscored_batch(tokens);
  }

  std::string fingerprint(std::string_view name) const override {
    const SplitFacts& facts = split(name);
    std::string bytes = fmt::format("{}\n{}\n", name, facts.size);
    if (name == "train") {
      // The part of the text and the rule of the starts say everything; the items would have no end.
      bytes += fmt::format("{}\n{}\n{}\n", data_seed_, train_stream_, context_);
      const auto first = corpus_.ids().begin() + corpus_.train.begin, last = corpus_.ids().begin() + corpus_.train.end;
      for (auto id = first; id != last; ++id) put(bytes, *id);
      return xxh128_hex(bytes);
    }
    constexpr i64 kChunk = 64;
    for (i64 at = 0; at < facts.size; at += kChunk) {
      std::vector<i64> items;
      for (i64 i = at; i < std::min(at + kChunk, facts.size); ++i) items.push_back(i);
      const Batch batch = evaluation_batch(name, items);
      for (const i64 item : items) bytes += item_id(name, item) + "\n";
      for (const i64 v : batch.tokens.to_vector<i64>()) put(bytes, v);
      for (const i64 v : batch.targets.to_vector<i64>()) put(bytes, v);
    }
    return xxh128_hex(bytes);
  }

  // The most frequent symbol of the training part, and its frequencies with one more of each.
  std::vector<Baseline> baselines(std::string_view name) const override {
    const SplitFacts& facts = split(name);
    if (name == "train") fail("baselines", "they are computed on splits that are reported, not on train");
    const size_t symbols = static_cast<size_t>(corpus_.vocabulary().symbols());
    std::vector<i64> counts(symbols, 1);
    for (i64 i = corpus_.train.begin; i < corpus_.train.end; ++i) ++counts[static_cast<size_t>(corpus_.ids()[static_cast<size_t>(i)])];
    const double total = static_cast<double>(corpus_.train.size()) + static_cast<double>(symbols);
    const i64 majority = std::max_element(counts.begin(), counts.end()) - counts.begin();
    double nats = 0;
    i64 n = 0, right = 0;
    for (i64 item = 0; item < facts.size; ++item) {
      const i64 items[] = {item};
      for (const i64 target : evaluation_batch(name, items).targets.to_vector<i64>()) {
        if (target == kNotScored) continue;
        ++n;
        right += target == majority;
        nats -= std::log(static_cast<double>(counts[static_cast<size_t>(target)]) / total);
      }
    }
    if (n == 0) return {};
    return {{"majority symbol", std::string(name), "accuracy", static_cast<double>(right) / static_cast<double>(n)},
            {"unigram", std::string(name), "loss", nats / static_cast<double>(n)}};
  }

  std::string masking() const override {
    return fmt::format("{} % of the positions, {}", 100 * rate_,
                       bert_ ? "80 % of them [MASK], 10 % another symbol, 10 % as they were" : "always [MASK]");
  }

 private:
  static void put(std::string& bytes, i64 value) {
    const i32 v = static_cast<i32>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>((v >> shift) & 0xFF));
  }
  void check_item(const SplitFacts& facts, i64 item) const {
    if (item < 0 || (facts.size > 0 && item >= facts.size))
      fail(spec().name(), "there is no item {} in {}, which has {}", item, facts.name, facts.size);
  }
  i64 train_start(i64 item) const {
    Generator generator(data_seed_);
    const Draw draw = generator.fixed_draw(train_stream_, static_cast<u64>(item));
    return randint_at(draw, corpus_.train.begin, corpus_.train.end - context_ + 1, 0, 0, 0);
  }
  i64 start(const SplitFacts& facts, i64 item) const {
    if (facts.name == "train") return train_start(item);
    for (const auto& [name, windows] : windows_)
      if (name == facts.name) return windows.begin(item);
    fail(spec().name(), "there is no split {}", facts.name);
  }

  bool has_symbol(std::u32string_view symbol) const {
    try {
      (void)corpus_.vocabulary().encode(symbol);
      return true;
    } catch (const Error&) {
      return false;
    }
  }
  // The symbols of a text one by one.
  std::vector<std::u32string> prepared(std::string_view text) const {
    std::u32string symbols;
    if (spec().word("level") == "byte")
      for (const char c : text) symbols.push_back(static_cast<unsigned char>(c));
    else
      symbols = prepare_text(decode_utf8(text, "the text"), {spec().boolean("lower"), spec().boolean("collapse")});
    std::vector<std::u32string> list;
    for (const char32_t c : symbols) list.emplace_back(1, c);
    return list;
  }

  static Batch empty_batch(i64 rows, i64 length) {
    return {.tokens = make_empty({rows, length}, kI64), .targets = make_empty({rows, length}, kI64)};
  }
  static Batch counted(Batch batch) {
    batch.items = batch.tokens.size(0);
    batch.kept = batch.tokens.numel();
    batch.scored = count_scored(batch.targets);
    return batch;
  }

  // Row `row` of the batch from the text at `begin`; `draw_row`: its row in the draws.
  void fill(const Batch& batch, i64 row, i64 begin, const MaskDraws& draws, u64 draw_row) const {
    const i64 length = batch.tokens.size(1);
    i64* tokens = batch.tokens.data<i64>() + row * length;
    i64* targets = batch.targets.data<i64>() + row * length;
    std::vector<u8> masked(static_cast<size_t>(length));
    const DrawGrid grid{.leads = 1, .rows = 1, .cols = static_cast<u64>(length), .at = {.row = draw_row}};
    fill_bernoulli(draws.masked, grid, bernoulli_threshold(rate_), 0, length, masked.data());
    for (i64 i = 0; i < length; ++i) {
      const i64 symbol = corpus_.ids()[static_cast<size_t>(begin + i)];
      tokens[i] = symbol;
      targets[i] = kNotScored;
      if (!masked[static_cast<size_t>(i)]) continue;
      targets[i] = symbol;
      tokens[i] = mask_id_;
      if (!bert_) continue;
      const u64 col = static_cast<u64>(i);
      const double action = uniform_at(draws.action, 0, draw_row, col);
      if (action >= 0.8) tokens[i] = action < 0.9 ? randint_at(draws.symbol, 0, mask_id_, 0, draw_row, col) : symbol;
    }
  }

  Corpus corpus_;
  i64 train_size_;
  u64 seed_, data_seed_;
  i64 context_;
  double rate_;
  bool bert_;
  i64 mask_id_ = 0;
  std::vector<SplitFacts> splits_;
  std::vector<std::pair<std::string, Windows>> windows_;
  std::string train_stream_;
};

TaskFacts char_mlm_facts(const nn::Options& spec) {
  TaskFacts facts;
  facts.kind = "mlm";
  facts.max_len = facts.longest = spec.integer("context");
  for (const i64 length : spec.integers("test_lengths")) facts.longest = std::max(facts.longest, length);
  facts.metric = "accuracy";
  facts.metrics = {"accuracy", "loss"};
  facts.splits = {"own"};
  if (spec.word("source") != "licenses") facts.splits.emplace_back("nanogpt");  // those have parts of their own
  facts.data_keys = {"data.split", "data.train_size", "data.val_size", "data.test_size", "data.shuffle", "data.drop_last"};
  return facts;
}

}  // namespace

TaskKind char_mlm_kind() {
  std::vector<nn::OptionDef> options = Corpus::options();
  options.push_back({"context", nn::int_option(64, 1, 1 << 20), "symbols of a training item"});
  options.push_back({"mask_rate", nn::real_option(0.15).greater_than(0).less_than(1), "share of masked positions"});
  options.push_back({"bert", nn::bool_option(false), "80 % [MASK], 10 % another symbol, 10 % as they were"});
  options.push_back({"test_lengths", nn::int_list_option(std::vector<i64>{}, 1, 1 << 20), "test sets of other lengths"});
  nn::OptionTable table{"char-mlm", std::move(options), "masked symbols of a text",
                        [](const nn::Options& spec, std::vector<std::string>& problems) {
                          Corpus::check_options(spec, problems);
                          std::vector<i64> lengths = spec.integers("test_lengths");
                          std::sort(lengths.begin(), lengths.end());
                          if (std::adjacent_find(lengths.begin(), lengths.end()) != lengths.end())
                            problems.push_back("test_lengths has a length twice");
                        }};
  return {std::move(table), char_mlm_facts, [](const TaskRequest& request) -> std::unique_ptr<Task> {
            TaskFacts facts = char_mlm_facts(*request.spec);
            Corpus corpus(request, facts.longest);
            return std::make_unique<CharMlm>(request, std::move(facts), std::move(corpus));
          }};
}

}  // namespace waymark::train
