// Cases of core/ops/fourier.cpp; V53, C75, C76, accuracy.
#include <numbers>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/fourier.h"
#include "core/ops/reduce.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(fourier_cases) {
  for (const char* op : {"rfft", "fft", "ifft", "irfft"}) {
    const bool real = std::string_view(op) == "rfft";
    const auto in = [&](std::initializer_list<i64> list) {
      Shape s = list;
      if (!real) s.push_back(2);
      return input(std::move(s));
    };
    op_case(op, {in({2, 5})});
    op_case(op, {in({2, 6}), arg("norm", "ortho")});
    op_case(op, {in({6, 3}), arg("dim", 0), arg("n", 9), arg("norm", "forward")});
    op_case(op, {in({2, 7, 3}), arg("dim", 1), arg("n", 4)});
    op_case(op, {in({3}), arg("n", 1)});
    op_case(op, {in({2, 0, 3}), arg("dim", 1), arg("n", 4)});
    op_case(op, {in({0, 4})});
    const std::string at = std::string(op) + ": ";
    bad_input(op, at + "the length must be at least 1, got n = 0", {in({4}), arg("n", 0)});
    bad_input(op, at + "norm is \"backward\", \"ortho\" or \"forward\", not \"none\"", {in({4}), arg("norm", "none")});
    if (!real) bad_input(op, at + "complex tensors have a last axis of length 2 (re, im); got [4, 3]", {input({4, 3})});
    else bad_input(op, at + "the input [] has no axis to transform", {input({})});
  }
  bad_input("irfft", "irfft: the length must be at least 1, got n = 0 from the input's [1, 2]", {input({1, 2})});
}

TEST_CASE("V53 rfft: odd length, continued, cut") {
  fused_and_twin([] {
    check_values(rfft(make<double>({3}, {1, 2, 4})), {7, 0, -2, 1.7320508}, 1e-7);
    check_values(rfft(make<double>({2}, {1, 2}), 4), {3, 0, 1, -2, -1, 0});
    check_values(rfft(make<double>({3}, {1, 2, 9}), 2), {3, 0, -1, 0});
  });
}

TEST_CASE("C75 rfft of [1, 2, 3, 4]") {
  Tensor x = leaf({4}, {1, 2, 3, 4});
  const Tensor y = rfft(x);
  check_values(y, {10, 0, -2, 2, -2, 0});
  y.backward(make<double>({3, 2}, {0, 1, 2, 3, 4, 5}));
  check_values(x.grad(), {6, -7, 2, -1});
}

TEST_CASE("C76 irfft ignores the imaginary parts of the first and the last bin") {
  Tensor x = leaf({3, 2}, {10, 5, -2, 2, -2, 7});
  const Tensor y = irfft(x, 4);
  check_values(y, {1, 2, 3, 4});
  y.backward(make<double>({4}, {1, 2, 3, 4}));
  check_values(x.grad(), {2.5, 0, -1, 1, -0.5, 0});
}

TEST_CASE("transforms of every length from 1 to 130 and of large ones against the definition") {
  std::vector<i64> lengths{256, 360, 625, 1000, 1009, 2 * 1021};
  for (i64 n = 1; n <= 130; ++n) lengths.push_back(n);
  for (const i64 n : lengths) {
    const Tensor x = make_empty({n, 2}, kF64);
    for (i64 i = 0; i < 2 * n; ++i) x.data<double>()[i] = std::sin(1.3 * static_cast<double>(i * i % 101) + 0.1 * static_cast<double>(i));
    const auto in = x.to_vector<double>(), out = fft(x).to_vector<double>(), single = fft(to(x, kF32)).to_vector<double>();
    const auto back = ifft(fft(x)).to_vector<double>();
    double error = 0, error32 = 0, error_back = 0, size = 0, size_in = 0;
    for (i64 k = 0; k < n; ++k) {
      long double re = 0, im = 0;
      for (i64 t = 0; t < n; ++t) {
        const long double angle = -2 * std::numbers::pi_v<long double> * static_cast<long double>(k * t % n) / static_cast<long double>(n);
        const long double a = in[static_cast<size_t>(2 * t)], b = in[static_cast<size_t>(2 * t + 1)];
        re += a * std::cos(angle) - b * std::sin(angle);
        im += a * std::sin(angle) + b * std::cos(angle);
      }
      const size_t i = static_cast<size_t>(2 * k);
      const auto add = [](double& sum, long double d) { sum += static_cast<double>(d * d); };
      add(error, re - out[i]);
      add(error, im - out[i + 1]);
      add(error32, re - single[i]);
      add(error32, im - single[i + 1]);
      add(size, re);
      add(size, im);
      add(error_back, in[i] - back[i]);
      add(error_back, in[i + 1] - back[i + 1]);
      add(size_in, in[i]);
      add(size_in, in[i + 1]);
    }
    const double limit = 4 * std::log2(std::max(static_cast<double>(n), 2.0));
    CAPTURE(n);
    CHECK(std::sqrt(error / size) <= limit * 0x1p-53);
    CHECK(std::sqrt(error32 / size) <= limit * 0x1p-24);
    CHECK(std::sqrt(error_back / size_in) <= 2 * limit * 0x1p-53);
  }
}

}  // namespace waymark::test
