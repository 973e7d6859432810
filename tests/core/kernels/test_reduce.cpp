#include "core/kernels/reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "tests/core/kernels/kernel_test.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::kernels;
using test::kNan32;
using test::numbers;

namespace {

struct Extents {
  i64 outer, n, inner;
};
const Extents kExtents[] = {{1, 1, 1},    {3, 7, 1},   {5, 16, 1},  {2, 255, 1}, {3, 257, 1},   {2, 4096, 1},
                            {2, 4097, 1}, {1, 70001, 1}, {2, 5, 3}, {1, 17, 40}, {3, 300, 33}, {1, 5000, 7},
                            {2, 100, 2100}, {1, 40000, 3}, {4, 1, 9}, {0, 3, 2}, {2, 3, 0}, {2, 0, 3}, {2, 0, 1}};

}  // namespace

TEST_CASE("sum_axis: within 2 (16 + log2 n) u of f64, all layouts") {
  for (const Extents& e : kExtents) {
    CAPTURE(e.outer);
    CAPTURE(e.n);
    CAPTURE(e.inner);
    const std::vector<float> x = numbers<float>(e.outer * e.n * e.inner, 1);
    const std::vector<double> xd(x.begin(), x.end());
    const auto size = static_cast<size_t>(e.outer * e.inner);
    std::vector<float> y(size, kNan32);
    std::vector<double> yd(size), squares(size);
    std::vector<i64> count(size);
    sum_axis(x.data(), e.outer, e.n, e.inner, y.data());
    sum_axis(xd.data(), e.outer, e.n, e.inner, yd.data());
    sum_squares_axis(x.data(), e.outer, e.n, e.inner, squares.data());
    count_nonzero_axis(x.data(), e.outer, e.n, e.inner, count.data());
    const double bound = 2 * (16 + std::log2(static_cast<double>(std::max<i64>(1, e.n)))) * 0x1p-24;
    for (i64 o = 0; o < e.outer; ++o)
      for (i64 j = 0; j < e.inner; ++j) {
        double sum = 0, scale = 0, square = 0;
        i64 nonzero = 0;
        for (i64 i = 0; i < e.n; ++i) {
          const double v = xd[static_cast<size_t>((o * e.n + i) * e.inner + j)];
          sum += v;
          scale += std::fabs(v);
          square += v * v;
          nonzero += v != 0;
        }
        const auto at = static_cast<size_t>(o * e.inner + j);
        CHECK(std::fabs(static_cast<double>(y[at]) - sum) <= bound * scale + 1e-30);
        CHECK(std::fabs(yd[at] - sum) <= 1e-12 * scale);
        CHECK(std::fabs(squares[at] - square) <= 1e-12 * square);
        CHECK(count[at] == nonzero);
      }
  }
}

TEST_CASE("C11_sum_of_many_tenths_and_norm_of_ones") {
  // 10^8 x 0.1f, without 400 MB: the chunks of a run of equal numbers are equal, so smaller n at quick levels
  const i64 n = test::by_level<i64>(1'000'000, 10'000'000, 100'000'000);
  const std::vector<float> x(static_cast<size_t>(n), 0.1f);
  const double exact = static_cast<double>(n) * static_cast<double>(0.1f);
  CHECK(std::fabs(static_cast<double>(sum_all(x.data(), n)) - exact) <= exact * 2e-7);
  const std::vector<float> ones(10'000'000, 1.0f);
  double squares = 0;
  sum_squares_axis(ones.data(), 1, 10'000'000, 1, &squares);
  CHECK(std::sqrt(squares) == doctest::Approx(3162.2777).epsilon(1e-7));
  CHECK(sum_all(ones.data(), 10'000'000) == 10'000'000.0f);
}

TEST_CASE("the summation tree is as documented: 16 lanes, blocks of 256, pairwise") {
  for (i64 n : {5, 200, 256, 700, 4096, 9000, 20000}) {
    const std::vector<float> x = numbers<float>(n, 9);
    std::vector<float> chunks;
    for (i64 c = 0; c < n; c += 4096) {
      std::vector<std::vector<float>> blocks;
      for (i64 b = c; b < std::min(n, c + 4096); b += 256) {
        std::vector<float> lane(16, 0.0f);
        for (i64 i = b; i < std::min({n, c + 4096, b + 256}); ++i) lane[static_cast<size_t>((i - b) % 16)] += x[static_cast<size_t>(i)];
        blocks.push_back(lane);
      }
      for (size_t step = 1; step < blocks.size(); step *= 2)
        for (size_t b = 0; b + step < blocks.size(); b += 2 * step)
          for (size_t j = 0; j < 16; ++j) blocks[b][j] += blocks[b + step][j];
      for (size_t step = 8; step > 0; step /= 2)
        for (size_t j = 0; j < step; ++j) blocks[0][j] += blocks[0][j + step];
      chunks.push_back(blocks[0][0]);
    }
    for (size_t step = 1; step < chunks.size(); step *= 2)
      for (size_t c = 0; c + step < chunks.size(); c += 2 * step) chunks[c] += chunks[c + step];
    CHECK(sum_all(x.data(), n) == chunks[0]);
  }
  // columns: 16 rows in sequence, then pairwise
  const i64 rows = 1000, width = 5;
  const std::vector<float> x = numbers<float>(rows * width, 4);
  std::vector<float> y(static_cast<size_t>(width));
  sum_axis(x.data(), 1, rows, width, y.data());
  for (i64 j = 0; j < width; ++j) {
    std::vector<float> blocks;
    for (i64 b = 0; b < rows; b += 16) {
      float sum = 0;
      for (i64 r = b; r < std::min(rows, b + 16); ++r) sum += x[static_cast<size_t>(r * width + j)];
      blocks.push_back(sum);
    }
    for (size_t step = 1; step < blocks.size(); step *= 2)
      for (size_t b = 0; b + step < blocks.size(); b += 2 * step) blocks[b] += blocks[b + step];
    CHECK(y[static_cast<size_t>(j)] == blocks[0]);
  }
}

TEST_CASE("sum_axis of integers and masks; i64 wraps") {
  std::vector<i64> x;
  for (i64 i = 0; i < 1000; ++i) x.push_back(i * i - 300);
  std::vector<i64> y(4);
  sum_axis(x.data(), 1, 250, 4, y.data());
  for (i64 j = 0; j < 4; ++j) {
    i64 want = 0;
    for (i64 i = 0; i < 250; ++i) want += x[static_cast<size_t>(4 * i + j)];
    CHECK(y[static_cast<size_t>(j)] == want);
  }
  const std::vector<i64> big = {std::numeric_limits<i64>::max(), 1};
  CHECK(sum_all(big.data(), 2) == std::numeric_limits<i64>::min());
  const auto mask = std::make_unique<bool[]>(10000);
  i64 kept = 0;
  for (size_t i = 0; i < 10000; ++i) kept += mask[i] = i % 3 == 1;
  CHECK(sum_all(mask.get(), 10000) == kept);
  std::vector<i64> columns(100);
  count_nonzero_axis(mask.get(), 1, 100, 100, columns.data());
  CHECK(columns[0] == 33);
  const std::vector<float> odd = {0.0f, -0.0f, kNan32, 1e-40f, 2};
  i64 count = 0;
  count_nonzero_axis(odd.data(), 1, 5, 1, &count);
  CHECK(count == 3);
}

TEST_CASE("dot_rows against f64") {
  for (i64 n : {0, 1, 17, 300, 9000}) {
    const std::vector<float> a = numbers<float>(2 * n, 1), b = numbers<float>(2 * n, 2);
    std::vector<float> y(2);
    dot_rows(a.data(), b.data(), 2, n, y.data());
    for (i64 r = 0; r < 2; ++r) {
      double sum = 0, scale = 1e-30;
      for (i64 i = 0; i < n; ++i) {
        const double p = static_cast<double>(a[static_cast<size_t>(r * n + i)]) * static_cast<double>(b[static_cast<size_t>(r * n + i)]);
        sum += p;
        scale += std::fabs(p);
      }
      CHECK(std::fabs(static_cast<double>(y[static_cast<size_t>(r)]) - sum) <= 2 * 33 * 0x1p-24 * scale);
    }
  }
}

TEST_CASE("C10_moments_of_large_means; K25_K26_variances") {
  // 10000 + i/1000: variance 2.026558e-5, by rows and by columns
  std::vector<float> x;
  for (int i = 0; i < 16; ++i) x.push_back(10000.0f + static_cast<float>(i) * 1e-3f);
  float mean = 0, squares = 0;
  moments_axis(x.data(), 1, 16, 1, &mean, &squares);
  CHECK(static_cast<double>(squares) / 16 == doctest::Approx(2.026558e-5).epsilon(1e-6));
  std::vector<float> wide;
  for (float v : x) wide.insert(wide.end(), {v, 1.0f, v});
  std::vector<float> means(3), ss(3);
  moments_axis(wide.data(), 1, 16, 3, means.data(), ss.data());
  CHECK(static_cast<double>(ss[0]) / 16 == doctest::Approx(2.026558e-5).epsilon(1e-6));
  CHECK(ss[2] == ss[0]);
  CHECK(ss[1] == 0);
  CHECK(means[1] == 1);
  const std::vector<double> pair = {1, 3};
  double m = 0, s = 0;
  moments_axis(pair.data(), 1, 2, 1, &m, &s);
  CHECK(m == 2);
  CHECK(s == 2);
  const float one = 5;
  moments_axis(&one, 1, 1, 1, &mean, &squares);
  CHECK(mean == 5);
  CHECK(squares == 0);
  moments_axis(&one, 1, 0, 1, &mean, &squares);  // empty
  CHECK(std::isnan(mean));
  CHECK(squares == 0);
  for (const Extents& e : kExtents) {
    if (e.outer * e.inner == 0 || e.n == 0) continue;
    const std::vector<float> z = numbers<float>(e.outer * e.n * e.inner, 3);
    std::vector<float> mu(static_cast<size_t>(e.outer * e.inner)), q(mu.size());
    moments_axis(z.data(), e.outer, e.n, e.inner, mu.data(), q.data());
    const i64 o = e.outer - 1, j = e.inner / 2;
    double sum = 0, var = 0;
    for (i64 i = 0; i < e.n; ++i) sum += static_cast<double>(z[static_cast<size_t>((o * e.n + i) * e.inner + j)]);
    sum /= static_cast<double>(e.n);
    for (i64 i = 0; i < e.n; ++i) var += std::pow(static_cast<double>(z[static_cast<size_t>((o * e.n + i) * e.inner + j)]) - sum, 2);
    const auto at = static_cast<size_t>(o * e.inner + j);
    CHECK(std::fabs(static_cast<double>(mu[at]) - sum) < 1e-6);
    CHECK(std::fabs(static_cast<double>(q[at]) - var) <= 1e-6 * var + 1e-12);
  }
}

TEST_CASE("K10_K14_extremes: first index, first NaN, rows and columns") {
  for (const Extents& e : kExtents) {
    if (e.n == 0) continue;
    CAPTURE(e.outer);
    CAPTURE(e.n);
    CAPTURE(e.inner);
    for (int kind = 0; kind < 3; ++kind) {  // distinct, many ties, with NaN
      std::vector<float> x = numbers<float>(e.outer * e.n * e.inner, 7);
      for (size_t i = 0; i < x.size(); ++i) {
        if (kind == 1) x[i] = std::floor(x[i] * 2);
        if (kind == 2 && i % 11 == 5) x[i] = kNan32;
      }
      const std::vector<double> xd(x.begin(), x.end());
      const auto size = static_cast<size_t>(e.outer * e.inner);
      std::vector<float> high(size), low(size);
      std::vector<double> high64(size);
      std::vector<i64> high_at(size), low_at(size), high64_at(size);
      max_axis(x.data(), e.outer, e.n, e.inner, high.data(), high_at.data());
      min_axis(x.data(), e.outer, e.n, e.inner, low.data(), low_at.data());
      max_axis<double>(xd.data(), e.outer, e.n, e.inner, nullptr, high64_at.data());
      max_axis<double>(xd.data(), e.outer, e.n, e.inner, high64.data(), nullptr);
      int wrong = 0;
      for (i64 o = 0; o < e.outer; ++o)
        for (i64 j = 0; j < e.inner; ++j) {
          i64 best = 0, least = 0;
          const auto value = [&](i64 i) { return x[static_cast<size_t>((o * e.n + i) * e.inner + j)]; };
          for (i64 i = 1; i < e.n; ++i) {
            if (!std::isnan(value(best)) && (value(i) > value(best) || std::isnan(value(i)))) best = i;
            if (!std::isnan(value(least)) && (value(i) < value(least) || std::isnan(value(i)))) least = i;
          }
          const auto at = static_cast<size_t>(o * e.inner + j);
          wrong += high_at[at] != best || low_at[at] != least || high64_at[at] != best;
          const auto same = [](double a, double b) { return a == b || (a != a && b != b); };
          wrong += !same(static_cast<double>(high[at]), static_cast<double>(value(best)));
          wrong += !same(static_cast<double>(low[at]), static_cast<double>(value(least)));
          wrong += !same(high64[at], static_cast<double>(value(best)));
        }
      CHECK(wrong == 0);
    }
  }
  const std::vector<i64> ints = {3, std::numeric_limits<i64>::min(), 3, std::numeric_limits<i64>::max()};
  i64 value = 0, index = 0;
  max_axis(ints.data(), 1, 4, 1, &value, &index);
  CHECK(index == 3);
  min_axis(ints.data(), 1, 3, 1, &value, &index);
  CHECK(index == 1);
  CHECK(value == std::numeric_limits<i64>::min());
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> minus(40, -inf);
  float v = 0;
  max_axis(minus.data(), 1, 40, 1, &v, &index);
  CHECK(v == -inf);
  CHECK(index == 0);
}

TEST_CASE("reductions: the same bits for any number of threads") {
  const i64 rows = 3000, n = 210;
  const std::vector<float> x = numbers<float>(rows * n, 1);
  CHECK(test::same_for_any_threads([&] {
    std::vector<float> out(static_cast<size_t>(2 * rows + 3 * n + 1));
    sum_axis(x.data(), rows, n, 1, out.data());
    sum_axis(x.data(), 1, rows, n, out.data() + rows);
    moments_axis(x.data(), 1, rows, n, out.data() + rows + n, out.data() + rows + 2 * n);
    moments_axis<float>(x.data(), rows, n, 1, nullptr, out.data() + rows + 3 * n);
    out.back() = sum_all(x.data(), rows * n);
    return out;
  }));
}
