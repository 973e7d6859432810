// fire (Li et al. 2024): N_i = max(T, p_i), T = |threshold|·init_threshold;  b_ij = mlp(ln(|cδ|+1)/(ln(|c|N_i+1) + 1e-6))_h.
// Distances count as a share of how far the query has come, but of T at least. A tie T = p_i belongs to T. While no query
// is past T, the bias depends on δ alone. In a bidirectional call the share may exceed 1 for keys to the right of an early
// query.
#include <cmath>

#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/functions.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/shape.h"
#include "nn/position/clipped_table.h"
#include "nn/position/distance_bias.h"
#include "nn/position/scale_option.h"

namespace waymark::nn::encodings {

namespace {

class Fire final : public Encoding {
 public:
  Fire(const Options& o, const ParameterLookup& p)
      : init_threshold_(o.real("init_threshold")),
        w0_(p("mlp.0.weight")),
        b0_(p("mlp.0.bias")),
        w2_(p("mlp.2.weight")),
        b2_(p("mlp.2.bias")),
        c_(p("c")),
        threshold_(p("threshold")) {}

  void prepare(const EncodingCall& call, const Tensor& q, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    const Tensor least = mul(abs(threshold_), init_threshold_);
    if (static_cast<double>(call.queries.largest()) <= least.item<double>())
      push_distance_bias(call, [&](const Tensor& delta) { return mlp(div(far(to(delta, q.dtype())), near(least))).mT(); }, terms);
    else
      terms.push_back({"bias", Stage::bias, PairTable{per_pair(call, least, q.dtype())}});
  }

 private:
  // ln(|cδ| + 1), ln(|c|N + 1) + 1e-6
  Tensor far(const Tensor& delta) const { return log1p(abs(mul(c_, delta))); }
  Tensor near(const Tensor& n) const { return add(log1p(mul(abs(c_), n)), 1e-6); }
  // [..., H] of x [...]
  Tensor mlp(const Tensor& x) const { return linear(relu(linear(x.unsqueeze(-1), w0_, b0_)), w2_, b2_); }

  // Every pair by itself: [rows, H, Lq, Lk], 0 where a side has no position.
  Tensor per_pair(const EncodingCall& call, const Tensor& least, DType dtype) const {
    const auto table = [&](const Positions& p) { return p.tensor().view({p.rows(), p.length()}); };
    const Tensor pq = table(call.queries).unsqueeze(2), pk = table(call.keys).unsqueeze(1);
    const Tensor at = to(pq, dtype), n = where(ge(least, at), least, at);
    const Tensor bias = permute(mlp(div(far(to(sub(pk, pq), dtype)), near(n))), {0, 3, 1, 2});
    return masked_fill(bias, logical_or(lt(pq, 0), lt(pk, 0)).unsqueeze(1), 0);
  }

  double init_threshold_;
  Tensor w0_, b0_, w2_, b2_, c_, threshold_;
};

}  // namespace

EncodingInfo fire() {
  return {.options = {"fire",
                      {{"hidden", int_option(32, 1, 1 << 16), "width of the network"},
                       {"init_threshold", scale_option(512), "queries up to here see plain distances, at the start of training"},
                       share_layers_option()},
                      "bias by a small network of the distance as a share of the position (Li 2024)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f = bias_facts("progressive: distance as a share of the position");
            f.shift_invariant = false;
            f.shift = "while p_i <= threshold";
            f.invariant_parameters = {"mlp.2.bias"};
            return f;
          },
          .formulas = {"b_ij = mlp(ln(|c·(p_j − p_i)| + 1)/(ln(|c|·N_i + 1) + 1e-6))_h,  N_i = max(|threshold|·init_threshold, p_i)",
                       "mlp: Linear(1, hidden), ReLU, Linear(hidden, H)"},
          .flops = bias_flops,
          .parameters = [](const Options& o, const EncodingSizes& s) {
            const bool shared = o.boolean("share_layers");
            std::vector<ParameterSpec> list;
            push_linear(list, "mlp.0", 1, o.integer("hidden"), shared);
            push_linear(list, "mlp.2", o.integer("hidden"), s.num_heads, shared);
            list.push_back({"c", {}, init::constant(0.1), true, shared});
            list.push_back({"threshold", {}, init::ones(), true, shared});
            return list;
          },
          .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) { return std::make_unique<Fire>(o, p); }};
}

}  // namespace waymark::nn::encodings
