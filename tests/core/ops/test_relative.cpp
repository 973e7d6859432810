// Values of pair_gather, pair_scatter and three_way_product against plain loops, in f32 and f64, with and without runs.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/relative.h"
#include "core/parallel/parallel.h"
#include "tests/tensors.h"

using namespace waymark;

namespace {

template <class T> Tensor random(const Shape& shape, std::mt19937_64& rng) {
  const Tensor t = make_empty(shape, dtype_of<T>);
  std::normal_distribution<double> normal;
  for (i64 i = 0; i < t.numel(); ++i) t.data<T>()[i] = static_cast<T>(normal(rng));
  return t;
}

enum class Pattern { clipped, zero, gaps, random };

Tensor rows_of(Pattern pattern, i64 lq, i64 lk, i64 clip, std::mt19937_64& rng) {
  const Tensor r = make_empty({lq, lk}, kI64);
  for (i64 i = 0; i < lq; ++i)
    for (i64 j = 0; j < lk; ++j) {
      const i64 delta = pattern == Pattern::gaps ? (j + j / 3) - (i + i / 3) : j - i + 2;
      i64 row = std::clamp(delta, -clip, clip) + clip;
      if (pattern == Pattern::zero && std::abs(delta) > clip) row = -1;
      if (pattern == Pattern::random) row = static_cast<i64>(rng() % static_cast<u64>(2 * clip + 2)) - 1;
      r.at<i64>({i, j}) = row;
    }
  return r;
}

// Sums and products of the definition, in f64.
template <class T> void compare(const Tensor& rows, i64 heads, i64 width, i64 count, std::mt19937_64& rng, double tolerance) {
  const i64 lq = rows.size(0), lk = rows.size(1);
  for (const PairSide side : {PairSide::shared, PairSide::query, PairSide::key}) {
    const Tensor x = side == PairSide::shared ? random<T>({heads, count}, rng)
                                              : random<T>({heads, side == PairSide::query ? lq : lk, count}, rng);
    const Tensor y = pair_gather(x, rows, side), g = random<T>({heads, lq, lk}, rng);
    const Tensor sums = pair_scatter(g, rows, side, count);
    std::vector<double> expected(static_cast<size_t>(sums.numel()), 0.0), size(expected);
    double worst = 0;
    for (i64 h = 0; h < heads; ++h)
      for (i64 i = 0; i < lq; ++i)
        for (i64 j = 0; j < lk; ++j) {
          const i64 r = rows.at<i64>({i, j});
          const T got = y.at<T>({h, i, j});
          if (r < 0) {
            worst = std::max(worst, std::abs(double{got}));
            continue;
          }
          const i64 at = side == PairSide::shared ? h * count + r
                                                  : (h * (side == PairSide::query ? lq : lk) + (side == PairSide::query ? i : j)) * count + r;
          worst = std::max(worst, std::abs(double{got} - double{x.data<T>()[at]}));
          expected[static_cast<size_t>(at)] += double{g.at<T>({h, i, j})};
          size[static_cast<size_t>(at)] += std::abs(double{g.at<T>({h, i, j})});
        }
    CHECK(worst == 0);
    worst = 0;
    for (size_t k = 0; k < expected.size(); ++k)
      worst = std::max(worst, std::abs(expected[k] - double{sums.data<T>()[k]}) / std::max(size[k], 1e-30));
    CHECK(worst < tolerance);
  }
  const Tensor q = random<T>({heads, lq, width}, rng), k = random<T>({heads, lk, width}, rng), w = random<T>({heads, count, width}, rng);
  for (const Tensor* t : {&q, &k, &w}) t->requires_grad_();
  const Tensor c = three_way_product(q, k, w, rows), twin = three_way_product_twin(q, k, w, rows), seed = random<T>({heads, lq, lk}, rng);
  double worst = 0;
  for (i64 h = 0; h < heads; ++h)
    for (i64 i = 0; i < lq; ++i)
      for (i64 j = 0; j < lk; ++j) {
        double sum = 0;
        for (i64 t = 0; t < width; ++t)
          sum += double{q.at<T>({h, i, t})} * double{k.at<T>({h, j, t})} *
                 (rows.at<i64>({i, j}) < 0 ? 1 : double{w.at<T>({h, rows.at<i64>({i, j}), t})});
        worst = std::max({worst, std::abs(sum - double{c.at<T>({h, i, j})}), std::abs(sum - double{twin.at<T>({h, i, j})})});
      }
  CHECK(worst < tolerance * 100);
  const GradMap fused = grad(std::vector<Tensor>{c}, {q, k, w}, {.seeds = {seed}});
  const GradMap composed = grad(std::vector<Tensor>{twin}, {q, k, w}, {.seeds = {seed}});
  for (const Tensor* t : {&q, &k, &w}) {
    const auto a = fused[*t].template to_vector<double>(), b = composed[*t].template to_vector<double>();
    worst = 0;
    for (size_t n = 0; n < a.size(); ++n) worst = std::max(worst, std::abs(a[n] - b[n]));
    CHECK(worst < tolerance * 1000);
  }
}

}  // namespace

TEST_CASE("relative: values and sums equal plain loops") {
  std::mt19937_64 rng(1);
  for (const Pattern pattern : {Pattern::clipped, Pattern::zero, Pattern::gaps, Pattern::random})
    for (const auto& sizes : {std::tuple<i64, i64, i64>{1, 1, 0}, {1, 7, 2}, {9, 4, 3}, {13, 17, 5}, {20, 20, 40}, {6, 33, 0}}) {
      const auto [lq_, lk_, clip_] = sizes;
      const i64 lq = lq_, lk = lk_, clip = clip_;  // clang < 16: lambdas cannot capture structured bindings
      CAPTURE(static_cast<int>(pattern));
      CAPTURE(lq);
      CAPTURE(lk);
      CAPTURE(clip);
      const Tensor rows = rows_of(pattern, lq, lk, clip, rng);
      compare<double>(rows, 2, 3, 2 * clip + 1, rng, 1e-14);
      compare<float>(rows, 2, 5, 2 * clip + 1, rng, 1e-6);
    }
}

TEST_CASE("relative: bit-equal for any number of threads") {
  std::mt19937_64 rng(2);
  const i64 length = 96, clip = 1;
  const Tensor rows = rows_of(Pattern::clipped, length, length, clip, rng);
  const Tensor q = random<float>({12, length, 16}, rng), w = random<float>({3, 16}, rng), g = random<float>({12, length, length}, rng);
  for (const Tensor* t : {&q, &w}) t->requires_grad_();
  const int before = num_threads();
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 4}) {
    set_num_threads(threads);
    const Tensor c = three_way_product(q, q, w, rows);
    const GradMap m = grad(std::vector<Tensor>{c}, {q, w}, {.seeds = {g}});
    const std::vector<Tensor> now = {c, m[q], m[w], pair_scatter(g, rows, PairSide::shared, 3), pair_scatter(g, rows, PairSide::key, 3)};
    if (first.empty()) first = now;
    for (size_t i = 0; i < now.size(); ++i) CHECK(test::difference(first[i], now[i]) == "");
  }
  set_num_threads(before);
}

TEST_CASE("relative: explain mode shows the composed ops") {
  std::mt19937_64 rng(3);
  const Tensor rows = rows_of(Pattern::clipped, 3, 3, 1, rng), q = random<double>({3, 2}, rng), w = random<double>({3, 2}, rng);
  q.requires_grad_();
  const ExplainMode explain;
  CHECK(three_way_product(q, q, w, rows).to_string().find("grad_fn=<sum") != std::string::npos);
}
