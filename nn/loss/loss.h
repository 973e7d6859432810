// Losses of whole tasks: classification, divergence of two passes, SAR, R-Drop, answer spans.
//
//   Tensor u = model(x), v = model(x);                                       // two passes: other masks or topology
//   Tensor loss = nn::loss::r_drop(u, v, target, {.alpha = 5});
//
// What holds for all of them:
// * Classes lie on the last axis of logits; the axes in front of it are the items: [N, C] has N, [B, L, C] has B·L.
// * The loss is the mean over scored items, Σ w·ℓ / Σ w, with w = 1 or the item's weight; never a sum over a batch, so
//   repeating the batch changes nothing. reduction = "sum" gives Σ w·ℓ, for batches that are worked on in parts.
// * A target equal to ignore_index, a row that the mask drops, and an item of weight 0 are not scored: value and gradient
//   are exactly 0, whatever the logits are, as if they were not there.
// * No scored item at all: Error, or with empty = "zero" value 0 and gradient 0.
// * item_weight: finite numbers >= 0 of the items' shape or of its leading axes ([B] for items [B, L]). It, class
//   weights and targets are constants.
// * Gradients of any order.
#pragma once

#include <string_view>

#include "core/tensor/tensor.h"

namespace waymark::nn::loss {

// −log softmax(logits)[target] of class ids; label smoothing and class weights as in waymark::cross_entropy, whose
// class axis is the second one.
struct CrossEntropyOptions {
  Tensor weight = {};  // [C], finite and >= 0 (the op takes any number, as PyTorch does); a mean then divides by Σ w·weight[target]
  Tensor item_weight = {};
  i64 ignore_index = -100;
  double label_smoothing = 0;
  std::string_view reduction = "mean";  // "mean", "sum"
  std::string_view empty = "error";     // "error", "zero"
};
// logits [..., C], target i64 [...] -> 0-d
[[nodiscard]] WAYMARK_API Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                                               const CrossEntropyOptions& options = {});

// ---- two passes over the same items ---------------------------------------------------------------------------------

// p = softmax(first), q = softmax(second):
//   forward KL(p‖q) = Σ p (log p − log q),   reverse KL(q‖p),   symmetric ½ (KL(p‖q) + KL(q‖p))
enum class Kl : u8 { symmetric, forward, reverse };
// first: no gradient reaches the first pass through the divergence (its cross-entropy keeps its own).
enum class Detach : u8 { none, first };
// Which passes carry the cross-entropy: the mean of both, or the first alone.
enum class Scored : u8 { both, first };
// By their names in configs and case files; Error with the names there are.
WAYMARK_API Kl kl_of(std::string_view word);
WAYMARK_API Detach detach_of(std::string_view word);
WAYMARK_API Scored scored_of(std::string_view word);

struct KlOptions {
  Kl kl = Kl::symmetric;
  Detach detach = Detach::none;
  Tensor mask = {};  // b8 of the items' shape: kept rows; undefined: all
  Tensor item_weight = {};
  std::string_view reduction = "mean", empty = "error";
};
// Mean divergence of the rows of two tensors of logits [..., C] -> 0-d. (waymark::kl_div is PyTorch's, of
// log-probabilities.)
[[nodiscard]] WAYMARK_API Tensor kl_div(const Tensor& first, const Tensor& second, const KlOptions& options = {});

// SAR (Liu et al. 2022, 2203.12276: the passes differ in the topology of a sparse attention) and R-Drop (Liang et al.
// 2021, 2106.14448: they differ in their dropout masks) are one function of the two outputs. With J = Kl above:
//   L = mean over scored items of  ½ (CE(u, y) + CE(v, y)) + α·J(u, v)
// scored = first: CE(u, y) + α·J.  α = 0: cross-entropy alone.
// (Coefficients of published R-Drop code are not comparable: its parts sum over the batch, or halve differently.)
struct ConsistencyOptions {
  double alpha = 1;
  Kl kl = Kl::symmetric;
  Scored ce = Scored::both;
  Detach detach = Detach::none;
  Tensor item_weight = {};  // weighs both parts
  i64 ignore_index = -100;
  std::string_view reduction = "mean", empty = "error";
};
// Classification, tagging, language models: logits [..., C], target i64 [...] -> 0-d
[[nodiscard]] WAYMARK_API Tensor sar(const Tensor& first, const Tensor& second, const Tensor& target,
                                     const ConsistencyOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor r_drop(const Tensor& first, const Tensor& second, const Tensor& target,
                                        const ConsistencyOptions& options = {});
// Regression: predictions and target [...] of floats, every element an item:
//   L = mean of  ½ ((u − y)² + (v − y)²) + α (u − v)²
// Error unless kl is symmetric: a distance has no direction.
[[nodiscard]] WAYMARK_API Tensor sar_regression(const Tensor& first, const Tensor& second, const Tensor& target,
                                                const ConsistencyOptions& options = {});

// ---- answer spans ---------------------------------------------------------------------------------------------------

struct SpanLogits {
  Tensor start = {}, end = {};  // [B, L] each
};
struct SpanTargets {
  Tensor start = {}, end = {};  // i64 [B]: positions in [0, L), or ignore_index
  Tensor keep = {};   // b8 [B, L]: kept positions
};
struct SpanOptions {
  bool pad_logits = false;  // true: over all L positions, padding too, as BERT's code does; keep is not read
  Tensor item_weight = {};  // [B]
  i64 ignore_index = -100;
  std::string_view reduction = "mean", empty = "error";
};
// ½ (CE(start) + CE(end)), each a mean over rows, of the softmax over the kept positions -> 0-d. Dropped positions get
// no probability and no gradient. Error for a target that is not kept or outside [0, L). reduction = "sum": Σ CE(start)
// + Σ CE(end), to be divided by the number of scored starts and ends.
[[nodiscard]] WAYMARK_API Tensor span_qa(const SpanLogits& logits, const SpanTargets& targets,
                                         const SpanOptions& options = {});
// SAR and R-Drop of spans: J is the mean of those of start and end, over the kept positions, the same ones in both
// passes.
[[nodiscard]] WAYMARK_API Tensor sar_span(const SpanLogits& first, const SpanLogits& second, const SpanTargets& targets,
                                          const ConsistencyOptions& options = {}, bool pad_logits = false);

}  // namespace waymark::nn::loss
