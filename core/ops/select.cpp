// where, masked_fill: selection by a mask (declared in arithmetic.h).
#include "core/kernels/loops.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attributes.h"
#include "core/ops/elementwise.h"
#include "core/ops/functions.h"
#include "core/ops/index.h"
#include "core/ops/reduce.h"

namespace waymark {

using namespace ops;

namespace {

void check_selection(const char* op, const char* what, const Arg& mask) {
  check_defined(op, mask);
  if (mask->dtype() != kB8) fail_at(mask.loc(), op, "the {} must be b8, got {}; use to(kB8) or a comparison", what, name_of(mask->dtype()));
}

// What where reads for one of its values: a tensor, expanded and cast, or a scalar.
struct Choice {
  Choice(const Tensor& t, const Shape& shape, DType dtype)
      : cell(0, dtype), tensor(expand_value(cast_value(t, dtype), shape)), strides(tensor.strides()) {}
  Choice(const Scalar& v, const Shape& shape, DType dtype) : cell(v, dtype), strides(shape.size()) {}
  std::byte* raw() { return tensor.defined() ? tensor.raw() : cell.bytes; }
  ScalarCell cell;
  Tensor tensor;
  Shape strides;
};
Shape shape_of(const Tensor& t) { return t.shape(); }
Shape shape_of(const Scalar&) { return {}; }

template <class A, class B> Tensor where_value(const char* op, const Tensor& c, const A& a, const B& b, DType dtype) {
  const Shape shape = broadcast_shapes(op, broadcast_shapes(op, c.shape(), shape_of(a)), shape_of(b));
  Tensor y = make_empty(shape, dtype);
  if (y.numel() == 0) return y;
  const Tensor mask = expand_value(c, shape);
  Choice yes(a, shape, dtype), no(b, shape, dtype);
  const i64 size = size_of(dtype);
  const auto plan = kernels::make_loops<4>(shape, {&y.strides(), &mask.strides(), &yes.strides, &no.strides},
                                           {y.raw(), mask.raw(), yes.raw(), no.raw()}, {size, 1, size, size});
  const auto fn = kernels::ternary_loop(kernels::Ternary::where, dtype);
  kernels::run_loops(plan, [&](i64 n, const auto& p, const auto& s) {
    fn(n, p[0], s[0], p[1], s[1], p[2], s[2], p[3], s[3], nullptr);
  });
  return y;
}

}  // namespace

extern constexpr OpInfo kWhere{
    .name = "where", .family = "select", .doc = "elements of one tensor or the other, by a mask",
    .schema = "where(Tensor condition, Tensor input, Tensor other) -> Tensor", .formula = "y = c ? a : b",
    .rule = "da = c ? g : 0,  db = c ? 0 : g", .saves = {{"condition", For{1, 2}}},
    .apply = [](OpCall& c) {
      if (!c.has("input") && !c.has("other")) {  // positions, one tensor an axis
        const std::vector<Tensor> list = where(c.tensor("condition"));
        for (size_t i = 0; i < list.size(); ++i) c.result(std::to_string(i), list[i]);
        return;
      }
      const bool yes = c.is_tensor("input"), no = c.is_tensor("other");
      if (!yes && !no) c.result(where(c.tensor("condition"), c.scalar("input"), c.scalar("other")));
      else if (!yes) c.result(where(c.tensor("condition"), c.scalar("input"), c.tensor("other")));
      else if (!no) c.result(where(c.tensor("condition"), c.tensor("input"), c.scalar("other")));
      else c.result(where(c.tensor("condition"), c.tensor("input"), c.tensor("other")));
    }};

Tensor where(Arg condition, Arg a, Arg b) {
  check_selection("where", "condition", condition);
  check_defined("where", a);
  check_defined("where", b);
  return record(kWhere, where_value("where", *condition, *a, *b, promote(*a, *b)), {condition, a, b}, [&](Saver& s) {
    return [c = s.input(0)](Tensor g, const Need& need) -> Grads {
      return {Tensor(), need[1] ? where(*c, g, 0) : Tensor(), need[2] ? where(*c, 0, g) : Tensor()};
    };
  });
}

Tensor where(Arg condition, Arg a, Scalar b) {
  check_selection("where", "condition", condition);
  check_defined("where", a);
  const DType dtype = promote(*a, b);
  return record(kWhere, where_value("where", *condition, *a, b, dtype), {condition, a}, [&](Saver& s) {
    return [c = s.input(0)](Tensor g, const Need&) -> Grads { return {Tensor(), where(*c, g, 0)}; };
  }, [&](Attrs& at) { at("other", attribute_of(b)); });
}

Tensor where(Arg condition, Scalar a, Arg b) {
  check_selection("where", "condition", condition);
  check_defined("where", b);
  const DType dtype = promote(*b, a);
  return record(kWhere, where_value("where", *condition, a, *b, dtype), {condition, b}, [&](Saver& s) {
    return [c = s.input(0)](Tensor g, const Need&) -> Grads { return {Tensor(), where(*c, 0, g)}; };
  }, [&](Attrs& at) { at("input", attribute_of(a)); });
}

Tensor where(Arg condition, Scalar a, Scalar b) {
  check_selection("where", "condition", condition);
  const int category = std::max(a.category(), b.category());
  const DType dtype = category == 0 ? kB8 : category == 1 ? kI64 : default_dtype();
  return record_nondiff(kWhere, where_value("where", *condition, a, b, dtype), {condition});
}

extern constexpr OpInfo kMaskedFill{
    .name = "masked_fill", .family = "select", .doc = "a value where the mask is true",
    .schema = "masked_fill(Tensor input, Tensor mask, Scalar value) -> Tensor", .formula = "y = m ? v : x",
    .rule = "dx = m ? 0 : g,  dv = Σ g at m", .saves = {{"mask", For{0}}},
    .apply = [](OpCall& c) {
      if (c.is_tensor("value")) c.result(masked_fill(c.tensor("input"), c.tensor("mask"), c.tensor("value")));
      else c.result(masked_fill(c.tensor("input"), c.tensor("mask"), c.scalar("value")));
    }};

Tensor masked_fill(Arg x, Arg mask, Scalar v) {
  check_defined("masked_fill", x);
  check_selection("masked_fill", "mask", mask);
  if (v.category() > category_of(x->dtype()))
    fail_at(x.loc(), "masked_fill", "a float value does not fit into {}; convert with to(...)", name_of(x->dtype()));
  return record(kMaskedFill, where_value("masked_fill", *mask, v, *x, x->dtype()), {x, mask}, [&](Saver& s) {
    return [m = s.input(1)](Tensor g, const Need&) -> Grads { return {masked_fill(g, *m, 0), Tensor()}; };
  }, [&](Attrs& at) { at("value", attribute_of(v)); });
}

}  // namespace waymark
