// Tensor's methods that are elementwise functions and in-place forms: each is the free function of the same name.
#include "core/ops/arithmetic.h"
#include "core/ops/functions.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"

namespace waymark {

#define SELF Arg(*this, loc)

// clang-format off
#define WAYMARK_METHOD(NAME) Tensor Tensor::NAME(Loc loc) const { return waymark::NAME(SELF); }
WAYMARK_METHOD(exp2)
WAYMARK_METHOD(expm1)
WAYMARK_METHOD(log2)
WAYMARK_METHOD(log10)
WAYMARK_METHOD(log1p)
WAYMARK_METHOD(tan)
WAYMARK_METHOD(asin)
WAYMARK_METHOD(acos)
WAYMARK_METHOD(atan)
WAYMARK_METHOD(sinh)
WAYMARK_METHOD(cosh)
WAYMARK_METHOD(asinh)
WAYMARK_METHOD(acosh)
WAYMARK_METHOD(atanh)
WAYMARK_METHOD(erfc)
WAYMARK_METHOD(erfinv)
WAYMARK_METHOD(trunc)
WAYMARK_METHOD(frac)
WAYMARK_METHOD(isinf)
WAYMARK_METHOD(isposinf)
WAYMARK_METHOD(isneginf)
WAYMARK_METHOD(signbit)
WAYMARK_METHOD(bitwise_not)
WAYMARK_METHOD(reciprocal)
WAYMARK_METHOD(erf)
WAYMARK_METHOD(sign)
WAYMARK_METHOD(floor)
WAYMARK_METHOD(ceil)
WAYMARK_METHOD(isnan)
WAYMARK_METHOD(isfinite)
WAYMARK_METHOD(logical_not)
WAYMARK_METHOD(positive)
// clang-format on

Tensor Tensor::round(i64 decimals, Loc loc) const {
  return waymark::round(SELF, decimals);
}
Tensor Tensor::logit(std::optional<double> eps, Loc loc) const { return waymark::logit(SELF, eps); }
Tensor Tensor::nan_to_num(double nan, std::optional<double> posinf, std::optional<double> neginf, Loc loc) const {
  return waymark::nan_to_num(SELF, nan, posinf, neginf);
}
Tensor Tensor::div(Scalar o, std::string_view rounding_mode, Loc loc) const {
  return waymark::div(SELF, o, rounding_mode);
}
Tensor Tensor::div(const Tensor& o, std::string_view rounding_mode, Loc loc) const {
  return waymark::div(SELF, Arg(o, loc), rounding_mode);
}

// clang-format off
#define WAYMARK_PAIR_METHOD(NAME) Tensor Tensor::NAME(const Tensor& o, Loc loc) const { return waymark::NAME(SELF, Arg(o, loc)); }
WAYMARK_PAIR_METHOD(remainder)
WAYMARK_PAIR_METHOD(fmod)
WAYMARK_PAIR_METHOD(floor_divide)
WAYMARK_PAIR_METHOD(fmax)
WAYMARK_PAIR_METHOD(fmin)
WAYMARK_PAIR_METHOD(atan2)
WAYMARK_PAIR_METHOD(hypot)
WAYMARK_PAIR_METHOD(logaddexp)
WAYMARK_PAIR_METHOD(xlogy)
WAYMARK_PAIR_METHOD(copysign)
WAYMARK_PAIR_METHOD(heaviside)
WAYMARK_PAIR_METHOD(bitwise_and)
WAYMARK_PAIR_METHOD(bitwise_or)
WAYMARK_PAIR_METHOD(bitwise_xor)
WAYMARK_PAIR_METHOD(pow)
WAYMARK_PAIR_METHOD(maximum)
WAYMARK_PAIR_METHOD(minimum)
WAYMARK_PAIR_METHOD(eq)
WAYMARK_PAIR_METHOD(ne)
WAYMARK_PAIR_METHOD(lt)
WAYMARK_PAIR_METHOD(le)
WAYMARK_PAIR_METHOD(gt)
WAYMARK_PAIR_METHOD(ge)
WAYMARK_PAIR_METHOD(logical_and)
WAYMARK_PAIR_METHOD(logical_or)
WAYMARK_PAIR_METHOD(logical_xor)
#define WAYMARK_SCALAR_METHOD(NAME) Tensor Tensor::NAME(Scalar o, Loc loc) const { return waymark::NAME(SELF, o); }
WAYMARK_SCALAR_METHOD(remainder)
WAYMARK_SCALAR_METHOD(fmod)
WAYMARK_SCALAR_METHOD(floor_divide)
WAYMARK_SCALAR_METHOD(xlogy)
WAYMARK_SCALAR_METHOD(bitwise_and)
WAYMARK_SCALAR_METHOD(bitwise_or)
WAYMARK_SCALAR_METHOD(bitwise_xor)
WAYMARK_SCALAR_METHOD(eq)
WAYMARK_SCALAR_METHOD(ne)
WAYMARK_SCALAR_METHOD(lt)
WAYMARK_SCALAR_METHOD(le)
WAYMARK_SCALAR_METHOD(gt)
WAYMARK_SCALAR_METHOD(ge)
// clang-format on

Tensor Tensor::where(const Tensor& condition, const Tensor& o, Loc loc) const {
  return waymark::where(Arg(condition, loc), SELF, Arg(o, loc));
}
Tensor Tensor::where(const Tensor& condition, Scalar o, Loc loc) const {
  return waymark::where(Arg(condition, loc), SELF, o);
}

Tensor Tensor::lerp(const Tensor& end, const Tensor& w, Loc loc) const {
  return waymark::lerp(SELF, Arg(end, loc), Arg(w, loc));
}
Tensor Tensor::lerp(const Tensor& end, Scalar w, Loc loc) const { return waymark::lerp(SELF, Arg(end, loc), w); }
Tensor Tensor::addcmul(const Tensor& a, const Tensor& b, Scalar value, Loc loc) const {
  return waymark::addcmul(SELF, Arg(a, loc), Arg(b, loc), value);
}
Tensor Tensor::addcdiv(const Tensor& a, const Tensor& b, Scalar value, Loc loc) const {
  return waymark::addcdiv(SELF, Arg(a, loc), Arg(b, loc), value);
}
Tensor Tensor::clamp(const Tensor& min, const Tensor& max, Loc loc) const {
  return waymark::clamp(SELF, Arg(min, loc), Arg(max, loc));
}
Tensor Tensor::masked_fill(const Tensor& mask, const Tensor& v, Loc loc) const {
  return waymark::masked_fill(SELF, Arg(mask, loc), Arg(v, loc));
}
Tensor Tensor::isclose(const Tensor& o, double rtol, double atol, bool equal_nan, Loc loc) const {
  return waymark::isclose(SELF, Arg(o, loc), rtol, atol, equal_nan);
}
bool Tensor::allclose(const Tensor& o, double rtol, double atol, bool equal_nan, Loc loc) const {
  return waymark::allclose(SELF, Arg(o, loc), rtol, atol, equal_nan);
}
bool Tensor::equal(const Tensor& o, Loc loc) const { return waymark::equal(SELF, Arg(o, loc)); }

// clang-format off
#define WAYMARK_INPLACE_METHOD(NAME) const Tensor& Tensor::NAME(Loc loc) const { return waymark::NAME(*this, loc); }
WAYMARK_INPLACE_METHOD(neg_)
WAYMARK_INPLACE_METHOD(exp_)
WAYMARK_INPLACE_METHOD(sqrt_)
WAYMARK_INPLACE_METHOD(relu_)
WAYMARK_INPLACE_METHOD(tanh_)
WAYMARK_INPLACE_METHOD(sigmoid_)
WAYMARK_INPLACE_METHOD(detach_)
// clang-format on

const Tensor& Tensor::pow_(const Tensor& exponent, Loc loc) const { return waymark::pow_(*this, Arg(exponent, loc)); }
const Tensor& Tensor::div_(const Tensor& o, std::string_view rounding_mode, Loc loc) const {
  return waymark::div_(*this, Arg(o, loc), rounding_mode);
}
const Tensor& Tensor::div_(Scalar o, std::string_view rounding_mode, Loc loc) const {
  return waymark::div_(*this, o, rounding_mode, loc);
}
const Tensor& Tensor::clamp_(const Tensor& min, const Tensor& max, Loc loc) const {
  return waymark::clamp_(*this, Arg(min, loc), Arg(max, loc));
}
const Tensor& Tensor::masked_fill_(const Tensor& mask, const Tensor& v, Loc loc) const {
  return waymark::masked_fill_(*this, Arg(mask, loc), Arg(v, loc));
}
const Tensor& Tensor::lerp_(const Tensor& end, const Tensor& w, Loc loc) const {
  return waymark::lerp_(*this, Arg(end, loc), Arg(w, loc));
}
const Tensor& Tensor::pow_(Scalar exponent, Loc loc) const {
  return waymark::pow_(*this, exponent, loc);
}
const Tensor& Tensor::clamp_(std::optional<Scalar> min, std::optional<Scalar> max, Loc loc) const {
  return waymark::clamp_(*this, min, max, loc);
}
const Tensor& Tensor::masked_fill_(const Tensor& mask, Scalar v, Loc loc) const {
  return waymark::masked_fill_(*this, Arg(mask, loc), v);
}
const Tensor& Tensor::lerp_(const Tensor& end, Scalar w, Loc loc) const {
  return waymark::lerp_(*this, Arg(end, loc), w);
}
const Tensor& Tensor::addcmul_(const Tensor& a, const Tensor& b, Scalar value, Loc loc) const {
  return waymark::addcmul_(*this, Arg(a, loc), Arg(b, loc), value);
}
const Tensor& Tensor::addcdiv_(const Tensor& a, const Tensor& b, Scalar value, Loc loc) const {
  return waymark::addcdiv_(*this, Arg(a, loc), Arg(b, loc), value);
}

#undef SELF

}  // namespace waymark
