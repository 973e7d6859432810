#include "core/engine/stats.h"

#include "core/kernels/statistics.h"
#include "core/ops/elementwise.h"

namespace waymark {
namespace {

// t without the axes along which it repeats; how often each element counts.
std::pair<Tensor, i64> without_repeats(const Tensor& t) {
  Shape shape, strides;
  i64 times = 1;
  for (int d = 0; d < t.dim(); ++d) {
    if (t.strides()[d] == 0 && t.shape()[d] > 1) {
      times *= t.shape()[d];
      continue;
    }
    shape.push_back(t.shape()[d]);
    strides.push_back(t.strides()[d]);
  }
  return times == 1 ? std::pair(t, i64{1}) : std::pair(alias(t, shape, strides, t.offset()), times);
}

kernels::Summary summary_of(const Tensor& dense) {
  return visit_float(dense.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return kernels::summarize(dense.data<T>(), dense.numel());
  });
}

}  // namespace

TensorStats stats_of(const Tensor& t) {
  TensorStats s;
  s.count = t.numel();
  if (s.count == 0) return s;
  const ops::Unrecorded values_only;
  const Tensor floats = t.is_floating_point() ? t : ops::cast_value(t, kF64);
  auto [once, times] = without_repeats(floats);
  if (!once.impl()->dense) once = ops::contiguous_value(once);
  kernels::Summary v = summary_of(once);
  // Positions are asked for in row-major order.
  if (v.nan + v.positive_inf + v.negative_inf && (times > 1 || !once.is_contiguous())) {
    v = summary_of(ops::contiguous_value(floats));
    times = 1;
  }
  s.nan = v.nan * times;
  s.positive_inf = v.positive_inf * times;
  s.negative_inf = v.negative_inf * times;
  s.zeros = v.zeros * times;
  s.first_nan = v.first_nan;
  s.first_positive_inf = v.first_positive_inf;
  s.first_negative_inf = v.first_negative_inf;
  for (size_t k = 0; k < v.histogram.size(); ++k) s.histogram[k] = v.histogram[k] * times;
  const i64 finite = s.count - s.nonfinite();
  const double m = static_cast<double>(times);
  if (finite > 0) {
    s.min = v.min;
    s.max = v.max;
    s.mean = v.mean;
    s.sd = finite > 1 ? std::sqrt(v.deviations * m / static_cast<double>(finite - 1)) : 0;
  }
  s.norm = s.nan ? NAN : s.nonfinite() ? INFINITY : std::sqrt(v.squares * m);
  return s;
}

int nonfinite_level(const Tensor& t) {
  if (!t.defined() || !t.is_floating_point() || t.numel() == 0) return 0;
  const ops::Unrecorded values_only;
  Tensor once = without_repeats(t).first;
  if (!once.impl()->dense) once = ops::contiguous_value(once);
  return visit_float(once.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return kernels::nonfinite_level(once.data<T>(), once.numel());
  });
}

Alignment alignment_of(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) fail("alignment", "the shapes differ: {} and {}", a.shape(), b.shape());
  const ops::Unrecorded values_only;
  const Tensor x = ops::contiguous_value(a), y = ops::contiguous_value(ops::cast_value(b, a.dtype()));
  const kernels::Products p = visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    return kernels::products(x.data<T>(), y.data<T>(), x.numel());
  });
  const double norms = std::sqrt(p.aa) * std::sqrt(p.bb);
  return {p.ab, p.bb, norms > 0 ? p.ab / norms : NAN};
}

std::string short_text(const TensorStats& s) {
  if (s.count == 0) return "empty";
  std::string out = fmt::format("norm {:.2g}", s.norm);
  if (std::isfinite(s.min)) out += fmt::format("   [{:.2g}, {:.2g}]", s.min, s.max);
  if (s.nan) out += fmt::format("   {} NaN", s.nan);
  if (s.positive_inf + s.negative_inf) out += fmt::format("   {} inf", s.positive_inf + s.negative_inf);
  return out;
}

}  // namespace waymark
