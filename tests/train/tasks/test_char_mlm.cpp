#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/ops/softmax.h"
#include "tests/tensors.h"
#include "tests/train/tasks/fixture.h"
#include "train/config/problem.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

std::string problem_text(const std::string& spec, TaskRequest request = {}) {
  try {
    make_task(spec, request);
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "(no problem)";
}
std::vector<i64> range(i64 n, i64 first = 0) {
  std::vector<i64> v;
  for (i64 i = 0; i < n; ++i) v.push_back(first + i);
  return v;
}
Tensor row(const Tensor& t, i64 i) { return alias(t, {t.size(1)}, {1}, t.offset() + i * t.size(1)); }

}  // namespace

TEST_CASE("char-mlm: splits of a text") {
  const TemporaryFolder folder;
  const std::string path = write_text(folder, sample_text(20000));
  const auto task = make_task("char-mlm(path=\"" + path + "\", context=32, test_lengths=[64, 128])");
  REQUIRE(task->splits().size() == 5);
  CHECK(task->split("train").size == 0);
  CHECK(task->split("val").size == 1000 / 32);
  CHECK(task->split("test").size == 1000 / 32);
  CHECK(task->split("test@64").size == 1000 / 64);
  CHECK(task->split("test@128").length == 128);
  CHECK(task->inputs() == 29);  // letters, space, line end, [MASK]
  CHECK(task->outputs() == 29);
  CHECK(task->facts().kind == "mlm");
  CHECK(task->facts().longest == 128);
  CHECK(has(error_text([&] { (void)task->split("tset"); }), "Did you mean test"));
  CHECK(task->masking() == "15 % of the positions, always [MASK]");

  TaskRequest limited;
  limited.test_size = 8;
  limited.split = "nanogpt";
  const auto other = make_task("char-mlm(path=\"" + path + "\", context=32, test_lengths=[64, 128])", limited);
  CHECK(other->split("val").size == 2000 / 32);
  CHECK(other->split("test").size == 8);
  CHECK(other->split("test@64").size == 4);
  CHECK(other->split("test@128").size == 2);
  CHECK(other->test_is_validation());
}

TEST_CASE("char-mlm: batches") {
  const TemporaryFolder folder;
  const std::string text = sample_text(20000), path = write_text(folder, text);
  const std::string spec = "char-mlm(path=\"" + path + "\", context=32, test_lengths=[64])";
  const auto task = make_task(spec);
  const auto items = range(16);
  const Batch batch = task->training_batch(items, 5);
  CHECK(batch.tokens.shape() == Shape{16, 32});
  CHECK(batch.items == 16);
  CHECK(batch.kept == 512);
  CHECK(batch.scored == count_scored(batch.targets));
  CHECK(batch.scored > 40);
  CHECK(batch.scored < 120);
  const auto tokens = batch.tokens.to_vector<i64>(), targets = batch.targets.to_vector<i64>();
  for (size_t i = 0; i < tokens.size(); ++i) CHECK((tokens[i] == 28) == (targets[i] != kNotScored));

  SUBCASE("a training item is a window of the first nine tenths") {
    const std::string alphabet = "\n abcdefghijklmnopqrstuvwxyz";
    std::set<size_t> starts;
    for (i64 r = 0; r < 16; ++r) {
      std::string window;
      for (size_t i = 0; i < 32; ++i) {
        const size_t at = static_cast<size_t>(r) * 32 + i;
        window += alphabet[static_cast<size_t>(targets[at] == kNotScored ? tokens[at] : targets[at])];
      }
      const size_t found = text.find(window);
      CHECK(found <= 18000 - 32);
      starts.insert(found);
    }
    CHECK(starts.size() > 12);
  }
  SUBCASE("masks are keyed by the step and the place, windows by the item") {
    const Batch again = task->training_batch(items, 5), later = task->training_batch(items, 6);
    CHECK(difference(again.tokens, batch.tokens) == "");
    CHECK(difference(later.targets, batch.targets) != "");
    const i64 first[] = {0, 1, 2};
    const Batch fewer = task->training_batch(first, 5);
    for (i64 r = 0; r < 3; ++r) CHECK(difference(row(fewer.tokens, r), row(batch.tokens, r)) == "");
  }
  SUBCASE("another seed: other windows and masks in training, none in evaluation; another data.seed: the reverse") {
    TaskRequest seed1, data1;
    seed1.seed = 1;
    data1.data_seed = 1;
    const auto other = make_task(spec, seed1), other_data = make_task(spec, data1);
    CHECK(difference(other->training_batch(items, 5).targets, batch.targets) != "");
    CHECK(difference(other->evaluation_batch("val", items).tokens, task->evaluation_batch("val", items).tokens) == "");
    CHECK(difference(other_data->evaluation_batch("val", items).tokens, task->evaluation_batch("val", items).tokens) != "");
    CHECK(other->fingerprint("val") == task->fingerprint("val"));
    CHECK(other->fingerprint("train") != task->fingerprint("train"));  // without end: a stream per seed
    CHECK(other_data->fingerprint("val") != task->fingerprint("val"));
  }
  SUBCASE("an evaluation item does not depend on its batch") {
    const Batch all = task->evaluation_batch("test@64", range(8));
    for (const i64 item : {0, 3, 7}) {
      const i64 one[] = {item};
      const Batch alone = task->evaluation_batch("test@64", one);
      CHECK(difference(row(alone.tokens, 0), row(all.tokens, item)) == "");
      CHECK(difference(row(alone.targets, 0), row(all.targets, item)) == "");
    }
    CHECK(has(error_text([&] { (void)task->evaluation_batch("test@64", range(1, 1000)); }), "no item 1000"));
  }
  SUBCASE("micro-batches are views of the step's batch") {
    const Batch part = slice(batch, 4, 3);
    CHECK(part.items == 3);
    CHECK(part.kept == 96);
    CHECK(part.scored == count_scored(part.targets));
    CHECK(difference(row(part.tokens, 0), row(batch.tokens, 4)) == "");
    CHECK(slice(batch, 0, 8).scored + slice(batch, 8, 8).scored == batch.scored);
  }
  SUBCASE("a finite training set") {
    TaskRequest request;
    request.train_size = 10;
    const auto finite = make_task(spec, request);
    CHECK(finite->split("train").size == 10);
    request.seed = 9;
    const auto other_seed = make_task(spec, request);
    CHECK(finite->item_id("train", 3) == other_seed->item_id("train", 3));
    CHECK(finite->fingerprint("train") == other_seed->fingerprint("train"));
  }
}

TEST_CASE("char-mlm: the share of masks, and BERT's actions") {
  const TemporaryFolder folder;
  const std::string path = write_text(folder, sample_text(20000));
  const auto task = make_task("char-mlm(path=\"" + path + "\", context=64, mask_rate=0.3, bert=true)");
  i64 masked = 0, as_mask = 0, other = 0, kept = 0, all = 0;
  for (i64 step = 0; step < 20; ++step) {
    const Batch b = task->training_batch(range(32, step * 32), step);
    const auto tokens = b.tokens.to_vector<i64>(), targets = b.targets.to_vector<i64>();
    for (size_t i = 0; i < tokens.size(); ++i, ++all) {
      if (targets[i] == kNotScored) continue;
      ++masked;
      if (tokens[i] == 28) ++as_mask;
      else if (tokens[i] == targets[i]) ++kept;
      else ++other;
    }
  }
  const auto share = [](i64 a, i64 b) { return static_cast<double>(a) / static_cast<double>(b); };
  CHECK(share(masked, all) == doctest::Approx(0.3).epsilon(0.02));
  CHECK(share(as_mask, masked) == doctest::Approx(0.8).epsilon(0.02));
  CHECK(share(other, masked) == doctest::Approx(0.1 * 27 / 28).epsilon(0.08));
  CHECK(share(kept, masked) == doctest::Approx(0.1 * 29 / 28).epsilon(0.08));
}

TEST_CASE("char-mlm: baselines, description, loss") {
  const TemporaryFolder folder;
  // "aab" again and again: the majority is right two times of three.
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "aab";
  const auto task = make_task("char-mlm(path=\"" + write_text(folder, text) + "\", context=30, mask_rate=0.4)");
  const auto baselines = task->baselines("test");
  REQUIRE(baselines.size() == 2);
  CHECK(baselines[0].metric == "accuracy");
  CHECK(baselines[0].value == doctest::Approx(2.0 / 3).epsilon(0.1));
  CHECK(baselines[1].metric == "loss");
  CHECK(baselines[1].value == doctest::Approx(std::log(3) - 2.0 / 3 * std::log(2)).epsilon(0.1));
  const std::string shown = task->describe("test", 1);
  CAPTURE(shown);
  CHECK(has(shown, "test:1:"));
  CHECK(has(shown, "answer  aabaab"));
  CHECK(std::count(shown.begin(), shown.end(), '_') > 3);

  const Batch batch = task->evaluation_batch("test", range(4));
  const Tensor output = make_empty({4, 30, 2}, kF64);  // a model without a class for [MASK]
  for (i64 i = 0; i < output.numel(); ++i) output.data<double>()[i] = i % 2 == 0 ? 1 : 0;  // always "a", by e : 1
  const double a = std::log(1 + std::exp(-1)), b = 1 + a;
  double want = 0;
  for (const i64 t : batch.targets.to_vector<i64>()) want += t == 0 ? a : t == 1 ? b : 0;
  CHECK(task->loss_sum(output, batch).item<double>() == doctest::Approx(want).epsilon(1e-12));
  const auto metrics = task->metrics();
  metrics->add(alias(output, {1, 30, 2}, {60, 2, 1}, 0), slice(batch, 0, 1));
  metrics->add(alias(output, {3, 30, 2}, {60, 2, 1}, 60), slice(batch, 1, 3));
  CHECK(metrics->n() == batch.scored);
  const auto values = metrics->values();
  CHECK(values[0].first == "accuracy");
  CHECK(values[1].second.value == doctest::Approx(want / static_cast<double>(batch.scored)).epsilon(1e-12));
  CHECK(has(error_text([&] { task->metrics()->add(output, slice(batch, 0, 1)); }), "must be [1, 30, classes]"));
  CHECK(has(error_text([&] { (void)task->metrics()->values(); }), "no target was scored"));
}

TEST_CASE("char-mlm: what is wrong with a request") {
  const TemporaryFolder folder;
  const std::string path = write_text(folder, sample_text(500)), bad = write_text(folder, "abc\xFF", "bad.txt");
  CHECK(has(problem_text("char-mlm(path=\"" + path + "\")"), "but a window has 64"));
  CHECK(has(problem_text("char-mlm(path=\"" + bad + "\")"), "no UTF-8"));
  CHECK(problem_text("char-mlm(level=byte, context=16, path=\"" + path + "\")") == "(no problem)");
  CHECK(has(problem_text("char-mlm(path=\"" + (folder / "none.txt").string() + "\")"), "none.txt: there is no such file"));
  // A relative name says where it was looked for.
  const std::string missing = problem_text("char-mlm(path=\"none/here.txt\")");
  CHECK(has(missing, std::filesystem::absolute("none/here.txt").string() + "\n"));
  CHECK(has(missing, " data/none/here.txt\n"));
  const auto spec_problem = [](const std::string& spec) {
    return error_text([&] { task_tables().resolve(nn::parse_spec(spec)); });
  };
  CHECK(has(spec_problem("char-mlm"), "needs path"));
  CHECK(has(spec_problem("char-mlm(source=kjv, path=x)"), "path has no effect"));
  CHECK(has(spec_problem("char-mlm(path=x, verse_labels=true)"), "verse_labels has no effect"));
  CHECK(has(spec_problem("char-mlm(path=x, level=byte, lower=true)"), "lower needs level=char"));
  CHECK(has(spec_problem("char-mlm(path=x, test_lengths=[8, 8])"), "a length twice"));
  CHECK(has(spec_problem("char-mlm(path=x, mask_rate=1)"), "mask_rate"));
}

TEST_CASE("sources: what is missing is said with the way to get it") {
  const TemporaryFolder folder;
  const char* path = std::getenv("PATH");
  const std::string before = path ? path : "";
  const bool games = std::filesystem::exists("/usr/games/bible");
  ::setenv("PATH", folder.path().c_str(), 1);
  TaskRequest request;
  request.data_dir = folder.path().string();
  if (!games) CHECK(has(problem_text("char-mlm(source=kjv)", request), "apt-get install bible-kjv"));
  ::setenv("PATH", before.c_str(), 1);
  CHECK(has(problem_text("char-mlm(source=shakespeare)", request), (folder / "tinyshakespeare.txt").string()));
  write_text(folder, "In the beginning\n", "kjv.txt");
  CHECK(has(problem_text("char-mlm(source=kjv)", request), "this is not the King James Bible"));
  write_text(folder, sample_text(3000), "tinyshakespeare.txt");
  CHECK(problem_text("char-mlm(source=shakespeare)", request) == "(no problem)");
}

TEST_CASE("the King James Bible as Debian has it") {
  if (problem_text("char-mlm(source=kjv)") != "(no problem)") {
    MESSAGE("skipped: bible-kjv is not installed");
    return;
  }
  // Without labels 4,137,849 symbols, 63 different ones.
  const auto task = make_task("char-mlm(source=kjv)");
  CHECK(task->outputs() == 64);  // and [MASK]
  CHECK(task->split("val").size == 4137849 / 10 / 2 / 64);
  const auto labelled = make_task("char-mlm(source=kjv, verse_labels=true, lower=true, collapse=true)");
  CHECK(has(labelled->describe("train", 0), "masked"));
  CHECK(labelled->outputs() < 64);
}
