#include "train/optim/clip.h"

#include <cmath>
#include <limits>

#include "core/autograd/state.h"
#include "core/kernels/adamw.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "train/optim/pieces.h"

namespace waymark::train {

namespace {

// The gradients that are there, row-major.
std::vector<Tensor> gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> list;
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) list.push_back(contiguous(g));
  return list;
}

template <class T> double power_sum(i64 n, const T* x, double p) {
  double sum = 0;
  for (i64 i = 0; i < n; ++i) sum += std::pow(std::fabs(static_cast<double>(x[i])), p);
  return sum;
}
// NaN wins.
template <class T> double largest(i64 n, const T* x) {
  double most = 0;
  for (i64 i = 0; i < n; ++i) {
    const double v = std::fabs(static_cast<double>(x[i]));
    if (!(v <= most)) most = v;
    if (std::isnan(most)) break;
  }
  return most;
}

}  // namespace

double grad_norm(const std::vector<Tensor>& parameters, double norm_type) {
  if (!(norm_type > 0)) fail("grad_norm", "norm_type must be a number > 0 or infinity, not {}", norm_type);
  const NoGrad no_grad;
  const std::vector<Tensor> grads = gradients(parameters);
  std::vector<i64> sizes;
  for (const Tensor& g : grads) sizes.push_back(g.numel());
  const Pieces pieces(sizes);
  std::vector<double> part(pieces.list().size());
  const bool maximum = std::isinf(norm_type);
  pieces.run([&](size_t number, const Piece& piece) {
    const Tensor& g = grads[piece.array];
    const i64 n = piece.end - piece.begin;
    visit_float(g.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const T* x = reinterpret_cast<const T*>(g.raw()) + piece.begin;
      part[number] = maximum ? largest(n, x)
                     : norm_type == 2 ? kernels::sum_of_squares(n, x)
                                      : power_sum(n, x, norm_type);
    });
  });
  double total = 0;
  for (const double p : part) {
    if (!maximum) total += p;
    else if (!(p <= total)) total = p;
    if (std::isnan(total)) break;
  }
  if (maximum) return total;
  return norm_type == 2 ? std::sqrt(total) : std::pow(total, 1 / norm_type);
}

double clip_factor(double norm, double max_norm) {
  if (!(max_norm >= 0)) fail("clip_grad_norm_", "max_norm must be a number >= 0, not {}", max_norm);
  const double factor = max_norm / (norm + 1e-6);
  return factor > 1 ? 1 : factor;  // NaN stays NaN
}

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipNormOptions& options) {
  clip_factor(0, max_norm);  // checks max_norm
  const double norm = grad_norm(parameters, options.norm_type);
  if (options.error_if_nonfinite && !std::isfinite(norm))
    fail("clip_grad_norm_", "the norm of the gradients is {}; nothing was clipped", norm);
  const double factor = clip_factor(norm, max_norm);
  if (factor == 1) return norm;
  const NoGrad no_grad;
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) mul_(g, factor);
  return norm;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  if (!(clip_value >= 0)) fail("clip_grad_value_", "clip_value must be a number >= 0, not {}", clip_value);
  const NoGrad no_grad;
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) copy_(g, clamp(g, -clip_value, clip_value));
}

}  // namespace waymark::train
