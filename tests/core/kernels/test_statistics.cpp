// Facts about spans: against plain loops, on sizes around the chunk, with zeros, denormals, huge and non-finite values.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/kernels/statistics.h"

using namespace waymark;

namespace {

// Bin k: 2^(k−24) ≤ |x| < 2^(k−23), the ends open.
template <class T> std::array<i64, 32> plain_histogram(const std::vector<T>& x) {
  std::array<i64, 32> bins{};
  for (const T v : x) {
    if (v == 0 || !std::isfinite(v)) continue;
    const int k = std::ilogb(static_cast<double>(v)) + 24;
    ++bins[static_cast<size_t>(std::max(0, std::min(31, k)))];
  }
  return bins;
}

template <class T> void check_histogram(const std::vector<T>& x) {
  const kernels::Summary s = kernels::summarize(x.data(), static_cast<i64>(x.size()));
  CAPTURE(x.size());
  CHECK(s.histogram == plain_histogram(x));
  i64 counted = s.zeros + s.nan + s.positive_inf + s.negative_inf;
  for (const i64 n : s.histogram) counted += n;
  CHECK(counted == static_cast<i64>(x.size()));
}

template <class T> void check_type() {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const size_t n : {1U, 2U, 63U, 64U, 65U, 1000U, 4095U, 4096U, 4097U, 8192U, 10001U}) {
    std::vector<T> x(n);
    for (T& v : x) v = static_cast<T>(normal(random));
    check_histogram(x);
    for (size_t i = 0; i < n; i += 3) x[i] = 0;
    for (size_t i = 0; i < n; i += 5) x[i] = static_cast<T>(std::exp(20 * normal(random)));
    for (size_t i = 0; i < n; i += 7) x[i] = -std::numeric_limits<T>::denorm_min() * static_cast<T>(i + 1);
    check_histogram(x);
    if (n > 10) x[n / 2] = std::numeric_limits<T>::quiet_NaN(), x[n / 3] = -std::numeric_limits<T>::infinity();
    check_histogram(x);
    x.assign(n, T(0));
    check_histogram(x);
    x.assign(n, static_cast<T>(-3e-8));  // bin 0 without a zero
    check_histogram(x);
    x.assign(n, std::numeric_limits<T>::max());
    check_histogram(x);
    CHECK(kernels::summarize(x.data(), static_cast<i64>(n)).nan == 0);
    CHECK(kernels::summarize(x.data(), static_cast<i64>(n)).max == static_cast<double>(x[0]));
    x[n - 1] = std::numeric_limits<T>::infinity();
    CHECK(kernels::summarize(x.data(), static_cast<i64>(n)).first_positive_inf == static_cast<i64>(n - 1));
  }
}

}  // namespace

TEST_CASE("statistics: histograms count every value, whatever the size") {
  check_type<float>();
  check_type<double>();
}

TEST_CASE("statistics: means of blocks, also where they do not divide the matrix") {
  for (const auto& [rows, columns, down, across] : std::vector<std::array<i64, 4>>{{1, 1, 1, 1}, {3, 5, 3, 5}, {7, 2500, 4, 64}, {100, 3, 64, 3}}) {
    std::vector<float> x(static_cast<size_t>(rows * columns));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * i % 101);
    std::vector<double> sums(static_cast<size_t>(down * across)), counts(sums.size()), means(sums.size());
    for (i64 r = 0; r < rows; ++r)
      for (i64 c = 0; c < columns; ++c) {
        const size_t at = static_cast<size_t>(r * down / rows * across + c * across / columns);
        sums[at] += static_cast<double>(x[static_cast<size_t>(r * columns + c)]);
        ++counts[at];
      }
    kernels::block_means(x.data(), rows, columns, down, across, means.data());
    for (size_t i = 0; i < sums.size(); ++i) CHECK(means[i] == doctest::Approx(sums[i] / counts[i]));
  }
}
