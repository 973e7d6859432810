// fourier (Li et al. 2021, one-dimensional): x + mlp(Φ(p)), Φ(p) = F^(−½)·[cos(p·w); sin(p·w)] with F/2 trained
// frequencies w ~ N(0, 1/γ²), so that E⟨Φ(p), Φ(p')⟩ = ½·exp(−(p−p')²/(2γ²)): that is why the s.d. is 1/γ, not 1/γ².
// Angles are formed and evaluated in f64, then cast. The network runs once per distinct position.
#include <algorithm>
#include <cmath>

#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/embedding.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/shape.h"
#include "nn/position/distance_bias.h"
#include "nn/position/scale_option.h"

namespace waymark::nn::encodings {

namespace {

i64 fourier_features(const Options& o, const EncodingSizes& s) {
  return o.is_word("features", "E") ? s.embed_dim : o.integer("features");
}

class Fourier final : public Encoding {
 public:
  explicit Fourier(const ParameterLookup& p)
      : frequencies_(p("frequencies")),
        w0_(p("mlp.0.weight")),
        b0_(p("mlp.0.bias")),
        w2_(p("mlp.2.weight")),
        b2_(p("mlp.2.bias")) {}

  Tensor add_to_input(const Tensor& x, const Positions& positions) const override {
    const std::vector<i64> all = positions.tensor().to_vector<i64>();
    std::vector<i64> distinct = all;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    if (distinct.empty()) return x;
    const Tensor p = make_empty({static_cast<i64>(distinct.size()), 1}, kF64), row = make_empty(positions.tensor().shape(), kI64);
    std::transform(distinct.begin(), distinct.end(), p.data<double>(), [](i64 v) { return static_cast<double>(v); });
    for (size_t i = 0; i < all.size(); ++i)
      row.data<i64>()[i] = std::lower_bound(distinct.begin(), distinct.end(), all[i]) - distinct.begin();
    Tensor rows = values(p, x.dtype());
    // Nothing is added to a token without position.
    if (distinct.front() < 0) rows = masked_fill(rows, lt(p, 0), 0);
    return add(x, embedding(row, rows));
  }

 private:
  // mlp(Φ(p)) [P, E] of p [P, 1].
  Tensor values(const Tensor& p, DType dtype) const {
    const Tensor angle = matmul(p, to(frequencies_, kF64).mT());
    const double scale = 1 / std::sqrt(2 * static_cast<double>(frequencies_.size(0)));
    const Tensor phi = to(mul(cat({cos(angle), sin(angle)}, -1), scale), dtype);
    return linear(gelu(linear(phi, w0_, b0_)), w2_, b2_);
  }

  Tensor frequencies_, w0_, b0_, w2_, b2_;
};

}  // namespace

EncodingInfo fourier() {
  return {.options = {"fourier",
                      {{"features", int_option("E", 2, 1 << 20).or_word({"E"}), "sines and cosines; even; E: the width of the model"},
                       {"hidden", int_option(32, 1, 1 << 16), "width of the network"},
                       {"gamma", scale_option(10), "distance over which positions look alike at the start"}},
                      "a small network of trained sines and cosines added to the embeddings (Li 2021)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::input;
            f.sees_direction = true;
            f.direction = "yes";
            f.beyond_trained = "defined, the network extrapolates";
            f.key_bias_is_constant = true;
            return f;
          },
          .formulas = {"x + mlp(F^(−½)·[cos(p·w); sin(p·w)]),  w: F/2 = features/2 trained frequencies",
                       "mlp: Linear(features, hidden), GELU, Linear(hidden, E)"},
          .check = [](const Options& o, const EncodingSizes& s, std::vector<std::string>& problems) {
            if (const i64 n = fourier_features(o, s); n % 2 != 0)
              problems.push_back(fmt::format("features={} must be even: sines and cosines come in pairs", n));
          },
          .parameters = [](const Options& o, const EncodingSizes& s) {
            const i64 features = fourier_features(o, s);
            std::vector<ParameterSpec> list = {{"frequencies", {features / 2, 1}, init::normal(0, 1 / o.real("gamma"))}};
            push_linear(list, "mlp.0", features, o.integer("hidden"), false);
            push_linear(list, "mlp.2", o.integer("hidden"), s.embed_dim, false);
            return list;
          },
          .make = [](const Options&, const EncodingSizes&, const ParameterLookup& p) { return std::make_unique<Fourier>(p); }};
}

}  // namespace waymark::nn::encodings
