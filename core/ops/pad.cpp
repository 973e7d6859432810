// pad (declared in rearrange.h).
#include <algorithm>

#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index.h"
#include "core/ops/index_map.h"
#include "core/ops/rearrange.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kPad{
    .name = "pad",
    .family = "rearrange",
    .doc = "elements added at the ends of axes, last axis first; negative pads crop",
    .schema = "pad(Tensor input, int[] pad, str mode=\"constant\", Scalar value=0) -> Tensor",
    .formula = "y = x with its border",
    .rule = "dx = g cropped; what was reflected, replicated or wrapped adds where it came from",
    .saves = {{"shape", For{0}}},
    .apply = [](OpCall& c) {
      c.result(pad(c.tensor("input"), c.list("pad"), c.word("mode", "constant"), c.scalar("value", Scalar(0))));
    }};

namespace {

struct AxisPad {
  int dim;
  i64 before, after, extent;  // extent: of x
};

// The constant mode: what of x stays, and where it lies in the padded axis.
struct Kept {
  i64 from, to, length;
};
Kept kept(const AxisPad& p) {
  const i64 from = std::max<i64>(0, -p.before), end = std::min(p.extent, p.extent + p.after);
  return {from, std::max<i64>(0, p.before), std::max<i64>(0, end - from)};
}

// The other modes: which element of x each place shows.
Tensor shown(const AxisPad& p, std::string_view mode) {
  const i64 n = p.extent;
  Tensor out = make_empty({n + p.before + p.after}, kI64);
  for (i64 k = 0; k < out.numel(); ++k) {
    i64 i = k - p.before;
    if (mode == "replicate")
      i = std::clamp<i64>(i, 0, n - 1);
    else if (mode == "circular")
      i = ((i % n) + n) % n;
    else if (i < 0)
      i = -i;
    else if (i >= n)
      i = 2 * (n - 1) - i;
    out.data<i64>()[k] = i;
  }
  return out;
}

Tensor part(const Tensor& t, int d, i64 start, i64 length) {
  return Window{.kind = Window::Kind::slice, .dim = d, .start = start, .length = length, .step = 1}.of(t);
}

}  // namespace

Tensor pad(Arg x, const std::vector<i64>& pads, std::string_view mode, Scalar value) {
  check_defined("pad", x);
  if (pads.size() % 2 != 0 || static_cast<int>(pads.size()) > 2 * x->dim())
    fail_at(x.loc(), "pad", "{} pads for a tensor with {} axes ({}); two for each axis, last axis first", pads.size(),
            x->dim(), x->shape());
  const bool constant = mode == "constant";
  if (!constant && mode != "reflect" && mode != "replicate" && mode != "circular")
    fail_at(x.loc(), "pad", "mode must be constant, reflect, replicate or circular, got \"{}\"", mode);
  if (constant && value.category() > category_of(x->dtype()))
    fail_at(x.loc(), "pad", "the value does not fit into {}; convert with to(...)", name_of(x->dtype()));
  Shape shape = x->shape();
  std::vector<AxisPad> axes;
  for (size_t k = 0; k < pads.size(); k += 2) {
    const int d = x->dim() - 1 - static_cast<int>(k / 2);
    const AxisPad p{d, pads[k], pads[k + 1], shape[d]};
    i64 extent = 0;
    if (__builtin_add_overflow(p.extent, p.before, &extent) || __builtin_add_overflow(extent, p.after, &extent) ||
        extent < 0)
      fail_at(x.loc(), "pad", "pads {} and {} leave no valid extent of axis {} ({})", p.before, p.after, d, p.extent);
    const i64 most = std::max(p.before, p.after);
    if (mode == "reflect" && most > 0 && most >= p.extent)
      fail_at(x.loc(), "pad", "reflect needs pads below the extent {} of axis {}, got {}", p.extent, d, most);
    if (mode == "circular" && most > p.extent)
      fail_at(x.loc(), "pad", "circular needs pads up to the extent {} of axis {}, got {}", p.extent, d, most);
    if (mode == "replicate" && most > 0 && p.extent == 0)
      fail_at(x.loc(), "pad", "replicate needs an element to repeat, but axis {} is empty", d);
    if (p.before != 0 || p.after != 0) axes.push_back(p);
    shape[d] = extent;
  }
  checked_numel("pad", shape, size_of(x->dtype()));
  Tensor y;
  if (constant) {
    y = make_empty(shape, x->dtype());
    fill_into(y, value);
    Tensor from = alias(*x), to = y;
    for (const AxisPad& p : axes) {
      const Kept k = kept(p);
      from = part(from, p.dim, k.from, k.length);
      to = part(to, p.dim, k.to, k.length);
    }
    copy_into(to, from);
    return record(
        kPad, std::move(y), {x},
        [&](Saver& s) {
          static_cast<void>(s.shape(0));
          std::vector<i64> back;
          for (const i64 p : pads) back.push_back(-p);
          return [back](Tensor g, const Need&) -> Grads { return {pad(g, back)}; };
        },
        [&](Attrs& at) {
          at("pad", pads);
          at("mode", std::string(mode));
          at("value", value.to_double());
        });
  }
  y = *x;
  for (const AxisPad& p : axes) {
    Shape next = y.shape();
    next[p.dim] = p.extent + p.before + p.after;
    y = gather_value(y, axis_rows(y, p.dim, shown(p, mode)), next);
  }
  if (axes.empty()) y = copy_value(*x);
  return record(
      kPad, std::move(y), {x},
      [&](Saver& s) {
        static_cast<void>(s.shape(0));
        return [axes, mode = std::string(mode)](Tensor g, const Need&) -> Grads {
          for (size_t k = axes.size(); k-- > 0;) {
            Shape before = g.shape();
            before[axes[k].dim] = axes[k].extent;
            g = index_add(zeros(before, g.dtype()), axes[k].dim, shown(axes[k], mode), g);
          }
          return {std::move(g)};
        };
      },
      [&](Attrs& at) {
        at("pad", pads);
        at("mode", std::string(mode));
      });
}

}  // namespace waymark
