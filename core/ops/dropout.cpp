#include "core/ops/dropout.h"

#include <algorithm>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/parallel/parallel.h"
#include "core/random/dropout_mask.h"
#include "core/random/generator.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kDropout{
    .name = "dropout", .family = "dropout", .doc = "random zeros in training, the rest scaled up",
    .schema = "dropout(Tensor input, float p=0.5, bool training=True) -> Tensor", .formula = "y = x ⊙ m/(1 − p)",
    .rule = "dx = g ⊙ m/(1 − p), m drawn again from its key", .saves = {{"random key", For{0}}}, .twin = "dropout_twin",
    .apply = [](OpCall& c) {
      c.result(dropout(c.tensor("input"), c.number("p", 0.5), c.flag("training", true)));
    }};

namespace {

// x ⊙ m/(1 − p) for the mask of this draw.
Tensor masked_value(const Tensor& x, const Draw& draw, double p) {
  const Tensor source = contiguous_value(x);
  const DropoutMask mask(draw, x.shape(), p);
  Tensor y = make_empty(x.shape(), x.dtype());
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T scale = static_cast<T>(1 / (1 - p));
    const T* from = source.data<T>();
    T* to = y.data<T>();
    parallel_for(x.numel(), kGrain, [&](i64 begin, i64 end) {
      constexpr i64 kPart = 1024;
      u8 keep[kPart];
      for (i64 at = begin; at < end; at += kPart) {
        const i64 n = std::min(kPart, end - at);
        mask.range(at, at + n, keep);
        for (i64 i = 0; i < n; ++i) to[at + i] = keep[i] ? from[at + i] * scale : T(0);
      }
    });
  });
  return y;
}

Tensor redraw(Arg x, const Draw& draw, double p) {
  return record(kDropout, masked_value(*x, draw, p), {x}, [&](Saver& s) {
    return [draw = s.key(draw), p](Tensor g, const Need&) -> Grads { return {redraw(g, draw, p)}; };
  }, [&](Attrs& at) { at("p", p); });
}

// The mask as a tensor, for the twin.
Tensor mask_tensor(const Shape& shape, const Draw& draw, double p) {
  Tensor m = make_empty(shape, kB8);
  DropoutMask(draw, shape, p).range(0, m.numel(), reinterpret_cast<u8*>(m.raw()));
  return m;
}

}  // namespace

std::string dropout_stream() {
  const std::string& path = scope_path(thread_state().scope);
  // A module called dropout is its own stream: "encoder.layers.0.dropout", not "....dropout.dropout".
  if (path.empty()) return "dropout";
  return path == "dropout" || path.ends_with(".dropout") ? path : path + ".dropout";
}

Tensor dropout(Arg x, double p, bool training) {
  check_defined("dropout", x);
  if (!(p >= 0 && p <= 1)) fail_at(x.loc(), "dropout", "p = {} is outside [0, 1]", p);
  need_float("dropout", *x);
  if (!training || p == 0) return *x;
  if (p == 1) return mul(x, 0);
  const Draw draw = next_draw(dropout_stream());
  DropoutMask(draw, x->shape(), p).capture();
  if (explain_mode()) return masked_fill(mul(*x, 1 / (1 - p)), logical_not(mask_tensor(x->shape(), draw, p)), 0);
  return redraw(x, draw, p);
}

}  // namespace waymark
