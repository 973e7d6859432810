// offset-copy and signed-neighbour: every label recomputed from the tokens alone, and what all drawn tasks promise.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/parallel/parallel.h"
#include "tests/tensors.h"
#include "tests/test_level.h"
#include "tests/train/tasks/fixture.h"
#include "train/config/config.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

using Row = std::vector<i64>;

std::vector<i64> items_from(i64 first, i64 n) {
  std::vector<i64> list;
  for (i64 i = 0; i < n; ++i) list.push_back(first + i);
  return list;
}
std::vector<Row> rows_of(const Tensor& t) {
  const auto flat = t.to_vector<i64>();
  std::vector<Row> rows;
  for (i64 r = 0; r < t.size(0); ++r) rows.emplace_back(flat.begin() + r * t.size(1), flat.begin() + (r + 1) * t.size(1));
  return rows;
}

// A token of signed-neighbour read from its number, as the table of the task gives them: contents 0..7, receivers 8..13,
// senders 14..61 (offset by offset, content by content), mask 62.
struct Read {
  enum Kind { content, receiver, sender, mask } kind;
  i64 offset = 0, value = 0;
};
Read read_token(i64 id) {
  const auto offset = [](i64 k) { return k < 3 ? k - 3 : k - 2; };  // -3 -2 -1 1 2 3
  if (id < 8) return {Read::content, 0, id};
  if (id < 14) return {Read::receiver, offset(id - 8), 0};
  if (id < 62) return {Read::sender, offset((id - 14) / 8), (id - 14) % 8};
  return {Read::mask};
}

// What is wrong with an item; empty: nothing.
std::string neighbour_fault(const Row& tokens, const Row& targets) {
  const i64 n = static_cast<i64>(tokens.size());
  const auto at = [&](i64 i) { return read_token(tokens[static_cast<size_t>(i)]); };
  i64 receivers = 0, masked = 0;
  std::set<i64> reserved;
  for (i64 i = 0; i < n; ++i) {
    const Read t = at(i);
    const i64 target = targets[static_cast<size_t>(i)];
    i64 o = t.offset;
    if (t.kind == Read::receiver) {
      ++receivers;
      if (i < 3 || i > n - 4) return fmt::format("receiver at {}", i);
      if (at(i + o).kind != Read::content || at(i - o).kind != Read::content) return fmt::format("no contents beside {}", i);
      if (at(i + o).value != target) return fmt::format("label of receiver {}", i);
      if (at(i - o).value == target) return fmt::format("decoy of receiver {} is the label", i);
    } else if (t.kind == Read::mask) {
      ++masked;
      i64 pointing = 0;
      for (i64 j = std::max<i64>(0, i - 3); j <= std::min(n - 1, i + 3); ++j)
        if (at(j).kind == Read::sender && j + at(j).offset == i) {
          ++pointing;
          o = i - j;
          if (at(j).value != target) return fmt::format("label of mask {}", i);
        }
      if (pointing != 1) return fmt::format("{} senders point at {}", pointing, i);
      if (at(i + o).kind == Read::receiver || at(i + o).kind == Read::mask) return fmt::format("no decoy for {}", i);
    } else {
      if (target != kNotScored) return fmt::format("{} is scored", i);
      continue;
    }
    for (const i64 place : {i, i + o, i - o})
      if (!reserved.insert(place).second) return fmt::format("{} serves two slots", place);
  }
  if (receivers + masked > n / 5) return "too many slots";
  if (receivers != masked && receivers != masked + 1) return fmt::format("{} receivers, {} masked", receivers, masked);
  return "";
}

}  // namespace

TEST_CASE("signed-neighbour: every label follows from the tokens, at every length") {
  const auto task = make_task("signed-neighbour(test_lengths=[10, 32, 33, 64, 256])");
  CHECK(task->inputs() == 63);
  CHECK(task->outputs() == 8);
  CHECK(task->facts().kind == "tag");
  CHECK(task->split("test").size == 128);
  CHECK(task->split("test@64").size == 64);
  CHECK(task->split("test@256").size == 16);
  CHECK(task->split("test@33").size == 2 * (2048 / 33));
  CHECK_FALSE(task->has_split("test@32"));  // that is `test`
  i64 slots = 0, full = 0, items = 0, senders = 0, free = 0;
  std::map<i64, i64> labels, offsets;
  for (const SplitFacts& split : task->splits()) {
    const Batch batch = task->evaluation_batch(split.name, items_from(0, split.size > 0 ? split.size : 300));
    const auto tokens = rows_of(batch.tokens), targets = rows_of(batch.targets);
    for (size_t r = 0; r < tokens.size(); ++r) {
      CAPTURE(split.name);
      CAPTURE(r);
      CHECK(neighbour_fault(tokens[r], targets[r]) == "");
      if (split.length != 32) continue;
      const i64 here = std::count_if(targets[r].begin(), targets[r].end(), [](i64 t) { return t != kNotScored; });
      slots += here;
      full += here == 6;
      ++items;
      free += 32 - 3 * here;
      for (size_t i = 0; i < 32; ++i) {
        const Read t = read_token(tokens[r][i]);
        if (t.kind == Read::receiver) ++offsets[t.offset];
        if (t.kind == Read::sender) ++senders;
        if (targets[r][i] != kNotScored) ++labels[targets[r][i]];
      }
    }
  }
  // Nearly all items have their six slots, and labels and offsets are spread evenly.
  CHECK(static_cast<double>(full) / static_cast<double>(items) > 0.5);
  CHECK(labels.size() == 8);
  for (const auto& [label, count] : labels) CHECK(static_cast<double>(count) == doctest::Approx(static_cast<double>(slots) / 8).epsilon(0.2));
  CHECK(offsets.size() == 6);
  const double left = static_cast<double>(offsets[-3] + offsets[-2] + offsets[-1]), right = static_cast<double>(offsets[3] + offsets[2] + offsets[1]);
  CHECK(left == doctest::Approx(right).epsilon(0.15));
  // A sender and a decoy sender for each masked slot, and about half of the free places.
  const double masked = static_cast<double>(slots) / 2;
  CHECK((static_cast<double>(senders) - 2 * masked) / static_cast<double>(free) == doctest::Approx(0.5).epsilon(0.08));
}

TEST_CASE("offset-copy: every target stands `shift` places before") {
  const auto task = make_task("offset-copy(vocab=7, shift=5, length=12, test_lengths=[12, 40])");
  CHECK(task->split("test").size == 2000);
  CHECK(task->split("test@40").size == 2000);
  std::map<i64, i64> counts;
  for (const SplitFacts& split : task->splits()) {
    const Batch batch = task->evaluation_batch(split.name, items_from(0, 50));
    CHECK(batch.scored == 50 * (split.length - 5));
    const auto tokens = rows_of(batch.tokens), targets = rows_of(batch.targets);
    for (size_t r = 0; r < tokens.size(); ++r)
      for (size_t t = 0; t < tokens[r].size(); ++t) {
        CHECK(targets[r][t] == (t < 5 ? kNotScored : tokens[r][t - 5]));
        ++counts[tokens[r][t]];
      }
  }
  CHECK(counts.size() == 7);
  const auto causal = make_task("offset-copy(causal=true)");
  CHECK(causal->facts().causal);
  CHECK(causal->facts().longest == 256);
  const auto problem = [](const std::string& spec) { return error_text([&] { task_tables().resolve(nn::parse_spec(spec)); }); };
  CHECK(has(problem("offset-copy(shift=32)"), "leaves nothing to score in 32 tokens"));
  CHECK(has(problem("offset-copy(test_lengths=[64, 64])"), "a length twice"));
  CHECK(has(problem("signed-neighbour(length=9)"), "length"));
}

TEST_CASE("Drawn tasks: an item is a function of the seed, the split and its number") {
  for (const std::string spec : {"signed-neighbour", "offset-copy"}) {
    CAPTURE(spec);
    TaskRequest seed1, data1;
    seed1.seed = 1;
    data1.data_seed = 1;
    const auto task = make_task(spec), same = make_task(spec), other = make_task(spec, seed1), other_data = make_task(spec, data1);
    const auto items = items_from(0, 16);
    const Batch batch = task->training_batch(items, 5);
    SUBCASE("whatever the batch, the step and the threads") {
      CHECK(difference(task->training_batch(items, 9).tokens, batch.tokens) == "");
      const int threads = num_threads();
      set_num_threads(1);
      const Batch alone = task->evaluation_batch("val", items_from(7, 1));
      set_num_threads(3);
      const auto all = rows_of(task->evaluation_batch("val", items).tokens);
      set_num_threads(threads);
      CHECK(rows_of(alone.tokens)[0] == all[7]);
      CHECK(slice(batch, 3, 2).scored == count_scored(slice(batch, 3, 2).targets));
    }
    SUBCASE("the seed of the run changes the training items only") {
      CHECK(difference(other->training_batch(items, 5).tokens, batch.tokens) != "");
      for (const char* split : {"val", "test", "test@64"}) {
        CHECK(other->fingerprint(split) == task->fingerprint(split));
        CHECK(other_data->fingerprint(split) != task->fingerprint(split));
        CHECK(same->fingerprint(split) == task->fingerprint(split));
      }
      CHECK(other->fingerprint("train") != task->fingerprint("train"));
    }
    SUBCASE("splits have different items; a finite training set has its own, the same for all seeds") {
      std::set<Row> seen;
      for (const char* split : {"train", "val", "test"})
        for (Row& row : rows_of(task->evaluation_batch(split, items_from(0, 100)).tokens)) seen.insert(std::move(row));
      CHECK(seen.size() == 300);
      TaskRequest finite;
      finite.train_size = 20;
      const auto some = make_task(spec, finite);
      finite.seed = 3;
      CHECK(some->fingerprint("train") == make_task(spec, finite)->fingerprint("train"));
      CHECK(has(error_text([&] { (void)some->training_batch(items_from(20, 1), 0); }), "no item 20 in train, which has 20"));
    }
    SUBCASE("one more test length changes no item") {
      const auto more = make_task(spec + "(test_lengths=[32, 64, 100])");
      for (const char* split : {"train", "val", "test", "test@64"}) CHECK(more->fingerprint(split) == task->fingerprint(split));
    }
    SUBCASE("sizes are those of the request") {
      TaskRequest small;
      small.val_size = 3;
      small.test_size = 6;
      const auto few = make_task(spec, small);
      CHECK(few->split("val").size == 3);
      CHECK(few->split("test").size == 6);
      CHECK(few->split("test@64").size == (spec == "offset-copy" ? 6 : 2));
    }
  }
}

TEST_CASE("signed-neighbour: metrics, baselines, description") {
  const auto task = make_task("signed-neighbour");
  const Batch batch = task->evaluation_batch("test", items_from(0, 40));
  // A model that is right on receivers and says 0 elsewhere.
  const auto tokens = batch.tokens.to_vector<i64>(), targets = batch.targets.to_vector<i64>();
  const Tensor output = make_empty({40, 32, 8}, kF32);
  std::fill_n(output.data<float>(), output.numel(), 0.0f);
  i64 receivers = 0, masked = 0, zeros = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (targets[i] == kNotScored) continue;
    const bool is_mask = tokens[i] == 62;
    (is_mask ? masked : receivers) += 1;
    zeros += is_mask && targets[i] == 0;
    output.data<float>()[static_cast<i64>(i) * 8 + (is_mask ? 0 : targets[i])] = 5;
  }
  const auto whole = task->metrics(), parts = task->metrics();
  whole->add(output, batch);
  for (i64 r = 0; r < 40; r += 8) parts->add(alias(output, {8, 32, 8}, {256, 8, 1}, r * 256), slice(batch, r, 8));
  const auto values = whole->values();
  REQUIRE(values.size() == 4);
  CHECK(values[0].first == "accuracy");
  CHECK(values[1].first == "receiver_accuracy");
  CHECK(values[2].first == "masked_accuracy");
  CHECK(values[3].first == "loss");
  CHECK(values[1].second.value == 1);
  CHECK(values[1].second.n == receivers);
  CHECK(values[2].second.n == masked);
  CHECK(values[2].second.value == doctest::Approx(static_cast<double>(zeros) / static_cast<double>(masked)));
  CHECK(values[0].second.n == batch.scored);
  for (size_t i = 0; i < 4; ++i) CHECK(parts->values()[i].second.value == doctest::Approx(values[i].second.value).epsilon(1e-12));

  const auto baselines = task->baselines("test");
  REQUIRE(baselines.size() == 3);
  CHECK(baselines[0].value == 0.125);
  CHECK(baselines[1].value == doctest::Approx(0.15).epsilon(0.3));
  CHECK(baselines[2].metric == "receiver_accuracy");
  CHECK(baselines[2].value == doctest::Approx(0.5).epsilon(0.15));
  CHECK(has(error_text([&] { (void)task->baselines("train"); }), "not on train"));
  const std::string shown = task->describe("test", 0);
  CAPTURE(shown);
  CHECK(has(shown, "32 tokens"));
  CHECK(has(shown, "M>"));
}

TEST_CASE("signed-neighbour: the items of this version") {
  // Another generator would be other data under the same name.
  CHECK(make_task("signed-neighbour")->fingerprint("test") == "b70a11e7aa9fd4e50928d45e869d1f7d");
  CHECK(make_task("offset-copy")->fingerprint("val") == "eac6d129f1daac90e0d1680b4975eb6c");
}
