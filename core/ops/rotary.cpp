#include "core/ops/rotary.h"

#include <algorithm>

#include "core/kernels/rotary.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

namespace {

void check_rotary(const Arg& x, const Arg& cos, const Arg& sin) {
  const char* op = "rotate_pairs";
  for (const Arg* a : {&x, &cos, &sin}) {
    check_defined(op, *a);
    need_float(op, **a);
    if ((*a)->dim() < 2) fail_at(a->loc(), op, "needs [..., L, d] and [..., L, m], got {}", (*a)->shape());
    if ((*a)->dtype() != x->dtype())
      fail_at(a->loc(), op, "dtypes differ: {} and {}; convert one with to(...)", name_of(x->dtype()), name_of((*a)->dtype()));
  }
  for (const Arg* a : {&cos, &sin}) {
    if (edge_of(**a).wanted()) fail_at(a->loc(), op, "cosines and sines are constants; detach() them");
    if ((*a)->shape().at(-2) != x->shape().at(-2) || 2 * (*a)->shape().at(-1) > x->shape().at(-1))
      fail_at(a->loc(), op, "{} does not fit x {}: needs [..., {}, at most {}]", (*a)->shape(), x->shape(), x->shape().at(-2),
              x->shape().at(-1) / 2);
    Shape wide = x->shape(), own = (*a)->shape();
    wide.resize(wide.size() - 2);
    own.resize(own.size() - 2);
    if (!broadcasts_to(own, wide)) fail_at(a->loc(), op, "the leading axes of {} do not expand to those of x {}", (*a)->shape(), x->shape());
  }
  if (!(cos->shape() == sin->shape())) fail_at(sin.loc(), op, "cos {} and sin {} differ in shape", cos->shape(), sin->shape());
}

// t with a last axis of step 1.
Tensor with_rows(const Tensor& t) { return t.size(-1) <= 1 || t.stride(-1) == 1 ? t : contiguous_value(t); }

Tensor rotate_value(const Tensor& x_, const Tensor& cos_, const Tensor& sin_, bool halves) {
  Tensor y = make_empty(x_.shape(), x_.dtype());
  if (y.numel() == 0) return y;
  const Tensor x = with_rows(x_);
  Shape angles = x.shape();
  angles[angles.size() - 1] = cos_.size(-1);
  const Tensor cos = expand_value(with_rows(cos_), angles), sin = expand_value(with_rows(sin_), angles);
  const int row_axis = x.dim() - 2;
  const i64 length = x.size(-2), d = x.size(-1), slabs = y.numel() / (length * d);
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    parallel_for(slabs, std::max<i64>(1, kGrain / (length * d)), [&](i64 begin, i64 end) {
      for (i64 s = begin; s < end; ++s) {
        i64 at_x = 0, at_cos = 0, at_sin = 0, left = s;
        for (int axis = row_axis - 1; axis >= 0; --axis) {
          const i64 i = left % x.shape()[axis];
          left /= x.shape()[axis];
          at_x += i * x.strides()[axis];
          at_cos += i * cos.strides()[axis];
          at_sin += i * sin.strides()[axis];
        }
        kernels::rotate_rows<T>({length, d, cos.size(-1), halves, y.data<T>() + s * length * d, d, x.data<T>() + at_x,
                                 x.strides()[row_axis], cos.data<T>() + at_cos, sin.data<T>() + at_sin,
                                 cos.strides()[row_axis], sin.strides()[row_axis]});
      }
    });
  });
  return y;
}

}  // namespace

extern constexpr OpInfo kRotatePairs{
    .name = "rotate_pairs", .family = "rotary", .doc = "channel pairs turned by angles that depend on the position",
    .schema = "rotate_pairs(Tensor input, Tensor cos, Tensor sin, str layout=\"interleaved\") -> Tensor",
    .formula = "(y_a, y_b) = (x_a·c − x_b·s, x_a·s + x_b·c)", .rule = "dx = the rotation of g by −φ",
    .saves = {{"cos", For{0}}, {"sin", For{0}}},
    .flops = [](OpCall& c) { return 3.0 * static_cast<double>(c.tensor("input").numel()); },
    .apply = [](OpCall& c) {
      const std::string layout = c.word("layout", "interleaved");
      if (layout != "interleaved" && layout != "halves")
        fail("rotate_pairs", "layout \"{}\" is neither interleaved nor halves", layout);
      c.result(rotate_pairs(c.tensor("input"), c.tensor("cos"), c.tensor("sin"), layout == "halves"));
    }};

Tensor rotate_pairs(Arg x, Arg cos, Arg sin, bool halves) {
  check_rotary(x, cos, sin);
  return record(kRotatePairs, rotate_value(*x, *cos, *sin, halves), {x, cos, sin}, [&](Saver& s) {
    return [c = s.input(1), sn = s.input(2), halves](Tensor g, const Need&) -> Grads {
      return {rotate_pairs(g, *c, neg(*sn), halves), Tensor(), Tensor()};
    };
  }, [&](Attrs& at) { at("layout", std::string(halves ? "halves" : "interleaved")); });
}

}  // namespace waymark
