#include "core/ops/rearrange.h"

#include <algorithm>
#include <numeric>

#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/index_map.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kRepeat{
    .name = "repeat",
    .family = "rearrange",
    .doc = "copies side by side",
    .schema = "repeat(Tensor input, int[] repeats) -> Tensor",
    .formula = "y[i] = x[i mod n]",
    .rule = "dx = Σ of g over the copies",
    .saves = {{"shape", For{0}}},
    .apply = [](OpCall& c) { c.result(repeat(c.tensor("input"), Shape(c.list("repeats")))); }};
extern constexpr OpInfo kTile{.name = "tile",
                              .family = "rearrange",
                              .doc = "repeat; missing repeats count as 1",
                              .schema = "tile(Tensor input, int[] dims) -> Tensor",
                              .formula = "y[i] = x[i mod n]",
                              .rule = "as repeat",
                              .apply = [](OpCall& c) { c.result(tile(c.tensor("input"), Shape(c.list("dims")))); }};
extern constexpr OpInfo kRepeatInterleave{
    .name = "repeat_interleave",
    .family = "rearrange",
    .doc = "each slice several times in a row",
    .schema = "repeat_interleave(Tensor input, Tensor repeats, int? dim=None) -> Tensor",
    .formula = "y = x₀, …, x₀, x₁, …, x₁, …",
    .rule = "dx = segment sums of g",
    .apply = [](OpCall& c) {
      if (c.is_tensor("repeats"))
        c.result(repeat_interleave(c.tensor("input"), c.tensor("repeats"), c.optional_integer("dim")));
      else
        c.result(repeat_interleave(c.tensor("input"), c.integer("repeats"), c.optional_integer("dim")));
    }};
extern constexpr OpInfo kRoll{.name = "roll",
                              .family = "rearrange",
                              .doc = "elements moved on along some axes, around the end",
                              .schema = "roll(Tensor input, int[] shifts, int[] dims=[]) -> Tensor",
                              .formula = "y[i] = x[(i − shift) mod n]",
                              .rule = "dx = g rolled back",
                              .apply = [](OpCall& c) {
                                c.result(roll(c.tensor("input"), c.list("shifts"), c.list("dims", std::vector<i64>{})));
                              }};
extern constexpr OpInfo kFlip{.name = "flip",
                              .family = "rearrange",
                              .doc = "some axes in reverse order",
                              .schema = "flip(Tensor input, int[] dims) -> Tensor",
                              .formula = "y[i] = x[n − 1 − i]",
                              .rule = "dx = g flipped",
                              .apply = [](OpCall& c) { c.result(flip(c.tensor("input"), c.list("dims"))); }};
extern constexpr OpInfo kRot90{
    .name = "rot90",
    .family = "rearrange",
    .doc = "quarter turns in a plane",
    .schema = "rot90(Tensor input, int k=1, int[] dims=[0, 1]) -> Tensor",
    .formula = "y = x, turned k times",
    .rule = "dx = g turned back",
    .apply = [](OpCall& c) {
      c.result(rot90(c.tensor("input"), c.integer("k", 1), c.list("dims", std::vector<i64>{0, 1})));
    }};

// ---- repeat ---------------------------------------------------------------------------------------------------------

Tensor repeat(Arg x, const Shape& repeats) {
  check_defined("repeat", x);
  const int lead = repeats.size() - x->dim();
  if (lead < 0)
    fail_at(x.loc(), "repeat", "{} repeats for a tensor with {} axes ({})", repeats.size(), x->dim(), x->shape());
  // Seen as [r0, n0, r1, n1, ...]: the copy axes of x have stride 0.
  Shape out, pairs, strides;
  std::vector<i64> copies;
  for (int i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0) fail_at(x.loc(), "repeat", "the repeats {} must not be negative", repeats);
    const i64 n = i < lead ? 1 : x->shape()[i - lead];
    i64 extent = 0;
    if (__builtin_mul_overflow(n, repeats[i], &extent))
      fail_at(x.loc(), "repeat", "{} times {} is too large", repeats, x->shape());
    out.push_back(extent);
    copies.push_back(pairs.size());
    pairs.push_back(repeats[i]);
    pairs.push_back(n);
    strides.push_back(0);
    strides.push_back(i < lead ? 0 : x->strides()[i - lead]);
  }
  checked_numel("repeat", out, size_of(x->dtype()));
  Tensor y = make_empty(out, x->dtype());
  copy_into(alias(y, pairs, contiguous_strides(pairs), 0), alias(*x, pairs, strides, x->offset()));
  return record(
      kRepeat, std::move(y), {x},
      [&](Saver& s) {
        return [pairs, copies, shape = s.shape(0)](Tensor g, const Need&) -> Grads {
          const Tensor parts = reshape(g, pairs);
          return {reshape(copies.empty() ? parts : sum(parts, copies), shape)};
        };
      },
      [&](Attrs& at) { at("repeats", repeats.vec()); });
}

Tensor tile(Arg x, const Shape& repeats) {
  check_defined("tile", x);
  Shape full = repeats;
  while (full.size() < x->dim()) full.insert(0, 1);
  return repeat(x, full);
}

Tensor repeat_interleave(Arg x, i64 repeats, std::optional<i64> dim) {
  check_defined("repeat_interleave", x);
  if (repeats < 0) fail_at(x.loc(), "repeat_interleave", "repeats must not be negative, got {}", repeats);
  if (!dim || x->dim() == 0) return repeat_interleave(reshape(x, {x->numel()}), repeats, 0);
  const int d = wrap_dim("repeat_interleave", *dim, x->dim());
  Shape wide = x->shape(), out = x->shape();
  wide.insert(d + 1, repeats);
  if (__builtin_mul_overflow(out[d], repeats, &out[d]))
    fail_at(x.loc(), "repeat_interleave", "{} times {} is too large", repeats, x->shape());
  const Tensor y = reshape(Arg(expand(Arg(unsqueeze(x, d + 1), x.loc()), wide), x.loc()), out);
  // One repetition, or no element, needs no copy; but the result is one, whatever the arguments.
  return y.impl()->storage == x->impl()->storage ? clone(Arg(y, x.loc())) : y;
}

Tensor repeat_interleave(Arg x, Arg counts, std::optional<i64> dim) {
  check_defined("repeat_interleave", x);
  check_defined("repeat_interleave", counts);
  if (!dim || x->dim() == 0) return repeat_interleave(reshape(x, {x->numel()}), counts, 0);
  const int d = wrap_dim("repeat_interleave", *dim, x->dim());
  if (counts->dtype() != kI64 || counts->dim() > 1)
    fail_at(x.loc(), "repeat_interleave", "the repeats must be 1-d i64, got {} {}", counts->shape(),
            name_of(counts->dtype()));
  const i64 n = x->shape()[d];
  if (counts->numel() != n && counts->numel() != 1)
    fail_at(x.loc(), "repeat_interleave", "{} repeats for an extent of {} on axis {}", counts->numel(), n, d);
  const Tensor c = contiguous_value(*counts);
  std::vector<i64> places;
  for (i64 i = 0; i < n; ++i) {
    const i64 times = c.data<i64>()[c.numel() == 1 ? 0 : i];
    if (times < 0)
      fail_at(x.loc(), "repeat_interleave", "repeats must not be negative, got {} at position {}", times, i);
    places.insert(places.end(), static_cast<size_t>(times), i);
  }
  Tensor index = make_empty({static_cast<i64>(places.size())}, kI64);
  std::copy(places.begin(), places.end(), index.data<i64>());
  return index_select(x, d, Arg(index, x.loc()));
}

// ---- roll, flip, rot90 ----------------------------------------------------------------------------------------------

namespace {

std::vector<int> check_dims(std::string_view op, const Arg& x, const std::vector<i64>& dims) {
  std::vector<int> out;
  for (const i64 d : dims) {
    out.push_back(wrap_dim(op, d, x->dim()));
    if (std::count(out.begin(), out.end(), out.back()) > 1)
      fail_at(x.loc(), op, "a dim appears twice in [{}]", fmt::join(dims, ", "));
  }
  return out;
}

Tensor window(const Tensor& t, int d, i64 start, i64 length) {
  return Window{.kind = Window::Kind::slice, .dim = d, .start = start, .length = length, .step = 1}.of(t);
}

Tensor roll_value(const Tensor& x, int d, i64 shift) {
  const i64 n = x.shape()[d];
  if (n == 0) return x;
  const i64 by = ((shift % n) + n) % n;
  Tensor y = make_empty(x.shape(), x.dtype());
  copy_into(window(y, d, by, n - by), window(x, d, 0, n - by));
  if (by > 0) copy_into(window(y, d, 0, by), window(x, d, n - by, by));
  return y;
}

}  // namespace

Tensor roll(Arg x, const std::vector<i64>& shifts, const std::vector<i64>& dims) {
  check_defined("roll", x);
  if (dims.empty() && shifts.size() == 1) return reshape(roll(reshape(x, {x->numel()}), shifts, {0}), x->shape());
  if (shifts.size() != dims.size())
    fail_at(x.loc(), "roll", "{} shifts ([{}]) for {} dims ([{}])", shifts.size(), fmt::join(shifts, ", "), dims.size(),
            fmt::join(dims, ", "));
  if (x->dim() == 0) fail_at(x.loc(), "roll", "a 0-d tensor has no axis to roll");
  std::vector<int> axes;
  for (const i64 d : dims) axes.push_back(wrap_dim("roll", d, x->dim()));
  Tensor y = *x;
  for (size_t i = 0; i < axes.size(); ++i) y = roll_value(y, axes[i], shifts[i]);
  if (overlap_of(y, *x) != Overlap::none || y.is(*x)) y = copy_value(*x);
  return record(
      kRoll, std::move(y), {x},
      [&](Saver&) {
        return [shifts, dims](Tensor g, const Need&) -> Grads {
          std::vector<i64> back;
          for (const i64 s : shifts) back.push_back(s == INT64_MIN ? s : -s);
          return {roll(g, back, dims)};
        };
      },
      [&](Attrs& at) {
        at("shifts", shifts);
        at("dims", dims);
      });
}

Tensor flip(Arg x, const std::vector<i64>& dims) {
  check_defined("flip", x);
  const std::vector<int> axes = check_dims("flip", x, dims);
  Shape strides = x->strides();
  i64 offset = x->offset();
  for (const int d : axes) {
    if (x->dim() == 0 || x->shape()[d] == 0) continue;
    offset += (x->shape()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return record(
      kFlip, copy_value(alias(*x, x->shape(), strides, offset)), {x},
      [&](Saver&) { return [dims](Tensor g, const Need&) -> Grads { return {flip(g, dims)}; }; },
      [&](Attrs& at) { at("dims", dims); });
}

Tensor rot90(Arg x, i64 k, const std::vector<i64>& dims) {
  check_defined("rot90", x);
  if (dims.size() != 2) fail_at(x.loc(), "rot90", "needs 2 dims, got [{}]", fmt::join(dims, ", "));
  if (x->dim() < 2) fail_at(x.loc(), "rot90", "needs at least 2 axes, got {}", x->shape());
  check_dims("rot90", x, dims);
  switch (((k % 4) + 4) % 4) {
    case 1: return transpose(Arg(flip(x, {dims[1]}), x.loc()), dims[0], dims[1]);
    case 2: return flip(x, dims);
    case 3: return transpose(Arg(flip(x, {dims[0]}), x.loc()), dims[0], dims[1]);
    default: return clone(x);
  }
}

// ---- triangles and diagonals ----------------------------------------------------------------------------------------

extern constexpr OpInfo kTril{.name = "tril",
                              .family = "rearrange",
                              .doc = "lower triangle of the last two axes",
                              .schema = "tril(Tensor input, int diagonal=0) -> Tensor",
                              .formula = "y = [j ≤ i + d]·x",
                              .rule = "dx = tril(g)",
                              .apply = [](OpCall& c) { c.result(tril(c.tensor("input"), c.integer("diagonal", 0))); }};
extern constexpr OpInfo kTriu{.name = "triu",
                              .family = "rearrange",
                              .doc = "upper triangle of the last two axes",
                              .schema = "triu(Tensor input, int diagonal=0) -> Tensor",
                              .formula = "y = [j ≥ i + d]·x",
                              .rule = "dx = triu(g)",
                              .apply = [](OpCall& c) { c.result(triu(c.tensor("input"), c.integer("diagonal", 0))); }};
extern constexpr OpInfo kDiag{.name = "diag",
                              .family = "rearrange",
                              .doc = "a diagonal of a matrix, or the matrix of a diagonal",
                              .schema = "diag(Tensor input, int diagonal=0) -> Tensor",
                              .formula = "y = diag(x)",
                              .rule = "dx = diag(g)",
                              .apply = [](OpCall& c) { c.result(diag(c.tensor("input"), c.integer("diagonal", 0))); }};
extern constexpr OpInfo kDiagEmbed{
    .name = "diag_embed",
    .family = "rearrange",
    .doc = "the last axis on a diagonal of two new axes",
    .schema = "diag_embed(Tensor input, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    .formula = "y[…, i, i + offset] = x[…, i]",
    .rule = "dx = diagonal(g)",
    .apply = [](OpCall& c) {
      c.result(diag_embed(c.tensor("input"), c.integer("offset", 0), c.integer("dim1", -2), c.integer("dim2", -1)));
    }};
extern constexpr OpInfo kTrace{.name = "trace",
                               .family = "rearrange",
                               .doc = "sum of the diagonal of a matrix",
                               .schema = "trace(Tensor input) -> Tensor",
                               .formula = "y = Σ x[i, i]",
                               .rule = "dx = g·eye",
                               .apply = [](OpCall& c) { c.result(trace(c.tensor("input"))); }};

namespace {

// Keeps columns [first(i), last(i)) of row i of each matrix.
template <class Range> Tensor triangle_value(const Tensor& x, Range range) {
  Tensor y = copy_value(x);
  const i64 rows = x.shape().at(-2), columns = x.shape().at(-1);
  if (y.numel() == 0) return y;
  visit_dtype(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* p = y.data<T>();
    parallel_for(y.numel() / columns, std::max<i64>(1, kGrain / columns), [&](i64 begin, i64 end) {
      for (i64 r = begin; r < end; ++r) {
        const auto [first, last] = range(r % rows, columns);
        std::fill(p + r * columns, p + r * columns + first, T(0));
        std::fill(p + r * columns + last, p + (r + 1) * columns, T(0));
      }
    });
  });
  return y;
}

i64 limited_diagonal(i64 diagonal, const Tensor& x) {
  return std::clamp(diagonal, -x.shape().at(-2) - 1, x.shape().at(-1) + 1);
}

void check_matrix(std::string_view op, const Arg& x) {
  check_defined(op, x);
  if (x->dim() < 2) fail_at(x.loc(), op, "needs at least 2 axes, got {}", x->shape());
}

}  // namespace

Tensor tril(Arg x, i64 diagonal) {
  check_matrix("tril", x);
  const i64 k = limited_diagonal(diagonal, *x);
  return record(
      kTril, triangle_value(*x, [k](i64 i, i64 n) { return std::pair<i64, i64>(0, std::clamp<i64>(i + k + 1, 0, n)); }),
      {x}, [&](Saver&) { return [diagonal](Tensor g, const Need&) -> Grads { return {tril(g, diagonal)}; }; },
      [&](Attrs& at) { at("diagonal", diagonal); });
}
Tensor triu(Arg x, i64 diagonal) {
  check_matrix("triu", x);
  const i64 k = limited_diagonal(diagonal, *x);
  return record(
      kTriu, triangle_value(*x, [k](i64 i, i64 n) { return std::pair<i64, i64>(std::clamp<i64>(i + k, 0, n), n); }),
      {x}, [&](Saver&) { return [diagonal](Tensor g, const Need&) -> Grads { return {triu(g, diagonal)}; }; },
      [&](Attrs& at) { at("diagonal", diagonal); });
}

Tensor diag_embed(Arg x, i64 offset, i64 dim1, i64 dim2) {
  check_defined("diag_embed", x);
  if (x->dim() == 0) fail_at(x.loc(), "diag_embed", "needs at least 1 axis, got {}", x->shape());
  const int a = wrap_dim("diag_embed", dim1, x->dim() + 1), b = wrap_dim("diag_embed", dim2, x->dim() + 1);
  if (a == b) fail_at(x.loc(), "diag_embed", "dim1 {} and dim2 {} are the same axis", dim1, dim2);
  i64 n = x->shape().back();
  if (__builtin_add_overflow(n, offset < 0 ? (offset == INT64_MIN ? INT64_MAX : -offset) : offset, &n))
    fail_at(x.loc(), "diag_embed", "the offset {} is too large", offset);
  Shape shape = x->shape();
  shape.erase(shape.size() - 1);
  shape.insert(std::min(a, b), n);
  shape.insert(std::max(a, b), n);
  checked_numel("diag_embed", shape, size_of(x->dtype()));
  Tensor y = make_empty(shape, x->dtype());
  fill_into(y, 0);
  copy_into(Window{.kind = Window::Kind::diagonal, .dim = a, .dim2 = b, .start = offset}.of(y), *x);
  return record(
      kDiagEmbed, std::move(y), {x},
      [&](Saver&) { return [offset, a, b](Tensor g, const Need&) -> Grads { return {diagonal(g, offset, a, b)}; }; },
      [&](Attrs& at) {
        at("offset", offset);
        at("dim1", i64{a});
        at("dim2", i64{b});
      });
}

Tensor diag(Arg x, i64 diagonal_) {
  check_defined("diag", x);
  if (x->dim() == 1) return diag_embed(x, diagonal_);
  if (x->dim() != 2) fail_at(x.loc(), "diag", "needs 1 or 2 axes, got {}", x->shape());
  return clone(Arg(diagonal(x, diagonal_), x.loc()));
}

Tensor trace(Arg x) {
  check_defined("trace", x);
  if (x->dim() != 2) fail_at(x.loc(), "trace", "needs a matrix, got {}", x->shape());
  return sum(Arg(diagonal(x), x.loc()));
}

}  // namespace waymark
