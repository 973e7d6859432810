// cross_entropy and kl_div of logits with the classes on the last axis.
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/divergence.h"
#include "core/ops/loss.h"
#include "core/ops/shape.h"
#include "nn/loss/items.h"
#include "nn/loss/loss.h"

namespace waymark::nn::loss {

namespace {

// The shape of the items of logits [..., C].
Shape items_shape(std::string_view op, const Tensor& logits) {
  if (!logits.defined()) fail(op, "the logits are undefined");
  if (logits.dim() == 0) fail(op, "the logits are 0-d; classes lie on the last axis: [..., C]");
  Shape shape = logits.shape();
  shape.erase(shape.size() - 1);
  return shape;
}

// What no one means as a factor of a class, and would find in the loss only.
void check_weight(const Tensor& weight) {
  if (!weight.defined()) return;
  for (const double w : weight.to_vector<double>())
    if (!(w >= 0 && std::isfinite(w))) fail("cross_entropy", "weight has {}; weights of classes are finite and >= 0", w);
}

// Σ over scored items of w·weight[target].
double divisor_of(const Items& items, const Tensor& target, const Tensor& weight) {
  if (!weight.defined()) return items.total;
  const std::vector<i64> ids = target.to_vector<i64>();
  const std::vector<double> w = weight.to_vector<double>();
  double total = 0;
  for (size_t i = 0; i < ids.size(); ++i)
    if (items.values[i] != 0) total += items.values[i] * w[static_cast<size_t>(ids[i])];
  return total;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& o) {
  const Shape shape = items_shape("cross_entropy", logits);
  if (!target.defined() || target.dtype() != kI64) fail("cross_entropy", "the target must be class ids (i64)");
  if (target.shape() != shape)
    fail("cross_entropy", "the target must be {} for logits {}, got {}", shape, logits.shape(), target.shape());
  check_weight(o.weight);
  const Items items("cross_entropy", shape, o.item_weight, scored_targets(target, o.ignore_index), logits.dtype());
  // Items of weight 0 are as good as ignored ones.
  Tensor ids = target.reshape({-1});
  if (items.dropped.defined()) ids = masked_fill(ids, items.dropped, o.ignore_index);
  const i64 classes = logits.size(-1);
  const Tensor rows = waymark::cross_entropy(
      logits.reshape({items.count, classes}), ids,
      {.weight = o.weight, .ignore_index = o.ignore_index, .reduction = "none", .label_smoothing = o.label_smoothing});
  return reduce_items("cross_entropy", rows, items, divisor_of(items, target, o.weight), o.reduction, o.empty);
}

Tensor kl_div(const Tensor& first, const Tensor& second, const KlOptions& o) {
  const Shape shape = items_shape("kl_div", first);
  std::vector<bool> kept;
  if (o.mask.defined()) {
    if (o.mask.dtype() != kB8 || o.mask.shape() != shape)
      fail("kl_div", "the mask must be b8 {}, got {} {}", shape, name_of(o.mask.dtype()), o.mask.shape());
    kept = o.mask.to_vector<bool>();
  }
  const Items items("kl_div", shape, o.item_weight, kept, first.dtype());
  // A row that is not scored keeps none of its classes: value 0, gradient 0, whatever it holds.
  const Tensor keep = items.dropped.defined() ? logical_not(items.dropped).reshape(shape).unsqueeze(-1) : Tensor();
  const Tensor p = o.detach == Detach::first ? first.detach() : first;
  const Tensor rows = o.kl == Kl::symmetric ? symmetric_kl(p, second, -1, keep)
                      : o.kl == Kl::forward ? softmax_kl(p, second, -1, keep)
                                            : softmax_kl(second, p, -1, keep);
  return reduce_items("kl_div", rows.reshape({items.count}), items, items.total, o.reduction, o.empty);
}

namespace {

template <class E> struct Word {
  std::string_view text;
  E value;
};
template <class E, size_t N> E word_of(std::string_view option, std::string_view text, const Word<E> (&words)[N]) {
  std::string known;
  for (const Word<E>& w : words) {
    if (w.text == text) return w.value;
    known += (known.empty() ? "" : ", ") + std::string(w.text);
  }
  fail("loss", "{} is \"{}\"; it must be one of {}", option, text, known);
}

}  // namespace

Kl kl_of(std::string_view word) {
  return word_of<Kl>("kl", word, {{"symmetric", Kl::symmetric}, {"forward", Kl::forward}, {"reverse", Kl::reverse}});
}
Detach detach_of(std::string_view word) {
  return word_of<Detach>("detach", word, {{"none", Detach::none}, {"first", Detach::first}});
}
Scored scored_of(std::string_view word) {
  return word_of<Scored>("ce", word, {{"both", Scored::both}, {"first", Scored::first}});
}

}  // namespace waymark::nn::loss
