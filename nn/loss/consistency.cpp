// SAR and R-Drop: cross-entropy of two passes and the divergence between them.
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/divergence.h"
#include "core/ops/loss.h"
#include "core/ops/pointwise.h"
#include "core/ops/shape.h"
#include "nn/loss/items.h"
#include "nn/loss/loss.h"

namespace waymark::nn::loss {

namespace {

void check_passes(std::string_view op, const Tensor& first, const Tensor& second, double alpha) {
  if (!first.defined() || !second.defined()) fail(op, "an output of the two passes is undefined");
  if (first.shape() != second.shape())
    fail(op, "the two passes must give one shape, got {} and {}", first.shape(), second.shape());
  if (!(alpha >= 0 && std::isfinite(alpha))) fail(op, "alpha = {}: must be finite and >= 0", alpha);
}

// ½ (a + b), or a alone; then α·j where α is not 0.
template <class CrossEntropyOf, class Divergence>
Tensor combined(const ConsistencyOptions& o, CrossEntropyOf ce, Divergence j) {
  Tensor loss = ce(true);
  if (o.ce == Scored::both) loss = mul(add(loss, ce(false)), 0.5);
  return o.alpha == 0 ? loss : add(loss, j(), o.alpha);
}

Tensor classified(std::string_view op, const Tensor& first, const Tensor& second, const Tensor& target,
                  const ConsistencyOptions& o) {
  check_passes(op, first, second, o.alpha);
  const CrossEntropyOptions ce{
      .item_weight = o.item_weight, .ignore_index = o.ignore_index, .reduction = o.reduction, .empty = o.empty};
  return combined(
      o, [&](bool of_first) { return cross_entropy(of_first ? first : second, target, ce); },
      [&] {
        const Tensor mask = ne(target, o.ignore_index);
        return kl_div(first, second,
                      {.kl = o.kl,
                       .detach = o.detach,
                       .mask = mask,
                       .item_weight = o.item_weight,
                       .reduction = o.reduction,
                       .empty = o.empty});
      });
}

}  // namespace

Tensor sar(const Tensor& first, const Tensor& second, const Tensor& target, const ConsistencyOptions& options) {
  return classified("sar", first, second, target, options);
}
Tensor r_drop(const Tensor& first, const Tensor& second, const Tensor& target, const ConsistencyOptions& options) {
  return classified("r_drop", first, second, target, options);
}

Tensor sar_regression(const Tensor& first, const Tensor& second, const Tensor& target, const ConsistencyOptions& o) {
  check_passes("sar_regression", first, second, o.alpha);
  if (o.kl != Kl::symmetric) fail("sar_regression", "a squared distance has no direction: kl must be symmetric");
  if (!target.defined() || target.shape() != first.shape() || target.dtype() != first.dtype())
    fail("sar_regression", "the target must be {} {} as the predictions are", name_of(first.dtype()), first.shape());
  const Items items("sar_regression", first.shape(), o.item_weight, {}, first.dtype());
  const auto flat = [&](const Tensor& t) {
    const Tensor row = t.reshape({items.count});
    return items.dropped.defined() ? masked_fill(row, items.dropped, 0) : row;  // what is dropped may hold anything
  };
  const Tensor u = flat(first), v = flat(second), y = flat(target.detach());
  const Tensor p = o.detach == Detach::first ? u.detach() : u;
  const Tensor rows = combined(
      o, [&](bool of_first) { return square(sub(of_first ? u : v, y)); }, [&] { return square(sub(p, v)); });
  return reduce_items("sar_regression", rows, items, items.total, o.reduction, o.empty);
}

// ---- answer spans ---------------------------------------------------------------------------------------------------

namespace {

// One end of a span: logits and target positions [B], and the positions that take part ([B, L] or undefined: all).
struct SpanEnd {
  const char* name;
  Tensor target;
  Tensor keep;
  i64 ignore_index;

  void check(std::string_view op, const Tensor& logits) const {
    if (!logits.defined() || logits.dim() != 2) fail(op, "{} logits must be [B, L]", name);
    const i64 rows = logits.size(0), length = logits.size(1);
    if (!target.defined() || target.dtype() != kI64 || target.shape() != Shape{rows})
      fail(op, "{} positions must be i64 [{}] for logits {}", name, rows, logits.shape());
    if (keep.defined() && (keep.dtype() != kB8 || keep.shape() != logits.shape()))
      fail(op, "keep must be b8 {}, got {} {}", logits.shape(), name_of(keep.dtype()), keep.shape());
    const std::vector<i64> at = target.to_vector<i64>();
    const std::vector<bool> kept = keep.defined() ? keep.to_vector<bool>() : std::vector<bool>();
    for (size_t row = 0; row < at.size(); ++row) {
      if (at[row] == ignore_index) continue;
      if (at[row] < 0 || at[row] >= length)
        fail(op, "{} position {} of row {} is outside [0, {}) and is not ignore_index ({})", name, at[row], row, length,
             ignore_index);
      if (!kept.empty() && !kept[row * static_cast<size_t>(length) + static_cast<size_t>(at[row])])
        fail(op, "{} position {} of row {} is not kept", name, at[row], row);
    }
  }
  Tensor cross_entropy_of(const Tensor& logits, const Tensor& item_weight, std::string_view reduction,
                          std::string_view empty) const {
    const Tensor among = keep.defined() ? masked_fill(logits, logical_not(keep), -INFINITY) : logits;
    return cross_entropy(
        among, target,
        {.item_weight = item_weight, .ignore_index = ignore_index, .reduction = reduction, .empty = empty});
  }
  Tensor divergence_of(const Tensor& first, const Tensor& second, const ConsistencyOptions& o) const {
    const Items items("sar_span", target.shape(), o.item_weight, scored_targets(target, ignore_index), first.dtype());
    Tensor places = keep;
    if (items.dropped.defined()) {
      const Tensor scored = logical_not(items.dropped).unsqueeze(-1);
      places = places.defined() ? logical_and(places, scored) : scored;
    }
    const Tensor p = o.detach == Detach::first ? first.detach() : first;
    const Tensor rows = o.kl == Kl::symmetric ? symmetric_kl(p, second, -1, places)
                        : o.kl == Kl::forward ? softmax_kl(p, second, -1, places)
                                              : softmax_kl(second, p, -1, places);
    return reduce_items("sar_span", rows, items, items.total, o.reduction, o.empty);
  }
};

struct SpanEnds {
  SpanEnd start, end;
};
SpanEnds ends_of(std::string_view op, const SpanTargets& t, bool pad_logits, i64 ignore_index) {
  if (!pad_logits && !t.keep.defined())
    fail(op, "keep is undefined: which positions are no padding? pad_logits = true takes all");
  const Tensor keep = pad_logits ? Tensor() : t.keep;
  return {{"start", t.start, keep, ignore_index}, {"end", t.end, keep, ignore_index}};
}
// The mean of both ends' means, or the sum of both sums.
Tensor of_both(const Tensor& start, const Tensor& end, std::string_view reduction) {
  return reduction == "sum" ? add(start, end) : mul(add(start, end), 0.5);
}

}  // namespace

Tensor span_qa(const SpanLogits& logits, const SpanTargets& targets, const SpanOptions& o) {
  const SpanEnds ends = ends_of("span_qa", targets, o.pad_logits, o.ignore_index);
  ends.start.check("span_qa", logits.start);
  ends.end.check("span_qa", logits.end);
  return of_both(ends.start.cross_entropy_of(logits.start, o.item_weight, o.reduction, o.empty),
                 ends.end.cross_entropy_of(logits.end, o.item_weight, o.reduction, o.empty), o.reduction);
}

Tensor sar_span(const SpanLogits& first, const SpanLogits& second, const SpanTargets& targets,
                const ConsistencyOptions& o, bool pad_logits) {
  check_passes("sar_span", first.start, second.start, o.alpha);
  check_passes("sar_span", first.end, second.end, o.alpha);
  const SpanEnds ends = ends_of("sar_span", targets, pad_logits, o.ignore_index);
  ends.start.check("sar_span", first.start);
  ends.end.check("sar_span", first.end);
  const SpanOptions ce{.pad_logits = pad_logits,
                       .item_weight = o.item_weight,
                       .ignore_index = o.ignore_index,
                       .reduction = o.reduction,
                       .empty = o.empty};
  return combined(
      o, [&](bool of_first) { return span_qa(of_first ? first : second, targets, ce); },
      [&] {
        return of_both(ends.start.divergence_of(first.start, second.start, o),
                       ends.end.divergence_of(first.end, second.end, o), o.reduction);
      });
}

}  // namespace waymark::nn::loss
