// Views and in-place ops. A change of a base gives its views a new history when they are next used; a
// change of a view gives its base the history "the old base with the view's new value in its window".
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"
#include "core/ops/strided.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kReadWindow{.name = "read_window",
                                    .family = "shape",
                                    .doc = "a strided window, copied: the adjoint of write_window",
                                    .schema = "read_window(Tensor input, Geometry base, Geometry view) -> Tensor",
                                    .formula = "y = x in the window",
                                    .rule = "dx = 0 with g in the window"};
extern constexpr OpInfo kWriteWindow{
    .name = "write_window",
    .family = "shape",
    .doc = "a tensor with another value in a strided window: what a base becomes when a view is changed in place",
    .schema = "write_window(Tensor input, Tensor value, Geometry base, Geometry view) -> Tensor",
    .formula = "y = x, window ← value",
    .rule = "dx = g with 0 in the window,  dvalue = g in the window"};

namespace {

// x copied into memory laid out as `base`; `shift` is what its offsets differ by.
Tensor laid_out(const Tensor& x, const Geometry& base, i64* shift) {
  const auto [low, high] = x.numel() ? reach(base) : std::pair<i64, i64>(0, -1);
  const Tensor memory = make_empty({high - low + 1}, x.dtype());
  *shift = -low;
  const Tensor y = alias(memory, base.shape, base.strides, x.numel() ? base.offset - low : 0);
  copy_into(y, x);
  return y;
}

Tensor window_at(const Tensor& t, const Geometry& view, i64 shift) {
  if (view.shape.empty() || checked_numel("window", view.shape) > 0)
    return alias(t, view.shape, view.strides, view.offset + shift);
  return alias(t, view.shape, view.strides, 0);
}

auto write_rule(const Geometry& base, const Geometry& view) {
  return [&base, &view](Saver&) {
    return [base, view](Tensor g, const Need& need) -> Grads {
      Grads out(2);
      if (need[0]) out[0] = write_window(g, zeros(view.shape, g.dtype()), base, view);
      if (need[1]) out[1] = read_window(g, base, view);
      return out;
    };
  };
}

}  // namespace

namespace ops {

Tensor read_window(Arg x, const Geometry& base, const Geometry& view) {
  i64 shift = x->offset() - base.offset;
  const Tensor source = x->strides() == base.strides ? *x : laid_out(*x, base, &shift);
  Tensor y = make_empty(view.shape, x->dtype());
  if (y.numel() > 0) copy_into(y, window_at(source, view, shift));
  return record(kReadWindow, std::move(y), {x}, [&](Saver&) {
    return [base, view](Tensor g, const Need&) -> Grads {
      return {write_window(zeros(base.shape, g.dtype()), g, base, view)};
    };
  });
}

Tensor write_window(Arg x, Arg value, const Geometry& base, const Geometry& view) {
  i64 shift = 0;
  const Tensor y = laid_out(*x, base, &shift);
  if (value->numel() > 0) copy_into(window_at(y, view, shift), *value);
  return record(kWriteWindow, y, {x, value}, write_rule(base, view));
}

}  // namespace ops

Edge replay_view(const Tensor& view) {
  const EnableGrad on;
  AutogradMeta& m = *meta_of(view);
  const Tensor base(m.view->base);
  const Tensor fresh = as_strided(base, view.shape(), view.strides(), view.offset());
  const AutogradMeta* made = meta_of(fresh);
  set_history(view.impl(), made ? made->history : Edge{});
  m.view->base_epoch = ensure_meta(base).epoch;
  return m.history.node ? m.history : Edge{};
}

void rebase_view(const Intrusive<Node>& writer, const Tensor& view) {
  const Tensor base(ensure_meta(view).view->base);
  const Tensor old = history_before(base), part = alias(view);
  ensure_meta(part).history = Edge{writer, nullptr, 0};
  const Geometry whole = geometry_of(base), window_of_base = geometry_of(view);
  const std::span<const Tensor> outputs(&base, 1);
  const Intrusive<Node> node = detail::make_node(kWriteWindow, outputs, {Arg(old, writer->loc), Arg(part, writer->loc)},
                                                 write_rule(whole, window_of_base));
  set_history(base.impl(), Edge{node, nullptr, 0});
  ++ensure_meta(base).epoch;
}

}  // namespace waymark
