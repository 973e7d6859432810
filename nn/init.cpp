#include "nn/init.h"

#include <cmath>

#include "core/autograd/state.h"
#include "core/ops/inplace.h"
#include "core/ops/random_ops.h"

namespace waymark::nn {

namespace {

struct Fans {
  double in, out;
};
Fans fans(const Tensor& t) {
  if (t.dim() < 2) fail("init", "fan in and fan out need at least 2 axes, got {}", t.shape());
  const double outer = static_cast<double>(t.shape()[0] * t.shape()[1]);
  const double inner = outer > 0 ? static_cast<double>(t.numel()) / outer : 0;
  return {static_cast<double>(t.shape()[1]) * inner, static_cast<double>(t.shape()[0]) * inner};
}
double kaiming_gain(double a) { return std::sqrt(2 / (1 + a * a)); }
// An extent of 0 leaves nothing to fill; any finite bound will do.
double over_root(double factor, double fan) { return fan > 0 ? factor / std::sqrt(fan) : 0; }

void check_finite(const char* name, double v) {
  if (!std::isfinite(v)) fail("init", "{} must be finite, not {}", name, v);
}

// U(-bound(t), bound(t)) and N(0, std(t)²).
template <class F> Init uniform_of(std::string text, F bound) {
  return {std::move(text), [bound](const Tensor& t, std::string_view stream) {
            const double b = bound(t);
            uniform_(t, -b, b, stream);
          }};
}
template <class F> Init normal_of(std::string text, F std) {
  return {std::move(text), [std](const Tensor& t, std::string_view stream) { normal_(t, 0, std(t), stream); }};
}

}  // namespace

void Init::fill(const Tensor& t, std::string_view stream) const {
  if (!t.defined()) fail("init", "the tensor is undefined");
  if (!t.is_floating_point()) fail("init", "initial values need a float tensor, not {}", name_of(t.dtype()));
  const NoGrad off;
  fill_(t, stream);
}

namespace init {

Init constant(double value) {
  return {fmt::format("{}", value), [value](const Tensor& t, std::string_view) { fill_(t, value); }};
}

Init normal(double mean, double std) {
  check_finite("mean", mean);
  if (!(std >= 0)) fail("init", "a standard deviation of {} is not possible", std);
  return {fmt::format("N({}, {}^2)", mean, std),
          [=](const Tensor& t, std::string_view stream) { normal_(t, mean, std, stream); }};
}

Init uniform(double low, double high) {
  check_finite("low", low);
  check_finite("high", high);
  if (low > high) fail("init", "uniform from {} to {}: the bounds are in the wrong order", low, high);
  return {fmt::format("U({}, {})", low, high),
          [=](const Tensor& t, std::string_view stream) { uniform_(t, low, high, stream); }};
}

Init xavier_uniform(double gain) {
  check_finite("gain", gain);
  return uniform_of("Xavier uniform", [=](const Tensor& t) {
    const Fans f = fans(t);
    return over_root(gain * std::sqrt(6.0), f.in + f.out);
  });
}

Init xavier_normal(double gain) {
  check_finite("gain", gain);
  return normal_of("Xavier normal", [=](const Tensor& t) {
    const Fans f = fans(t);
    return over_root(gain * std::sqrt(2.0), f.in + f.out);
  });
}

Init kaiming_uniform(double a) {
  check_finite("a", a);
  return uniform_of("Kaiming uniform",
                    [=](const Tensor& t) { return over_root(kaiming_gain(a) * std::sqrt(3.0), fans(t).in); });
}

Init kaiming_normal(double a) {
  check_finite("a", a);
  return normal_of("Kaiming normal", [=](const Tensor& t) { return over_root(kaiming_gain(a), fans(t).in); });
}

}  // namespace init
}  // namespace waymark::nn
