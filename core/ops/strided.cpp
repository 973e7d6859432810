// as_strided (declared in shape.h).
#include <algorithm>

#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/strided.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kAsStrided{
    .name = "as_strided",
    .family = "shape",
    .doc = "any layout of the same storage",
    .schema = "as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    .formula = "y[i] = storage[offset + i·stride]",
    .rule = "dx = 0 with g added at the same places of the storage",
    .saves = {{"shape", For{0}}},
    .view = true,
    .apply = [](OpCall& c) {
      std::optional<i64> offset;
      if (c.has("storage_offset")) offset = c.integer("storage_offset");
      c.result(as_strided(c.tensor("input"), Shape(c.list("size")), Shape(c.list("stride")), offset));
    }};

namespace {

// Places in the storage of all elements, in logical order, counted from `first`; places outside [0, span) become span.
Tensor places(const Geometry& g, i64 first, i64 span) {
  i64 n = 1;
  for (const i64 e : g.shape) n *= e;
  Tensor out = make_empty({n}, kI64);
  i64* to = out.data<i64>();
  Shape index(g.shape.size());
  i64 at = g.offset - first;
  for (i64 k = 0; k < n; ++k) {
    to[k] = at >= 0 && at < span ? at : span;
    for (int i = g.shape.size() - 1; i >= 0; --i) {
      at += g.strides[i];
      if (++index[i] < g.shape[i]) break;
      at -= index[i] * g.strides[i];
      index[i] = 0;
    }
  }
  return out;
}

// The adjoint of seeing `x` as `y`: through a buffer as long as x's part of the storage. Where elements of x share
// memory, each gets its share, as PyTorch.
Tensor strided_adjoint(const Tensor& g, const Geometry& x, const Geometry& y) {
  i64 n = 1;
  for (const i64 e : x.shape) n *= e;
  if (n == 0 || g.numel() == 0) return expand(mul(sum(g), 0), x.shape);  // nothing, but of g
  const auto [low, high] = reach(x);
  const i64 span = high - low + 1;
  const Tensor to = places(x, low, span);
  const Tensor buffer = index_add(zeros({span + 1}, g.dtype()), 0, places(y, low, span), reshape(g, {-1}));
  const Tensor dx = reshape(index_select(buffer, 0, to), x.shape);
  if (n == span) return dx;
  const Tensor shares = index_add(zeros({span + 1}, g.dtype()), 0, to, ones({n}, g.dtype()));
  return div(dx, reshape(index_select(shares, 0, to), x.shape));
}

}  // namespace

Tensor as_strided(Arg x, const Shape& size, const Shape& stride, std::optional<i64> storage_offset) {
  check_defined("as_strided", x);
  if (size.size() != stride.size()) fail_at(x.loc(), "as_strided", "{} strides for the shape {}", stride.size(), size);
  const i64 n = checked_numel("as_strided", size, size_of(x->dtype())), offset = storage_offset.value_or(x->offset());
  const i64 held = x->impl()->storage->bytes() / size_of(x->dtype());
  if (offset < 0) fail_at(x.loc(), "as_strided", "the offset {} must not be negative", offset);
  i64 low = offset, high = offset;
  for (int i = 0; i < size.size() && n > 0; ++i) {
    i64 far = 0;
    i64& end = stride[i] < 0 ? low : high;
    if (__builtin_mul_overflow(stride[i], size[i] - 1, &far) || __builtin_add_overflow(end, far, &end))
      fail_at(x.loc(), "as_strided", "{} with strides {} and offset {} reaches outside the storage of {} elements",
              size, stride, offset, held);
  }
  if (n > 0 && (low < 0 || high >= held))
    fail_at(x.loc(), "as_strided", "{} with strides {} and offset {} reaches outside the storage of {} elements", size,
            stride, offset, held);
  return record_view(
      kAsStrided, alias(*x, size, stride, offset), x,
      [&](Saver& s) {
        // A window of a dense tensor needs no table of places.
        bool plain = x->impl()->dense && !layout_of(size, stride).overlaps && n > 0;
        if (plain) {
          const auto [first, last] = reach(geometry_of(*x));
          plain = low >= first && high <= last;
        }
        return [plain, from = Geometry{s.shape(0), x->strides(), x->offset()}, to = Geometry{size, stride, offset}](
                   Tensor g, const Need&) -> Grads {
          if (plain) return {write_window(zeros(from.shape, g.dtype()), g, from, to)};
          return {strided_adjoint(g, from, to)};
        };
      },
      [&](Attrs& at) {
        at("size", size.vec());
        at("stride", stride.vec());
        at("storage_offset", offset);
      });
}

}  // namespace waymark
