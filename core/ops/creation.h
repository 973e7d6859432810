// Internal: what all ops that make tensors from nothing share.
#pragma once

#include "core/autograd/op_call.h"
#include "core/autograd/record.h"
#include "core/ops/create.h"

namespace waymark::ops {

inline TensorOptions creation_options(OpCall& c) { return {.dtype = c.dtype("dtype")}; }

// y as the result of `op`, a leaf if the options ask for one.
inline Tensor created(const OpInfo& op, Tensor y, const TensorOptions& o) {
  if (o.requires_grad) y.requires_grad_();
  return record_nondiff(op, std::move(y), {});
}

}  // namespace waymark::ops
