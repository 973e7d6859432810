#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/kernels/vmath.h"
#include "tests/core/kernels/kernel_test.h"
#include "tests/test_level.h"

using namespace waymark;
using test::kInf32;
using test::kNan32;
namespace vm = waymark::kernels::vmath;

namespace {

double ulp(double y) {
  int e = 0;
  std::frexp(std::max(std::fabs(y), 0x1p-126), &e);
  return std::ldexp(1.0, e - 24);
}

using Array = void (*)(const float*, float*, i64);
using Exact = double (*)(double);

// Largest error in ulp of max(|y|, floor * |x|) over floats whose bit patterns are `stride` apart in [low, high].
double worst_ulp(Array kernel, Exact reference, double low, double high, double floor = 0) {
  const u64 stride = test::by_level<u64>(250007, 10007, 101);
  std::vector<float> x;
  for (u64 u = 0; u < (u64{1} << 32); u += stride) {
    const float v = std::bit_cast<float>(static_cast<u32>(u));
    if (static_cast<double>(v) >= low && static_cast<double>(v) <= high) x.push_back(v);
  }
  std::vector<float> y(x.size());
  kernel(x.data(), y.data(), static_cast<i64>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = reference(static_cast<double>(x[i]));
    const double scale = std::max(std::fabs(want), floor * std::fabs(static_cast<double>(x[i])));
    const double error = std::fabs(static_cast<double>(y[i]) - want) / ulp(scale);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

float call(Array kernel, float x) {
  kernel(&x, &x, 1);
  return x;
}
bool same_bits(float a, float b) { return std::bit_cast<u32>(a) == std::bit_cast<u32>(b); }

struct Named {
  const char* name;
  Array kernel;
  float (*scalar)(float);
};
const std::vector<Named>& all() {
  static const std::vector<Named> list = {
#define WAYMARK_ENTRY(f) {#f, vm::f##_f32, [](float x) { return vm::f(x); }},
      WAYMARK_VMATH_FUNCTIONS(WAYMARK_ENTRY)
#undef WAYMARK_ENTRY
  };
  return list;
}

}  // namespace

TEST_CASE("vmath: f32 stays within its ulp budget of f64") {
  CHECK(worst_ulp(vm::exp_f32, std::exp, -87.33, 88.72) <= 2);
  CHECK(worst_ulp(vm::log_f32, std::log, 0x1p-126, 3.4e38) <= 2);
  CHECK(worst_ulp(vm::log1p_f32, std::log1p, -0.99999994, 3.4e38) <= 2);
  CHECK(worst_ulp(vm::expm1_f32, std::expm1, -3.4e38, 88.72) <= 2);
  CHECK(worst_ulp(vm::tanh_f32, std::tanh, -3.4e38, 3.4e38) <= 4);
  CHECK(worst_ulp(vm::sigmoid_f32, vm::sigmoid, -87.3, 3.4e38) <= 4);
  CHECK(worst_ulp(vm::erf_f32, std::erf, -3.4e38, 3.4e38) <= 4);
  CHECK(worst_ulp(vm::sin_f32, std::sin, -8192, 8192) <= 2);
  CHECK(worst_ulp(vm::cos_f32, std::cos, -8192, 8192) <= 2);
  CHECK(worst_ulp(vm::softplus_f32, vm::softplus, -10, 10, 0x1p-24) <= 4);
  CHECK(worst_ulp(vm::silu_f32, vm::silu, -10, 10, 0x1p-24) <= 4);
}

TEST_CASE("C13_gelu_against_f64") {
  CHECK(worst_ulp(vm::gelu_f32, vm::gelu, -10, 10, 0x1p-24) <= 4);
  CHECK(worst_ulp(vm::gelu_tanh_f32, vm::gelu_tanh, -10, 10, 0x1p-24) <= 4);
  std::vector<float> x(100001), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = -10.0f + 20.0f * static_cast<float>(i) / 100000.0f;
  for (Array kernel : {&vm::gelu_f32, &vm::gelu_tanh_f32}) {
    kernel(x.data(), y.data(), static_cast<i64>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double d = static_cast<double>(x[i]);
      const double want = kernel == &vm::gelu_f32 ? vm::gelu(d) : vm::gelu_tanh(d);
      const double scale = ulp(std::max(std::fabs(want), 0x1p-24 * std::fabs(d)));
      worst = std::max(worst, std::fabs(static_cast<double>(y[i]) - want) / scale);
    }
    CHECK(worst <= 4);
  }
}

TEST_CASE("vmath: derivatives of the activations, absolute error") {
  std::vector<float> x(20001), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = -10.0f + 20.0f * static_cast<float>(i) / 20000.0f;
  const auto worst = [&](Array kernel, Exact reference) {
    kernel(x.data(), y.data(), static_cast<i64>(x.size()));
    double e = 0;
    for (size_t i = 0; i < x.size(); ++i)
      e = std::max(e, std::fabs(static_cast<double>(y[i]) - reference(static_cast<double>(x[i]))));
    return e;
  };
  CHECK(worst(vm::gelu_derivative_f32, vm::gelu_derivative) < 4e-7);
  CHECK(worst(vm::gelu_tanh_derivative_f32, vm::gelu_tanh_derivative) < 4e-7);
  CHECK(worst(vm::silu_derivative_f32, vm::silu_derivative) < 4e-7);
  // the f64 forms themselves, against central differences
  for (double d : {-3.0, -0.7, 0.0, 0.4, 2.5}) {
    const double h = 1e-5;
    CHECK(vm::gelu_derivative(d) == doctest::Approx((vm::gelu(d + h) - vm::gelu(d - h)) / (2 * h)).epsilon(1e-8));
    CHECK(vm::gelu_tanh_derivative(d) ==
          doctest::Approx((vm::gelu_tanh(d + h) - vm::gelu_tanh(d - h)) / (2 * h)).epsilon(1e-8));
    CHECK(vm::silu_derivative(d) == doctest::Approx((vm::silu(d + h) - vm::silu(d - h)) / (2 * h)).epsilon(1e-8));
  }
}

TEST_CASE("vmath: the value of an element does not depend on its position") {
  std::vector<float> in(128), out(128), want(128);
  for (const Named& f : all()) {
    CAPTURE(f.name);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i) * 0.37f - 20.0f + 1e-3f * static_cast<float>(i);
    in[70] = kNan32;
    in[71] = kInf32;
    in[40] = 9000.0f;
    for (size_t i = 0; i < in.size(); ++i) want[i] = call(f.kernel, in[i]);
    int wrong = 0;
    for (i64 n = 1; n <= 67; ++n) {
      for (i64 offset = 0; offset <= 16; ++offset) {
        std::fill(out.begin(), out.end(), -77.0f);
        f.kernel(in.data() + offset, out.data() + offset, n);
        for (i64 i = 0; i < 128; ++i) {
          const size_t k = static_cast<size_t>(i);
          const bool inside = i >= offset && i < offset + n;
          wrong += !same_bits(out[k], inside ? want[k] : -77.0f) && !(inside && std::isnan(want[k]) && std::isnan(out[k]));
        }
      }
    }
    CHECK(wrong == 0);
    f.kernel(in.data(), in.data(), 67);  // in place
    int different = 0;
    for (size_t i = 0; i < 67; ++i) different += !same_bits(in[i], want[i]);
    CHECK(different == 0);
  }
}

TEST_CASE("vmath: limits, NaN, signed zeros, denormals") {
  for (const Named& f : all()) {
    CAPTURE(f.name);
    CHECK(std::isnan(call(f.kernel, kNan32)));
    CHECK(std::isnan(call(f.kernel, -kNan32)));
    CHECK(std::isnan(f.scalar(kNan32)));
  }
  CHECK(call(vm::exp_f32, -kInf32) == 0.0f);
  CHECK(call(vm::exp_f32, kInf32) == kInf32);
  CHECK(call(vm::exp_f32, 88.7229f) == kInf32);
  CHECK(call(vm::exp_f32, 88.7228f) < kInf32);
  CHECK(call(vm::exp_f32, 1000.0f) == kInf32);
  CHECK(call(vm::exp_f32, -1000.0f) == 0.0f);
  CHECK(call(vm::exp_f32, 0.0f) == 1.0f);
  CHECK(call(vm::log_f32, 0.0f) == -kInf32);
  CHECK(call(vm::log_f32, -0.0f) == -kInf32);
  CHECK(std::isnan(call(vm::log_f32, -1.0f)));
  CHECK(std::isnan(call(vm::log_f32, -kInf32)));
  CHECK(call(vm::log_f32, kInf32) == kInf32);
  CHECK(call(vm::log_f32, 1.0f) == 0.0f);
  CHECK(static_cast<double>(call(vm::log_f32, 1e-40f)) == doctest::Approx(std::log(static_cast<double>(1e-40f))));
  CHECK(call(vm::log1p_f32, -1.0f) == -kInf32);
  CHECK(std::isnan(call(vm::log1p_f32, -1.5f)));
  CHECK(call(vm::log1p_f32, kInf32) == kInf32);
  CHECK(call(vm::expm1_f32, -kInf32) == -1.0f);
  CHECK(call(vm::expm1_f32, kInf32) == kInf32);
  CHECK(call(vm::expm1_f32, 100.0f) == kInf32);
  CHECK(call(vm::tanh_f32, kInf32) == 1.0f);
  CHECK(call(vm::tanh_f32, -1000.0f) == -1.0f);
  CHECK(call(vm::sigmoid_f32, kInf32) == 1.0f);
  CHECK(call(vm::sigmoid_f32, -kInf32) == 0.0f);
  CHECK(call(vm::sigmoid_f32, 1000.0f) == 1.0f);
  CHECK(call(vm::sigmoid_f32, -1000.0f) == 0.0f);
  CHECK(call(vm::erf_f32, kInf32) == 1.0f);
  CHECK(call(vm::erf_f32, -kInf32) == -1.0f);
  CHECK(call(vm::softplus_f32, 1000.0f) == 1000.0f);
  CHECK(call(vm::softplus_f32, -1000.0f) == 0.0f);
  CHECK(call(vm::softplus_f32, kInf32) == kInf32);
  CHECK(call(vm::softplus_f32, -kInf32) == 0.0f);
  // K40
  for (Array kernel : {&vm::gelu_f32, &vm::gelu_tanh_f32, &vm::silu_f32}) {
    CHECK(std::isnan(call(kernel, -kInf32)));
    CHECK(call(kernel, kInf32) == kInf32);
    CHECK(call(kernel, 1e30f) == 1e30f);
    CHECK(call(kernel, -1e30f) == 0.0f);
  }
  for (Array kernel : {&vm::gelu_derivative_f32, &vm::gelu_tanh_derivative_f32, &vm::silu_derivative_f32})
    CHECK(call(kernel, 0.0f) == 0.5f);
  CHECK(std::isnan(call(vm::sin_f32, kInf32)));
  CHECK(std::isnan(call(vm::cos_f32, -kInf32)));
  CHECK(call(vm::sin_f32, 1e8f) == std::sin(1e8f));
  CHECK(call(vm::cos_f32, -1e8f) == std::cos(-1e8f));
  for (Array odd : {&vm::tanh_f32, &vm::erf_f32, &vm::sin_f32, &vm::expm1_f32, &vm::log1p_f32}) {
    CHECK(same_bits(call(odd, -0.0f), -0.0f));
    CHECK(same_bits(call(odd, 0.0f), 0.0f));
    CHECK(std::fabs(call(odd, 1e-40f) / 1e-40f - (odd == &vm::erf_f32 ? 1.128379f : 1.0f)) < 1e-3f);
  }
  for (Array odd : {&vm::tanh_f32, &vm::erf_f32, &vm::sin_f32})
    for (float x = 1e-4f; x < 100; x *= 1.37f) CHECK(same_bits(call(odd, -x), -call(odd, x)));
}

TEST_CASE("vmath: f64 kernels are the C library's") {
  const std::vector<double> x = {-3.5, -0.25, 0.0, 0.7, 4.0};
  std::vector<double> y(x.size());
  vm::tanh_f64(x.data(), y.data(), 5);
  for (size_t i = 0; i < x.size(); ++i) CHECK(y[i] == std::tanh(x[i]));
  vm::gelu_f64(x.data(), y.data(), 5);
  for (size_t i = 0; i < x.size(); ++i)
    CHECK(y[i] == doctest::Approx(0.5 * x[i] * (1 + std::erf(x[i] / std::sqrt(2.0)))).epsilon(1e-14));
  CHECK(vm::gelu(-20.0) < 0);  // no cancellation in the tail
  CHECK(vm::softplus(800.0) == 800.0);
}
