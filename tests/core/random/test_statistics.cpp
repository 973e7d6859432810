// The distributions, with fixed seeds: bounds of five standard errors that cannot flake.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/core/random/draws_test.h"

using namespace waymark;
using test::draw_of;
using test::normals;

namespace {

template <class Fill> std::vector<double> filled(const std::vector<i64>& shape, Fill fill) {
  const DrawGrid grid = draw_grid(shape);
  std::vector<double> out(static_cast<std::size_t>(grid.numel()));
  fill(grid, grid.numel(), out.data());
  return out;
}
// Mean of x^power around `centre`.
double moment(const std::vector<double>& x, int power, double centre = 0.0) {
  double sum = 0;
  for (double v : x) sum += std::pow(v - centre, power);
  return sum / static_cast<double>(x.size());
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double ma = moment(a, 1), mb = moment(b, 1);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

// Chi-squared of equal bins, in standard deviations from its mean.
double chi2_deviation(const std::vector<u64>& counts) {
  double total = 0, chi2 = 0;
  for (u64 c : counts) total += static_cast<double>(c);
  const double bins = static_cast<double>(counts.size()), expected = total / bins;
  for (u64 c : counts) chi2 += (static_cast<double>(c) - expected) * (static_cast<double>(c) - expected) / expected;
  return (chi2 - (bins - 1)) / std::sqrt(2 * (bins - 1));
}

}  // namespace

TEST_CASE("normals have the moments of the normal distribution") {
  for (const std::vector<i64>& shape : {std::vector<i64>{1000000}, {1000, 1000}, {250000, 2, 2}, {1000000, 1}}) {
    const std::vector<double> z = normals(draw_of(1, "position.noise"), shape);
    const double root_n = 1000.0;
    CHECK(std::abs(moment(z, 1)) < 5 / root_n);
    CHECK(std::abs(moment(z, 2) - 1) < 5 * std::sqrt(2.0) / root_n);
    CHECK(std::abs(moment(z, 3)) < 5 * std::sqrt(15.0) / root_n);
    CHECK(std::abs(moment(z, 4) - 3) < 5 * std::sqrt(96.0) / root_n);
    const auto beyond = [&](double x) {
      return static_cast<double>(std::count_if(z.begin(), z.end(), [&](double v) { return std::abs(v) > x; }));
    };
    CHECK(std::abs(beyond(1.959963984540054) - 50000) < 5 * std::sqrt(47500.0));
    CHECK(std::abs(beyond(3.2905267314918945) - 1000) < 5 * std::sqrt(999.0));
  }
}

TEST_CASE("uniforms, integers and decisions are uniform") {
  const Draw draw = draw_of(2, "user");
  const std::vector<i64> shape = {1000, 1000};
  const DrawGrid grid = draw_grid(shape);
  const std::size_t n = 1000000;
  std::vector<double> d(n);
  std::vector<float> f(n);
  std::vector<i64> k(n);
  std::vector<u8> keep(n);
  fill_uniform(draw, grid, 0, grid.numel(), d.data());
  fill_uniform(draw_of(2, "user", 1), grid, 0, grid.numel(), f.data());
  fill_randint(draw, grid, -100, 923, 0, grid.numel(), k.data());
  std::vector<u64> coarse(1000), fine(1024), low_bits(1024), integers(1023);
  for (std::size_t i = 0; i < n; ++i) {
    ++coarse[static_cast<std::size_t>(d[i] * 1000)];
    ++fine[static_cast<std::size_t>(f[i] * 1024)];
    ++low_bits[static_cast<u64>(d[i] * 0x1p53) % 1024];
    REQUIRE((k[i] >= -100 && k[i] < 923));
    ++integers[static_cast<std::size_t>(k[i] + 100)];
  }
  CHECK(std::abs(chi2_deviation(coarse)) < 5);
  CHECK(std::abs(chi2_deviation(fine)) < 5);
  CHECK(std::abs(chi2_deviation(low_bits)) < 5);
  CHECK(std::abs(chi2_deviation(integers)) < 5);
  for (double p : {0.001, 0.1, 0.5, 0.9}) {
    fill_dropout_keep(draw, grid, bernoulli_threshold(p), 0, grid.numel(), keep.data());
    const double kept = static_cast<double>(std::count(keep.begin(), keep.end(), u8{1}));
    CHECK(std::abs(kept - 1e6 * (1 - p)) < 5 * std::sqrt(1e6 * p * (1 - p)));
    // Each of the four words of a block by itself, and neighbours against each other.
    double word[4] = {}, pair = 0;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      word[i % 4] += keep[i];
      pair += keep[i] & keep[i + 1];
    }
    for (double w : word) CHECK(std::abs(w - 250000 * (1 - p)) < 5 * std::sqrt(250000 * p * (1 - p)));
    const double both = (1 - p) * (1 - p);
    CHECK(std::abs(pair - 1e6 * both) < 5 * std::sqrt(1e6 * both * (1 - both) * 3));
  }
}

TEST_CASE("exponential, gumbel and trunc_normal have their means and variances") {
  const Draw draw = draw_of(3, "user");
  const std::vector<i64> shape = {1000, 1000};
  const auto e = filled(shape, [&](const DrawGrid& g, i64 n, double* out) { fill_exponential(draw, g, 0, n, out); });
  CHECK(std::abs(moment(e, 1) - 1) < 5e-3);
  CHECK(std::abs(moment(e, 2, 1.0) - 1) < 5e-3 * std::sqrt(8.0));
  const double gamma = 0.5772156649015329, variance = 1.6449340668482264;
  const auto g = filled(shape, [&](const DrawGrid& grid, i64 n, double* out) { fill_gumbel(draw, grid, 0, n, out); });
  CHECK(std::abs(moment(g, 1) - gamma) < 5e-3 * std::sqrt(variance));
  CHECK(std::abs(moment(g, 2, gamma) - variance) < 5e-3 * std::sqrt(4.4 * variance * variance));
  const auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); };
  for (const auto& [a, b] : {std::pair{-2.0, 2.0}, {-1.0, 0.5}, {1.0, 4.0}, {-5.0, -3.0}, {6.0, 7.0}}) {
    const double z = a > 0 ? (std::erfc(a / std::sqrt(2.0)) - std::erfc(b / std::sqrt(2.0))) / 2
                           : (std::erfc(-b / std::sqrt(2.0)) - std::erfc(-a / std::sqrt(2.0))) / 2;
    const double mean = (density(a) - density(b)) / z;
    const double var = 1 + (a * density(a) - b * density(b)) / z - mean * mean;
    const auto t = filled(shape, [&, low = a, high = b](const DrawGrid& grid, i64 n, double* out) {
      fill_trunc_normal(draw, grid, low, high, 0, n, out);
    });
    CHECK(*std::min_element(t.begin(), t.end()) >= a);
    CHECK(*std::max_element(t.begin(), t.end()) <= b);
    CHECK(std::abs(moment(t, 1) - mean) < 5e-3 * std::sqrt(var));
    CHECK(std::abs(moment(t, 2, mean) - var) < 5e-3 * std::sqrt(std::max(moment(t, 4, mean) - var * var, 0.0)));
  }
}

TEST_CASE("streams, seeds, draws, rows, leads and neighbours are independent") {
  const std::vector<i64> shape = {500, 1000};
  const double limit = 5 / std::sqrt(500000.0);
  const std::vector<double> a = normals(draw_of(7, "encoder.layers.0.dropout", 5), shape);
  CHECK(std::abs(correlation(a, normals(draw_of(7, "encoder.layers.1.dropout", 5), shape))) < limit);
  CHECK(std::abs(correlation(a, normals(draw_of(8, "encoder.layers.0.dropout", 5), shape))) < limit);
  CHECK(std::abs(correlation(a, normals(draw_of(7, "encoder.layers.0.dropout", 6), shape))) < limit);
  const std::vector<double> next_row = [&] {
    Draw draw = draw_of(7, "encoder.layers.0.dropout", 5);
    draw.first = 1;
    const DrawGrid grid = draw_grid(draw, shape);
    std::vector<double> out(a.size());
    fill_normal(draw, grid, 0, grid.numel(), out.data());
    return out;
  }();
  CHECK(next_row[0] == a[1000]);  // so the shift is one row
  CHECK(std::abs(correlation(a, next_row)) < limit);
  const std::vector<double> by_lead = normals(draw_of(7, "encoder.layers.0.dropout", 5), {500, 1, 1000});
  CHECK(std::abs(correlation({a.begin() + 1000, a.end()}, {by_lead.begin() + 1000, by_lead.end()})) < limit * 1.01);
  for (std::ptrdiff_t lag : {1, 2, 3, 4}) {
    const std::vector<double> head(a.begin(), a.end() - lag), tail(a.begin() + lag, a.end());
    CHECK(std::abs(correlation(head, tail)) < limit * 1.01);
    std::vector<double> head2 = head, tail2 = tail;  // also in size, which Box and Muller's pairs share
    for (double& v : head2) v *= v;
    for (double& v : tail2) v *= v;
    CHECK(std::abs(correlation(head2, tail2)) < limit * 1.01);
  }
}

TEST_CASE("randperm gives permutations, every element everywhere equally often") {
  constexpr i64 n = 10;
  std::vector<u64> counts(n * n), pairs(n * n);
  for (u32 number = 0; number < 20000; ++number) {
    i64 order[n];
    fill_randperm(draw_of(4, "data.order", number), n, order);
    std::vector<i64> sorted(order, order + n);
    std::sort(sorted.begin(), sorted.end());
    for (i64 i = 0; i < n; ++i) {
      REQUIRE(sorted[static_cast<std::size_t>(i)] == i);
      ++counts[static_cast<std::size_t>(i * n + order[i])];
    }
    ++pairs[static_cast<std::size_t>(order[0] * n + order[1])];
  }
  CHECK(std::abs(chi2_deviation(counts)) < 5);
  std::vector<u64> off_diagonal;
  for (std::size_t i = 0; i < n * n; ++i)
    if (i % (n + 1) != 0) off_diagonal.push_back(pairs[i]);
  CHECK(std::abs(chi2_deviation(off_diagonal)) < 5);
  fill_randperm(draw_of(4, "data.order"), 0, nullptr);
  std::vector<i64> large(100000);
  fill_randperm(draw_of(4, "data.order"), 100000, large.data());
  std::sort(large.begin(), large.end());
  for (std::size_t i = 0; i < large.size(); ++i) REQUIRE(large[i] == static_cast<i64>(i));
}
