#include "core/ops/inplace.h"

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace waymark {

using kernels::Binary;
using namespace ops;

namespace {

// The target keeps its dtype; the operand may not be of a higher category, nor make the target grow.
void check_target(std::string_view op, const Tensor& x, DType operand, const Shape& shape, Loc loc) {
  if (category_of(operand) > category_of(x.dtype()))
    fail_at(loc, op, "the result is {}, which does not fit into the target of {}", name_of(operand), name_of(x.dtype()));
  if (!broadcasts_to(shape, x.shape()))
    fail_at(loc, op, "the target {} cannot take a result of shape {}", x.shape(), broadcast_shapes(op, x.shape(), shape));
}

}  // namespace

#define WAYMARK_INPLACE(K, NAME, FORMULA, RULE)                                                                 \
  extern constexpr OpInfo K{.name = #NAME, .family = "inplace", .doc = "in-place form of the op without the underscore", \
                            .schema = #NAME "(Tensor(a!) input, Tensor other) -> Tensor(a!)",                   \
                            .formula = FORMULA, .rule = RULE};
WAYMARK_INPLACE(kAddInplace, add_, "x ← x + α·b", "dx = g,  db = α·g")
WAYMARK_INPLACE(kSubInplace, sub_, "x ← x − α·b", "dx = g,  db = −α·g")
WAYMARK_INPLACE(kMulInplace, mul_, "x ← x·b", "dx = g·b,  db = g·x (x as it was)")
WAYMARK_INPLACE(kDivInplace, div_, "x ← x/b", "dx = g/b,  db = −g·y/b")
WAYMARK_INPLACE(kFillInplace, fill_, "x ← v", "dx = 0")
WAYMARK_INPLACE(kCopyInplace, copy_, "x ← source", "dx = 0,  dsource = g")

namespace {

const Tensor& add_scaled(const OpInfo& op, const Tensor& x, const Arg& b, double factor) {
  check_defined(op.name, b);
  check_inplace(op.name, x, {b});
  check_target(op.name, x, promote(x, *b), b->shape(), b.loc());
  const Tensor old = history_before(x);
  if (factor == 1) binary_into(op.name, Binary::add, x, x, *b);
  else if (factor == -1) binary_into(op.name, Binary::sub, x, x, *b);
  else binary_into(op.name, Binary::add, x, x, binary_value(op.name, Binary::mul, b, factor, x.dtype()));
  record_inplace(op, x, {Arg(old, b.loc()), b}, [&](Saver&) {
    return [factor](Tensor g, const Need& need) -> Grads {
      return {g, need[1] ? (factor == 1 ? g : mul(g, factor)) : Tensor()};
    };
  });
  return x;
}

// Loops whose second operand is a scalar.
template <class Rule>
const Tensor& scalar_op(const OpInfo& op, Binary loop, const Tensor& x, const Scalar& v, Loc loc, Rule rule) {
  const Arg target(x, loc);
  check_inplace(op.name, x, {target});
  const DType dtype = loop == Binary::div ? to_float(promote(x, v)) : promote(x, v);
  check_target(op.name, x, dtype, x.shape(), loc);
  const Tensor old = history_before(x);
  binary_into(op.name, loop, x, v);
  record_inplace(op, x, {Arg(old, loc)}, [&](Saver&) {
    return [rule](Tensor g, const Need&) -> Grads { return {rule(std::move(g))}; };
  });
  return x;
}

}  // namespace

const Tensor& add_(const Tensor& x, Arg other, Scalar alpha) { return add_scaled(kAddInplace, x, other, alpha.to_double()); }
const Tensor& sub_(const Tensor& x, Arg other, Scalar alpha) { return add_scaled(kSubInplace, x, other, -alpha.to_double()); }
const Tensor& add_(const Tensor& x, Scalar other, Loc loc) {
  return scalar_op(kAddInplace, Binary::add, x, other, loc, [](Tensor g) { return g; });
}
const Tensor& sub_(const Tensor& x, Scalar other, Loc loc) {
  return scalar_op(kSubInplace, Binary::sub, x, other, loc, [](Tensor g) { return g; });
}
const Tensor& mul_(const Tensor& x, Scalar other, Loc loc) {
  return scalar_op(kMulInplace, Binary::mul, x, other, loc, [other](Tensor g) { return mul(std::move(g), other); });
}
const Tensor& div_(const Tensor& x, Scalar other, Loc loc) {
  return scalar_op(kDivInplace, Binary::div, x, other, loc, [other](Tensor g) { return div(std::move(g), other); });
}

const Tensor& mul_(const Tensor& x, Arg other) {
  check_defined("mul_", other);
  check_inplace("mul_", x, {other});
  check_target("mul_", x, promote(x, *other), other->shape(), other.loc());
  // The rule for the operand reads x as it was, which is about to be overwritten; so is the operand, where it is x.
  const bool same = overlap_of(x, *other) == Overlap::full, keep = grad_enabled() && edge_of(*other).wanted();
  const Tensor old = keep || same ? copy_before(x) : history_before(x);
  const Tensor b = same ? old : *other;
  binary_into("mul_", Binary::mul, x, x, *other);
  record_inplace(kMulInplace, x, {Arg(old, other.loc()), Arg(b, other.loc())}, [&](Saver& s) {
    return [a = s.input(0, s.needs(1)), b = s.input(1, s.needs(0))](Tensor g, const Need& need) -> Grads {
      return {need[0] ? mul(g, *b) : Tensor(), need[1] ? mul(g, *a) : Tensor()};
    };
  });
  return x;
}

const Tensor& div_(const Tensor& x, Arg other) {
  check_defined("div_", other);
  check_inplace("div_", x, {other});
  check_target("div_", x, to_float(promote(x, *other)), other->shape(), other.loc());
  const bool same = overlap_of(x, *other) == Overlap::full;
  const Tensor old = same ? copy_before(x) : history_before(x), b = same ? old : *other;
  binary_into("div_", Binary::div, x, x, *other);
  record_inplace(kDivInplace, x, {Arg(old, other.loc()), Arg(b, other.loc())}, [&](Saver& s) {
    return [b = s.input(1), y = s.output(0, s.needs(1))](Tensor g, const Need& need) -> Grads {
      const Tensor q = div(g, *b);
      return {need[0] ? q : Tensor(), need[1] ? neg(mul(q, *y)) : Tensor()};
    };
  });
  return x;
}

const Tensor& fill_(const Tensor& x, Scalar value, Loc loc) {
  check_inplace("fill_", x, {Arg(x, loc)});
  const Tensor old = history_before(x);
  fill_into(x, value);
  record_inplace(kFillInplace, x, {Arg(old, loc)}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {mul(std::move(g), 0)}; };
  });
  return x;
}
const Tensor& zero_(const Tensor& x, Loc loc) { return fill_(x, 0, loc); }

const Tensor& copy_(const Tensor& x, Arg source) {
  check_defined("copy_", source);
  if (x.defined() && overlap_of(x, *source) == Overlap::full) return x;  // onto itself: nothing to do, same version
  check_inplace("copy_", x, {source});
  check_target("copy_", x, x.dtype(), source->shape(), source.loc());  // any dtype converts
  const Tensor old = history_before(x);
  copy_into(x, *source);
  record_inplace(kCopyInplace, x, {Arg(old, source.loc()), source}, [](Saver&) {
    return [](Tensor g, const Need& need) -> Grads { return {need[0] ? mul(g, 0) : Tensor(), need[1] ? g : Tensor()}; };
  });
  return x;
}

}  // namespace waymark
