#include "core/ops/random_ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/arithmetic.h"
#include "core/ops/creation.h"
#include "core/ops/elementwise.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

#define WAYMARK_DRAW(K, NAME, DOC, SCHEMA, FORMULA, ...)                                                             \
  extern constexpr OpInfo K{.name = NAME, .family = "random", .doc = DOC, .schema = SCHEMA, .formula = FORMULA,      \
                            .rule = not_differentiable("a draw has no gradient to the parameters of its distribution"), \
                            .apply = [](OpCall& c) { __VA_ARGS__ }};

WAYMARK_DRAW(kRand, "rand", "uniform on [0, 1)", "rand(int[] size, *, dtype dtype=None) -> Tensor", "y ~ U[0, 1)",
             c.result(rand(Shape(c.list("size")), creation_options(c)));)
WAYMARK_DRAW(kRandn, "randn", "standard normal", "randn(int[] size, *, dtype dtype=None) -> Tensor", "y ~ N(0, 1)",
             c.result(randn(Shape(c.list("size")), creation_options(c)));)
WAYMARK_DRAW(kGumbel, "gumbel", "standard Gumbel", "gumbel(int[] size, *, dtype dtype=None) -> Tensor", "y = −ln(−ln u)",
             c.result(gumbel(Shape(c.list("size")), creation_options(c)));)
WAYMARK_DRAW(kNormal, "normal", "normal with given means and standard deviations",
             "normal(Tensor mean, Tensor std) -> Tensor", "y ~ N(mean, std²)",
             c.result(normal(c.tensor("mean"), c.tensor("std")));)
WAYMARK_DRAW(kRandint, "randint", "integers in [low, high)",
             "randint(int low=0, int high, int[] size, *, dtype dtype=None) -> Tensor", "y = low + ⌊u·(high − low)⌋",
             c.result(randint(c.integer("low", 0), c.integer("high"), Shape(c.list("size")), creation_options(c)));)
WAYMARK_DRAW(kRandperm, "randperm", "a random permutation", "randperm(int n, *, dtype dtype=None) -> Tensor",
             "y = argsort of random keys", c.result(randperm(c.integer("n"), creation_options(c)));)
WAYMARK_DRAW(kMultinomial, "multinomial", "classes drawn by weight",
             "multinomial(Tensor input, int num_samples, bool replacement=False) -> Tensor", "P(y = k) ∝ w_k",
             c.result(multinomial(c.tensor("input"), c.integer("num_samples"), c.flag("replacement", false)));)

extern constexpr OpInfo kBernoulli{
    .name = "bernoulli", .family = "random", .doc = "1 with probability p, else 0",
    .schema = "bernoulli(Tensor input, float? p=None) -> Tensor", .formula = "y = [u < p]", .rule = "dp = 0",
    .apply = [](OpCall& c) {
      if (c.has("p")) c.result(bernoulli(c.tensor("input"), c.number("p")));
      else c.result(bernoulli(c.tensor("input")));
    }};

#define WAYMARK_DRAW_INPLACE(K, NAME, DOC, SCHEMA, FORMULA)                                                     \
  extern constexpr OpInfo K{.name = NAME, .family = "random", .doc = DOC, .schema = SCHEMA, .formula = FORMULA, \
                            .rule = "dx = 0 (the old values are gone)"};
WAYMARK_DRAW_INPLACE(kUniformInplace, "uniform_", "uniform on [low, high), in place",
                     "uniform_(Tensor(a!) input, float from=0, float to=1) -> Tensor(a!)", "x ← low + (high − low)·u")
WAYMARK_DRAW_INPLACE(kNormalInplace, "normal_", "normal, in place",
                     "normal_(Tensor(a!) input, float mean=0, float std=1) -> Tensor(a!)", "x ← mean + std·z")
WAYMARK_DRAW_INPLACE(kBernoulliInplace, "bernoulli_", "1 with probability p, else 0, in place",
                     "bernoulli_(Tensor(a!) input, float p=0.5) -> Tensor(a!)", "x ← [u < p]")
WAYMARK_DRAW_INPLACE(kExponentialInplace, "exponential_", "exponential with rate lambd, in place",
                     "exponential_(Tensor(a!) input, float lambd=1) -> Tensor(a!)", "x ← −ln(u)/λ")
WAYMARK_DRAW_INPLACE(kTruncNormalInplace, "trunc_normal_", "normal cut to [a, b], in place",
                     "trunc_normal_(Tensor(a!) input, float mean=0, float std=1, float a=-2, float b=2) -> Tensor(a!)",
                     "x ← mean + std·z, z ~ N(0, 1) given a ≤ mean + std·z ≤ b")

namespace {

// The values of one draw, before any scaling: what injection plays and capture sees.
// fill(grid, begin, end, out): positions [begin, end).
template <class T, class Fill> Tensor draw_values(const Draw& draw, const Shape& shape, DType dtype, Fill fill) {
  Tensor y = make_empty(shape, dtype);
  T* out = reinterpret_cast<T*>(y.raw());
  if (!play_draw(draw, dtype, shape, out)) {
    const DrawGrid grid = draw_grid(draw, shape);
    parallel_for(y.numel(), kGrain, [&](i64 begin, i64 end) { fill(grid, begin, end, out + begin); });
  }
  capture_draw(draw, dtype, shape, out);
  return y;
}

enum class Kind { uniform, normal, exponential, gumbel };
Tensor draw_float(std::string_view stream, const Shape& shape, DType dtype, Kind kind) {
  const Draw draw = next_draw(stream);
  return visit_float(dtype, [&](auto zero) {
    using T = decltype(zero);
    return draw_values<T>(draw, shape, dtype, [&](const DrawGrid& grid, i64 begin, i64 end, T* out) {
      switch (kind) {
        case Kind::uniform: return fill_uniform(draw, grid, begin, end, out);
        case Kind::normal: return fill_normal(draw, grid, begin, end, out);
        case Kind::exponential: return fill_exponential(draw, grid, begin, end, out);
        case Kind::gumbel: return fill_gumbel(draw, grid, begin, end, out);
      }
    });
  });
}

template <class F> void map_values(const Tensor& y, F f) {  // y is contiguous and float
  visit_float(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* p = y.data<T>();
    parallel_for(y.numel(), kGrain, [&](i64 begin, i64 end) {
      for (i64 i = begin; i < end; ++i) p[i] = f(p[i]);
    });
  });
}

DType float_option(std::string_view op, const TensorOptions& o, DType fallback) {
  const DType t = o.dtype.value_or(fallback);
  if (!is_float(t)) fail(op, "the dtype must be f32 or f64, got {}", name_of(t));
  return t;
}

Tensor new_float(const OpInfo& op, const Shape& shape, DType fallback, const TensorOptions& o, Kind kind) {
  const DType t = float_option(op.name, o, fallback);
  checked_numel(op.name, shape, size_of(t));
  return created(op, draw_float(o.stream, shape, t, kind), o);
}

void check_std(std::string_view op, double mean, double std) {
  if (!(std >= 0)) fail(op, "std must not be negative, got {}", std);
  if (!std::isfinite(mean) || !std::isfinite(std)) fail(op, "mean {} and std {} must be finite", mean, std);
}
void check_probability(std::string_view op, double p) {
  if (!(p >= 0 && p <= 1)) fail(op, "p must lie in [0, 1], got {}", p);
}

// What the normal ops do with z; separate so that both round in the same way.
void scale_normal(const Tensor& z, double mean, double std) {
  if (mean == 0 && std == 1) return;
  map_values(z, [=](auto v) { return static_cast<decltype(v)>(mean + std * static_cast<double>(v)); });
}

}  // namespace

Tensor rand(const Shape& shape, const TensorOptions& o) { return new_float(kRand, shape, default_dtype(), o, Kind::uniform); }
Tensor randn(const Shape& shape, const TensorOptions& o) { return new_float(kRandn, shape, default_dtype(), o, Kind::normal); }
Tensor gumbel(const Shape& shape, const TensorOptions& o) { return new_float(kGumbel, shape, default_dtype(), o, Kind::gumbel); }
Tensor rand_like(const Tensor& x, const TensorOptions& o) { return new_float(kRand, x.shape(), x.dtype(), o, Kind::uniform); }
Tensor randn_like(const Tensor& x, const TensorOptions& o) { return new_float(kRandn, x.shape(), x.dtype(), o, Kind::normal); }

Tensor normal(double mean, double std, const Shape& shape, const TensorOptions& o) {
  check_std("normal", mean, std);
  const DType t = float_option("normal", o, default_dtype());
  checked_numel("normal", shape, size_of(t));
  Tensor z = draw_float(o.stream, shape, t, Kind::normal);
  scale_normal(z, mean, std);
  return created(kNormal, std::move(z), o);
}

Tensor normal(Arg mean, Arg std, const TensorOptions& o) {
  check_defined("normal", mean);
  check_defined("normal", std);
  const DType t = float_option("normal", o, to_float(promote(*mean, *std)));
  const Shape shape = broadcast_shapes("normal", mean->shape(), std->shape());
  const Tensor s = contiguous_value(cast_value(*std, t));
  visit_float(t, [&](auto zero) {
    using T = decltype(zero);
    for (i64 i = 0; i < s.numel(); ++i)
      if (!(s.data<T>()[i] >= 0)) fail_at(std.loc(), "normal", "std must not be negative, got {} at position {}", s.data<T>()[i], i);
  });
  const Tensor z = draw_float(o.stream, shape, t, Kind::normal);
  Tensor y = binary_value("normal", kernels::Binary::mul, z, s, t);
  y = binary_value("normal", kernels::Binary::add, y, mean, t);
  if (o.requires_grad) y.requires_grad_();
  return record_nondiff(kNormal, std::move(y), {mean, std});
}

namespace {

Tensor new_randint(i64 low, i64 high, const Shape& shape, DType dtype, const TensorOptions& o) {
  if (low >= high) fail("randint", "low {} must lie below high {}", low, high);
  checked_numel("randint", shape, 8);
  const Draw draw = next_draw(o.stream);
  const Tensor y = draw_values<i64>(draw, shape, kI64, [&](const DrawGrid& grid, i64 begin, i64 end, i64* out) {
    fill_randint(draw, grid, low, high, begin, end, out);
  });
  return created(kRandint, cast_value(y, dtype), o);
}

}  // namespace

Tensor randint(i64 low, i64 high, const Shape& shape, const TensorOptions& o) {
  return new_randint(low, high, shape, o.dtype.value_or(kI64), o);
}
Tensor randint(i64 high, const Shape& shape, const TensorOptions& o) { return randint(0, high, shape, o); }
Tensor randint_like(const Tensor& x, i64 low, i64 high, const TensorOptions& o) {
  return new_randint(low, high, x.shape(), o.dtype.value_or(x.dtype()), o);
}

Tensor randperm(i64 n, const TensorOptions& o) {
  if (n < 0) fail("randperm", "n must not be negative, got {}", n);
  const Draw draw = next_draw(o.stream);
  const Shape shape{n};
  const Tensor y = make_empty(shape, kI64);
  if (!play_draw(draw, kI64, shape, y.raw())) fill_randperm(draw, n, y.data<i64>());
  capture_draw(draw, kI64, shape, y.raw());
  return created(kRandperm, cast_value(y, o.dtype.value_or(kI64)), o);
}

// ---- bernoulli, multinomial -----------------------------------------------------------------------------------------

namespace {

Tensor draw_bernoulli(std::string_view stream, const Shape& shape, double p) {
  const u64 threshold = bernoulli_threshold(p);
  const Draw draw = next_draw(stream);
  return draw_values<u8>(draw, shape, kB8, [&](const DrawGrid& grid, i64 begin, i64 end, u8* out) {
    fill_bernoulli(draw, grid, threshold, begin, end, out);
  });
}

Tensor record_bernoulli(Tensor y, const Arg& p) {
  return record(kBernoulli, std::move(y), {p}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {mul(std::move(g), 0)}; };
  });
}

}  // namespace

Tensor bernoulli(Arg p, std::string_view stream) {
  check_defined("bernoulli", p);
  need_float("bernoulli", *p);
  const Tensor values = contiguous_value(*p);
  const Tensor y = visit_float(p->dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* at = values.data<T>();
    for (i64 i = 0; i < values.numel(); ++i)
      if (!(at[i] >= 0 && at[i] <= 1)) fail_at(p.loc(), "bernoulli", "p must lie in [0, 1], got {} at position {}", at[i], i);
    const Draw draw = next_draw(stream);
    return draw_values<u8>(draw, p->shape(), kB8, [&](const DrawGrid& grid, i64 begin, i64 end, u8* out) {
      fill_bernoulli(draw, grid, at + begin, begin, end, out);
    });
  });
  return record_bernoulli(cast_value(y, p->dtype()), p);
}
Tensor bernoulli(Arg x, double p, std::string_view stream) {
  check_defined("bernoulli", x);
  check_probability("bernoulli", p);
  return record_bernoulli(cast_value(draw_bernoulli(stream, x->shape(), p), x->dtype()), x);
}

Tensor multinomial(Arg weights, i64 k, bool replacement, std::string_view stream) {
  check_defined("multinomial", weights);
  need_float("multinomial", *weights);
  if (weights->dim() != 1 && weights->dim() != 2)
    fail_at(weights.loc(), "multinomial", "the weights must have 1 or 2 axes, got {}", weights->shape());
  if (k < 0) fail_at(weights.loc(), "multinomial", "num_samples must not be negative, got {}", k);
  const Tensor w = contiguous_value(cast_value(*weights, kF64));
  const i64 classes = w.size(-1), rows = weights->dim() == 2 ? w.size(0) : 1;
  const double* all = w.data<double>();
  for (i64 r = 0; r < rows; ++r) {
    i64 positive = 0;
    for (i64 c = 0; c < classes; ++c) {
      const double v = all[r * classes + c];
      if (!(v >= 0) || std::isinf(v))
        fail_at(weights.loc(), "multinomial", "weight {} of class {} in row {} must be finite and not negative", v, c, r);
      positive += v > 0;
    }
    if (positive == 0 && k > 0) fail_at(weights.loc(), "multinomial", "all weights of row {} are 0", r);
    if (!replacement && k > positive)
      fail_at(weights.loc(), "multinomial", "{} samples without replacement, but row {} has {} non-zero weights", k, r, positive);
  }
  const auto matrix = [&](i64 n) { return weights->dim() == 2 ? Shape{rows, n} : Shape{n}; };
  const Shape shape = matrix(k), drawn = matrix(replacement ? k : classes);
  checked_numel("multinomial", shape, 8);
  const Tensor u = draw_float(stream, drawn, kF64, replacement ? Kind::uniform : Kind::exponential);
  Tensor y = make_empty(shape, kI64);
  const double* us = u.data<double>();
  i64* out = y.data<i64>();
  parallel_for(rows, std::max<i64>(1, kGrain / std::max<i64>(1, classes + k)), [&](i64 begin, i64 end) {
    std::vector<double> key(static_cast<size_t>(classes));
    std::vector<i64> order(static_cast<size_t>(classes));
    for (i64 r = begin; r < end; ++r) {
      const double* row = all + r * classes;
      if (replacement) {
        std::partial_sum(row, row + classes, key.begin());
        i64 last = classes - 1;  // where rounding puts u·total on the total itself
        while (last > 0 && row[last] == 0) --last;
        for (i64 s = 0; s < k; ++s) {
          const double target = us[r * k + s] * key.back();
          out[r * k + s] = std::min<i64>(last, std::upper_bound(key.begin(), key.end(), target) - key.begin());
        }
      } else {
        for (i64 c = 0; c < classes; ++c) {
          key[static_cast<size_t>(c)] = row[c] > 0 ? us[r * classes + c] / row[c] : std::numeric_limits<double>::infinity();
          order[static_cast<size_t>(c)] = c;
        }
        // Zero weights last, whatever the keys: a tiny weight may have an infinite key, too.
        std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](i64 a, i64 b) {
          const bool za = row[a] == 0, zb = row[b] == 0;
          if (za != zb) return zb;
          const double ka = key[static_cast<size_t>(a)], kb = key[static_cast<size_t>(b)];
          return ka != kb ? ka < kb : a < b;
        });
        std::copy_n(order.begin(), k, out + r * k);
      }
    }
  });
  return record_nondiff(kMultinomial, std::move(y), {weights}, [&](Attrs& at) { at("num_samples", k); at("replacement", replacement); });
}

// ---- in place -------------------------------------------------------------------------------------------------------

namespace {

// values() makes a tensor of x's shape; it is called after the checks, so that a refused call draws nothing.
template <class Values> const Tensor& overwrite_with(const OpInfo& op, const Tensor& x, Loc loc, bool only_float, Values values) {
  const Arg target(x, loc);
  check_inplace(op.name, x, {target});
  if (only_float) need_float(op.name, x);
  const Tensor old = history_before(x);
  copy_into(x, values());
  record_inplace(op, x, {Arg(old, loc)}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {mul(std::move(g), 0)}; };
  });
  return x;
}

}  // namespace

const Tensor& uniform_(const Tensor& x, double low, double high, std::string_view stream, Loc loc) {
  if (!(low <= high) || !std::isfinite(high - low)) fail_at(loc, "uniform_", "[{}, {}) is no finite range", low, high);
  return overwrite_with(kUniformInplace, x, loc, true, [&] {
    const Tensor u = draw_float(stream, x.shape(), x.dtype(), Kind::uniform);
    if (low == 0 && high == 1) return u;
    map_values(u, [=](auto v) {
      using T = decltype(v);
      const T y = static_cast<T>(low + (high - low) * static_cast<double>(v));
      // Rounding may reach the excluded end.
      return y < static_cast<T>(high) || low == high ? y : std::nextafter(static_cast<T>(high), static_cast<T>(low));
    });
    return u;
  });
}
const Tensor& normal_(const Tensor& x, double mean, double std, std::string_view stream, Loc loc) {
  check_std("normal_", mean, std);
  return overwrite_with(kNormalInplace, x, loc, true, [&] {
    const Tensor z = draw_float(stream, x.shape(), x.dtype(), Kind::normal);
    scale_normal(z, mean, std);
    return z;
  });
}
const Tensor& bernoulli_(const Tensor& x, double p, std::string_view stream, Loc loc) {
  check_probability("bernoulli_", p);
  return overwrite_with(kBernoulliInplace, x, loc, false, [&] { return draw_bernoulli(stream, x.shape(), p); });
}
const Tensor& exponential_(const Tensor& x, double lambd, std::string_view stream, Loc loc) {
  if (!(lambd > 0) || !std::isfinite(lambd)) fail_at(loc, "exponential_", "lambd must be positive and finite, got {}", lambd);
  return overwrite_with(kExponentialInplace, x, loc, true, [&] {
    const Tensor e = draw_float(stream, x.shape(), x.dtype(), Kind::exponential);
    if (lambd != 1) map_values(e, [=](auto v) { return static_cast<decltype(v)>(static_cast<double>(v) / lambd); });
    return e;
  });
}
const Tensor& trunc_normal_(const Tensor& x, double mean, double std, double a, double b, std::string_view stream, Loc loc) {
  check_std("trunc_normal_", mean, std);
  if (std == 0) fail_at(loc, "trunc_normal_", "std must be positive");
  if (!(a < b)) fail_at(loc, "trunc_normal_", "a {} must lie below b {}", a, b);
  return overwrite_with(kTruncNormalInplace, x, loc, true, [&] {
    const Draw draw = next_draw(stream);
    return visit_float(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const Tensor z = draw_values<T>(draw, x.shape(), x.dtype(), [&](const DrawGrid& grid, i64 begin, i64 end, T* out) {
        fill_trunc_normal(draw, grid, (a - mean) / std, (b - mean) / std, begin, end, out);
      });
      map_values(z, [=](auto v) {
        return static_cast<decltype(v)>(std::clamp(mean + std * static_cast<double>(v), a, b));
      });
      return z;
    });
  });
}

}  // namespace waymark
