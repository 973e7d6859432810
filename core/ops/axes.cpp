// Ops that are other view ops under another name or with other arguments (declared in shape.h): they record the op
// they stand for.
#include <algorithm>

#include "core/ops/elementwise.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

#define WAYMARK_FORM(K, NAME, DOC, SCHEMA, FORMULA, RULE, ...) \
  extern constexpr OpInfo K{.name = NAME,                      \
                            .family = "shape",                 \
                            .doc = DOC,                        \
                            .schema = SCHEMA,                  \
                            .formula = FORMULA,                \
                            .rule = RULE,                      \
                            .view = true,                      \
                            .apply = [](OpCall& c) { c.result(__VA_ARGS__); }};
WAYMARK_FORM(kFlatten, "flatten", "neighbouring axes merged into one",
             "flatten(Tensor input, int start_dim=0, int end_dim=-1) -> Tensor", "y = x", "as reshape",
             flatten(c.tensor("input"), c.integer("start_dim", 0), c.integer("end_dim", -1)))
WAYMARK_FORM(kTranspose, "transpose", "two axes swapped", "transpose(Tensor input, int dim0, int dim1) -> Tensor",
             "y = xᵀ", "dx = gᵀ", transpose(c.tensor("input"), c.integer("dim0"), c.integer("dim1")))
WAYMARK_FORM(kMT, "mT", "the last two axes swapped", "mT(Tensor input) -> Tensor", "y = xᵀ", "dx = gᵀ",
             mT(c.tensor("input")))
WAYMARK_FORM(kT, "t", "a matrix transposed", "t(Tensor input) -> Tensor", "y = xᵀ", "dx = gᵀ", t(c.tensor("input")))
WAYMARK_FORM(kSqueeze, "squeeze", "axes of extent 1 left out", "squeeze(Tensor input, int[]? dim=None) -> Tensor",
             "y = x", "as view", squeeze(c.tensor("input"), c.dims("dim")))
WAYMARK_FORM(kUnsqueeze, "unsqueeze", "an axis of extent 1 put in", "unsqueeze(Tensor input, int dim) -> Tensor",
             "y = x", "as view", unsqueeze(c.tensor("input"), c.integer("dim")))
WAYMARK_FORM(kNarrow, "narrow", "length indices of an axis from start on",
             "narrow(Tensor input, int dim, int start, int length) -> Tensor", "y = x[start:start + length]",
             "as slice", narrow(c.tensor("input"), c.integer("dim"), c.integer("start"), c.integer("length")))
WAYMARK_FORM(kSwapaxes, "swapaxes", "two axes swapped", "swapaxes(Tensor input, int axis0, int axis1) -> Tensor",
             "y = xᵀ", "dx = gᵀ", swapaxes(c.tensor("input"), c.integer("axis0"), c.integer("axis1")))
WAYMARK_FORM(kMovedim, "movedim", "axes moved to other places, the rest in order",
             "movedim(Tensor input, int[] source, int[] destination) -> Tensor", "y = x, permuted", "as permute",
             movedim(c.tensor("input"), c.list("source"), c.list("destination")))
WAYMARK_FORM(kUnflatten, "unflatten", "one axis split into several",
             "unflatten(Tensor input, int dim, int[] sizes) -> Tensor", "y = x", "as reshape",
             unflatten(c.tensor("input"), c.integer("dim"), Shape(c.list("sizes"))))
WAYMARK_FORM(kRavel, "ravel", "all axes merged into one", "ravel(Tensor input) -> Tensor", "y = x", "as reshape",
             ravel(c.tensor("input")))
WAYMARK_FORM(kBroadcastTo, "broadcast_to", "expand to a shape", "broadcast_to(Tensor input, int[] size) -> Tensor",
             "y = x, repeated", "as expand", broadcast_to(c.tensor("input"), Shape(c.list("size"))))
WAYMARK_FORM(kExpandAs, "expand_as", "expand to the shape of another tensor",
             "expand_as(Tensor input, Tensor other) -> Tensor", "y = x, repeated", "as expand",
             expand_as(c.tensor("input"), c.tensor("other")))

Tensor t(Arg x) {
  check_defined("t", x);
  if (x->dim() > 2) fail_at(x.loc(), "t", "needs at most 2 axes, got {}; use mT", x->shape());
  return transpose(x, 0, x->dim() - 1);
}
Tensor swapaxes(Arg x, i64 axis0, i64 axis1) {
  check_defined("swapaxes", x);
  static_cast<void>(wrap_dim("swapaxes", axis0, x->dim()));
  static_cast<void>(wrap_dim("swapaxes", axis1, x->dim()));
  return transpose(x, axis0, axis1);
}

Tensor movedim(Arg x, i64 source, i64 destination) {
  return movedim(x, std::vector<i64>{source}, std::vector<i64>{destination});
}
Tensor movedim(Arg x, const std::vector<i64>& source, const std::vector<i64>& destination) {
  check_defined("movedim", x);
  if (source.size() != destination.size())
    fail_at(x.loc(), "movedim", "[{}] and [{}] differ in length", fmt::join(source, ", "),
            fmt::join(destination, ", "));
  const auto n = static_cast<size_t>(x->dim());
  std::vector<i64> dims(n, -1);
  std::vector<bool> moved(n, false);
  for (size_t i = 0; i < source.size(); ++i) {
    const int from = wrap_dim("movedim", source[i], x->dim()), to = wrap_dim("movedim", destination[i], x->dim());
    if (n == 0) continue;
    if (moved[static_cast<size_t>(from)])
      fail_at(x.loc(), "movedim", "a dim appears twice in [{}]", fmt::join(source, ", "));
    if (dims[static_cast<size_t>(to)] >= 0)
      fail_at(x.loc(), "movedim", "a dim appears twice in [{}]", fmt::join(destination, ", "));
    moved[static_cast<size_t>(from)] = true;
    dims[static_cast<size_t>(to)] = from;
  }
  size_t next = 0;
  for (size_t i = 0; i < n; ++i) {
    if (dims[i] >= 0) continue;
    while (moved[next]) ++next;
    dims[i] = static_cast<i64>(next++);
  }
  return permute(x, dims);
}

Tensor unflatten(Arg x, i64 dim, const Shape& sizes) {
  check_defined("unflatten", x);
  const int d = wrap_dim("unflatten", dim, x->dim());
  if (sizes.empty() || x->dim() == 0)
    fail_at(x.loc(), "unflatten", "axis {} of {} cannot become {}", d, x->shape(), sizes);
  i64 known = 1;
  int unknown = -1;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1 && unknown < 0)
      unknown = i;
    else if (sizes[i] < 0 || __builtin_mul_overflow(known, sizes[i], &known))
      fail_at(x.loc(), "unflatten", "axis {} of {} cannot become {}", d, x->shape(), sizes);
  }
  const i64 n = x->shape()[d];
  if (unknown >= 0 ? (known == 0 || n % known != 0) : known != n)
    fail_at(x.loc(), "unflatten", "axis {} of {} cannot become {}", d, x->shape(), sizes);
  Shape shape = x->shape();
  shape.erase(d);
  for (int i = 0; i < sizes.size(); ++i) shape.insert(d + i, i == unknown ? n / known : sizes[i]);
  return reshape(x, shape);
}

Tensor ravel(Arg x) {
  check_defined("ravel", x);
  return reshape(x, {x->numel()});
}
Tensor broadcast_to(Arg x, const Shape& size) {
  check_defined("broadcast_to", x);
  Shape wanted = size;  // -1 keeps an extent, as in expand
  for (int k = 1; k <= std::min(x->dim(), size.size()); ++k)
    if (size[size.size() - k] == -1) wanted[size.size() - k] = x->shape()[x->dim() - k];
  if (!broadcasts_to(x->shape(), wanted))
    fail_at(x.loc(), "broadcast_to", "{} does not broadcast to {}", x->shape(), size);
  return expand(x, wanted);
}
Tensor expand_as(Arg x, Arg other) {
  check_defined("expand_as", x);
  check_defined("expand_as", other);
  return expand(x, other->shape());
}

}  // namespace waymark
