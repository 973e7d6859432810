#include "core/kernels/norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/core/kernels/kernel_test.h"

using namespace waymark;
using namespace waymark::kernels;
using test::numbers;

namespace {

struct NormRow {  // one row, in double
  double mean = 0, inverse = 0;
  std::vector<double> xhat, dx;
};
// centred: layer norm, else root mean square.
NormRow norm_row(const float* x, const float* w, const float* g, double eps, i64 n, bool centred) {
  NormRow r;
  const double count = static_cast<double>(n);
  for (i64 i = 0; i < n && centred; ++i) r.mean += static_cast<double>(x[i]) / count;
  double variance = 0;
  for (i64 i = 0; i < n; ++i) variance += std::pow(static_cast<double>(x[i]) - r.mean, 2) / count;
  r.inverse = 1 / std::sqrt(variance + eps);
  double mean_g = 0, mean_gx = 0;
  for (i64 i = 0; i < n; ++i) {
    r.xhat.push_back((static_cast<double>(x[i]) - r.mean) * r.inverse);
    const double gw = static_cast<double>(g[i]) * (w ? static_cast<double>(w[i]) : 1);
    mean_g += centred ? gw / count : 0;
    mean_gx += gw * r.xhat.back() / count;
  }
  for (i64 i = 0; i < n; ++i) {
    const double gw = static_cast<double>(g[i]) * (w ? static_cast<double>(w[i]) : 1);
    r.dx.push_back(r.inverse * (gw - mean_g - r.xhat[static_cast<size_t>(i)] * mean_gx));
  }
  return r;
}

}  // namespace

TEST_CASE("layer_norm and rms_norm with their derivatives against f64") {
  for (i64 n : {1, 3, 16, 31, 100, 256, 300, 5000}) {
    CAPTURE(n);
    const i64 rows = n > 1000 ? 5 : 70;
    const float eps = 1e-5f;
    const std::vector<float> x = numbers<float>(rows * n, 1), g = numbers<float>(rows * n, 2), weight = numbers<float>(n, 3),
                             bias = numbers<float>(n, 4);
    for (bool centred : {true, false})
      for (bool with : {true, false}) {
        CAPTURE(centred);
        CAPTURE(with);
        const float* w = with ? weight.data() : nullptr;
        const float* b = with && centred ? bias.data() : nullptr;
        std::vector<float> y(x.size()), dx(x.size()), dw(static_cast<size_t>(n)), db(static_cast<size_t>(n));
        if (centred) {
          std::vector<RowMoments<float>> moments(static_cast<size_t>(rows));
          layer_norm(x.data(), w, b, eps, y.data(), moments.data(), rows, n);
          layer_norm_backward(x.data(), w, moments.data(), g.data(), dx.data(), dw.data(), db.data(), rows, n);
          std::vector<float> only_dx(x.size()), only_db(db.size()), in_place = g;
          layer_norm_backward<float>(x.data(), w, moments.data(), g.data(), only_dx.data(), nullptr, nullptr, rows, n);
          layer_norm_backward<float>(x.data(), w, moments.data(), g.data(), nullptr, nullptr, only_db.data(), rows, n);
          CHECK(only_dx == dx);
          CHECK(only_db == db);
          layer_norm_backward(x.data(), w, moments.data(), in_place.data(), in_place.data(), dw.data(), db.data(), rows, n);
          CHECK(in_place == dx);
        } else {
          std::vector<float> inverses(static_cast<size_t>(rows)), only_dx(x.size());
          rms_norm(x.data(), w, eps, y.data(), inverses.data(), rows, n);
          rms_norm_backward(x.data(), w, inverses.data(), g.data(), dx.data(), dw.data(), rows, n);
          rms_norm_backward<float>(x.data(), w, inverses.data(), g.data(), only_dx.data(), nullptr, rows, n);
          CHECK(only_dx == dx);
        }
        std::vector<double> want_dw(static_cast<size_t>(n)), want_db(static_cast<size_t>(n));
        double worst = 0, worst_dx = 0, worst_dw = 0, worst_db = 0, scale_dx = 1;
        for (i64 r = 0; r < rows; ++r) {
          const NormRow want = norm_row(x.data() + r * n, w, g.data() + r * n, static_cast<double>(eps), n, centred);
          if (n > 1) scale_dx = std::max(scale_dx, want.inverse);
          for (i64 i = 0; i < n; ++i) {
            const auto at = static_cast<size_t>(r * n + i), k = static_cast<size_t>(i);
            const double v = want.xhat[k] * (w ? static_cast<double>(w[i]) : 1) + (b ? static_cast<double>(b[i]) : 0);
            worst = std::max(worst, std::fabs(static_cast<double>(y[at]) - v) / (1 + std::fabs(want.xhat[k])));
            worst_dx = std::max(worst_dx, std::fabs(static_cast<double>(dx[at]) - want.dx[k]));
            want_dw[k] += static_cast<double>(g[at]) * want.xhat[k];
            want_db[k] += static_cast<double>(g[at]);
          }
        }
        for (size_t k = 0; k < dw.size(); ++k) {
          worst_dw = std::max(worst_dw, std::fabs(static_cast<double>(dw[k]) - want_dw[k]));
          if (centred) worst_db = std::max(worst_db, std::fabs(static_cast<double>(db[k]) - want_db[k]));
        }
        CHECK(worst < 1e-6);
        CHECK(worst_dx < 2e-6 * (n == 1 ? 1000 : scale_dx));
        CHECK(worst_dw < 3e-5);
        CHECK(worst_db < 1e-5);
      }
  }
}

TEST_CASE("C10_layer_norm_row_of_mean_1e4") {
  std::vector<float> x(16), y(16);
  for (size_t i = 0; i < 16; ++i) x[i] = 10000.0f + static_cast<float>(i) * 1e-3f;
  layer_norm<float>(x.data(), nullptr, nullptr, 1e-5f, y.data(), nullptr, 1, 16);
  CHECK(std::fabs(static_cast<double>(y[0]) + 1.33133) < 1e-5);
  const std::vector<float> one(16, 1.0f);
  const NormRow want = norm_row(x.data(), nullptr, one.data(), 1e-5, 16, true);
  for (size_t i = 0; i < 16; ++i) CHECK(std::fabs(static_cast<double>(y[i]) - want.xhat[i]) < 1e-6);

  // rows [1e4, N(0, 1) x 1023]
  std::vector<float> z = numbers<float>(1024, 5), out(1024);
  for (size_t i = 0; i + 1 < z.size(); ++i) z[i] = z[i] + z[i + 1];
  z[0] = 1e4f;
  layer_norm<float>(z.data(), nullptr, nullptr, 1e-5f, out.data(), nullptr, 1, 1024);
  const std::vector<float> ones(1024, 1.0f);
  const NormRow large = norm_row(z.data(), nullptr, ones.data(), 1e-5, 1024, true);
  for (size_t i = 0; i < 1024; ++i) CHECK(std::fabs(static_cast<double>(out[i]) - large.xhat[i]) < 1e-5);
}

TEST_CASE("K60_layer_norm_of_constant_rows_and_single_features") {
  for (i64 n : {1, 3, 7, 48}) {
    std::vector<float> x(static_cast<size_t>(n), 0.1f), y(x.size()), dx(x.size());
    RowMoments<float> m;
    layer_norm<float>(x.data(), nullptr, nullptr, 1e-5f, y.data(), &m, 1, n);
    for (float v : y) CHECK(std::fabs(v) < 1e-9f);
    const std::vector<float> g(static_cast<size_t>(n), 1.0f);
    layer_norm_backward<float>(x.data(), nullptr, &m, g.data(), dx.data(), nullptr, nullptr, 1, n);
    for (float v : dx) CHECK(std::fabs(v) < 1e-4f);
  }
  std::vector<float> nan = {1, std::numeric_limits<float>::quiet_NaN(), 2}, y(3);
  layer_norm<float>(nan.data(), nullptr, nullptr, 1e-5f, y.data(), nullptr, 1, 3);
  for (float v : y) CHECK(std::isnan(v));
}

TEST_CASE("layer_norm: no rows, and the same bits for any number of threads") {
  std::vector<float> dw(5, 7.0f), db(5, 7.0f);
  layer_norm_backward<float>(nullptr, nullptr, nullptr, nullptr, nullptr, dw.data(), db.data(), 0, 5);
  CHECK(dw == std::vector<float>(5, 0.0f));
  CHECK(db == std::vector<float>(5, 0.0f));
  const i64 rows = 3000, n = 70;
  const std::vector<float> x = numbers<float>(rows * n, 1), g = numbers<float>(rows * n, 2), w = numbers<float>(n, 3);
  CHECK(test::same_for_any_threads([&] {
    std::vector<float> out(static_cast<size_t>(rows * n + 2 * n));
    std::vector<RowMoments<float>> m(static_cast<size_t>(rows));
    std::vector<float> y(x.size());
    layer_norm<float>(x.data(), w.data(), nullptr, 1e-5f, y.data(), m.data(), rows, n);
    layer_norm_backward<float>(x.data(), w.data(), m.data(), g.data(), out.data(), out.data() + rows * n,
                               out.data() + rows * n + n, rows, n);
    return out;
  }));
}
