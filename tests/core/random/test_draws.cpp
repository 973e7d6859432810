// Philox and the draw kernels: the test vectors, coordinates, ranges, edges, elementary functions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "core/random/elementary.h"
#include "core/random/values.h"
#include "core/tensor/error.h"
#include "tests/core/random/draws_test.h"

using namespace waymark;
using test::draw_of;
using test::normals;

namespace {

std::vector<u8> keeps(const Draw& draw, const std::vector<i64>& shape, double p) {
  const DrawGrid grid = draw_grid(draw, shape);
  std::vector<u8> out(static_cast<std::size_t>(grid.numel()));
  fill_dropout_keep(draw, grid, bernoulli_threshold(p), 0, grid.numel(), out.data());
  return out;
}

template <class T> u64 checksum(const std::vector<T>& values) {
  u64 h = 0;
  for (T v : values) {
    u64 word = 0;
    std::memcpy(&word, &v, sizeof v);
    h = mix64(h ^ word);
  }
  return h;
}

// Words that make every 64-bit value x of a batch.
PhiloxWords words_of(u64 even, u64 odd) {
  PhiloxWords words{};
  for (int i = 0; i < kPhiloxBatch; ++i) {
    words.w[0][i] = static_cast<u32>(even);
    words.w[1][i] = static_cast<u32>(even >> 32);
    words.w[2][i] = static_cast<u32>(odd);
    words.w[3][i] = static_cast<u32>(odd >> 32);
  }
  return words;
}

}  // namespace

TEST_CASE("Philox4x32-10 and the keys of streams have the published values") {
  CHECK(philox_block({0, 0, 0, 0}, 0) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const u32 ones = 0xffffffff;
  CHECK(philox_block({ones, ones, ones, ones}, ~u64{0}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  static_assert(fnv1a64("init") == 0xf5d2afc57ab57213 && fnv1a64("dropout") == 0xa13b29c60c02b510);
  static_assert(key64(0, "init") == 0x6733282f0ddd69f7 && key64(42, "dropout") == 0xa3e2a8e55430c5a8);
  CHECK(philox_block({0, 0, 0, 0}, key64(0, "init")) ==
        PhiloxBlock{0xdc239e84, 0x3f9a94eb, 0x1ae240fa, 0x1eb78adb});
  CHECK(philox_block({5, 2, 1, 3}, key64(42, "dropout")) ==
        PhiloxBlock{0x68edebed, 0x3b95b029, 0x94e113af, 0x4274260a});
}

TEST_CASE("the vectorised Philox is Random123's") {
  PhiloxCounters counters;
  PhiloxWords words;
  for (u32 round = 0; round < 50; ++round) {
    const u64 key = mix64(round);
    for (u32 i = 0; i < kPhiloxBatch; ++i) {
      counters.block[i] = static_cast<u32>(mix64(i + 1000 * round));
      counters.row[i] = static_cast<u32>(mix64(~(i + 1000 * round)));
      counters.lead[i] = i % 3 ? static_cast<u32>(mix64(i)) : 0xffffffff;
    }
    const int n = 1 + static_cast<int>(round) % kPhiloxBatch;
    philox_batch(key, round * 0x01010101, counters, n, words);
    for (int i = 0; i < n; ++i)
      REQUIRE(PhiloxBlock{words.w[0][i], words.w[1][i], words.w[2][i], words.w[3][i]} ==
              philox_block({counters.block[i], counters.row[i], counters.lead[i], round * 0x01010101}, key));
  }
}

TEST_CASE("draws have the values of the specification") {
  const Draw init = draw_of(0, "init");
  const std::vector<i64> shape = {2, 3};
  const DrawGrid grid = draw_grid(init, shape);
  double u[6];
  fill_uniform(init, grid, 0, 6, u);
  const double uniform[6] = {0.2484524799184683, 0.11998813485377813,  0.8484174954809632,
                             0.6163822745209728, 0.029402938048518235, 0.8811995302573954};
  for (int i = 0; i < 6; ++i) CHECK(u[i] == uniform[i]);

  const double normal[6] = {1.2166128895702173, 1.142304878646575,   0.06339367506657077,
                            0.9670157069271572, 0.18071106044182303, 0.4305564620643782};
  const std::vector<double> z = normals(init, shape);
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(z[i] / normal[i] - 1.0) < 1e-14);

  const std::vector<i64> five = {5};
  i64 n[5];
  fill_randint(draw_of(0, "data"), draw_grid(five), 0, 10, 0, 5, n);
  CHECK(std::vector<i64>(n, n + 5) == std::vector<i64>{7, 1, 4, 7, 3});
  i64 order[6];
  fill_randperm(draw_of(0, "data", 1), 6, order);
  CHECK(std::vector<i64>(order, order + 6) == std::vector<i64>{2, 3, 1, 5, 0, 4});

  CHECK(keeps(draw_of(42, "dropout"), {2, 6}, 0.5) == std::vector<u8>{0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1});
}

TEST_CASE("f32 draws are the f64 draws: uniforms truncated, the others rounded") {
  const Draw draw = draw_of(3, "user");
  const std::vector<i64> shape = {7, 101};
  const DrawGrid grid = draw_grid(shape);
  const i64 n = grid.numel();
  std::vector<double> d(static_cast<std::size_t>(n));
  std::vector<float> f(d.size());
  const auto check = [&](auto fill, bool truncated) {
    fill(d.data());
    fill(f.data());
    for (std::size_t i = 0; i < d.size(); ++i)
      REQUIRE(f[i] == (truncated ? static_cast<float>(std::floor(d[i] * 0x1p24) * 0x1p-24) : static_cast<float>(d[i])));
  };
  check([&](auto* out) { fill_uniform(draw, grid, 0, n, out); }, true);
  check([&](auto* out) { fill_normal(draw, grid, 0, n, out); }, false);
  check([&](auto* out) { fill_exponential(draw, grid, 0, n, out); }, false);
  check([&](auto* out) { fill_gumbel(draw, grid, 0, n, out); }, false);
  check([&](auto* out) { fill_trunc_normal(draw, grid, -2.0, 1.5, 0, n, out); }, false);
}

TEST_CASE("growing the last axis, the second last, or the first of the others leaves earlier draws unchanged") {
  const Draw draw = draw_of(9, "position.noise");
  const std::vector<i64> base = {3, 2, 5, 7};
  const auto compare = [&](const auto& make) {
    const auto small = make(base);
    for (std::size_t axis : {0u, 2u, 3u}) {
      std::vector<i64> grown = base;
      grown[axis] += 6;
      const auto large = make(grown);
      std::size_t i = 0;
      for (i64 a = 0; a < base[0]; ++a)
        for (i64 b = 0; b < base[1]; ++b)
          for (i64 c = 0; c < base[2]; ++c)
            for (i64 d = 0; d < base[3]; ++d, ++i)
              REQUIRE(small[i] ==
                      large[static_cast<std::size_t>(((a * grown[1] + b) * grown[2] + c) * grown[3] + d)]);
    }
  };
  compare([&](const std::vector<i64>& shape) { return normals(draw, shape); });
  compare([&](const std::vector<i64>& shape) { return keeps(draw, shape, 0.5); });
  // The coordinates, one by one.
  const std::vector<double> z = normals(draw, base);
  CHECK(z[static_cast<std::size_t>(((2 * 2 + 1) * 5 + 3) * 7 + 6)] == normal_at(draw, 2 * 2 + 1, 3, 6));
  CHECK(normals(draw, {4})[3] == normal_at(draw, 0, 0, 3));
  CHECK(normals(draw, {2, 4})[7] == normal_at(draw, 0, 1, 3));
  CHECK(normals(draw, {})[0] == normal_at(draw, 0, 0, 0));
}

TEST_CASE("a first index on axis 0 gives micro-batches the draws of the batch") {
  for (std::vector<i64> shape : {std::vector<i64>{11}, {11, 5}, {11, 3, 5}, {11, 2, 3, 5}, {11, 2, 2, 3, 5}}) {
    const std::vector<double> all = normals(draw_of(1, "dropout", 7), shape);
    const std::vector<u8> mask = keeps(draw_of(1, "dropout", 7), shape, 0.3);
    const i64 inner = static_cast<i64>(all.size()) / 11;
    for (i64 first : {1, 4, 10}) {
      shape[0] = 11 - first;
      const Draw draw = draw_of(1, "dropout", 7, static_cast<u64>(first));
      CHECK(normals(draw, shape) == std::vector<double>(all.begin() + first * inner, all.end()));
      CHECK(keeps(draw, shape, 0.3) == std::vector<u8>(mask.begin() + first * inner, mask.end()));
    }
  }
  // Origins: a region of noise by absolute position.
  const Draw draw = draw_of(1, "position.noise");
  const std::vector<i64> shape = {2, 4, 3};
  const std::vector<double> all = normals(draw, {2, 10, 3});
  std::vector<double> part(24);
  fill_normal(draw, draw_grid(shape, Origin{0, 5, 0}), 0, 24, part.data());
  for (std::size_t h = 0; h < 2; ++h)
    for (std::size_t i = 0; i < 12; ++i) CHECK(part[h * 12 + i] == all[h * 30 + 15 + i]);
}

TEST_CASE("any range of any shape has the values of the whole") {
  const Draw draw = draw_of(5, "user", 2);
  u64 dice = 1;
  const auto pick = [&](u64 n) { return static_cast<i64>((dice = mix64(dice)) % n); };
  for (int round = 0; round < 60; ++round) {
    std::vector<i64> shape;
    for (i64 axes = pick(4); axes >= 0; --axes) shape.push_back(1 + pick(axes == 0 && round % 2 ? 300 : 6));
    if (round == 7) shape = {0, 3};
    const DrawGrid grid = draw_grid(shape, Origin{3, 1, static_cast<u64>(round)});
    const i64 n = grid.numel();
    const auto check = [&]<class T>(T, const auto& fill) {
      std::vector<T> all(static_cast<std::size_t>(n)), parts(all.size());
      fill(0, n, all.data());
      for (i64 at = 0; at < n;) {
        const i64 stop = std::min(n, at + 1 + pick(static_cast<u64>(n)) / 3);
        fill(at, stop, parts.data() + at);
        at = stop;
      }
      REQUIRE(all == parts);
    };
    const u64 threshold = bernoulli_threshold(0.25);
    check(0.0, [&](i64 b, i64 e, double* out) { fill_normal(draw, grid, b, e, out); });
    check(0.0f, [&](i64 b, i64 e, float* out) { fill_uniform(draw, grid, b, e, out); });
    check(0.0f, [&](i64 b, i64 e, float* out) { fill_gumbel(draw, grid, b, e, out); });
    check(0.0, [&](i64 b, i64 e, double* out) { fill_exponential(draw, grid, b, e, out); });
    check(0.0, [&](i64 b, i64 e, double* out) { fill_trunc_normal(draw, grid, 1.0, 2.0, b, e, out); });
    check(i64{}, [&](i64 b, i64 e, i64* out) { fill_randint(draw, grid, -5, 5, b, e, out); });
    check(u8{}, [&](i64 b, i64 e, u8* out) { fill_dropout_keep(draw, grid, threshold, b, e, out); });
    const std::vector<float> p(static_cast<std::size_t>(n), 0.25f);
    check(u8{}, [&](i64 b, i64 e, u8* out) { fill_bernoulli(draw, grid, p.data() + b, b, e, out); });
    std::vector<u8> drops(static_cast<std::size_t>(n)), kept(drops.size()), rows(drops.size());
    fill_bernoulli(draw, grid, threshold, 0, n, drops.data());
    fill_dropout_keep(draw, grid, threshold, 0, n, kept.data());
    const i64 cols = shape.back();
    for (i64 line = 0; line < (n ? n / cols : 0); ++line) {
      const u64 rows_of_grid = grid.rows, l = static_cast<u64>(line);
      for (i64 at = 0; at < cols; at += 100)
        dropout_keep_row(draw.key, draw.number, grid.at.lead + l / rows_of_grid, grid.at.row + l % rows_of_grid,
                         grid.at.col + static_cast<u64>(at), std::min<i64>(100, cols - at), threshold,
                         rows.data() + line * cols + at);
    }
    CHECK(rows == kept);
    for (std::size_t i = 0; i < drops.size(); ++i) REQUIRE(drops[i] + kept[i] == 1);
  }
}

TEST_CASE("draws have the same bits with every compiler and CPU") {
  const Draw draw = draw_of(2024, "user");
  const std::vector<i64> shape = {10, 10007};
  const DrawGrid grid = draw_grid(shape);
  const i64 n = grid.numel();
  std::vector<double> d(static_cast<std::size_t>(n));
  std::vector<float> f(d.size());
  fill_normal(draw, grid, 0, n, d.data());
  CHECK(checksum(d) == 5279082781679048504u);
  fill_normal(draw, grid, 0, n, f.data());
  CHECK(checksum(f) == 6938150679308342499u);
  fill_exponential(draw, grid, 0, n, d.data());
  CHECK(checksum(d) == 14525479843170804117u);
  fill_gumbel(draw, grid, 0, n, d.data());
  CHECK(checksum(d) == 13256592562060617155u);
  fill_trunc_normal(draw, grid, -3.0, 2.5, 0, n, d.data());
  CHECK(checksum(d) == 9729445464653012001u);
}

TEST_CASE("the extreme words give finite values on the right side of every limit") {
  for (const auto& [even, odd] : {std::pair<u64, u64>{0, 0}, {~u64{0}, ~u64{0}}, {0, ~u64{0}}, {~u64{0}, 0}}) {
    const PhiloxWords words = words_of(even, odd);
    double d[2];
    float f[2];
    random_values::uniform(words, 1, d);
    random_values::uniform(words, 1, f);
    for (int i = 0; i < 2; ++i) CHECK((d[i] >= 0.0 && d[i] < 1.0 && f[i] >= 0.0f && f[i] < 1.0f));
    random_values::normal(words, 1, d);
    CHECK((std::isfinite(d[0]) && std::isfinite(d[1]) && std::abs(d[0]) < 8.6 && std::abs(d[1]) < 8.6));
    random_values::exponential(words, 1, d);
    CHECK((d[0] >= 0.0 && d[0] < 36.8));
    random_values::gumbel(words, 1, d);
    // -ln(-ln(2^-54)) and -ln(-ln(1 - 2^-54)): u is never rounded to 1.
    CHECK(d[0] == doctest::Approx(even ? 37.42994775023705 : -3.62247112598261).epsilon(1e-14));
  }
  CHECK(bernoulli_threshold(0.0) == 0);
  CHECK(bernoulli_threshold(1.0) == u64{1} << 32);
  CHECK(bernoulli_threshold(0x1p-33) == 1);
  CHECK(bernoulli_threshold(0x1.8p-32) == 2);
  CHECK(bernoulli_threshold(0x1.fffffffffffffp-34) == 0);
  const std::vector<u8> all = keeps(draw_of(0, "dropout"), {3, 333}, 0.0);
  const std::vector<u8> none = keeps(draw_of(0, "dropout"), {3, 333}, 1.0);
  CHECK(std::accumulate(all.begin(), all.end(), 0) == 999);
  CHECK(std::accumulate(none.begin(), none.end(), 0) == 0);
  // The whole range of i64, and its edges.
  const std::vector<i64> shape = {2000};
  std::vector<i64> v(2000);
  constexpr i64 kLow = std::numeric_limits<i64>::min(), kHigh = std::numeric_limits<i64>::max();
  fill_randint(draw_of(0, "user"), draw_grid(shape), kLow, kHigh, 0, 2000, v.data());
  CHECK(*std::min_element(v.begin(), v.end()) < kLow / 2);
  CHECK(*std::max_element(v.begin(), v.end()) > kHigh / 2);
  fill_randint(draw_of(0, "user"), draw_grid(shape), kHigh - 1, kHigh, 0, 2000, v.data());
  CHECK(v == std::vector<i64>(2000, kHigh - 1));
}

TEST_CASE("elementary functions against long double") {
  namespace el = elementary;
  double log_error = 0, sin_error = 0, cos_error = 0, cdf_error = 0, quantile_error = 0;
  const auto error = [](double got, long double right) {
    return right == 0 ? std::abs(got) : static_cast<double>(std::abs((static_cast<long double>(got) - right) / right));
  };
  const long double pi = std::acos(-1.0L);
  for (u64 i = 0; i < 100000; ++i) {
    const double u = static_cast<double>((mix64(i) >> 11) + 1) * 0x1p-53;
    const int down = static_cast<int>(i % 900);
    const double x = i % 3 == 0 ? 1.0 - std::ldexp(u, -(down % 50)) : std::ldexp(u, -down);
    log_error = std::max(log_error, error(el::log(x), std::log(static_cast<long double>(x))));
    const double t = static_cast<double>(mix64(~i) >> 11) * 0x1p-53;
    const auto turn = el::sin_cos_turn(t);
    const int quarter = static_cast<int>(std::round(4.0 * t)) & 3;
    const long double angle = (4.0L * t - std::round(4.0L * t)) * pi / 2, s = std::sin(angle), c = std::cos(angle);
    const long double sines[] = {s, c, -s, -c};
    sin_error = std::max(sin_error, error(turn.sin, sines[quarter]));
    cos_error = std::max(cos_error, error(turn.cos, sines[(quarter + 1) & 3]));
    const double y = -37.0 * t * (i % 2 ? 1.0 : 0.05);
    const long double tail = std::erfc(-static_cast<long double>(y) / std::sqrt(2.0L)) / 2;
    cdf_error = std::max(cdf_error, error(el::normal_cdf_lower(y), tail));
    const double p = i % 2 ? u / 2 : std::ldexp(u / 2, -down);
    const double q = el::normal_quantile_lower(p);
    const long double at = std::erfc(-static_cast<long double>(q) / std::sqrt(2.0L)) / 2;
    const long double density = std::exp(-static_cast<long double>(q) * q / 2) / std::sqrt(2 * pi);
    quantile_error = std::max(quantile_error, static_cast<double>(std::abs((p - at) / density / (q == 0 ? 1 : q))));
  }
  CHECK(log_error < 2.5e-16);
  CHECK(sin_error < 4e-16);
  CHECK(cos_error < 4e-16);
  CHECK(cdf_error < 1.5e-15);
  CHECK(quantile_error < 1.5e-15);
  CHECK(el::log(1.0) == 0.0);
  CHECK(el::sin_cos_turn(0.0).sin == 0.0);
  CHECK(el::sin_cos_turn(0.25).sin == 1.0);
  CHECK(el::sin_cos_turn(0.5).cos == -1.0);
  CHECK(el::normal_cdf_lower(0.0) == doctest::Approx(0.5).epsilon(1e-15));
  CHECK(el::normal_quantile_lower(0.5) == 0.0);
}

TEST_CASE("trunc_normal is the quantile function, in both tails and on half lines") {
  const auto reference = [](double a, double b, double u) {  // bisection of the tail that keeps its digits
    const bool right = a > 0;
    const auto tail = [&](long double x) { return std::erfc((right ? x : -x) / std::sqrt(2.0L)) / 2; };
    const long double ta = tail(a), tb = tail(b), goal = ta + u * (tb - ta);
    long double low = a, high = b;
    for (int i = 0; i < 90; ++i) {
      const long double middle = (low + high) / 2;
      ((tail(middle) < goal) != right ? low : high) = middle;
    }
    return static_cast<double>((low + high) / 2);
  };
  const std::pair<double, double> cuts[] = {{-2.0, 2.0}, {-1.0, 3.0}, {0.0, 1.0},    {-6.0, -5.0},
                                            {5.0, 6.0},  {8.0, 9.5},  {-30.0, -20.0}};
  for (const std::pair<double, double>& interval : cuts) {
    const double a = interval.first, b = interval.second;
    const random_values::TruncNormal cut(a, b);
    CHECK(cut(0.0) == doctest::Approx(a).epsilon(1e-13));
    for (double u : {0.001, 0.1, 0.3, 0.5, 0.7, 0.95, 0.9999}) {
      CAPTURE(a);
      CAPTURE(u);
      CHECK(std::abs(cut(u) - reference(a, b, u)) < 2e-14 * std::max(1.0, std::abs(a)));
    }
  }
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isfinite(random_values::TruncNormal(-infinity, 1.0)(0.0)));
  CHECK(std::isfinite(random_values::TruncNormal(3.0, infinity)(1.0 - 0x1p-53)));
  CHECK(std::isfinite(random_values::TruncNormal(-1.0, infinity)(1.0 - 0x1p-53)));
  CHECK(random_values::TruncNormal(40.0, 41.0)(0.5) >= 40.0);
}

TEST_CASE("single elements and sequences are elements of the arrays") {
  const Draw draw = draw_of(11, "data.generate.copying.train", 5);
  const std::vector<i64> shape = {9};
  u64 x[9];
  double u[9], z[9];
  i64 n[9];
  fill_bits(draw, draw_grid(shape), 0, 9, x);
  fill_uniform(draw, draw_grid(shape), 0, 9, u);
  fill_normal(draw, draw_grid(shape), 0, 9, z);
  fill_randint(draw, draw_grid(shape), -3, 40, 0, 9, n);
  DrawSequence bits(draw), uniform(draw), integers(draw), normal(draw);
  for (u64 i = 0; i < 9; ++i) {
    CHECK(bits_at(draw, 0, 0, i) == x[i]);
    CHECK(uniform_at(draw, 0, 0, i) == u[i]);
    CHECK(normal_at(draw, 0, 0, i) == z[i]);
    CHECK(randint_at(draw, -3, 40, 0, 0, i) == n[i]);
    CHECK(bits.bits() == x[i]);
    CHECK(uniform.uniform() == u[i]);
    CHECK(integers.randint(-3, 40) == n[i]);
  }
  CHECK(normal.uniform() == u[0]);
  CHECK(normal.normal() == z[2]);
  CHECK(normal.normal() == z[4]);
  CHECK(normal.uniform() == u[6]);
}

TEST_CASE("errors of draws say what is wrong") {
  const Draw draw = draw_of(0, "user");
  const i64 limit = i64{1} << 32;
  i64 n[1];
  double d[1];
  const std::vector<i64> one = {1}, negative = {3, -1}, long_axis = {limit + 1}, full = {limit};
  const std::vector<i64> leads = {1 << 20, 1 << 13, 1, 1};
  CHECK_THROWS_WITH_AS(draw_grid(negative), "random: shape [3, -1] has a negative size", Error);
  CHECK_THROWS_WITH_AS(draw_grid(long_axis),
                       "random: shape [4294967297] from (lead 0, row 0, column 0): every coordinate of a draw must "
                       "be below 2^32",
                       Error);
  CHECK_THROWS_AS(draw_grid(leads), Error);
  CHECK(draw_grid(full).cols == static_cast<u64>(limit));
  CHECK_THROWS_AS(draw_grid(full, AxisOffset{1}), Error);
  CHECK_THROWS_AS(draw_grid(one, AxisOffset{static_cast<u64>(limit)}), Error);
  const std::vector<i64> deep = {1, 1 << 16, 2, 2};
  CHECK_THROWS_AS(draw_grid(deep, AxisOffset{1 << 16}), Error);
  CHECK(draw_grid(deep, AxisOffset{(1 << 16) - 1}).at.lead == u64{65535} << 16);
  CHECK_THROWS_WITH_AS(fill_randint(draw, draw_grid(one), 3, 3, 0, 1, n),
                       "randint: low = 3 must be less than high = 3", Error);
  CHECK_THROWS_WITH_AS(bernoulli_threshold(1.5), "bernoulli: p = 1.5 must be in [0, 1]", Error);
  CHECK_THROWS_AS(bernoulli_threshold(-1e-9), Error);
  CHECK_THROWS_AS(bernoulli_threshold(std::numeric_limits<double>::quiet_NaN()), Error);
  CHECK_THROWS_WITH_AS(fill_trunc_normal(draw, draw_grid(one), 2.0, 1.0, 0, 1, d),
                       "trunc_normal: a = 2 must be less than b = 1", Error);
  CHECK_THROWS_AS(fill_trunc_normal(draw, draw_grid(one), std::nan(""), 1.0, 0, 1, d), Error);
  CHECK_THROWS_AS(fill_randperm(draw, -1, n), Error);
  CHECK_THROWS_AS(uniform_at(draw, 0, u64{1} << 32, 0), Error);
}
