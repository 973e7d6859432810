// What the elementwise families share: promotion, broadcasting, the choice of loop. Internal to core/ops.
#pragma once

#include "core/autograd/op_call.h"
#include "core/autograd/record.h"
#include "core/kernels/elementwise.h"

namespace waymark::ops {

void check_defined(std::string_view op, const Arg& a);

// Result dtype as in PyTorch: the highest category; within it a tensor with axes outranks a 0-d tensor, which
// outranks a scalar.
DType promote(const Tensor& a, const Tensor& b);
DType promote(const Tensor& a, const Scalar& b);
DType promote(std::span<const Tensor> list);
// Default float for b8 and i64, else unchanged: `/`, exp, sqrt, ...
DType to_float(DType t);
// Error that says .to(kF32) for b8 and i64: mean, var, softmax, gelu, ...
void need_float(std::string_view op, const Tensor& t);

// t in another dtype, without history; t itself if it has it already.
Tensor cast_value(const Tensor& t, DType dtype);

// Values without history. Loops that give b8 get a b8 output.
Tensor unary_value(std::string_view op, kernels::Unary loop, const Arg& x, DType dtype, std::span<const double> p = {},
                   bool may_reuse = false);
Tensor binary_value(std::string_view op, kernels::Binary loop, const Arg& a, const Arg& b, DType dtype,
                    bool may_reuse = false);
Tensor binary_value(std::string_view op, kernels::Binary loop, const Arg& a, const Scalar& b, DType dtype,
                    bool may_reuse = false, bool scalar_first = false);
// The same with a loop in hand: operands of one dtype, which is the result's. p: the loop's parameters.
Tensor map_value(kernels::UnaryLoop loop, const Arg& x, std::span<const double> p, bool may_reuse = false);
Tensor zip_value(kernels::BinaryLoop loop, const Tensor& a, const Tensor& b, std::span<const double> p = {});
Tensor zip_value(kernels::BinaryLoop loop, const Tensor& a, const Scalar& b, bool scalar_first = false);
// A scalar as one element in memory: scalars never become tensors.
struct ScalarCell {
  alignas(8) std::byte bytes[8];
  ScalarCell(const Scalar& v, DType t) {
    visit_dtype(t, [&](auto zero) { *reinterpret_cast<decltype(zero)*>(bytes) = v.to<decltype(zero)>(); });
  }
};
// Into an existing target (in-place ops): the operands are cast to the target's dtype first.
void binary_into(std::string_view op, kernels::Binary loop, const Tensor& target, const Tensor& a, const Tensor& b);
// target = loop(target, b)
void binary_into(std::string_view op, kernels::Binary loop, const Tensor& target, const Scalar& b);
void unary_into(kernels::Unary loop, const Tensor& target, const Tensor& x, std::span<const double> p = {});
// target[...] = source, broadcast and cast.
void copy_into(const Tensor& target, const Tensor& source);
void fill_into(const Tensor& target, const Scalar& v);

// x as it was, for the edge of an in-place op's node: an alias with x's history. (x itself will be its output.)
Tensor history_before(const Tensor& x);
// The same in memory of its own, for rules that read x as it was.
Tensor copy_before(const Tensor& x);

// Values by ops: nothing inside is recorded, neither in the graph nor by an observer.
class Unrecorded {
 public:
  Unrecorded() : observer_(thread_state().observer) { thread_state().observer = nullptr; }
  ~Unrecorded() { thread_state().observer = observer_; }
  Unrecorded(const Unrecorded&) = delete;
  Unrecorded& operator=(const Unrecorded&) = delete;

 private:
  NoGrad off_;
  Observer* observer_;
};

// True if recording would keep nothing of these inputs: then an rvalue input's buffer may take the result.
bool nothing_recorded(std::initializer_list<const Tensor*> inputs);

// t, contiguous (a copy if it is not), without history.
Tensor contiguous_value(const Tensor& t);
// Σ over these axes (sorted, wrapped), pairwise; the same bits for any number of threads. reduce.cpp
Tensor sum_value(const Tensor& x, const std::vector<int>& dims, bool keepdim);
// t with strides of 0 where it repeats, as a view of exactly `shape`.
Tensor expand_value(const Tensor& t, const Shape& shape);


// A view op whose gradient lies in the same window of zeros, and the adjoint of that.
Tensor window_of(const OpInfo& op, Arg x, const Window& w);
Tensor embed_window(Arg x, const Shape& shape, const Window& w);

}  // namespace waymark::ops
