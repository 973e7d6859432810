#include "nn/position/projected_rows.h"

#include "core/ops/rearrange.h"
#include "core/ops/shape.h"

namespace waymark::nn::encodings {

void push_projection(std::vector<ParameterSpec>& list, const std::string& name, i64 in, i64 out, bool bias, bool shared) {
  list.push_back({name + ".weight", {out, in}, init::normal(0, 0.02), false, shared});
  if (bias) list.push_back({name + ".bias", {out}, init::zeros(), true, shared});
}

void push_norm(std::vector<ParameterSpec>& list, i64 width, bool shared) {
  list.push_back({"norm.weight", {width}, init::ones(), true, shared});
  list.push_back({"norm.bias", {width}, init::zeros(), true, shared});
}

Tensor rows_by_head(const Tensor& rows, i64 heads) {
  return rows.reshape({rows.size(0), heads, rows.size(1) / heads}).transpose(0, 1);
}

Tensor rows_by_group(const Tensor& rows, i64 heads, i64 head_dim) {
  const i64 groups = rows.size(1) / head_dim;
  const Tensor own = rows_by_head(rows, groups);
  return groups == heads ? own : repeat_interleave(own, heads / groups, 0);
}

}  // namespace waymark::nn::encodings
