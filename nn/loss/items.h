// Internal: which items of a batch are scored, and how much each counts.
#pragma once

#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::nn::loss {

struct Items {
  i64 count = 0, scored = 0;
  double total = 0;     // Σ w over scored items
  Tensor dropped = {};  // b8 [count]: not scored; undefined if all are
  Tensor weight = {};   // [count], 0 where dropped; undefined if all scored ones count once
  // w of every item.
  std::vector<double> values = {};

  // Error naming `op` unless item_weight fits the items and is finite and >= 0. scored: per item; empty: all.
  Items(std::string_view op, const Shape& shape, const Tensor& item_weight, const std::vector<bool>& scored,
        DType dtype);
};

// Per item: is this target not ignore_index?
std::vector<bool> scored_targets(const Tensor& target, i64 ignore_index);

// Σ w·rows, or the mean; rows [count] are 0 where dropped, in value and gradient. `divisor`: Σ w, unless classes weigh
// too.
Tensor reduce_items(std::string_view op, const Tensor& rows, const Items& items, double divisor,
                    std::string_view reduction, std::string_view empty);

}  // namespace waymark::nn::loss
