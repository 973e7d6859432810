// Derivatives of functions, with the arguments and results of torch.autograd.functional.
//
// f takes tensors and returns tensors; all are float. Inputs are copied as leaves, so .grad of the caller's tensors is
// never touched. strict = false: an output that does not depend on an input gives zeros.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark {

using TupleFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
using SingleFunction = std::function<Tensor(const Tensor&)>;

// [output][input]: shape output.shape + input.shape. create_graph: the result is differentiable in turn.
WAYMARK_API std::vector<std::vector<Tensor>> jacobian(const TupleFunction& f, const std::vector<Tensor>& inputs,
                                                      bool create_graph = false);
WAYMARK_API Tensor jacobian(const SingleFunction& f, const Tensor& input, bool create_graph = false);
// f returns one element. [input i][input j]: shape input_i.shape + input_j.shape.
WAYMARK_API std::vector<std::vector<Tensor>> hessian(const TupleFunction& f, const std::vector<Tensor>& inputs,
                                                     bool create_graph = false);
WAYMARK_API Tensor hessian(const SingleFunction& f, const Tensor& input, bool create_graph = false);

struct FunctionAndProduct {
  std::vector<Tensor> outputs, products;
};
// vᵀ·J; v as the outputs (may be empty if f returns one element).
WAYMARK_API FunctionAndProduct vjp(const TupleFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {},
                                   bool create_graph = false);
// J·v; v as the inputs. By differentiating u ↦ uᵀ·J twice.
WAYMARK_API FunctionAndProduct jvp(const TupleFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
                                   bool create_graph = false);
// H·v; f returns one element, v as the inputs.
WAYMARK_API FunctionAndProduct hvp(const TupleFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
                                   bool create_graph = false);

}  // namespace waymark
