#include "core/ops/projection.h"

#include "core/autograd/bounds.h"
#include "core/autograd/state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/counts.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"

namespace waymark {

namespace {

bool any_outside(const Tensor& t, const Bounds& b) {
  const NoGrad off;
  return any(logical_or(lt(t, b.low), gt(t, b.high))).item<bool>();
}

}  // namespace

void project(const Tensor& t) {
  const auto b = bounds_of(t);
  if (!b || !any_outside(t, *b)) return;
  const NoGrad off;
  clamp_(t, b->low, b->high);
}

Tensor projected(const Tensor& t) {
  const auto b = bounds_of(t);
  if (!b || !any_outside(t, *b)) return t;
  const Tensor value = t.detach();
  // t - value is 0 exactly, and carries the gradient.
  return add(clamp(value, b->low, b->high), sub(t, value));
}

}  // namespace waymark
