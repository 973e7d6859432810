// In-place ops (specs: engine 4). They are const: they change what the handle points to. Each raises the version of the
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
WAYMARK_API const Tensor& fill_(const Tensor& x, Scalar value, Loc loc = Loc::here());
WAYMARK_API const Tensor& zero_(const Tensor& x, Loc loc = Loc::here());
WAYMARK_API const Tensor& copy_(const Tensor& x, Arg source);

inline const Tensor& operator+=(const Tensor& x, Arg other) { return add_(x, other); }
inline const Tensor& operator-=(const Tensor& x, Arg other) { return sub_(x, other); }
inline const Tensor& operator*=(const Tensor& x, Arg other) { return mul_(x, other); }
inline const Tensor& operator/=(const Tensor& x, Arg other) { return div_(x, other); }

}  // namespace waymark
