// In-place ops. They are const: they change what the handle points to. Each raises the version of the
// storage, so that backward notices when a saved value was overwritten.
#pragma once

#include "core/autograd/arg.h"

namespace waymark {

WAYMARK_API const Tensor& add_(const Tensor& x, Arg other, Scalar alpha = 1);
WAYMARK_API const Tensor& add_(const Tensor& x, Scalar other, Loc loc = Loc::here());
WAYMARK_API const Tensor& sub_(const Tensor& x, Arg other, Scalar alpha = 1);
WAYMARK_API const Tensor& sub_(const Tensor& x, Scalar other, Loc loc = Loc::here());
WAYMARK_API const Tensor& mul_(const Tensor& x, Arg other);
WAYMARK_API const Tensor& mul_(const Tensor& x, Scalar other, Loc loc = Loc::here());
WAYMARK_API const Tensor& div_(const Tensor& x, Arg other);
WAYMARK_API const Tensor& div_(const Tensor& x, Scalar other, Loc loc = Loc::here());
WAYMARK_API const Tensor& div_(const Tensor& x, Arg other, std::string_view rounding_mode);
WAYMARK_API const Tensor& div_(const Tensor& x, Scalar other, std::string_view rounding_mode, Loc loc = Loc::here());
WAYMARK_API const Tensor& fill_(const Tensor& x, Scalar value, Loc loc = Loc::here());
WAYMARK_API const Tensor& zero_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& copy_(const Tensor& x, Arg source);

WAYMARK_API const Tensor& neg_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& exp_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& sqrt_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& relu_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& tanh_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& sigmoid_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& pow_(const Tensor& x, Scalar exponent, Loc loc = Loc::here());
WAYMARK_API const Tensor& pow_(const Tensor& x, Arg exponent);
WAYMARK_API const Tensor& clamp_(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max,
                                 Loc loc = Loc::here());
WAYMARK_API const Tensor& clamp_(const Tensor& x, Arg min, Arg max);  // one may be undefined
WAYMARK_API const Tensor& masked_fill_(const Tensor& x, Arg mask, Scalar value);
WAYMARK_API const Tensor& masked_fill_(const Tensor& x, Arg mask, Arg value);  // value: 0-d
WAYMARK_API const Tensor& lerp_(const Tensor& x, Arg end, Arg weight);
WAYMARK_API const Tensor& lerp_(const Tensor& x, Arg end, Scalar weight);
WAYMARK_API const Tensor& addcmul_(const Tensor& x, Arg a, Arg b, Scalar value = 1);
WAYMARK_API const Tensor& addcdiv_(const Tensor& x, Arg a, Arg b, Scalar value = 1);
// Cuts x's own history. A view cannot: use detach().
WAYMARK_API const Tensor& detach_(const Tensor& x, Loc loc = Loc::here());

inline const Tensor& operator+=(const Tensor& x, Arg other) { return add_(x, other); }
inline const Tensor& operator-=(const Tensor& x, Arg other) { return sub_(x, other); }
inline const Tensor& operator*=(const Tensor& x, Arg other) { return mul_(x, other); }
inline const Tensor& operator/=(const Tensor& x, Arg other) { return div_(x, other); }
inline const Tensor& operator+=(Arg x, Scalar other) { return add_(*x, other, x.loc()); }
inline const Tensor& operator-=(Arg x, Scalar other) { return sub_(*x, other, x.loc()); }
inline const Tensor& operator*=(Arg x, Scalar other) { return mul_(*x, other, x.loc()); }
inline const Tensor& operator/=(Arg x, Scalar other) { return div_(*x, other, x.loc()); }

}  // namespace waymark
