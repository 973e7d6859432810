// What a printed tensor says of its gradient.
#include <doctest/doctest.h>

#include "core/autograd/record.h"

using namespace waymark;

namespace {

constexpr OpInfo kCopy{
    .name = "copy", .doc = "", .schema = "copy(Tensor input) -> Tensor", .formula = "y = x", .rule = "dx = dy"};

Tensor f32_leaf() {
  const Tensor t = make_empty({2}, kF32);
  t.data<float>()[0] = 1, t.data<float>()[1] = 2;
  ensure_meta(t).requires_grad = true;
  return t;
}
Tensor copy(Arg x) {
  const Tensor value = make_empty({2}, kF32);
  std::copy_n(x->data<float>(), 2, value.data<float>());
  return record(kCopy, value, {x}, [](Saver&) { return [](Tensor g, Need) -> Grads { return {g}; }; });
}

}  // namespace

TEST_CASE("a leaf prints requires_grad, a result the op and number of its node") {
  const Tensor x = f32_leaf();
  CHECK(x.to_string() == "tensor([1., 2.], requires_grad=True)");
  const Tensor y = copy(x);
  const std::string node = meta_of(y)->history.node->label();
  CHECK(node.starts_with("copy #"));
  CHECK(y.to_string() == fmt::format("tensor([1., 2.], grad_fn=<{}>)", node));
  set_name(x, "weight");
  CHECK(x.to_string() == "tensor([1., 2.], requires_grad=True)");
  const Tensor plain = alias(x);
  set_name(plain, "buffer");  // metadata without a gradient
  CHECK(plain.to_string() == "tensor([1., 2.])");
}

TEST_CASE("printing a view of a changed base says so and leaves the history alone") {
  const Tensor x = f32_leaf(), base = make_empty({2}, kF32);
  std::fill_n(base.data<float>(), 2, 3.0f);
  Tensor view = alias(base);
  remember_base(view, base);
  CHECK(view.to_string() == "tensor([3., 3.])");
  record_inplace(kCopy, base, {x}, [](Saver&) { return [](Tensor g, Need) -> Grads { return {g}; }; });
  const std::string expected =
      fmt::format("tensor([3., 3.], grad_fn=<view of {}>)", meta_of(base)->history.node->label());
  CHECK(view.to_string() == expected);
  CHECK(view.to_string() == expected);
  CHECK_FALSE(meta_of(view)->history.node);
}
