// Module: paths, registration, scopes, modes, structure errors, lists, sharing, streams of initial values.
#include <doctest/doctest.h>

#include <memory>
#include <optional>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/inplace.h"
#include "core/ops/reduce.h"
#include "core/random/generator.h"
#include "nn/module/module_list.h"
#include "nn/module/summary.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::make;

namespace {

struct Affine : Module<Affine> {
  Affine(ModuleBase& parent, std::string_view name, i64 width)
      : Module(parent, name), weight(parameter("weight", {width}, init::normal())),
        bias(parameter("bias", {width}, init::zeros(), {.no_decay = true})) {}
  explicit Affine(i64 width)
      : weight(parameter("weight", {width}, init::normal())), bias(parameter("bias", {width}, init::zeros())) {}
  Tensor forward(const Tensor& x, double factor = 1) const {
    seen = scope_path(thread_state().scope);
    return x * weight * factor + bias;
  }
  Tensor weight, bias;
  mutable std::string seen;
};

struct Block : Module<Block> {
  Block(ModuleBase& parent, std::string_view name, i64 width)
      : Module(parent, name), first(*this, "first", width), gain(parameter("gain", {1}, init::constant(2))),
        second(*this, "second", width), count(buffer("count", make<i64>({1}, {3}))) {}
  Tensor forward(const Tensor& x) { return second(first(x)) * gain; }
  Affine first;
  Tensor gain;
  Affine second;
  Tensor count;
};

struct Net : Module<Net> {
  ModuleList<Block> layers{*this, "layers"};
  Affine last{*this, "last", 3};
  Net() {
    layers.emplace_back(3);
    layers.emplace_back(3);
  }
  Tensor forward(Tensor x) {
    for (Block& b : layers) x = b(x);
    return last(x, 2.0);
  }
};

// Gives tests access to what initialiser lists call.
struct Open : Module<Open> {
  Open() = default;
  Open(ModuleBase& parent, std::string_view name) : Module(parent, name) {}
  using ModuleBase::buffer;
  using ModuleBase::parameter;
  using ModuleBase::parameter_at;
  using ModuleBase::share_parameter;
  int forward(int x) const { return x + 1; }
};

std::vector<std::string> names_of(const ModuleBase& m) {
  std::vector<std::string> names;
  for (const NamedParameter& p : m.named_parameters()) names.push_back(p.name);
  return names;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("module: paths, order of registration, scopes") {
  manual_seed(1);
  Net net;
  CHECK(names_of(net) == Names{"layers.0.first.weight", "layers.0.first.bias", "layers.0.gain", "layers.0.second.weight",
                               "layers.0.second.bias", "layers.1.first.weight", "layers.1.first.bias", "layers.1.gain",
                               "layers.1.second.weight", "layers.1.second.bias", "last.weight", "last.bias"});
  CHECK(names_of(net.layers[1].second) == Names{"weight", "bias"});
  CHECK(net.layers[1].second.path() == "layers.1.second");
  CHECK(net.layers[1].second.weight.name() == "layers.1.second.weight");
  CHECK(net.named_buffers().size() == 2);
  CHECK(net.named_buffers()[1].first == "layers.1.count");
  CHECK(net.named_parameters()[1].no_decay);
  CHECK(!net.named_parameters()[0].no_decay);

  const Tensor y = net(make<float>({3}, {1, 2, 3}));
  CHECK(net.layers[0].second.seen == "layers.0.second");
  CHECK(net.last.seen == "last");
  CHECK(thread_state().scope == 0);
  y.sum().backward();
  for (const Tensor& p : net.parameters()) CHECK(p.grad().defined());
  net.zero_grad();
  for (const Tensor& p : net.parameters()) CHECK(!p.grad().defined());

  // A module without a path works in the scope of its caller.
  const Affine alone(3);
  {
    const Scope outer("outer");
    alone(make<float>({3}, {1, 2, 3}));
  }
  CHECK(alone.seen == "outer");
  CHECK(alone.path().empty());
  CHECK(alone.weight.name() == "weight");
}

TEST_CASE("module: the scope ends with the call, also by an exception") {
  struct Thrower : Module<Thrower> {
    using Module::Module;
    void forward() { fail("thrower", "no"); }
  };
  Open root;
  Thrower t(root, "t");
  try {
    t();
    CHECK(false);
  } catch (const Error& e) {
    CHECK(e.scope() == "t");
  }
  CHECK(thread_state().scope == 0);
}

TEST_CASE("module: modes reach all below, and children begin in their parent's") {
  Net net;
  net.eval();
  CHECK(!net.layers[1].second.training());
  CHECK(!net.layers.emplace_back(3).first.training());
  net.layers[0].train();
  CHECK(net.layers[0].first.training());
  CHECK(!net.training());
  CHECK(!net.last.training());
}

TEST_CASE("module: structure errors") {
  Open root;
  Open child(root, "child");
  root.parameter("w", {2}, init::ones());
  CHECK(error_text([&] { root.parameter("w", {2}, init::ones()); }) ==
        "module: the root already has a parameter called \"w\"");
  CHECK(error_text([&] { Open twin(root, "child"); }) == "module: the root already has a module called \"child\"");
  CHECK(error_text([&] { child.buffer("", make<float>({1}, {0})); }) == "module: a buffer of child has an empty name");
  CHECK(error_text([&] { Open dotted(child, "a.b"); }) ==
        "module: \"a.b\" of child has a dot in its name; dots separate modules: give it a parent instead");
  CHECK(error_text([&] { child.parameter("x", {-1}, init::ones()); }) != "(no error)");
  CHECK(error_text([&] { child.buffer("b", Tensor()); }) == "module: the buffer child.b is undefined");
  CHECK(error_text([&] { child.share_parameter("s", make<float>({1}, {0})); }) ==
        "module: \"\" must be a trainable leaf to be shared as child.s");
  CHECK(error_text([&] { child.buffer("g", root.named_parameters()[0].tensor); }) ==
        "module: the buffer child.g requires grad; make it a parameter or detach() it");
  child.parameter_at("mlp.0.weight", {1}, init::ones());
  child.parameter_at("mlp.0.bias", {1}, init::ones());
  CHECK(names_of(child) == Names{"mlp.0.weight", "mlp.0.bias"});
  CHECK(error_text([&] { child.parameter("mlp", {1}, init::ones()); }) ==
        "module: child already has a parameter called \"mlp.0.weight\"");
  CHECK(error_text([&] { child.parameter_at("mlp.0.bias.x", {1}, init::ones()); }) ==
        "module: child already has a parameter called \"mlp.0.bias\"");
  CHECK(error_text([&] { child.parameter_at("a..b", {1}, init::ones()); }) == "module: \"a..b\" of child has an empty part");
  CHECK(error_text([&] { child.parameter_at("a.", {1}, init::ones()); }) == "module: \"a.\" of child has an empty part");
  CHECK(root.children().size() == 1);
  CHECK(error_text([&] { (void)ModuleList<Open>(root, "list")[0]; }) == "module: list has 0 entries, there is no 0");
  CHECK(child(1) == 2);

  // A failed construction leaves the parent as it was.
  struct Fails : Module<Fails> {
    explicit Fails(ModuleBase& parent) : Module(parent, "fails"), w(parameter("w", {2}, init::xavier_uniform())) {}
    Tensor w;
  };
  CHECK(error_text([&] { Fails f(root); }) == "init: fan in and fan out need at least 2 axes, got [2]");
  CHECK(root.children().size() == 1);
  std::optional<Open> later(std::in_place, root, "later");
  CHECK(root.children().size() == 2);
  later.reset();
  CHECK(root.children().size() == 1);
}

TEST_CASE("module: a parent that ends first lets its children go") {
  auto parent = std::make_unique<Open>();
  Open child(*parent, "child");
  parent.reset();
  CHECK(child.path() == "child");
}

TEST_CASE("module: initial values come from the parameter's own stream") {
  manual_seed(5);
  const Affine a(4), b(4);
  CHECK(!test::difference(a.weight, b.weight).empty());  // draw 0 and draw 1 of weight.init
  manual_seed(5);
  const Affine again(4);
  CHECK(test::difference(a.weight, again.weight) == "");

  // Other parts of a model change nothing; f32 is the rounded f64.
  Open root, other;
  manual_seed(5);
  Affine x(root, "x", 4);
  manual_seed(5);
  Affine before(other, "before", 9);
  Affine same(other, "x", 4);
  CHECK(test::difference(x.weight, same.weight) == "");
  manual_seed(5);
  set_default_dtype(kF64);
  Open wide_root;
  Affine wide(wide_root, "x", 4);
  set_default_dtype(kF32);
  CHECK(wide.weight.dtype() == kF64);
  for (i64 i = 0; i < 4; ++i) CHECK(static_cast<float>(wide.weight.at<double>({i})) == x.weight.at<float>({i}));
}

TEST_CASE("module: a shared parameter counts once, under its first name") {
  struct Tied : Module<Tied> {
    Affine in{*this, "in", 2};
    Open out{*this, "out"};
    Tied() { out.share_parameter("weight", in.weight); }
  } tied;
  CHECK(names_of(tied) == Names{"in.weight", "in.bias"});
  CHECK(names_of(tied.out) == Names{"weight"});
  CHECK(count_parameters(tied) == 4);
  CHECK(tied.state_dict().size() == 2);
  // Either name loads it, both do not.
  const Tensor w = make<float>({2}, {7, 8}), zero = make<float>({2}, {0, 0});
  tied.load_state_dict({{"out.weight", w}, {"in.bias", zero}});
  CHECK(tied.in.weight.at<float>({1}) == 8);
  CHECK(error_text([&] { tied.load_state_dict({{"in.weight", w}, {"out.weight", w}, {"in.bias", zero}}); }) ==
        "load_state_dict: 1 problem, nothing was changed\n  twice: in.weight, as in.weight and as out.weight");
}

TEST_CASE("state: round trip shares memory and casts") {
  manual_seed(2);
  Net a, b;
  StateDict state = a.state_dict();
  CHECK(state.size() == 14);
  CHECK(!state[0].second.requires_grad());
  b.load_state_dict(state);
  for (size_t i = 0; i < state.size(); ++i) CHECK(test::difference(b.state_dict()[i].second, state[i].second) == "");
  {
    const NoGrad off;
    a.last.weight.fill_(9);
  }
  CHECK(state[12].second.at<float>({0}) == 9);
  CHECK(b.last.weight.at<float>({0}) != 9);
  state[12].second = make<double>({3}, {0.1, 0.2, 0.3});
  b.load_state_dict(state);
  CHECK(b.last.weight.dtype() == kF32);
  CHECK(b.last.weight.at<float>({1}) == 0.2f);
  CHECK(b.last.weight.requires_grad());
}

TEST_CASE("state: all problems at once, and nothing changed") {
  Open root;
  Affine x(root, "x", 2);
  const StateDict before = {{"x.weight", make<float>({2}, {5, 6})}, {"x.bias", make<float>({2}, {7, 8})}};
  root.load_state_dict(before);
  const StateDict bad = {{"x.weight", make<float>({3}, {1, 2, 3})}, {"y", make<i64>({1}, {1})}};
  CHECK(error_text([&] { root.load_state_dict(bad); }) ==
        "load_state_dict: 3 problems, nothing was changed\n"
        "  missing: x.bias [2] f32\n"
        "  unexpected: y [1] i64\n"
        "  shape: x.weight is [3] in the state, [2] here");
  CHECK(error_text([&] { root.load_state_dict(bad, false); }) ==
        "load_state_dict: 1 problem, nothing was changed\n  shape: x.weight is [3] in the state, [2] here");
  CHECK(error_text([&] { root.load_state_dict({{"x.weight", make<i64>({2}, {1, 2})}, {"x.bias", Tensor()}}); }) ==
        "load_state_dict: 3 problems, nothing was changed\n"
        "  missing: x.bias [2] f32\n"
        "  type: x.weight is i64 in the state, f32 here\n"
        "  undefined: x.bias");
  CHECK(x.weight.at<float>({0}) == 5);
  CHECK(x.bias.at<float>({0}) == 7);
  const LoadReport report = root.load_state_dict({{"x.bias", make<float>({2}, {1, 1})}, {"z", make<float>({1}, {0})}}, false);
  CHECK(report.missing == Names{"x.weight"});
  CHECK(report.unexpected == Names{"z"});
  CHECK(x.bias.at<float>({0}) == 1);
}

TEST_CASE("state: other names are accepted where they are unambiguous") {
  Open one;
  const Tensor t = one.parameter("table", {1}, init::zeros(), {.also = {"huang-m4.table"}});
  one.load_state_dict({{"huang-m4.table", make<float>({1}, {4})}});
  CHECK(t.at<float>({0}) == 4);
  Open two;
  Open a(two, "a"), b(two, "b");
  a.parameter("table", {1}, init::zeros(), {.also = {"short"}});
  two.parameter("x", {1}, init::zeros(), {.also = {"a.short"}});
  const Tensor value = make<float>({1}, {4});
  CHECK(error_text([&] { two.load_state_dict({{"a.short", value}, {"x", value}}); }) ==
        "load_state_dict: 2 problems, nothing was changed\n  missing: a.table [1] f32\n  unexpected: a.short [1] f32");
}

TEST_CASE("summary") {
  Open root;
  Affine x(root, "x", 1200);
  x.bias.requires_grad_(false);
  const Summary s = summary(root);
  CHECK(s.total == 2400);
  CHECK(s.bytes == 9600);
  CHECK(fmt::format("{}", s) ==
        "parameter      shape    count\n"
        "x.weight       [1200]   1,200\n"
        "x.bias         [1200]   1,200   frozen\n"
        "2 parameters            2,400\n");
  CHECK(with_commas(-1234567) == "-1,234,567");
  CHECK(with_commas(-123) == "-123");
  CHECK(with_commas(1000) == "1,000");
}

TEST_CASE("init: distributions and their errors") {
  const auto filled = [](const Init& i, const Shape& shape) {
    const Tensor t = make_empty(shape, kF64);
    i.fill(t, "test");
    return t.to_vector<double>();
  };
  const auto moments = [](const std::vector<double>& v) {
    double mean = 0, square = 0, largest = 0;
    for (double x : v) {
      mean += x / static_cast<double>(v.size());
      square += x * x / static_cast<double>(v.size());
      largest = std::max(largest, std::abs(x));
    }
    return std::array{mean, std::sqrt(square - mean * mean), largest};
  };
  manual_seed(3);
  auto [mean, sd, largest] = moments(filled(init::normal(2, 0.5), {100, 200}));
  CHECK(mean == doctest::Approx(2).epsilon(0.01));
  CHECK(sd == doctest::Approx(0.5).epsilon(0.02));
  std::tie(mean, sd, largest) = std::tuple_cat(moments(filled(init::uniform(-1, 3), {100, 200})));
  CHECK(mean == doctest::Approx(1).epsilon(0.03));
  CHECK(sd == doctest::Approx(4 / std::sqrt(12.0)).epsilon(0.02));
  // PyTorch's Linear: U(±1/√fan_in).
  std::tie(mean, sd, largest) = std::tuple_cat(moments(filled(init::kaiming_uniform(std::sqrt(5.0)), {200, 100})));
  CHECK(largest <= 0.1);
  CHECK(largest > 0.0999);
  std::tie(mean, sd, largest) = std::tuple_cat(moments(filled(init::xavier_uniform(), {200, 100})));
  CHECK(largest <= std::sqrt(6.0 / 300));
  CHECK(largest > 0.999 * std::sqrt(6.0 / 300));
  std::tie(mean, sd, largest) = std::tuple_cat(moments(filled(init::xavier_normal(3), {200, 100})));
  CHECK(sd == doctest::Approx(3 * std::sqrt(2.0 / 300)).epsilon(0.02));
  std::tie(mean, sd, largest) = std::tuple_cat(moments(filled(init::kaiming_normal(), {200, 50, 2})));
  CHECK(sd == doctest::Approx(std::sqrt(2.0 / 100)).epsilon(0.02));
  CHECK(filled(init::xavier_uniform(), {0, 3}).empty());
  CHECK(filled(init::ones(), {2}) == std::vector<double>{1, 1});

  CHECK(error_text([] { init::normal(0, -1); }) == "init: a standard deviation of -1 is not possible");
  CHECK(error_text([] { init::uniform(1, 0); }) == "init: uniform from 1 to 0: the bounds are in the wrong order");
  CHECK(error_text([] { init::ones().fill(make_empty({1}, kI64), "x"); }) ==
        "init: initial values need a float tensor, not i64");
}
