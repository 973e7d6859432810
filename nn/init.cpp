#include "nn/init.h"

#include <cmath>
#include <vector>

#include "core/random/generator.h"
#include "core/tensor/strided.h"

namespace waymark::nn {

namespace {

void check(const Tensor& t) {
  if (!t.defined()) fail("init", "the tensor is undefined");
  if (!t.is_floating_point()) fail("init", "initial values need a float tensor, not {}", name_of(t.dtype()));
}

// value(i) for the i-th element in logical order.
template <class F> void write(const Tensor& t, F value) {
  visit_float(t.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = t.data<T>();
    i64 i = 0;
    for_each_offset(t, [&](i64 at) { to[at] = static_cast<T>(value(i++)); });
  });
}

// standard(z) of every draw z; Fill is fill_normal or fill_uniform. All in f64, so that f32 is f64 rounded once.
template <class Fill, class F> void write_draw(const Tensor& t, const Draw& draw, Fill fill, F value) {
  std::vector<double> z(static_cast<size_t>(t.numel()));
  if (!play_draw(draw, kF64, t.shape(), z.data())) fill(draw, draw_grid(draw, t.shape()), 0, t.numel(), z.data());
  capture_draw(draw, kF64, t.shape(), z.data());
  write(t, [&](i64 i) { return value(z[static_cast<size_t>(i)]); });
}

Init::Random normal_fill(std::function<std::pair<double, double>(const Tensor&)> mean_std) {
  return [mean_std = std::move(mean_std)](const Tensor& t, const Draw& draw) {
    const auto [mean, std] = mean_std(t);
    write_draw(t, draw, fill_normal<double>, [m = mean, s = std](double z) { return m + s * z; });
  };
}
Init::Random uniform_fill(std::function<std::pair<double, double>(const Tensor&)> bounds) {
  return [bounds = std::move(bounds)](const Tensor& t, const Draw& draw) {
    const auto [low, high] = bounds(t);
    write_draw(t, draw, fill_uniform<double>, [l = low, w = high - low](double u) { return l + w * u; });
  };
}

struct Fans {
  double in, out;
};
Fans fans(const Tensor& t) {
  if (t.dim() < 2) fail("init", "fan in and fan out need at least 2 axes, got {}", t.shape());
  const double inner = t.shape()[0] * t.shape()[1] == 0
                           ? 0
                           : static_cast<double>(t.numel()) / static_cast<double>(t.shape()[0] * t.shape()[1]);
  return {static_cast<double>(t.shape()[1]) * inner, static_cast<double>(t.shape()[0]) * inner};
}
double kaiming_gain(double a) { return std::sqrt(2 / (1 + a * a)); }
// An extent of 0 leaves nothing to fill; any finite bound will do.
double over_root(double factor, double fan) { return fan > 0 ? factor / std::sqrt(fan) : 0; }

void check_finite(const char* name, double v) {
  if (!std::isfinite(v)) fail("init", "{} must be finite, not {}", name, v);
}

}  // namespace

void Init::fill(const Tensor& t, std::string_view stream) const {
  check(t);
  if (random_) random_(t, next_draw(stream));
  else constant_(t);
}

namespace init {

Init constant(double value) {
  return {fmt::format("{}", value), [value](const Tensor& t) { write(t, [&](i64) { return value; }); }};
}

Init normal(double mean, double std) {
  check_finite("mean", mean);
  if (!(std >= 0)) fail("init", "a standard deviation of {} is not possible", std);
  return {fmt::format("N({}, {}^2)", mean, std), normal_fill([=](const Tensor&) { return std::pair(mean, std); })};
}

Init uniform(double low, double high) {
  check_finite("low", low);
  check_finite("high", high);
  if (low > high) fail("init", "uniform from {} to {}: the bounds are in the wrong order", low, high);
  return {fmt::format("U({}, {})", low, high), uniform_fill([=](const Tensor&) { return std::pair(low, high); })};
}

Init xavier_uniform(double gain) {
  check_finite("gain", gain);
  return {"Xavier uniform", uniform_fill([=](const Tensor& t) {
            const Fans f = fans(t);
            const double bound = over_root(gain * std::sqrt(6.0), f.in + f.out);
            return std::pair(-bound, bound);
          })};
}

Init xavier_normal(double gain) {
  check_finite("gain", gain);
  return {"Xavier normal", normal_fill([=](const Tensor& t) {
            const Fans f = fans(t);
            return std::pair(0.0, over_root(gain * std::sqrt(2.0), f.in + f.out));
          })};
}

Init kaiming_uniform(double a) {
  check_finite("a", a);
  return {"Kaiming uniform", uniform_fill([=](const Tensor& t) {
            const double bound = over_root(kaiming_gain(a) * std::sqrt(3.0), fans(t).in);
            return std::pair(-bound, bound);
          })};
}

Init kaiming_normal(double a) {
  check_finite("a", a);
  return {"Kaiming normal", normal_fill([=](const Tensor& t) {
            return std::pair(0.0, over_root(kaiming_gain(a), fans(t).in));
          })};
}

}  // namespace init
}  // namespace waymark::nn
