// prod (declared in reduce.h).
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/reduce_plan.h"
#include "core/ops/scan.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kProd{.name = "prod",
                              .family = "reduce",
                              .doc = "product over all elements or one axis",
                              .schema = "prod(Tensor input, int? dim=None, bool keepdim=False) -> Tensor",
                              .formula = "y = Π x",
                              .rule = "dxᵢ = g·Π_{j<i} xⱼ·Π_{j>i} xⱼ",
                              .saves = {{"input", For{0}}},
                              .apply = [](OpCall& c) {
                                if (c.has("dim"))
                                  c.result(prod(c.tensor("input"), c.integer("dim"), c.flag("keepdim", false)));
                                else
                                  c.result(prod(c.tensor("input")));
                              }};

namespace {

Tensor prod_value(const ReducePlan& p) {
  const DType t = is_float(p.source.dtype()) ? p.source.dtype() : kI64;
  const Tensor x = cast_value(p.source, t);
  Tensor y = make_empty(p.out, t);
  const i64 outer = p.outer, n = p.n, inner = p.inner;
  visit_dtype(t, [&](auto zero) {
    using T = decltype(zero);
    using Wide = std::conditional_t<std::is_same_v<T, i64>, u64, double>;  // i64 wraps; f32 multiplies in f64
    if constexpr (!std::is_same_v<T, bool>) {
      const T* from = x.data<T>();
      T* to = y.data<T>();
      parallel_for(outer * inner, std::max<i64>(1, kGrain / std::max<i64>(n, 1)), [&](i64 begin, i64 end) {
        for (i64 r = begin; r < end; ++r) {
          const T* row = from + r / inner * n * inner + r % inner;
          Wide product = 1;
          for (i64 i = 0; i < n; ++i) product *= static_cast<Wide>(row[i * inner]);
          to[r] = static_cast<T>(product);
        }
      });
    }
  });
  return y;
}

// Π of the others along d. x has at least 1 axis.
Tensor product_of_others(const Tensor& x, int d) {
  return mul(product_before(x, d, false), product_before(x, d, true));
}

}  // namespace

Tensor prod(Arg x) {
  check_defined("prod", x);
  return record(kProd, prod_value(plan_reduce("prod", *x, {}, false)), {x}, [&](Saver& s) {
    return [shape = x->shape(), x = s.input(0)](Tensor g, const Need&) -> Grads {
      const Tensor flat = reshape(*x, {-1});
      if (flat.numel() == 0) return {reshape(flat, shape)};
      return {reshape(mul(product_of_others(flat, 0), g), shape)};
    };
  });
}

Tensor prod(Arg x, i64 dim, bool keepdim) {
  check_defined("prod", x);
  if (x->dim() == 0) {
    static_cast<void>(wrap_dim("prod", dim, 0));
    return prod(x);
  }
  const int d = wrap_dim("prod", dim, x->dim());
  const ReducePlan p = plan_reduce("prod", *x, Dims(d), keepdim);
  return record(
      kProd, prod_value(p), {x},
      [&](Saver& s) {
        return [d, kept = p.kept, x = s.input(0)](Tensor g, const Need&) -> Grads {
          const Tensor v = *x;
          if (v.numel() == 0) return {mul(v, 0)};
          return {mul(product_of_others(v, d), with_axes(g, kept))};
        };
      },
      [&](Attrs& at) {
        at("dim", i64{d});
        at("keepdim", keepdim);
      });
}

}  // namespace waymark
