// Statistics of a few runs: sample s.d., Student t intervals, paired and pooled comparisons.
// Every s.d. here is the sample one (n - 1). Values are f64 and must be finite: a missing or non-finite result is a
// state of its run, not a number, and is sorted out before anything is averaged.
#pragma once

#include <optional>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

struct Interval {
  double low = 0, high = 0;
  // The ends belong to the interval.
  bool contains(double value) const { return low <= value && value <= high; }
};

// What a cell of a table shows of its values.
struct Summary {
  i64 n = 0;
  double mean = 0;
  std::optional<double> sd = {};  // only for n >= 2
};

// Error if `values` is empty or has a non-finite value.
WAYMARK_API double mean(const std::vector<double>& values);
// sqrt(sum (x - mean)^2 / (n - 1)). Error for fewer than two values.
WAYMARK_API double sample_sd(const std::vector<double>& values);
// n = 0 gives an empty summary, which is no error.
WAYMARK_API Summary summarize(const std::vector<double>& values);

// P(T <= t) of Student's t with df > 0 degrees of freedom (df need not be whole).
WAYMARK_API double student_t_cdf(double t, double df);
// The t with student_t_cdf(t, df) = p, 0 < p < 1; student_t_quantile(0.975, 18) = 2.1009.
WAYMARK_API double student_t_quantile(double p, double df);

// Interval of the mean at `level` (0 < level < 1): mean +- t((1 + level) / 2, n - 1) * sd / sqrt(n). Error for n < 2.
WAYMARK_API Interval mean_interval(const std::vector<double>& values, double level = 0.95);
// The same with an s.d. of `df` degrees of freedom from elsewhere (pooled over rows). n >= 1.
WAYMARK_API Interval mean_interval(double mean, i64 n, double sd, double df, double level = 0.95);

// s.d. within several groups: sqrt(sum (n_i - 1) sd_i^2 / sum (n_i - 1)). Groups of one value add nothing.
struct PooledSd {
  double sd = 0;
  double df = 0;  // sum (n_i - 1) over the groups with n_i >= 2
};
// Empty if no group has two values.
WAYMARK_API std::optional<PooledSd> pooled_sd(const std::vector<std::vector<double>>& groups);

// Interval of mean_a - mean_b, both groups having the same true s.d.: t * sd * sqrt(1 / n_a + 1 / n_b).
WAYMARK_API Interval difference_interval(double mean_a, i64 n_a, double mean_b, i64 n_b, const PooledSd& pooled,
                                         double level = 0.95);

// Differences a[i] - b[i] of values that belong together (the same seed).
struct Paired {
  Summary difference = {};
  std::optional<Interval> interval = {};  // only for n >= 2
  i64 positive = 0, negative = 0, zero = 0;
};
// Error if the sizes differ or are 0.
WAYMARK_API Paired paired_difference(const std::vector<double>& a, const std::vector<double>& b,
                                     double level = 0.95);

// Sampling error of a share p of n items: sqrt(p (1 - p) / n). Error unless 0 <= p <= 1 and n >= 1.
WAYMARK_API double proportion_error(double p, i64 n);

}  // namespace waymark::train
