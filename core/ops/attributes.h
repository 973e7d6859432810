// Internal: numbers of ops as attributes, for recorders.
#pragma once

#include "core/autograd/record.h"

namespace waymark::ops {

// A number as what it is: replaying 2 as 2.0 would change the dtype of the result.
inline AttrValue attribute_of(const Scalar& v) {
  if (v.category() == 0) return v.to_bool();
  if (v.category() == 1) return v.to_i64();
  return v.to_double();
}

}  // namespace waymark::ops
