// In-place ops, versions, views.
#include <doctest/doctest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/index.h"
#include "core/ops/inplace.h"
#include "core/ops/join.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/expect.h"
#include "tests/tensors.h"

#include <functional>

namespace waymark::test {

TEST_CASE("C15_overlap") {
  CHECK_ERROR(zeros({1, 5}).expand({4, 5}).add_(1),
              "add_: the target [4, 5] with strides [0, 1] has elements that share memory; clone() it first");
  const Tensor a = f64({1, 2, 3});
  CHECK_ERROR(a.slice(0, 1).div_(a.slice(0, 0, -1)),
              "div_: the target [2] and the input [2] share part of their memory; clone() the input first");
  const Tensor m = f64({{1, 2}, {3, 4}});
  CHECK_ERROR(m.add_(m.t()),
              "add_: the target [2, 2] and the input [2, 2] share part of their memory; clone() the input first");
  a.add_(a);
  CHECK_VALUES(a, {2, 4, 6});
  const Tensor b = f64({1, 2, 3, 4});
  b.slice(0, 0, 2).add_(b.slice(0, 2));
  CHECK_VALUES(b, {4, 6, 3, 4});
  CHECK(b.version() == 1);
  b.copy_(b);
  CHECK(b.version() == 1);
}

TEST_CASE("C16a_a_saved_value_was_overwritten") {
  const Tensor x = leaf({1, 2});
  const Tensor y = exp(x);
  y.add_(1);
  const std::string text = error_text([&] { backward_of(y); });
  CHECK(
      has(text, "exp: backward needs its output 0 ([2] f64) as it was at version 0, but add_ wrote to it (version 1)"));
}

TEST_CASE("C16b_a_view_of_a_non_leaf_is_changed") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 1, v = y.slice(0, 1);
  v.mul_(2);
  CHECK_VALUES(y, {1, 4, 6});
  backward_of(y);
  CHECK_VALUES(x.grad(), {1, 2, 2});
  // Two views.
  const Tensor u = leaf({1, 1});
  const Tensor z = u * 1, first = z.select(0, 0), second = z.select(0, 1);
  first.mul_(3);
  second.mul_(5);
  backward_of(z, {1, 10});
  CHECK_VALUES(u.grad(), {3, 50});
  // The view itself goes on with its new history.
  const Tensor w = leaf({1, 2});
  const Tensor base = w * 1, part = base.select(0, 1);
  part.mul_(4);
  backward_of(part * 2);
  CHECK_VALUES(w.grad(), {0, 8});
}

TEST_CASE("C16c_d_e_versions") {
  {
    const Tensor x = leaf({1, 2});
    const Tensor y = x * 1, z = y * y;
    y.index_put_({0}, f64({5}).select(0, 0));
    CHECK(has(error_text([&] { backward_of(z); }), "but index_put_ wrote to it"));
  }
  {
    const Tensor w = leaf({1, 2}), loss = (w * w).sum();
    {
      const NoGrad off;
      w.sub_(0.1);
    }
    CHECK(has(error_text([&] { loss.backward(); }), "but sub_ wrote to it"));
  }
  {
    const Tensor x = leaf({1, 2});
    const Tensor y = x * 1, z = y * y;
    y.detach().add_(1);
    CHECK(has(error_text([&] { backward_of(z); }), "but add_ wrote to it"));
  }
}

TEST_CASE("C25_gradients_are_not_shared") {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4}), seed = f64({1, 1});
  const Tensor z = x + y;
  const HookHandle hook = x.register_hook([](const Tensor& g) {
    g.mul_(10);
    return g;
  });
  z.backward(seed);
  CHECK_VALUES(x.grad(), {10, 10});
  CHECK_VALUES(y.grad(), {1, 1});
  CHECK_VALUES(seed, {1, 1});
  const Tensor u = leaf({1, 2});
  (u + u).backward(seed);
  CHECK_VALUES(u.grad(), {2, 2});
  CHECK_VALUES(seed, {1, 1});
}

TEST_CASE("V109_views_see_a_change_of_the_base") {
  const Tensor x = leaf({1, 1});
  const Tensor y = x * 1, v = y.view({2});
  y.mul_(3);
  CHECK_VALUES(v, {3, 3});
  backward_of(v, {1, 10});
  CHECK_VALUES(x.grad(), {3, 30});
}

TEST_CASE("a constant that an op saved, then changed by that op's result: nothing keeps itself alive") {
  // Found by random graphs.
  const i64 before = Node::live();
  {
    const Tensor x = leaf({1, 2}), c = f64({3, 4}), whole = f64({5, 6});
    c.add_(x * c);
    const Tensor part = whole.slice(0, 0, 1);
    whole.add_(part * x);
    CHECK_VALUES(c, {6, 12});
  }
  CHECK(Node::live() == before);
}

TEST_CASE("the gradient of a view that is used once after its base was changed") {
  // Found by random graphs: the new history was recorded after the node that uses it had taken its number.
  for (const auto& use : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& v) { return v.sum(); }, [](const Tensor& v) { return v.unsqueeze(0).sum(); },
           [](const Tensor& v) { return v.unbind()[0].sum(); }, [](const Tensor& v) { return v.matmul(f64({1, 1})); }}) {
    const Tensor x = leaf({1, 2, 4});
    const Tensor y = x * 1, v = y.slice(0, 0, 2);
    y.mul_(3);
    use(v).backward();
    CHECK(x.grad().defined());
    CHECK(x.grad().at<double>({0}) == 3);
  }
  const Tensor x = leaf({1, 2});
  const Tensor base = zeros({2}, kF64), v = base.view({2});
  base.add_(x);
  v.add_(1);  // an in-place op may be that use
  backward_of(base, {1, 10});
  CHECK_VALUES(x.grad(), {1, 10});
}

TEST_CASE("views of views, of transposed bases, stepped and reversed windows") {
  const Tensor x = leaf({{1, 2, 3}, {4, 5, 6}});
  const Tensor y = x * 1;
  const Tensor turned = y.t(), row = turned.select(0, 1), ends = row.slice(0, kNoBound, kNoBound, -1);
  ends.mul_(f64({10, 100}));
  CHECK_VALUES(y, {1, 200, 3, 4, 50, 6});
  backward_of(turned, {1, 2, 3, 4, 5, 6});
  CHECK_VALUES(x.grad(), {1, 300, 5, 2, 40, 6});
  // Second order through a write into a window.
  const Tensor w = leaf({2, 3});
  const Tensor z = w * w;
  z.select(0, 0).mul_(z.select(0, 1).clone());
  const GradMap first = grad(z.sum(), {w}, {.create_graph = true});
  CHECK_VALUES(first[w], {36, 30});  // w0²w1² + w1²
  CHECK_VALUES(grad(first[w].sum(), {w})[w], {2 * 9 + 4 * 2 * 3., 2 * 4 + 2 + 4 * 2 * 3.});
  // A constant base gets a history from a view.
  const Tensor base = zeros({3}, kF64), source = leaf({1, 2});
  base.slice(0, 1).copy_(source);
  CHECK(base.requires_grad());
  backward_of(base, {1, 10, 100});
  CHECK_VALUES(source.grad(), {10, 100});
}

TEST_CASE("in place on leaves and views that may not be changed") {
  const Tensor x = leaf({1, 2});
  CHECK_ERROR(x.add_(1), "add_: the target is a leaf that requires grad ([2]); change it inside NoGrad");
  CHECK_ERROR(x.select(0, 0).add_(1),
              "add_: the target is a view of a leaf that requires grad ([]); change it inside NoGrad");
  set_name(x, "net.w");
  CHECK_ERROR(x.slice(0, 1).zero_(),
              "fill_: the target is a view of a leaf that requires grad (\"net.w\", [1]); change it inside NoGrad");
  CHECK(x.version() == 0);
  const Tensor y = x * 1;
  Tensor hidden;
  {
    const NoGrad off;
    hidden = y.select(0, 0);
  }
  CHECK_ERROR(hidden.add_(1),
              "add_: the target is a view that was made under NoGrad, and grad mode is on now; make the view again or "
              "change it inside NoGrad");
  CHECK_ERROR(y.chunk(2)[0].mul_(2),
              "mul_: the target is one of several views that one op returned; use clone() or narrow()");
  CHECK_ERROR(y.select(0, 0).detach_(), "detach_: this is a view, whose history is that of its base; use detach()");
  y.detach_();
  CHECK(!y.requires_grad());
}

TEST_CASE("history is replaced by zero_, fill_, copy_") {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  y.zero_();
  backward_of(y);
  CHECK_VALUES(x.grad(), {0, 0});
  const Tensor u = leaf({1, 2});
  Tensor z = u * 3;
  z.copy_(u * 2);
  backward_of(z);
  CHECK_VALUES(u.grad(), {2, 2});
  // y[0] = 3·x0, y[1] = x0·x1
  const Tensor v = leaf({1, 2});
  const Tensor w = v * 0;
  w.index_put_({0}, v.select(0, 0) * 3);
  w.index_put_({1}, v.select(0, 0) * v.select(0, 1));
  CHECK_VALUES(w, {3, 2});
  backward_of(w);
  CHECK_VALUES(v.grad(), {5, 1});
}

TEST_CASE("in place on a value that nothing saved: no copy of it, one version more, the writer's name and line") {
  const Tensor x = leaf({1, 2}), b = f64({3, 4});
  const Tensor y = x * 1;
  const void* const memory = y.raw();
  waymark::testing::fail_after(0);  // any memory for values would throw
  const std::string text = error_text([&] {
    y.add_(b);
    y.mul_(2);
    y.sub_(b);
    y.div_(4);
    y.neg_();
    y.fill_(5);
  });
  waymark::testing::fail_after(-1);
  CHECK(text == "(no error)");
  CHECK(y.raw() == memory);
  CHECK(y.version() == 6);
  const Scope scope("net.block");
  y.add_(1); const int line = __LINE__;
  const Writer& writer = y.impl()->storage->last_writer();
  CHECK(std::string(writer.name()) == "add_");
  CHECK(writer.place() == fmt::format("inplace.cpp:{} in net.block", line));
  CHECK(y.detach().version() == 7);
  // What failed wrote nothing.
  CHECK_ERROR(y.add_(f64({1, 2, 3})), "add_: shapes do not broadcast: [2] + [3] (axis -1: 2 vs 3)");
  CHECK(y.version() == 7);
}

TEST_CASE("a value that nobody needs as it was may be changed: the check is made when a rule asks") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4}), constant = f64({5, 6});
  const Tensor y = x * 1, z = y + constant;  // add keeps nothing
  y.mul_(7);
  backward_of(z);
  CHECK_VALUES(x.grad(), {1, 1});
  // mul keeps each factor for the other's gradient: who does not ask for that one does not see the change.
  const Tensor u = x * 1, v = w * 1, p = u * v;
  u.detach().add_(1);
  CHECK_VALUES(grad(p.sum(), {u}, {.retain_graph = true})[u], {3, 4});  // needs v, not u
  CHECK(has(error_text([&] { grad(p.sum(), {v}); }), "but add_ wrote to it"));
}

TEST_CASE("C15_C16 disjoint interleaved columns, views of outputs of split, views made before and after") {
  const Tensor a = f64({{1, 2, 3, 4}, {5, 6, 7, 8}});
  a.slice(1, 0, kNoBound, 2).add_(a.slice(1, 1, kNoBound, 2));
  CHECK_VALUES(a, {3, 2, 7, 4, 11, 6, 15, 8});
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor y = x * 1, before = y.slice(0, 0, 2);
  y.slice(0, 1, 3).mul_(10);
  const Tensor after = y.slice(0, 0, 2);
  CHECK_VALUES(before, {1, 20});
  backward_of(before + after, {1, 1});
  CHECK_VALUES(x.grad(), {2, 20, 0, 0});
  CHECK_ERROR(y.chunk(2)[0].slice(0, 0, 1).mul_(2),
              "mul_: the target is one of several views that one op returned; use clone() or narrow()");
  const NoGrad off;
  y.chunk(2)[0].mul_(2);  // without gradients it may
  CHECK_VALUES(y, {2, 40, 30, 4});
}

TEST_CASE("an operand that is the target itself") {
  const Tensor x = leaf({2, 3});
  Tensor y = x * 1;
  y.mul_(y);
  CHECK_VALUES(y, {4, 9});
  backward_of(y);
  CHECK_VALUES(x.grad(), {4, 6});
  const Tensor u = leaf({2, 3});
  Tensor z = u * 1;
  z.div_(z);
  backward_of(z, {1, 10});
  CHECK_VALUES(u.grad(), {0, 0});
  const Tensor w = leaf({2, 3});
  Tensor v = w * 1;
  v.addcmul_(v, v);
  CHECK_VALUES(v, {6, 12});
  backward_of(v);
  CHECK_VALUES(w.grad(), {5, 7});
}

TEST_CASE("in-place forms equal the others, in value and gradient") {
  const Tensor other = f64({0.5, 2, 1.5}), mask = tensor({true, false, true});
  struct Form {
    const char* name;
    std::function<Tensor(const Tensor&)> plain;
    std::function<void(const Tensor&)> inplace;
  };
  const std::vector<Form> forms = {
      {"add_", [&](const Tensor& x) { return x + other; }, [&](const Tensor& x) { x.add_(other); }},
      {"sub_", [&](const Tensor& x) { return sub(x, other, 2); }, [&](const Tensor& x) { x.sub_(other, 2); }},
      {"mul_", [&](const Tensor& x) { return x * other; }, [&](const Tensor& x) { x.mul_(other); }},
      {"div_", [&](const Tensor& x) { return x / other; }, [&](const Tensor& x) { x.div_(other); }},
      {"neg_", [](const Tensor& x) { return neg(x); }, [](const Tensor& x) { x.neg_(); }},
      {"exp_", [](const Tensor& x) { return exp(x); }, [](const Tensor& x) { x.exp_(); }},
      {"sqrt_", [](const Tensor& x) { return sqrt(x); }, [](const Tensor& x) { x.sqrt_(); }},
      {"tanh_", [](const Tensor& x) { return tanh(x); }, [](const Tensor& x) { x.tanh_(); }},
      {"sigmoid_", [](const Tensor& x) { return sigmoid(x); }, [](const Tensor& x) { x.sigmoid_(); }},
      {"relu_", [](const Tensor& x) { return x.relu(); }, [](const Tensor& x) { x.relu_(); }},
      {"pow_", [](const Tensor& x) { return pow(x, 3); }, [](const Tensor& x) { x.pow_(3); }},
      {"clamp_", [](const Tensor& x) { return clamp(x, 1, 2); }, [](const Tensor& x) { x.clamp_(1, 2); }},
      {"masked_fill_", [&](const Tensor& x) { return masked_fill(x, mask, 7); },
       [&](const Tensor& x) { x.masked_fill_(mask, 7); }},
      {"lerp_", [&](const Tensor& x) { return x.lerp(other, 0.25); }, [&](const Tensor& x) { x.lerp_(other, 0.25); }},
      {"addcmul_", [&](const Tensor& x) { return x.addcmul(other, other, 2); },
       [&](const Tensor& x) { x.addcmul_(other, other, 2); }},
      {"addcdiv_", [&](const Tensor& x) { return x.addcdiv(other, other + 1, 2); },
       [&](const Tensor& x) { x.addcdiv_(other, other + 1, 2); }},
  };
  for (const Form& form : forms) {
    INFO(form.name);
    const Tensor a = leaf({0.7, 1.6, 2.5}), b = leaf({0.7, 1.6, 2.5});
    const Tensor y = form.plain(a);
    Tensor z = b * 1;
    form.inplace(z);
    CHECK(difference(y.detach(), z.detach()) == "");
    backward_of(y, {1, 10, 100});
    backward_of(z, {1, 10, 100});
    CHECK(mismatch(b.grad(), a.grad().to_vector<double>(), 1e-14) == "");
  }
}

TEST_CASE("dtypes of in-place targets") {
  CHECK_ERROR(tensor({1, 2}).add_(f64({1, 2})), "add_: the result is f64, which does not fit into the target of i64");
  CHECK_ERROR(tensor({1, 2}).exp_(), "exp_: the result is f32, which does not fit into the target of i64");
  CHECK_ERROR(tensor({true}).add_(1), "add_: the result is i64, which does not fit into the target of b8");
  const Tensor x = zeros({2});
  x.add_(f64({1, 2}));
  CHECK(x.dtype() == kF32);
  CHECK_ERROR(zeros({2}).add_(zeros({3, 2})), "add_: the target [2] cannot take a result of shape [3, 2]");
}

}  // namespace waymark::test
