// masked_select, masked_scatter, nonzero (declared in index.h).
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/index_map.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kMaskedSelect{
    .name = "masked_select",
    .family = "index",
    .doc = "the elements where a mask is true, 1-d in row-major order",
    .schema = "masked_select(Tensor input, Tensor mask) -> Tensor",
    .formula = "y = {x: m}",
    .rule = "dx = 0 with g where m",
    .saves = {{"mask", For{0}}},
    .apply = [](OpCall& c) { c.result(masked_select(c.tensor("input"), c.tensor("mask"))); }};
extern constexpr OpInfo kMaskedScatter{
    .name = "masked_scatter",
    .family = "index",
    .doc = "the elements of a source, in order, where a mask is true",
    .schema = "masked_scatter(Tensor input, Tensor mask, Tensor source) -> Tensor",
    .formula = "y = m ? next of source : x",
    .rule = "dx = m ? 0 : g,  dsource = g where m, then 0",
    .saves = {{"mask", For{0, 2}}, {"shape", For{2}}},
    .apply = [](OpCall& c) { c.result(masked_scatter(c.tensor("input"), c.tensor("mask"), c.tensor("source"))); }};
#define WAYMARK_NONZERO(K, NAME)                                                  \
  extern constexpr OpInfo K{.name = #NAME,                                        \
                            .family = "index",                                    \
                            .doc = "positions of the elements that are not 0",    \
                            .schema = #NAME "(Tensor input) -> Tensor",           \
                            .formula = "y = {(i, j, …): x ≠ 0}, [count, axes]",   \
                            .rule = not_differentiable("positions are integers"), \
                            .apply = [](OpCall& c) { c.result(NAME(c.tensor("input"))); }};
WAYMARK_NONZERO(kNonzero, nonzero)
WAYMARK_NONZERO(kArgwhere, argwhere)

namespace {

void check_mask(std::string_view op, const Arg& x, const Arg& mask) {
  check_defined(op, x);
  check_defined(op, mask);
  if (mask->dtype() != kB8)
    fail_at(x.loc(), op, "the mask must be b8, got {}; use to(kB8) or a comparison", name_of(mask->dtype()));
}

Tensor positions_value(const Tensor& x) {
  const std::vector<i64> flat = nonzero_positions(x);
  const i64 n = static_cast<i64>(flat.size()), axes = x.dim();
  Tensor y = make_empty({n, axes}, kI64);
  i64* to = y.data<i64>();
  const Shape strides = contiguous_strides(x.shape());
  for (i64 k = 0; k < n; ++k)
    for (int a = 0; a < axes; ++a) to[k * axes + a] = flat[static_cast<size_t>(k)] / strides[a] % x.shape()[a];
  return y;
}

}  // namespace

Tensor masked_select(Arg x, Arg mask) {
  check_mask("masked_select", x, mask);
  const Shape shape = broadcast_shapes("masked_select", x->shape(), mask->shape());
  const Tensor wide = contiguous_value(expand_value(*x, shape));
  RowMap map;
  map.start = nonzero_positions(expand_value(*mask, shape));
  return record(kMaskedSelect, gather_value(wide, map, {map.rows()}), {x, mask}, [&](Saver& s) {
    return [shape, m = s.input(1)](Tensor g, const Need&) -> Grads {
      return {masked_scatter(zeros(shape, g.dtype()), *m, g), Tensor()};
    };
  });
}

Tensor masked_scatter(Arg x, Arg mask, Arg source) {
  check_mask("masked_scatter", x, mask);
  check_same_dtype("masked_scatter", x, source);
  const Shape shape = broadcast_shapes("masked_scatter", x->shape(), mask->shape());
  RowMap map;
  map.start = nonzero_positions(expand_value(*mask, shape));
  if (map.rows() > source->numel())
    fail_at(x.loc(), "masked_scatter", "the mask selects {} elements, but the source {} has {}", map.rows(),
            source->shape(), source->numel());
  Tensor y = make_empty(shape, x->dtype());
  copy_into(y, *x);
  assign_value(y, map,
               alias(contiguous_value(*source), {map.rows()}, {1}, source->is_contiguous() ? source->offset() : 0));
  return record(kMaskedScatter, std::move(y), {x, mask, source}, [&](Saver& s) {
    return [m = s.input(1), was = s.shape(2)](Tensor g, const Need& need) -> Grads {
      Grads out(3);
      if (need[0]) out[0] = masked_fill(g, *m, 0);
      if (need[2]) out[2] = reshape(spread_part(masked_select(g, *m), {checked_numel("masked_scatter", was)}), was);
      return out;
    };
  });
}

Tensor nonzero(Arg x) {
  check_defined("nonzero", x);
  return record_nondiff(kNonzero, positions_value(*x), {x});
}
Tensor argwhere(Arg x) {
  check_defined("argwhere", x);
  return record_nondiff(kArgwhere, positions_value(*x), {x});
}
std::vector<Tensor> where(Arg condition) {
  check_defined("where", condition);
  // As PyTorch, a 0-d tensor counts as one of 1 axis.
  const Tensor at = nonzero(condition->dim() ? *condition : reshape(condition, {1}));
  std::vector<Tensor> out;
  for (i64 a = 0; a < at.size(1); ++a) out.push_back(contiguous(select(at, 1, a)));
  return out;
}

}  // namespace waymark
