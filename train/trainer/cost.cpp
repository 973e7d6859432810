#include "train/trainer/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "core/autograd/state.h"
#include "core/ops/reduce.h"
#include "nn/attention/mask_report.h"
#include "nn/attention/registry.h"

namespace waymark::train {

double LayerCost::total() const {
  double sum = projections + scores + feed_forward;
  for (const auto& [name, flops] : encodings) sum += flops;
  return sum;
}

LayerCost layer_cost(const nn::EncodingSum& encodings, const nn::EncodingSizes& sizes, i64 ffn_dim, bool causal,
                     i64 length, std::optional<double> density) {
  const double n = static_cast<double>(length), keys = density ? *density * n : causal ? (n + 1) / 2 : n,
               width = static_cast<double>(sizes.num_heads * sizes.head_dim), embed = static_cast<double>(sizes.embed_dim);
  LayerCost cost;
  cost.density = keys / n;
  cost.projections = 8 * n * embed * width;
  cost.scores = 4 * n * n * width * cost.density;
  cost.feed_forward = 4 * n * embed * static_cast<double>(ffn_dim);
  for (const nn::Options& encoding : encodings)
    if (const auto& flops = nn::encoding_info(encoding.name()).flops)
      cost.encodings.emplace_back(encoding.name(), flops(encoding, sizes, n, keys));
  return cost;
}

namespace {

// Counting reads every pair, and patterns repeat from layer to layer.
constexpr i64 kLongestCount = 4096;

// Of the pairs of one item; nothing where they depend on what tokens are, for long items, and without a pattern.
std::optional<double> pattern_density(const nn::Options& attention, const nn::Mask& mask, i64 heads, bool causal, i64 length) {
  if (length > kLongestCount) return std::nullopt;
  const nn::MaskCall call = nn::sequence_call(length, heads, causal);
  auto pattern = nn::attention_pattern(attention, call, "attention.pattern");
  const nn::Mask joined = (pattern ? *pattern : nn::Mask()) & mask;
  if (joined.is_all() || !joined.inputs().empty()) return std::nullopt;
  const NoGrad off;
  const Tensor pairs = (causal ? joined & nn::Mask::causal() : joined).pairs(call);
  if (!pairs.defined()) return std::nullopt;
  return sum(pairs).item<double>() / static_cast<double>(pairs.numel());
}

}  // namespace

std::optional<double> training_flops(const Config& config) {
  const i64 length = config.integer("data.max_len");
  if (length == 0 || !config.has("train.steps")) return std::nullopt;
  const nn::EncodingSizes sizes{config.integer("model.embed_dim"), config.integer("model.num_heads"),
                                config.integer("model.head_dim")};
  double forward = 0;
  const bool causal = config.boolean("model.causal");
  const auto& sums = config.layers("model.position");
  std::map<std::string, std::optional<double>> densities;
  const nn::Mask mask = nn::Mask::parse(config.text("model.mask"));
  for (size_t l = 0; l < sums.size(); ++l) {
    const nn::Options& attention = config.layers("model.attention")[l].front();
    auto found = densities.find(attention.canonical());
    if (found == densities.end())
      found = densities.emplace(attention.canonical(), pattern_density(attention, mask, sizes.num_heads, causal, length)).first;
    forward += layer_cost(sums[l], sizes, config.integer("model.ffn_dim"), causal, length, found->second).total();
  }
  // A product needs two more of its size in backward.
  return 3 * forward * static_cast<double>(config.integer("train.batch_size")) *
         static_cast<double>(config.integer("train.steps"));
}

std::string flops_text(double flops) {
  static constexpr const char* kUnits[] = {"", " k", " M", " G", " T", " P", " E"};
  size_t unit = 0;
  while (flops >= 999.5 && unit + 1 < std::size(kUnits)) {
    flops /= 1000;
    ++unit;
  }
  return fmt::format("{:.3g}{}", flops, kUnits[unit]);
}

}  // namespace waymark::train
