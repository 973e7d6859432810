#include "nn/loss/items.h"

#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/reduce.h"

namespace waymark::nn::loss {

namespace {

// w of every item: item_weight repeats along the axes that it does not have.
std::vector<double> weights(std::string_view op, const Shape& shape, const Tensor& given) {
  i64 count = 1;
  for (const i64 n : shape) count *= n;
  if (!given.defined()) return std::vector<double>(static_cast<size_t>(count), 1.0);
  if (given.dtype() == kB8) fail(op, "item_weight must be numbers, got b8");
  bool fits = given.dim() <= shape.size() && (given.dim() > 0 || shape.size() == 0);
  for (int d = 0; fits && d < given.dim(); ++d) fits = given.shape()[d] == shape[d];
  if (!fits) fail(op, "item_weight {} must have the shape of the items {}, or its leading axes", given.shape(), shape);
  const std::vector<double> own = given.to_vector<double>();
  std::vector<double> out;
  out.reserve(static_cast<size_t>(count));
  const size_t repeat = own.empty() ? 0 : static_cast<size_t>(count) / own.size();
  for (const double w : own) {
    if (!(w >= 0 && std::isfinite(w))) fail(op, "item_weight has {}; weights are finite and >= 0", w);
    out.insert(out.end(), repeat, w);
  }
  return out;
}

}  // namespace

Items::Items(std::string_view op, const Shape& shape, const Tensor& item_weight, const std::vector<bool>& scored_in,
             DType dtype)
    : values(weights(op, shape, item_weight)) {
  const NoGrad off;
  count = static_cast<i64>(values.size());
  const Tensor mask = make_empty({count}, kB8), w = make_empty({count}, kF64);
  bool once = true;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!scored_in.empty() && !scored_in[i]) values[i] = 0;
    mask.data<bool>()[i] = values[i] == 0;
    w.data<double>()[i] = values[i];
    scored += values[i] != 0;
    total += values[i];
    once &= values[i] == 0 || values[i] == 1;
  }
  if (scored < count) dropped = mask;
  if (!once) weight = to(w, dtype);
}

std::vector<bool> scored_targets(const Tensor& target, i64 ignore_index) {
  std::vector<bool> out;
  for (const i64 t : target.to_vector<i64>()) out.push_back(t != ignore_index);
  return out;
}

Tensor reduce_items(std::string_view op, const Tensor& rows, const Items& items, double divisor,
                    std::string_view reduction, std::string_view empty) {
  if (reduction != "mean" && reduction != "sum") fail(op, "reduction is \"mean\" or \"sum\", not \"{}\"", reduction);
  if (empty != "error" && empty != "zero") fail(op, "empty is \"error\" or \"zero\", not \"{}\"", empty);
  if (reduction == "mean" && divisor == 0 && empty == "error")
    fail(op, "none of the {} items is scored, so there is no mean; pass empty = \"zero\" for 0", items.count);
  const Tensor total = sum(items.weight.defined() ? mul(rows, items.weight) : rows);
  return reduction == "sum" || divisor == 0 ? total : div(total, divisor);
}

}  // namespace waymark::nn::loss
