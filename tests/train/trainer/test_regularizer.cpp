// SAR and R-Drop in training: what the passes share, what they do not, and that the loss is what it says.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/autograd/state.h"
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/random/generator.h"
#include "nn/attention/registry.h"
#include "nn/loss/loss.h"
#include "tests/nn/rig.h"
#include "tests/train/trainer/fixture.h"
#include "train/trainer/regularizer.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

Settings with(const std::string& attention, const std::string& regularizer, Settings more = {}) {
  more.insert(more.begin(), {{"model.attention", attention}, {"train.regularizer", regularizer}, {"run.precision", "f64"},
                             {"train.micro_batch", "6"}});
  return more;
}

// Task, model and a batch of step 3 outside a trainer, in f64.
struct Lab {
  explicit Lab(const TemporaryFolder& folder, const Settings& settings)
      : config(small_config(small_text(folder), settings)), task(make_task(task_request(config))), model(make_task_model(config, *task)),
        regularizer(config), batch(task->training_batch(std::vector<i64>{0, 1, 2, 3}, 3)) {
    model->module().train();
  }
  Regularizer::Losses losses(i64 first = 0) {
    const DrawScope scope(3, static_cast<u64>(first));
    const Tensor u = model->output(batch);
    return regularizer.losses(*model, *task, batch, u, 3, first);
  }
  DefaultF64 f64;
  RandomScope random{7};
  Config config;
  std::unique_ptr<Task> task;
  std::unique_ptr<TaskModel> model;
  Regularizer regularizer;
  Batch batch;
};

std::string problem_of(const std::string& text, const std::string& attention, const std::string& regularizer) {
  return error_text([&] { (void)small_config(text, with(attention, regularizer)); });
}

}  // namespace

TEST_CASE("a block is what a shift repeats after, and only attentions that move have one") {
  for (const nn::AttentionInfo* info : nn::all_attentions()) {
    CAPTURE(info->name());
    const auto facts = nn::facts_of_attention(info->options.resolve({info->name(), {}}));
    CHECK((facts.block > 0) == facts.topology_sensitive);
  }
  CHECK(nn::facts_of_attention(nn::attention_tables().resolve(nn::parse_spec("local(block=5)"))).block == 5);
  CHECK(nn::facts_of_attention(nn::attention_tables().resolve(nn::parse_spec("local"))).block == 0);
}

TEST_CASE("refused regularizers say what is missing") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  CHECK(has(problem_of(text, "dense", "sar"), "nothing to shift: dense has no blocks; attentions with blocks: local(block=64), fixed, bigbird"));
  CHECK(has(problem_of(text, "local(block=4)", "sar(offset=[1,8])"), "sar(offset=8) moves no border: it is a multiple of the block of 4"));
  CHECK(has(problem_of(text, "local(block=4)", "sar(shift=redraw)"), "nothing to draw again"));
  CHECK(has(problem_of(text, "dense", "sar(shift=roll, offset=random)"), "give a number"));
  CHECK(has(problem_of(text, "local(block=1)", "sar(offset=random)"), "blocks have one token"));
  CHECK(has(problem_of(text, "local(block=4)", "sar(shift=redraw, offset=2)"), "offset has no effect"));
  CHECK(has(problem_of(text, "dense", "none + r-drop"), "none stands alone"));
  CHECK(has(problem_of(text, "dense", "sar(alpha=-1)"), "alpha"));
  CHECK(has(problem_of(text, "dense", "sarr"), "Did you mean sar?"));
  CHECK(problem_of(text, "bigbird(block=4)", "sar(shift=redraw)") == "(no error)");
  CHECK(problem_of(text, "reformer", "sar(shift=redraw)") == "(no error)");
  const Config still = small_config(text, with("dense", "r-drop", {{"model.dropout", "0"}, {"model.attention_dropout", "0"}}));
  CHECK(has(idle_regularizer(still), "has no effect: the model has no dropout"));
  CHECK(idle_regularizer(small_config(text, with("dense", "r-drop"))) == "");
}

TEST_CASE("the loss is the mean cross-entropy of the passes and the divergences, by hand") {
  const TemporaryFolder folder;
  Lab lab(folder, with("local(block=4)", "sar(alpha=0.7, offset=3, kl=forward) + r-drop(alpha=2, ce=first, kl=reverse)"));
  const Regularizer::Losses l = lab.losses();
  const DrawScope scope(3, 0);
  const Tensor u = lab.model->output(lab.batch);
  Batch moved = lab.batch;
  moved.shift = 3;
  const Tensor v = lab.model->output(moved), w = lab.model->output(lab.batch);
  const auto j = [&](const Tensor& p, const Tensor& q) {
    return nn::loss::kl_div(p, q, {.kl = nn::loss::Kl::forward, .mask = ne(lab.batch.targets, kNotScored), .reduction = "sum"}).item<double>();
  };
  const double ce = (lab.task->loss_sum(u, lab.batch).item<double>() + lab.task->loss_sum(v, lab.batch).item<double>()) / 2;
  CHECK(l.ce == doctest::Approx(ce).epsilon(1e-13));
  CHECK(*l.sar == doctest::Approx(0.7 * j(u, v)).epsilon(1e-12));
  CHECK(*l.r_drop == doctest::Approx(2 * j(w, u)).epsilon(1e-12));
  CHECK(*l.sar > 0);
  CHECK(*l.r_drop > 0);
  CHECK(l.sum.item<double>() == doctest::Approx(l.ce + *l.sar + *l.r_drop).epsilon(1e-13));
  CHECK(lab.regularizer.passes() == 3);
}

TEST_CASE("shared masks isolate the topology, independent ones do not") {
  const TemporaryFolder folder;
  // A roll by the whole length and a shift that repeats lay nothing out differently: what is left are the masks.
  for (const auto& entry : {std::pair("shared", true), {"independent", false}}) {
    const char* dropout = entry.first;
    const bool zero = entry.second;
    CAPTURE(dropout);
    Lab lab(folder, with("dense", fmt::format("sar(shift=roll, offset=16, dropout={})", dropout)));
    CHECK((*lab.losses().sar == 0) == zero);
  }
  Lab shifted(folder, with("local(block=4)", "sar(offset=1, dropout=shared)"));
  CHECK(*shifted.losses().sar > 0);
  // r-drop draws anew whatever sar shares.
  Lab both(folder, with("local(block=4)", "sar(offset=1, dropout=shared) + r-drop"));
  CHECK(*both.losses().r_drop > 1e-6);
}

TEST_CASE("redraw lays out random blocks and hashes anew, step by step, and nothing else") {
  const TemporaryFolder folder;
  for (const char* attention : {"bigbird(block=2, window=1, global=0, random=1)", "reformer(chunk=2, hashes=1)"}) {
    CAPTURE(attention);
    Lab lab(folder, with(attention, "sar(shift=redraw, dropout=shared)"));
    CHECK(*lab.losses().sar > 1e-9);
    const DrawScope scope(3, 0);
    Batch a = lab.batch, b = lab.batch;
    a.redraw = b.redraw = 5;
    const NoGrad off;
    lab.model->module().eval();
    const Tensor first = lab.model->output(a);
    CHECK(difference(first, lab.model->output(b)) == "");
    b.redraw = 6;
    CHECK(difference(first, lab.model->output(b)) != "");
  }
}

// Labels follow tokens: rolled back, the second pass is compared token by token.
TEST_CASE("roll moves kept tokens with a position, and their segments; positions and padding stay") {
  Batch batch{.tokens = tensor({{1, 2, 3, 4, 5, 6}}, kI64)};
  batch.segments = tensor({{0, 0, 0, 1, 1, 1}}, kI64);
  batch.positions = tensor({{-1, 0, 1, 2, 3, 4}}, kI64);
  batch.keep = ne(batch.tokens, 6);  // the last one is padding
  const RolledBatch r = roll_tokens(batch, 1);
  CHECK(r.batch.tokens.to_vector<i64>() == std::vector<i64>{1, 5, 2, 3, 4, 6});
  CHECK(r.batch.segments.to_vector<i64>() == std::vector<i64>{0, 1, 0, 0, 1, 1});
  CHECK(r.batch.positions.to_vector<i64>() == batch.positions.to_vector<i64>());
  CHECK(r.places.to_vector<i64>() == std::vector<i64>{0, 2, 3, 4, 1, 5});
  CHECK(batch.tokens.to_vector<i64>() == std::vector<i64>{1, 2, 3, 4, 5, 6});
  CHECK(roll_tokens(batch, 4).batch.tokens.to_vector<i64>() == batch.tokens.to_vector<i64>());
}

TEST_CASE("without positions a rolled sequence gives the same outputs, token by token") {
  const TemporaryFolder folder;
  Lab lab(folder, with("dense", "sar(shift=roll, offset=5, dropout=shared)",
                       {{"model.position", "none"}, {"model.dropout", "0"}, {"model.attention_dropout", "0"}}));
  CHECK(*lab.losses().sar < 1e-24);
  Lab ordered(folder, with("dense", "sar(shift=roll, offset=5, dropout=shared)", {{"model.dropout", "0"}, {"model.attention_dropout", "0"}}));
  CHECK(*ordered.losses().sar > 1e-6);
}

TEST_CASE("detach=first keeps the divergence from the usual pass, and ce=first the labels from the other") {
  const TemporaryFolder folder;
  const auto gradient = [&](const std::string& regularizer) {
    Lab lab(folder, with("local(block=4)", regularizer, {{"model.dropout", "0"}, {"model.attention_dropout", "0"}}));
    lab.losses().sum.backward();
    double norm = 0;
    for (const nn::NamedParameter& p : lab.model->module().named_parameters())
      for (const double g : p.tensor.grad().to_vector<double>()) norm += g * g;
    return norm;
  };
  const double both = gradient("sar(offset=1)"), detached = gradient("sar(offset=1, detach=first)"), control = gradient("sar(offset=1, alpha=0)"),
               first = gradient("sar(offset=1, ce=first)");
  CHECK(std::abs(both - detached) > 1e-9);
  CHECK(std::abs(both - control) > 1e-9);
  CHECK(std::abs(both - first) > 1e-9);
}

TEST_CASE("random offsets lie between the borders and depend on seed and step alone; lists go round") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const RandomScope scope(11);
  const Regularizer random(small_config(text, with("local(block=4)", "sar(offset=random)")));
  std::set<i64> seen;
  for (i64 step = 0; step < 60; ++step) {
    seen.insert(random.offset(step));
    CHECK(random.offset(step) == random.offset(step));
  }
  CHECK(seen == std::set<i64>{1, 2, 3});
  const Regularizer list(small_config(text, with("local(block=4)", "sar(offset=[3,1])")));
  CHECK(list.offset(0) == 3);
  CHECK(list.offset(1) == 1);
  CHECK(list.offset(2) == 3);
}

TEST_CASE("runs with regularizers: micro-batches change only rounding, terms are logged, and they resume to the bit") {
  const TemporaryFolder folder;
  const std::string text = small_text(folder);
  const std::string regularizer = "sar(offset=random) + r-drop(alpha=0.5)";
  const auto config = [&](const char* micro) {
    Settings s = with("local(block=4)", regularizer);
    for (auto& [key, value] : s)
      if (key == "train.micro_batch") value = micro;
    return small_config(text, s);
  };
  Trainer whole(config("6"));
  whole.folder(folder / "whole").run();
  Trainer parts(config("1"));
  parts.run();
  CHECK(largest_difference(state_of(whole), state_of(parts)) < 1e-10);

  Trainer first(config("6"));
  CHECK(first.folder(folder / "half").stop_after(7).run().status == RunStatus::interrupted);
  Trainer second(config("6"));
  second.folder(folder / "half").resume().run();
  CHECK(difference(state_of(whole), state_of(second)) == "");
  CHECK(metrics_of(folder / "whole") == metrics_of(folder / "half"));

  const MetricsFile metrics = read_metrics(folder / "whole" / "metrics.jsonl");
  i64 lines = 0;
  for (const MetricsRecord& r : metrics.records) {
    if (r.kind != MetricsKind::train) continue;
    ++lines;
    CHECK(*r.number("passes") == 3);
    CHECK(*r.number("loss_sar") > 0);
    CHECK(*r.number("loss_rdrop") > 0);
    CHECK(*r.number("loss_ce") > 0);
  }
  CHECK(lines == 4);
}
