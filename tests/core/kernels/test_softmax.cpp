#include "core/kernels/softmax.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/core/kernels/kernel_test.h"

using namespace waymark;
using namespace waymark::kernels;
using test::kInf32;
using test::kNan32;
using test::numbers;

namespace {

// Softmax of one row in double; keep may be null.
std::vector<double> softmax_row(const float* x, const bool* keep, double scale, i64 n) {
  double m = -std::numeric_limits<double>::infinity(), sum = 0;
  std::vector<double> y(static_cast<size_t>(n));
  for (i64 i = 0; i < n; ++i)
    if (!keep || keep[i]) m = std::max(m, scale * static_cast<double>(x[i]));
  for (i64 i = 0; i < n; ++i)
    if (!keep || keep[i]) sum += y[static_cast<size_t>(i)] = std::exp(scale * static_cast<double>(x[i]) - m);
  for (double& v : y) v = sum > 0 ? v / sum : 0;
  return y;
}

template <class T> std::vector<T> softmax_of(std::vector<T> x, i64 rows = 1) {
  softmax(x.data(), x.data(), rows, static_cast<i64>(x.size()) / rows);
  return x;
}
bool all_nan(const std::vector<float>& v) {
  for (float x : v)
    if (!std::isnan(x)) return false;
  return true;
}

}  // namespace

TEST_CASE("softmax, log_softmax and their derivatives against f64") {
  for (i64 n : {1, 2, 15, 16, 17, 31, 64, 100, 257, 4096, 5000}) {
    CAPTURE(n);
    const i64 rows = 3;
    std::vector<float> x = numbers<float>(rows * n, 1);
    for (float& v : x) v *= 10;
    const std::vector<float> g = numbers<float>(rows * n, 2);
    std::vector<float> y(x.size()), dx(x.size()), ly(x.size()), ldx(x.size());
    softmax(x.data(), y.data(), rows, n);
    softmax_backward(y.data(), g.data(), dx.data(), rows, n);
    log_softmax(x.data(), ly.data(), rows, n);
    log_softmax_backward(ly.data(), g.data(), ldx.data(), rows, n);
    double worst = 0, worst_log = 0, worst_dx = 0, worst_ldx = 0;
    for (i64 r = 0; r < rows; ++r) {
      const std::vector<double> want = softmax_row(x.data() + r * n, nullptr, 1, n);
      double dot = 0, total = 0;
      for (i64 i = 0; i < n; ++i) {
        dot += want[static_cast<size_t>(i)] * static_cast<double>(g[static_cast<size_t>(r * n + i)]);
        total += static_cast<double>(g[static_cast<size_t>(r * n + i)]);
      }
      for (i64 i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(r * n + i);
        const double p = want[static_cast<size_t>(i)], gi = static_cast<double>(g[at]);
        worst = std::max(worst, std::fabs(static_cast<double>(y[at]) - p) / p);
        worst_log = std::max(worst_log, std::fabs(static_cast<double>(ly[at]) - std::log(p)) / (1 + std::fabs(std::log(p))));
        worst_dx = std::max(worst_dx, std::fabs(static_cast<double>(dx[at]) - p * (gi - dot)));
        worst_ldx = std::max(worst_ldx, std::fabs(static_cast<double>(ldx[at]) - (gi - p * total)) / (1 + p * std::fabs(total)));
      }
    }
    CHECK(worst < 2e-6);  // the exponent, up to 20, is rounded to float
    CHECK(worst_log < 3e-7);
    CHECK(worst_dx < 2e-6);
    CHECK(worst_ldx < 4e-6);
  }
}

TEST_CASE("softmax in f64 is exact to rounding") {
  const std::vector<double> x = numbers<double>(37, 3);
  std::vector<double> y = softmax_of(x);
  double m = -1, sum = 0;
  for (double v : x) m = std::max(m, v);
  for (double v : x) sum += std::exp(v - m);
  for (size_t i = 0; i < x.size(); ++i) CHECK(std::fabs(y[i] - std::exp(x[i] - m) / sum) < 1e-16);
}

TEST_CASE("softmax: a row has the same bits at any place and in any batch") {
  for (i64 n : {16, 33, 300}) {
    const std::vector<float> row = numbers<float>(n, 5);
    const std::vector<float> alone = softmax_of(row);
    std::vector<float> many;
    for (int r = 0; r < 7; ++r) many.insert(many.end(), row.begin(), row.end());
    const std::vector<float> out = softmax_of(many, 7);
    for (i64 r = 0; r < 7; ++r) CHECK(std::equal(alone.begin(), alone.end(), out.begin() + r * n));
  }
}

TEST_CASE("K41_K43_softmax_infinities_and_nan") {
  CHECK(all_nan(softmax_of<float>({-kInf32, -kInf32})));
  CHECK(std::isnan(softmax_of<float>({kInf32, 0})[0]));
  CHECK(std::isnan(softmax_of<float>({kInf32, 0})[1]));
  CHECK(all_nan(softmax_of<float>({kNan32, 1})));
  CHECK(all_nan(softmax_of<float>(std::vector<float>(16, -kInf32))));
  const std::vector<float> half = softmax_of<float>({-kInf32, 0, 0});
  CHECK(half == std::vector<float>{0, 0.5f, 0.5f});
  CHECK(softmax_of<float>({3e38f, -3e38f}) == std::vector<float>{1, 0});
  CHECK(softmax_of<double>({1e300, -1e300}) == std::vector<double>{1, 0});
  std::vector<float> y(3);
  const std::vector<float> x = {0, -kInf32, 1};
  log_softmax(x.data(), y.data(), 1, 3);
  CHECK(y[0] == doctest::Approx(-1.313262f));
  CHECK(y[1] == -kInf32);
  const std::vector<float> pick = {1, 0, 0};
  std::vector<float> dx(3);
  log_softmax_backward(y.data(), pick.data(), dx.data(), 1, 3);
  CHECK(dx[0] == doctest::Approx(0.731059f));
  CHECK(dx[1] == 0);
  CHECK(dx[2] == doctest::Approx(-0.731059f));
  softmax<float>(nullptr, nullptr, 0, 5);  // nothing to do
  softmax<float>(nullptr, nullptr, 5, 0);
}

TEST_CASE("masked_softmax: masks shared by heads and queries, of any step, against f64") {
  const i64 batch = 3, heads = 2, queries = 4;
  for (i64 n : {1, 5, 16, 40, 300}) {
    CAPTURE(n);
    const i64 rows = batch * heads * queries;
    const std::vector<float> x = numbers<float>(rows * n, 1), g = numbers<float>(rows * n, 2);
    std::vector<float> y(x.size()), dx(x.size());
    // key mask [batch, n], key mask stored transposed [n, batch], full mask [queries, n]
    std::vector<float> noise = numbers<float>(batch * queries * n, 3);
    const auto keep = std::make_unique<bool[]>(noise.size());
    for (size_t i = 0; i < noise.size(); ++i) keep[i] = noise[i] > -0.4f;
    for (i64 i = 0; i < n; ++i) keep[static_cast<size_t>(n + i)] = false;  // sequence 1 keeps nothing
    const MaskAxis by_key[] = {{batch, n}, {heads * queries, 0}};
    const MaskAxis by_key_transposed[] = {{batch, 1}, {heads * queries, 0}};
    const MaskAxis by_query[] = {{batch * heads, 0}, {queries, n}};
    struct Case {
      std::span<const MaskAxis> axes;
      i64 column;
    };
    for (const Case& c : {Case{by_key, 1}, Case{by_key_transposed, batch}, Case{by_query, 1}, Case{by_query, 0}}) {
      masked_softmax<float>(x.data(), {keep.get(), c.axes, c.column}, 0.7f, y.data(), rows, n);
      masked_softmax_backward<float>(y.data(), g.data(), 0.7f, dx.data(), rows, n);
      double worst = 0, worst_dx = 0;
      for (i64 r = 0; r < rows; ++r) {
        const i64 b = r / (heads * queries), q = r % queries;
        const i64 start = c.axes.data() == by_query ? q * n : c.axes.data() == by_key ? b * n : b;
        const auto mask = std::make_unique<bool[]>(static_cast<size_t>(n));
        for (i64 i = 0; i < n; ++i) mask[static_cast<size_t>(i)] = keep[static_cast<size_t>(start + i * c.column)];
        const std::vector<double> want = softmax_row(x.data() + r * n, mask.get(), 0.7, n);
        double dot = 0;
        for (i64 i = 0; i < n; ++i) dot += want[static_cast<size_t>(i)] * static_cast<double>(g[static_cast<size_t>(r * n + i)]);
        for (i64 i = 0; i < n; ++i) {
          const auto at = static_cast<size_t>(r * n + i);
          const double p = want[static_cast<size_t>(i)];
          worst = std::max(worst, std::fabs(static_cast<double>(y[at]) - p));
          worst_dx = std::max(worst_dx, std::fabs(static_cast<double>(dx[at]) - 0.7 * p * (static_cast<double>(g[at]) - dot)));
          if (!mask[static_cast<size_t>(i)]) {
            CHECK(y[at] == 0);
            CHECK(dx[at] == 0);
          }
        }
      }
      CHECK(worst < 3e-7);
      CHECK(worst_dx < 3e-7);
    }
  }
}

TEST_CASE("C03_masked_softmax_rows_that_keep_nothing") {
  const std::vector<float> x = {kNan32, kInf32, -kInf32, 1};
  const bool none[] = {false, false, false, false}, last[] = {false, false, false, true}, minus[] = {false, false, true, true};
  const MaskAxis one[] = {{1, 0}};
  std::vector<float> y(4, kNan32), dx(4, kNan32);
  masked_softmax<float>(x.data(), {none, one, 1}, 1, y.data(), 1, 4);
  CHECK(y == std::vector<float>{0, 0, 0, 0});
  const std::vector<float> g = {kNan32, kInf32, 1, 2};
  masked_softmax_backward<float>(y.data(), g.data(), 1, dx.data(), 1, 4);
  CHECK(dx == std::vector<float>{0, 0, 0, 0});
  masked_softmax<float>(x.data(), {last, one, 1}, 1, y.data(), 1, 4);
  CHECK(y == std::vector<float>{0, 0, 0, 1});
  masked_softmax_backward<float>(y.data(), g.data(), 1, dx.data(), 1, 4);
  CHECK(dx == std::vector<float>{0, 0, 0, 0});
  masked_softmax<float>(x.data(), {minus, one, 1}, 1, y.data(), 1, 4);
  CHECK(y == std::vector<float>{0, 0, 0, 1});
}

TEST_CASE("softmax: the same bits for any number of threads") {
  const i64 rows = 900, n = 129;
  const std::vector<float> x = numbers<float>(rows * n, 1);
  CHECK(test::same_for_any_threads([&] { return softmax_of(x, rows); }));
}
