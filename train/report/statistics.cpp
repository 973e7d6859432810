#include "train/report/statistics.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "core/tensor/error.h"

namespace waymark::train {

namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

// Continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method in Thompson and Barnett's
// form. Converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto away_from_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1;
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double value = d;
  for (int m = 1; m <= 100000; ++m) {
    const double k = m;
    const double even = k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    value *= d * c;
    if (std::abs(d * c - 1) <= 2 * kEps) break;
  }
  return value;
}

// Regularised incomplete beta function I_x(a, b); y = 1 - x is passed because the caller knows it without rounding.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double log_front = std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y);
  const double front = std::exp(log_front);
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

// P(T > t) for t >= 0: half of I_x(df / 2, 1 / 2) with x = df / (df + t^2).
double upper_tail(double t, double df) {
  const double square = t * t;
  return 0.5 * incomplete_beta(df / 2, 0.5, df / (df + square), square / (df + square));
}

double normal_tail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// Above this lgamma's rounding costs more than the normal limit's 1 / (4 df).
constexpr double kNormalDf = 1e10;

void check_df(const char* op, double df) {
  if (!(df > 0)) fail(op, "degrees of freedom must be above 0, got {}", df);
}

void check_level(double level) {
  if (!(level > 0 && level < 1)) fail("interval", "level must lie between 0 and 1, got {}", level);
}

void check_values(const char* op, const std::vector<double>& values, std::size_t least) {
  if (values.size() < least) fail(op, "needs at least {} values, got {}", least, values.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) fail(op, "value {} of {} is {}, not a finite number", i, values.size(), values[i]);
}

Interval around(double middle, double half) { return {middle - half, middle + half}; }

double two_sided(double level, double df) {
  check_level(level);
  return student_t_quantile(0.5 + level / 2, df);
}

}  // namespace

double mean(const std::vector<double>& values) {
  check_values("mean", values, 1);
  const double n = static_cast<double>(values.size());
  double first = 0;
  for (double v : values) first += v / n;
  // The second pass takes back the rounding of the first: equal values give exactly that value.
  double rest = 0;
  for (double v : values) rest += v - first;
  return first + rest / n;
}

double sample_sd(const std::vector<double>& values) {
  check_values("sample_sd", values, 2);
  const double m = mean(values);
  double squares = 0;
  for (double v : values) squares += (v - m) * (v - m);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

Summary summarize(const std::vector<double>& values) {
  Summary s;
  s.n = static_cast<i64>(values.size());
  if (s.n >= 1) s.mean = mean(values);
  if (s.n >= 2) s.sd = sample_sd(values);
  return s;
}

double student_t_cdf(double t, double df) {
  check_df("student_t_cdf", df);
  if (std::isnan(t)) fail("student_t_cdf", "t is not a number");
  if (std::isinf(t)) return t > 0 ? 1 : 0;
  const double tail = df > kNormalDf ? normal_tail(std::abs(t)) : upper_tail(std::abs(t), df);
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double p, double df) {
  check_df("student_t_quantile", df);
  if (!(p > 0 && p < 1)) fail("student_t_quantile", "p must lie between 0 and 1, got {}", p);
  if (p == 0.5) return 0;
  if (p < 0.5) return -student_t_quantile(1 - p, df);
  const double tail = 1 - p;
  const auto tail_at = [df](double t) { return df > kNormalDf ? normal_tail(t) : upper_tail(t, df); };
  double low = 0, high = 1;
  while (tail_at(high) > tail) {
    low = high;
    high *= 2;
    if (std::isinf(high * high)) fail("student_t_quantile", "p = {} with {} degrees of freedom is out of range", p, df);
  }
  // Bisection: the tail is monotone, and 200 halvings end at neighbouring doubles.
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (tail_at(middle) > tail ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

Interval mean_interval(const std::vector<double>& values, double level) {
  check_values("mean_interval", values, 2);
  const double n = static_cast<double>(values.size());
  return around(mean(values), two_sided(level, n - 1) * sample_sd(values) / std::sqrt(n));
}

Interval mean_interval(double mean, i64 n, double sd, double df, double level) {
  if (n < 1) fail("mean_interval", "needs at least one value, got n = {}", n);
  return around(mean, two_sided(level, df) * sd / std::sqrt(static_cast<double>(n)));
}

std::optional<PooledSd> pooled_sd(const std::vector<std::vector<double>>& groups) {
  PooledSd pooled;
  double squares = 0;
  for (const auto& group : groups) {
    check_values("pooled_sd", group, 0);
    if (group.size() < 2) continue;
    const double freedom = static_cast<double>(group.size() - 1), sd = sample_sd(group);
    squares += freedom * sd * sd;
    pooled.df += freedom;
  }
  if (pooled.df == 0) return std::nullopt;
  pooled.sd = std::sqrt(squares / pooled.df);
  return pooled;
}

Interval difference_interval(double mean_a, i64 n_a, double mean_b, i64 n_b, const PooledSd& pooled, double level) {
  if (n_a < 1 || n_b < 1) fail("difference_interval", "both groups need a value, got n = {} and {}", n_a, n_b);
  const double width = std::sqrt(1 / static_cast<double>(n_a) + 1 / static_cast<double>(n_b));
  return around(mean_a - mean_b, two_sided(level, pooled.df) * pooled.sd * width);
}

Paired paired_difference(const std::vector<double>& a, const std::vector<double>& b, double level) {
  if (a.size() != b.size()) fail("paired_difference", "sizes differ: {} and {}", a.size(), b.size());
  check_values("paired_difference", a, 1);
  check_values("paired_difference", b, 1);
  Paired result;
  std::vector<double> differences(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    differences[i] = a[i] - b[i];
    ++(differences[i] > 0 ? result.positive : differences[i] < 0 ? result.negative : result.zero);
  }
  result.difference = summarize(differences);
  if (a.size() >= 2) result.interval = mean_interval(differences, level);
  return result;
}

double proportion_error(double p, i64 n) {
  if (!(p >= 0 && p <= 1)) fail("proportion_error", "p must lie in [0, 1], got {}", p);
  if (n < 1) fail("proportion_error", "n must be at least 1, got {}", n);
  return std::sqrt(p * (1 - p) / static_cast<double>(n));
}

}  // namespace waymark::train
