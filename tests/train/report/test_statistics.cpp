#include "train/report/statistics.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "core/tensor/error.h"

using namespace waymark;
using namespace waymark::train;

TEST_CASE("statistics: Student t quantiles equal the printed tables") {
  const auto t = [](double df) { return student_t_quantile(0.975, df); };
  CHECK(t(1) == doctest::Approx(12.7062047362).epsilon(1e-10));
  CHECK(t(2) == doctest::Approx(4.30265272975).epsilon(1e-10));
  CHECK(t(3) == doctest::Approx(3.18244630528).epsilon(1e-10));
  CHECK(t(4) == doctest::Approx(2.77644510520).epsilon(1e-10));
  CHECK(t(18) == doctest::Approx(2.10092204024).epsilon(1e-10));
  CHECK(t(1e12) == doctest::Approx(1.95996398454).epsilon(1e-9));
  CHECK(student_t_quantile(0.95, 10) == doctest::Approx(1.81246112281).epsilon(1e-10));
}

TEST_CASE("statistics: Student t against its closed forms") {
  for (double p : {0.51, 0.6, 0.9, 0.975, 0.999, 0.99999}) {
    CHECK(student_t_quantile(p, 1) == doctest::Approx(std::tan(std::numbers::pi * (p - 0.5))).epsilon(1e-9));
    const double u = 2 * p - 1;
    CHECK(student_t_quantile(p, 2) == doctest::Approx(u * std::sqrt(2 / (1 - u * u))).epsilon(1e-9));
    CHECK(student_t_quantile(1 - p, 7) == doctest::Approx(-student_t_quantile(p, 7)).epsilon(1e-9));
  }
  // Any df, whole or not, from 0.3 to beyond the normal limit: the quantile inverts the distribution.
  for (double df : {0.3, 1.0, 2.5, 18.0, 333.3, 1e6, 1e9, 1e11})
    for (double p : {0.001, 0.2, 0.5, 0.7, 0.975})
      CHECK(student_t_cdf(student_t_quantile(p, df), df) == doctest::Approx(p).epsilon(1e-7));
  CHECK(student_t_cdf(std::numeric_limits<double>::infinity(), 3) == 1);
  CHECK(student_t_quantile(0.5, 3) == 0);
}

TEST_CASE("statistics: mean and sample s.d. by hand") {
  CHECK(mean({1, 2, 6}) == 3);
  CHECK(sample_sd({1, 2, 6}) == doctest::Approx(std::sqrt(14.0 / 2)));
  CHECK(mean({0.1, 0.1, 0.1}) == 0.1);
  CHECK(sample_sd({0.1, 0.1, 0.1}) == 0);
  CHECK(sample_sd({1e9 + 1, 1e9 + 2, 1e9 + 3}) == doctest::Approx(1).epsilon(1e-12));
  CHECK(mean({1e308, 1e308}) == 1e308);  // the plain sum would overflow

  const Summary none = summarize({}), one = summarize({4}), two = summarize({4, 6});
  CHECK(none.n == 0);
  CHECK(one.n == 1);
  CHECK(one.mean == 4);
  CHECK_FALSE(one.sd.has_value());
  CHECK(two.sd.value() == doctest::Approx(std::numbers::sqrt2));
}

TEST_CASE("statistics: interval of a mean") {
  // n = 3, mean 2, s.d. 1: 4.3027 / sqrt(3) = 2.4841.
  const Interval i = mean_interval({1, 2, 3});
  CHECK(i.low == doctest::Approx(2 - 2.48413771).epsilon(1e-8));
  CHECK(i.high == doctest::Approx(2 + 2.48413771).epsilon(1e-8));
  const Interval pooled = mean_interval(2, 3, 1, 18);
  CHECK(pooled.high == doctest::Approx(2 + 2.10092204 / std::sqrt(3.0)).epsilon(1e-8));
  CHECK(mean_interval({1, 2, 3}, 0.5).high < i.high);
}

TEST_CASE("statistics: pooled s.d. over rows") {
  // s.d. 1 with 2 degrees of freedom and s.d. 2 with 3; the single value adds nothing.
  const auto p = pooled_sd({{1, 2, 3}, {9}, {0, 2, 2, 4, 4, 0}});
  REQUIRE(p.has_value());
  CHECK(p->df == 7);
  CHECK(p->sd == doctest::Approx(std::sqrt((2 * 1.0 + 16.0) / 7)));
  CHECK_FALSE(pooled_sd({{1}, {}}).has_value());

  std::vector<std::vector<double>> nine(9, {1.0, 2.0, 3.0});
  CHECK(pooled_sd(nine)->df == 18);
  const Interval d = difference_interval(5, 3, 3, 3, *pooled_sd(nine));
  CHECK(d.low == doctest::Approx(2 - 2.10092204 * std::sqrt(2.0 / 3)).epsilon(1e-8));
  CHECK(d.high == doctest::Approx(2 + 2.10092204 * std::sqrt(2.0 / 3)).epsilon(1e-8));
}

TEST_CASE("statistics: paired differences") {
  const Paired p = paired_difference({3, 5, 7}, {1, 5, 8});  // 2, 0, -1
  CHECK(p.difference.n == 3);
  CHECK(p.difference.mean == doctest::Approx(1.0 / 3));
  CHECK(p.difference.sd.value() == doctest::Approx(std::sqrt(14.0 / 6)));
  CHECK(p.positive == 1);
  CHECK(p.negative == 1);
  CHECK(p.zero == 1);
  CHECK(p.interval->contains(0));
  CHECK_FALSE(paired_difference({3, 4, 5}, {1, 2.01, 3}).interval->contains(0));
  CHECK_FALSE(paired_difference({3}, {1}).interval.has_value());
}

TEST_CASE("statistics: error of a share") {
  CHECK(proportion_error(0.5, 100) == doctest::Approx(0.05));
  CHECK(proportion_error(0, 5) == 0);
}

TEST_CASE("statistics: wrong requests are errors") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(mean({}), Error);
  CHECK_THROWS_AS(sample_sd({1}), Error);
  CHECK_THROWS_AS(mean({1, nan}), Error);
  CHECK_THROWS_AS(student_t_quantile(1, 3), Error);
  CHECK_THROWS_AS(student_t_quantile(0.9, 0), Error);
  CHECK_THROWS_AS(student_t_quantile(0.9, nan), Error);
  CHECK_THROWS_AS(mean_interval({1}), Error);
  CHECK_THROWS_AS(mean_interval({1, 2}, 1.0), Error);
  CHECK_THROWS_AS(paired_difference({1}, {1, 2}), Error);
  CHECK_THROWS_AS(proportion_error(1.5, 3), Error);
  CHECK_THROWS_AS(proportion_error(0.5, 0), Error);
  try {
    mean({1, nan});
    FAIL("not reached");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) == "mean: value 1 of 2 is nan, not a finite number");
  }
}
