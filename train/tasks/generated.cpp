#include "train/tasks/generated.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "core/random/generator.h"
#include "nn/spec/suggest.h"
#include "train/config/hash.h"

namespace waymark::train {

GeneratedTask::GeneratedTask(const TaskRequest& request, TaskFacts facts, const std::function<i64(i64, i64)>& size_of)
    : Task(*request.spec, std::move(facts)), data_seed_(request.data_seed) {
  const i64 length = spec().integer("length");
  const i64 val = request.val_size > 0 ? request.val_size : this->facts().val_size,
            test = request.test_size > 0 ? request.test_size : this->facts().test_size;
  splits_ = {{"train", request.train_size, length}, {"val", val, length}, {"test", test, length}};
  for (const i64 n : spec().integers("test_lengths"))
    if (n != length) splits_.push_back({fmt::format("test@{}", n), size_of(test, n), n});
  std::string stream = "data.generate." + spec().name();
  for (const std::string& option : task_tables().find(spec().name())->option_names())
    if (option != "test_lengths") stream += fmt::format(",{}={}", option, nn::value_text(spec().value(option)));
  for (const SplitFacts& s : splits_) streams_.push_back(stream + "." + s.name);
  if (request.train_size == 0) streams_.front() += fmt::format(".{}", request.seed);
}

void GeneratedTask::check_item(const SplitFacts& split, i64 item) const {
  const i64 size = split.size > 0 ? split.size : static_cast<i64>(kDrawLimit);
  if (item < 0 || item >= size) fail(spec().name(), "there is no item {} in {}, which has {}", item, split.name, size);
}

const std::string& GeneratedTask::stream_of(const SplitFacts& split) const {
  return streams_[static_cast<size_t>(&split - splits_.data())];
}

Batch GeneratedTask::batch_of(const SplitFacts& split, std::span<const i64> items) const {
  const i64 rows = static_cast<i64>(items.size()), length = split.length;
  Batch batch{.tokens = make_empty({rows, length}, kI64), .targets = make_empty({rows, length}, kI64)};
  i64 *tokens = batch.tokens.data<i64>(), *targets = batch.targets.data<i64>();
  std::fill_n(targets, rows * length, kNotScored);
  Generator generator(data_seed_);
  for (const i64 item : items) {
    check_item(split, item);
    DrawSequence draws(generator.fixed_draw(stream_of(split), static_cast<u64>(item)));
    generate(draws, length, tokens, targets);
    tokens += length;
    targets += length;
  }
  batch.items = rows;
  batch.kept = rows * length;
  batch.scored = count_scored(batch.targets);
  return batch;
}

Batch GeneratedTask::training_batch(std::span<const i64> items, i64) const { return batch_of(splits_.front(), items); }
Batch GeneratedTask::evaluation_batch(std::string_view name, std::span<const i64> items) const {
  return batch_of(split(name), items);
}

std::string GeneratedTask::item_id(std::string_view name, i64 item) const {
  check_item(split(name), item);
  return fmt::format("{}:{}", name, item);
}

std::string GeneratedTask::describe(std::string_view name, i64 item) const {
  const i64 items[] = {item};
  const Batch batch = evaluation_batch(name, items);
  const std::vector<i64> tokens = batch.tokens.to_vector<i64>(), targets = batch.targets.to_vector<i64>();
  std::string shown;
  for (size_t i = 0; i < tokens.size(); ++i) {
    shown += " " + name_of_token(tokens[i]);
    if (targets[i] != kNotScored) shown += fmt::format(">{}", targets[i]);
  }
  return fmt::format("{}  ({} tokens, {} targets, each behind its token as TOKEN>TARGET)\n {}\n", item_id(name, item),
                     tokens.size(), batch.scored, shown);
}

Batch GeneratedTask::batch_of_text(std::string_view text) const {
  std::map<std::string, i64> ids;
  std::vector<std::string> names;
  for (i64 id = 0; id < inputs(); ++id) {
    names.push_back(name_of_token(id));
    ids.emplace(names.back(), id);
  }
  std::vector<i64> tokens;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    const std::string name = word.substr(0, word.find('>'));
    const auto found = ids.find(name);
    if (found == ids.end()) fail(spec().name(), "there is no token {}.{}", nn::printable(name), nn::did_you_mean(name, names));
    tokens.push_back(found->second);
  }
  if (tokens.empty()) fail(spec().name(), "the text has no tokens");
  return unscored_batch(tokens);
}

void GeneratedTask::each_item(std::string_view name, const std::function<void(const i64*, const i64*, i64)>& f) const {
  const SplitFacts& facts = split(name);
  if (facts.size == 0) fail(spec().name(), "{} has no end", name);
  for (i64 item = 0; item < facts.size; ++item) {
    const i64 one[] = {item};
    const Batch batch = batch_of(facts, one);
    f(batch.tokens.data<i64>(), batch.targets.data<i64>(), facts.length);
  }
}

std::string GeneratedTask::fingerprint(std::string_view name) const {
  const SplitFacts& facts = split(name);
  std::string bytes = fmt::format("{}\n{}\n", name, facts.size);
  if (facts.size == 0)  // the rule says everything; the items would have no end
    return xxh128_hex(bytes + fmt::format("{}\n{}\n", data_seed_, stream_of(facts)));
  i64 item = 0;
  each_item(name, [&](const i64* tokens, const i64* targets, i64 length) {
    bytes += item_id(name, item++) + "\n";
    for (i64 i = 0; i < length; ++i)
      for (const i64 value : {tokens[i], targets[i]})
        for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>((value >> shift) & 0xFF));
  });
  return xxh128_hex(bytes);
}

std::vector<Baseline> GeneratedTask::label_baselines(std::string_view name) const {
  if (name == "train") fail("baselines", "they are computed on splits that are reported, not on train");
  std::vector<i64> counts(static_cast<size_t>(outputs()));
  i64 n = 0;
  each_item(name, [&](const i64*, const i64* targets, i64 length) {
    for (i64 i = 0; i < length; ++i)
      if (targets[i] != kNotScored) {
        ++counts[static_cast<size_t>(targets[i])];
        ++n;
      }
  });
  if (n == 0) return {};
  const double most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  return {{"chance", std::string(name), "accuracy", 1 / static_cast<double>(outputs())},
          {"majority label", std::string(name), "accuracy", most / static_cast<double>(n)}};
}

std::vector<nn::OptionDef> generated_options(i64 length, i64 least, std::vector<i64> test_lengths) {
  return {{"length", nn::int_option(length, least, 1 << 20), "tokens of an item of train, val and test"},
          {"test_lengths", nn::int_list_option(std::move(test_lengths), least, 1 << 20),
           "test sets of other lengths: test@N"}};
}

void check_generated_options(const nn::Options& spec, std::vector<std::string>& problems) {
  std::vector<i64> lengths = spec.integers("test_lengths");
  std::sort(lengths.begin(), lengths.end());
  if (std::adjacent_find(lengths.begin(), lengths.end()) != lengths.end()) problems.push_back("test_lengths has a length twice");
}

TaskFacts generated_facts(const nn::Options& spec, i64 val_size, i64 test_size) {
  TaskFacts facts;
  facts.kind = "tag";
  facts.max_len = facts.longest = spec.integer("length");
  for (const i64 length : spec.integers("test_lengths")) facts.longest = std::max(facts.longest, length);
  facts.val_size = val_size;
  facts.test_size = test_size;
  facts.metric = "accuracy";
  facts.metrics = {"accuracy", "loss"};
  facts.data_keys = {"data.train_size", "data.val_size", "data.test_size", "data.shuffle", "data.drop_last"};
  return facts;
}

}  // namespace waymark::train
