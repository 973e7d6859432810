// Recorder and Trace: forward and backward events, values, names, limits, in-place ops, rewinding.
#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "core/inspect/recorder.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "tests/core/inspect/small_model.h"
#include "tests/error_text.h"

using namespace waymark;
using test::difference;
using test::error_text;
using test::has;
using test::leaf;
using test::make;
using V = std::vector<double>;

TEST_CASE("recorder: what a forward event says") {
  const Tensor x = leaf({2, 3}, {1, -2, 3, 0, 5, -6}, "x");
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  const Scope scope("encoder.ffn");
  const Tensor y = x.softmax(-1);
  const auto& events = recorder.trace().forward();
  REQUIRE(events.size() == 1);
  const inspect::ForwardRecord& e = events[0];
  CHECK(e.op->name == "softmax");
  CHECK(e.scope() == "encoder.ffn");
  CHECK(std::string(e.loc.name()) == "test_recorder.cpp");
  CHECK(attributes_text(e.attributes) == "dim=1");
  CHECK(e.bytes == 96);
  CHECK(e.flops == 24);
  REQUIRE(e.saved.size() == 1);
  CHECK(e.saved[0].what == "output");
  CHECK(e.saved[0].tensor == e.outputs.at(0));
  CHECK(e.saved[0].bytes == 48);
  const inspect::TensorRecord& in = recorder.trace().tensors()[e.inputs.at(0)];
  CHECK(in.name == "x");
  CHECK(in.stats.zeros == 1);
  CHECK(in.stats.min == -6);
  CHECK(in.stats.mean == doctest::Approx(1.0 / 6));
  CHECK(in.event == inspect::kNoTensor);
  const inspect::TensorRecord& out = recorder.trace().tensors()[e.outputs[0]];
  CHECK(out.name == fmt::format("softmax #{}", e.seq));
  CHECK(out.value.to_vector<double>() == y.to_vector<double>());
}

TEST_CASE("recorder: statistics") {
  const double inf = INFINITY;
  const TensorStats s = stats_of(make<float>({2, 4}, {1, 0, -3, NAN, inf, -inf, 0, inf}));
  CHECK(s.count == 8);
  CHECK(s.zeros == 2);
  CHECK(s.nan == 1);
  CHECK(s.positive_inf == 2);
  CHECK(s.first_nan == 3);
  CHECK(s.first_positive_inf == 4);
  CHECK(s.first_negative_inf == 5);
  CHECK(s.min == -3);
  CHECK(s.max == 1);
  CHECK(s.mean == -0.5);
  CHECK(std::isnan(s.norm));
  CHECK(s.histogram[24] == 1);  // 1 = 2⁰
  CHECK(s.histogram[25] == 1);  // 3 lies in [2, 4)
  // Layouts: places are row-major, repeated elements count.
  const Tensor m = make<double>({2, 3}, {1, 2, NAN, 4, 5, 6});
  CHECK(stats_of(m.mT()).first_nan == 4);
  const TensorStats repeated = stats_of(make<double>({1, 2}, {3, 4}).expand({5, 2}));
  CHECK(repeated.count == 10);
  CHECK(repeated.norm == doctest::Approx(std::sqrt(125.0)));
  CHECK(repeated.mean == 3.5);
  CHECK(repeated.sd == doctest::Approx(std::sqrt(2.5 / 9)));
  CHECK(stats_of(make<i64>({3}, {0, 2, 4})).mean == 2);
  CHECK(stats_of(make_empty({0, 3}, kF32)).count == 0);
  // Many chunks, combined: against plain sums.
  const Tensor big = make_empty({10001}, kF32);
  double sum = 0;
  for (i64 i = 0; i < 10001; ++i) {
    big.data<float>()[i] = static_cast<float>(i % 7) - 3;
    sum += static_cast<double>(i % 7) - 3;
  }
  CHECK(stats_of(big).mean == doctest::Approx(sum / 10001));
  CHECK(stats_of(big).sd == doctest::Approx(2.0).epsilon(1e-3));
}

TEST_CASE("recorder: a value is copied before an in-place op overwrites it, views included") {
  const Tensor x = make<double>({4}, {1, 2, 3, 4});
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  Tensor y = x + 1;
  const Tensor half = y.slice(0, 0, 2);
  y.mul_(10);
  const auto& tensors = recorder.trace().tensors();
  const auto& events = recorder.trace().forward();
  REQUIRE(events.size() == 3);
  CHECK(tensors[events[0].outputs[0]].value.to_vector<double>() == V{2, 3, 4, 5});
  CHECK(tensors[events[1].outputs[0]].value.to_vector<double>() == V{2, 3});
  CHECK(tensors[events[1].outputs[0]].view_of == events[0].outputs[0]);
  CHECK(events[2].in_place);
  CHECK(events[2].inputs.at(0) == events[0].outputs[0]);
  CHECK(tensors[events[2].outputs[0]].value.to_vector<double>() == V{20, 30, 40, 50});
}

TEST_CASE("recorder: large values become statistics and a picture, unless they are named") {
  const Tensor x = make_empty({300, 300}, kF32);
  for (i64 i = 0; i < x.numel(); ++i) x.data<float>()[i] = i < x.numel() / 2 ? 1.0f : -1.0f;
  set_name(x, "big");
  {
    const inspect::Recorder recorder({.keep = inspect::Keep::values});
    const Tensor y = x * 2;
    const inspect::TensorRecord& r = recorder.trace().tensors().at(0);
    CHECK(!r.value.defined());
    CHECK(r.stats.count == 90000);
    REQUIRE(r.picture.means.size() == 64 * 64);
    CHECK(r.picture.means.front() == 1);
    CHECK(r.picture.means.back() == -1);
    CHECK(has(error_text([&] { (void)recorder.trace().tensor("big").value(); }), "the values of big were not kept"));
  }
  const inspect::Recorder recorder({.keep = inspect::Keep::values, .names = {"b*"}});
  const Tensor y = x * 2;
  CHECK(recorder.trace().tensor("big").value().numel() == 90000);
  CHECK(!recorder.trace().tensors().at(1).value.defined());
}

TEST_CASE("recorder: sees its own thread and its own lifetime, and nests") {
  const Tensor x = make<double>({1}, {2});
  const inspect::Recorder outer;
  {
    const inspect::Recorder inner;
    const Tensor y = x * x;
    CHECK(inner.trace().forward().size() == 1);
  }
  std::thread([&] { const Tensor z = x + x; }).join();
  CHECK(outer.trace().forward().size() == 1);
  CHECK(inspect::Recorder::current() == &outer);
}

TEST_CASE("record: contributions, shares, order; .grad and the graph stay as they are") {
  const Tensor a = leaf({2}, {1, 2}, "a");
  const Tensor cubic = (a * a * 3).sum(), exponential = a.exp().sum();
  const Tensor loss = cubic + exponential;
  const inspect::Trace trace = inspect::record(loss);
  CHECK(!a.grad().defined());
  const auto parts = trace.tensor("a").contributions();
  REQUIRE(parts.size() == 3);  // both sides of the product, exp
  double total = 0;
  for (const Contribution& c : parts) total += c.share;
  CHECK(total == doctest::Approx(1));
  CHECK(parts[0].gradient.stats.norm >= parts[1].gradient.stats.norm);
  CHECK(trace.tensor("a").gradient().value.to_vector<double>()[0] == doctest::Approx(6 + std::exp(1.0)));
  CHECK(trace.node("exp").incoming().to_vector<double>() == V{1, 1});
  CHECK(trace.node("exp").output().to_vector<double>()[1] == doctest::Approx(std::exp(2.0)));
  trace.expect_order({"add", "exp", "mul", "mul"});
  CHECK(has(error_text([&] { trace.expect_order({"mul", "add"}); }), "trace: no add ran backward after mul #"));
  CHECK(has(error_text([&] { (void)trace.node("tanh"); }), "trace: no tanh ran backward; there are add, exp, mul, sum"));
  CHECK(has(error_text([&] { (void)trace.tensor("b"); }), "there is no tensor \"b\"; named ones are a"));
  loss.backward();
  CHECK(a.grad().to_vector<double>()[0] == doctest::Approx(6 + std::exp(1.0)));
}

TEST_CASE("record: through a whole model, found by scope and parameter name") {
  test::SmallModel m("huang-m4(clip=2)");
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  const Tensor loss = m.loss();
  const inspect::Trace trace = inspect::record(loss);
  const NodeCard& card = trace.node("masked_softmax", "encoder.layers.0.attention").card();
  CHECK(card.step == trace.node(card.label).card().step);
  CHECK(has(attributes_text(card.attributes), "dim=3"));
  CHECK(trace.node("masked_softmax", "encoder.layers.*").card().scope.starts_with("encoder.layers.1"));
  CHECK(trace.node("masked_softmax", "encoder", 1).card().scope.starts_with("encoder.layers.0"));
  const auto parts = trace.tensor("encoder.layers.0.attention.position.table").contributions();
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].share == 1);
  trace.expect_order({"cross_entropy", "linear", "layer_norm", "masked_softmax", "embedding"});
  // The recorder's own picture of the backward pass is the engine's.
  const GradMap exact = loss.backward();
  for (const GradMap::Entry& e : exact)
    CHECK(difference(e.grad, trace.tensor(e.tensor.name()).gradient().value) == "");
}

TEST_CASE("a shared parameter lists both contributions") {
  test::SmallModel m("none", true);
  const inspect::Trace trace = inspect::record(m.loss());
  const auto parts = trace.tensor("token_embedding.weight").contributions();
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].share + parts[1].share == doctest::Approx(1));
  CHECK(parts[0].from.starts_with("linear #") != parts[1].from.starts_with("linear #"));
}

TEST_CASE("C45: what was not computed is a dash, 0 is a computed zero") {
  const Tensor x = leaf({2}, {1, 2}, "x"), y = leaf({2}, {3, 4}, "y");
  const Tensor loss = (x * y.detach() + y * 0).sum();
  BackwardRun run(loss, {.rewindable = true});
  CHECK(has(error_text([&] { (void)run.current(); }), "no node ran yet"));
  CHECK(!run.grads().contains(x));
  run.step();  // sum
  const NodeCard& first = run.current();
  CHECK(!first.inputs.at(0).computed);
  CHECK(has(first.to_string(), "input  add #"));
  CHECK(has(first.to_string(), " -\n"));
  CHECK(!first.outgoing.at(0).slot_before.computed);
  CHECK(first.outgoing.at(0).slot_after.computed);
  run.until("y");
  const NodeCard& zero = run.current();
  CHECK(zero.outgoing.at(0).after.computed);
  CHECK(zero.outgoing.at(0).after.stats.norm == 0);
  CHECK(has(zero.to_string(), "norm 0   [0, 0]"));
  CHECK(has(zero.to_string(), "the gradient for y is exactly 0"));
}

TEST_CASE("C46: rules, hooks and cards run on the caller's thread") {
  const Tensor x = leaf({1}, {2}, "x");
  std::thread::id rule_thread, hook_thread;
  static constexpr OpInfo kSpy{.name = "spy", .doc = "tells which thread runs its rule", .schema = "spy(Tensor input) -> Tensor",
                               .formula = "y = x", .rule = "dx = g"};
  Tensor y = record(kSpy, make<double>({1}, {2}), {x}, [&](Saver&) {
    return [&rule_thread](Tensor g, const Need&) -> Grads {
      rule_thread = std::this_thread::get_id();
      return {std::move(g)};
    };
  });
  y.register_hook([&](const Tensor&) {
    hook_thread = std::this_thread::get_id();
    return Tensor();
  });
  BackwardRun run(y.sum());
  while (run.step()) {}
  CHECK(rule_thread == std::this_thread::get_id());
  CHECK(hook_thread == std::this_thread::get_id());
}

TEST_CASE("C47: the saved lists of the cards are the memory that the graph keeps, shared storage once") {
  test::SmallModel m("none");
  const NodeCard* last = nullptr;
  const inspect::Recorder recorder;
  const Tensor loss = m.loss();
  BackwardRun run(loss, {.retain_graph = true});
  while (run.step()) {}
  // Against the nodes themselves.
  std::map<const Storage*, i64> storages;
  i64 items = 0;
  for (const Node* n : run.nodes())
    for (const Saved& s : n->saved) {
      items += s.bytes;
      if (s.data) storages[s.data->storage.get()] = s.data->storage->bytes();
    }
  i64 of_run = 0, of_cards = 0;
  for (const auto& [storage, bytes] : storages) of_run += bytes;
  for (const NodeCard& c : recorder.trace().backward()) {
    of_cards += c.saved_bytes;
    last = &c;
    // A card's share is that of its own storages.
    if (c.op == "masked_softmax" && !c.saved.empty())
      CHECK(c.saved_share == doctest::Approx(static_cast<double>(c.saved[0].bytes) / static_cast<double>(of_run)).epsilon(0.2));
  }
  REQUIRE(last);
  CHECK(of_cards == items);
  // q, k and v come from one input: it is kept once and said to be shared.
  const NodeCard q = inspect::record(m.loss()).node("linear", "encoder.layers.0.attention").card();
  CHECK(!q.saved.empty());
  // What was saved is freed after use, and the card says so.
  BackwardRun once(m.loss());
  once.until("masked_softmax");
  once.step();
  CHECK(has(once.current().to_string(), "freed"));
}

TEST_CASE("saved values have the names of the op's schema") {
  const Tensor x = leaf({2, 3}, {1, -2, 3, 0, 5, -6}, "x"), w = leaf({3, 2}, {1, 2, 3, 4, 5, 6}, "w");
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  const inspect::Trace trace = inspect::record(cat({x.matmul(w), x.matmul(w)}).norm());
  CHECK(trace.node("matmul").card().saved[0].what == "input");
  CHECK(trace.node("matmul").card().saved[1].what == "other");
  for (const NodeCard& card : trace.backward()) {
    CAPTURE(card.label);
    const inspect::ForwardRecord* e = trace.find_forward(card.seq);
    REQUIRE(e);
    REQUIRE(e->saved.size() == card.saved.size());
    for (size_t i = 0; i < card.saved.size(); ++i) CHECK(e->saved[i].what == card.saved[i].what);
  }
}

TEST_CASE("shared saved values name the other node") {
  const Tensor x = leaf({2}, {1, 2}, "x");
  const Tensor y = x.exp();
  BackwardRun run((y * 3 + y * y).sum(), {.rewindable = true});
  run.until("exp");
  run.step();
  CHECK(has(run.current().to_string(), "shared with mul #"));
}

TEST_CASE("rewind: to every 10th step and back, the same bits") {
  test::SmallModel m("shaw(clip=2)");
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  const Tensor loss = m.loss();
  i64 replays = 0;
  BackwardRun run(loss, {.rewindable = true});
  for (const Tensor& t : run.leaves())
    if (t.name() == "head.weight")
      t.register_hook([&](const Tensor&) {
        replays += run.replaying();
        return Tensor();
      });
  std::vector<std::string> cards;
  std::vector<std::vector<Tensor>> gradients;
  const auto gradients_now = [&] {
    std::vector<Tensor> out;
    for (const NodeCard::Outgoing& o : run.current().outgoing)
      if (o.after.value.defined()) out.push_back(o.after.value.clone());
    return out;
  };
  const auto text_now = [&] {
    const std::string text = run.current().to_string();
    return text;
  };
  while (run.step()) {
    cards.push_back(text_now());
    gradients.push_back(gradients_now());
  }
  const i64 n = run.total();
  REQUIRE(static_cast<i64>(cards.size()) == n);
  REQUIRE(n > 50);
  for (i64 k = n - n % 10; k > 0; k -= 10) {
    run.rewind(k);
    CHECK(run.index() == k);
    CHECK(text_now() == cards[static_cast<size_t>(k - 1)]);
    const auto again = gradients_now();
    REQUIRE(again.size() == gradients[static_cast<size_t>(k - 1)].size());
    for (size_t i = 0; i < again.size(); ++i) CHECK(difference(again[i], gradients[static_cast<size_t>(k - 1)][i]) == "");
    CHECK(recorder.trace().backward().size() == static_cast<size_t>(k));
  }
  for (const Tensor& t : run.leaves()) CHECK(!t.grad().defined());
  run.finish();
  for (const Tensor& t : run.leaves()) CHECK(t.grad().defined());
}

TEST_CASE("a recorder changes no bit of the gradients") {
  test::SmallModel m("huang-m3(clip=2)");
  const GradMap plain = m.loss().backward();
  std::vector<std::pair<std::string, Tensor>> before;
  for (const GradMap::Entry& e : plain) before.emplace_back(e.tensor.name(), e.grad.clone());
  m.model.zero_grad();
  for (const inspect::Keep keep : {inspect::Keep::stats, inspect::Keep::values}) {
    const inspect::Recorder recorder({.keep = keep});
    const GradMap again = m.loss().backward();
    size_t i = 0;
    for (const GradMap::Entry& e : again) {
      CHECK(e.tensor.name() == before[i].first);
      CHECK(difference(e.grad, before[i++].second) == "");
    }
    CHECK(!recorder.trace().backward().empty());
    m.model.zero_grad();
  }
}

TEST_CASE("hooks on a card: run, changed, edited in place") {
  const Tensor x = leaf({2}, {1, 2}, "x");
  const auto card_with = [&](std::function<Tensor(const Tensor&)> f) {
    const Tensor y = x.exp();
    y.register_hook(std::move(f));
    BackwardRun run(y.sum());
    run.until("exp");
    run.step();
    return run.current();
  };
  CHECK(!card_with([](const Tensor&) { return Tensor(); }).hooks_changed);
  CHECK(card_with([](const Tensor& g) { return g * 2; }).hooks_changed);
  CHECK(card_with([](const Tensor& g) { g.mul_(2); return Tensor(); }).hooks_changed);
  CHECK(card_with([](const Tensor& g) { return g * 2; }).incoming.at(0).gradient.value.to_vector<double>() == V{2, 2});
}

TEST_CASE("create_graph under a recorder: second-order ops are events of their own") {
  const Tensor x = leaf({1}, {3}, "x");
  const inspect::Recorder recorder;
  const Tensor g = grad((x * x * x).sum(), {x}, {.create_graph = true})[x];
  size_t second = 0;
  for (const inspect::ForwardRecord& f : recorder.trace().forward()) second += f.order == 2;
  CHECK(second > 0);
  const size_t before = recorder.trace().forward().size();
  grad(g.sum(), {x});
  CHECK(recorder.trace().forward().size() == before + 1);  // the sum; what rules do inside is no event
}

TEST_CASE("C48: a trace holds both halves of every node, the forward event and the card of its rule") {
  const Tensor x = leaf({2, 3}, {1, -2, 3, 0, 5, -6}, "x"), w = leaf({3}, {1, 2, 3}, "w");
  const inspect::Recorder recorder({.keep = inspect::Keep::values});
  const Tensor loss = (x * w).softmax(-1).square().sum();
  const inspect::Trace trace = inspect::record(loss);
  REQUIRE(trace.forward().size() == 4);
  REQUIRE(trace.backward().size() == 4);
  for (const NodeCard& card : trace.backward()) {
    const inspect::ForwardRecord* f = trace.find_forward(card.seq);
    REQUIRE_MESSAGE(f, card.label);
    CHECK(f->op->name == card.op);
    CHECK(card.recorded);
    REQUIRE(!card.incoming.empty());
    CHECK(card.incoming[0].gradient.computed);
    REQUIRE(!f->outputs.empty());
    CHECK(trace.tensors().at(f->outputs[0]).value.defined());
  }
}
