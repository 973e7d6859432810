#include "core/kernels/cross_entropy.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/core/kernels/kernel_test.h"

using namespace waymark;
using namespace waymark::kernels;
using test::numbers;

TEST_CASE("cross_entropy with weights, smoothing and ignored rows against f64") {
  for (i64 classes : {2, 5, 16, 65, 1000}) {
    CAPTURE(classes);
    const i64 rows = 6;
    std::vector<float> x = numbers<float>(rows * classes, 1);
    for (float& v : x) v *= 8;
    std::vector<float> weight = numbers<float>(classes, 2);
    for (float& v : weight) v = v + 1.5f;
    std::vector<i64> target;
    for (i64 r = 0; r < rows; ++r) target.push_back(r == 2 ? -1 : (r * 7) % classes);
    const std::vector<float> g = numbers<float>(rows, 3);
    for (bool weighted : {false, true})
      for (float smoothing : {0.0f, 0.1f}) {
        const CrossEntropy<float> c{target.data(), weighted ? weight.data() : nullptr, smoothing, classes};
        std::vector<float> loss(static_cast<size_t>(rows)), dx(x.size());
        std::vector<RowLogSum<float>> sums(static_cast<size_t>(rows));
        cross_entropy(c, x.data(), loss.data(), sums.data(), rows);
        cross_entropy_backward(c, x.data(), sums.data(), g.data(), 1, 0.5f, dx.data(), rows);
        double worst = 0, worst_dx = 0;
        for (i64 r = 0; r < rows; ++r) {
          const float* row = x.data() + r * classes;
          const auto w = [&](i64 k) { return weighted ? static_cast<double>(weight[static_cast<size_t>(k)]) : 1.0; };
          const i64 t = target[static_cast<size_t>(r)];
          double sum = 0, all = 0, want = 0;
          for (i64 k = 0; k < classes; ++k) sum += std::exp(static_cast<double>(row[k]));
          const double s = static_cast<double>(smoothing), spread = s / static_cast<double>(classes);
          for (i64 k = 0; k < classes; ++k) {
            all += w(k);
            want += spread * w(k) * (std::log(sum) - static_cast<double>(row[k]));
          }
          if (t >= 0) want += (1 - s) * w(t) * (std::log(sum) - static_cast<double>(row[t]));
          else want = 0;
          worst = std::max(worst, std::fabs(static_cast<double>(loss[static_cast<size_t>(r)]) - want) / (1 + want));
          for (i64 k = 0; k < classes; ++k) {
            const double p = std::exp(static_cast<double>(row[k])) / sum;
            double d = (1 - s) * w(std::max<i64>(t, 0)) * (p - (k == t)) + spread * (p * all - w(k));
            d *= t >= 0 ? 0.5 * static_cast<double>(g[static_cast<size_t>(r)]) : 0;
            const float got = dx[static_cast<size_t>(r * classes + k)];
            worst_dx = std::max(worst_dx, std::fabs(static_cast<double>(got) - d));
            if (t < 0) CHECK(got == 0);
          }
        }
        CHECK(worst < 5e-7);
        CHECK(worst_dx < 1e-6);
      }
  }
}

TEST_CASE("K56_cross_entropy_of_minus_infinity") {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0, -inf};
  const auto run = [&](i64 t, float smoothing) {
    const CrossEntropy<float> c{&t, nullptr, smoothing, 2};
    std::vector<float> out(3);
    RowLogSum<float> s;
    const float one = 1;
    cross_entropy(c, x.data(), out.data(), &s, 1);
    cross_entropy_backward(c, x.data(), &s, &one, 0, 1.0f, out.data() + 1, 1);
    return out;
  };
  CHECK(run(1, 0) == std::vector<float>{inf, 1, -1});
  CHECK(run(0, 0) == std::vector<float>{0, 0, 0});
  const std::vector<float> smooth = run(0, 0.1f);
  CHECK(smooth[0] == inf);
  CHECK(smooth[1] == doctest::Approx(0.05f));
  CHECK(smooth[2] == doctest::Approx(-0.05f));
}

TEST_CASE("cross_entropy of large logits, in place, and for any number of threads") {
  // p depends on differences only: 1e4 more on every logit changes nothing
  const i64 t = 0;
  const CrossEntropy<float> c{&t, nullptr, 0, 3};
  const float one = 1;
  std::vector<float> big = {10000, 10001, 10002}, small = {0, 1, 2};
  float a = 0, b = 0;
  RowLogSum<float> s;
  cross_entropy(c, small.data(), &a, &s, 1);
  cross_entropy_backward(c, small.data(), &s, &one, 0, 1.0f, small.data(), 1);
  cross_entropy(c, big.data(), &b, &s, 1);
  cross_entropy_backward(c, big.data(), &s, &one, 0, 1.0f, big.data(), 1);
  CHECK(a == b);
  CHECK(big == small);

  const i64 rows = 2000, n = 65;
  const std::vector<float> x = numbers<float>(rows * n, 1);
  std::vector<i64> target(static_cast<size_t>(rows));
  for (size_t r = 0; r < target.size(); ++r) target[r] = static_cast<i64>(r % 65);
  CHECK(test::same_for_any_threads([&] {
    const CrossEntropy<float> many{target.data(), nullptr, 0.1f, n};
    std::vector<float> out(x.size()), loss(target.size());
    std::vector<RowLogSum<float>> sums(target.size());
    cross_entropy(many, x.data(), loss.data(), sums.data(), rows);
    cross_entropy_backward(many, x.data(), sums.data(), loss.data(), 1, 1.0f, out.data(), rows);
    return out;
  }));
}
