// sandwich (Chi et al. 2022): b_ij = (H/(8h))·[Σ_{t=1}^{D/2} cos(δ·10000^(−2t/D)) − D/2], h = 1 … H: the product of two
// sinusoidal embeddings without the content around it. t starts at 1. Angles are formed and evaluated in f64, then cast.
#include <cmath>

#include "core/ops/convert.h"
#include "nn/position/distance_bias.h"

namespace waymark::nn::encodings {

namespace {

class Sandwich final : public Encoding {
 public:
  Sandwich(const Options& o, const EncodingSizes& sizes) : heads_(sizes.num_heads) {
    const double dim = static_cast<double>(o.integer("dim"));
    for (i64 t = 1; t <= o.integer("dim") / 2; ++t) omega_.push_back(std::pow(10000.0, -2 * static_cast<double>(t) / dim));
  }

  void prepare(const EncodingCall& call, const Tensor& q, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    push_distance_bias(call, [&](const Tensor& delta) {
      const i64 count = delta.numel();
      const Tensor beta = make_empty({heads_, count}, kF64);
      for (i64 r = 0; r < count; ++r) {
        double bracket = 0;
        for (const double w : omega_) bracket += std::cos(delta.data<double>()[r] * w) - 1;
        for (i64 h = 0; h < heads_; ++h)
          beta.data<double>()[h * count + r] = static_cast<double>(heads_) / (8 * static_cast<double>(h + 1)) * bracket;
      }
      return to(beta, q.dtype());
    }, terms);
  }

 private:
  i64 heads_;
  std::vector<double> omega_;
};

}  // namespace

EncodingInfo sandwich() {
  return {.options = {"sandwich", {{"dim", int_option(128, 2, 1 << 20), "channels of the sinusoids whose product it is; even"}},
                      "bias of the product of two sinusoids (Chi 2022)"},
          .facts = [](const Options&, bool, bool) { return bias_facts("defined, falls (oscillates slightly)"); },
          .formulas = {"b_ij = H/(8h)·(Σ_{t=1}^{dim/2} cos((p_j − p_i)·10000^(−2t/dim)) − dim/2),  h = 1 … H"},
          .flops = bias_flops,
          .check = [](const Options& o, const EncodingSizes&, std::vector<std::string>& problems) {
            if (o.integer("dim") % 2 != 0)
              problems.push_back(fmt::format("dim={} must be even: sines and cosines come in pairs", o.integer("dim")));
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup&) { return std::make_unique<Sandwich>(o, s); }};
}

}  // namespace waymark::nn::encodings
