// t5 (Raffel et al. 2020): b_ij = bias[bucket(δ), h]. Near distances have a bucket each, far ones share buckets whose
// bounds grow geometrically up to max_distance; the last bucket takes all beyond. The bucket depends on δ alone.
//   bidirectional: N = buckets/2, base = N if δ > 0 else 0, n = |δ|;     causal: N = buckets, base = 0, n = max(−δ, 0)
//   m = ⌊N/2⌋;  bucket = base + (n < m ? n : min(N − 1, m + ⌊ln(n/m)/ln(max_distance/m)·(N − m) + 1e-9⌋))
// The 1e-9 makes the formula in f64 equal to exact integer arithmetic.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/ops/shape.h"
#include "nn/position/distance_bias.h"

namespace waymark::nn::encodings {

namespace {

i64 t5_bucket(i64 delta, i64 buckets, i64 max_distance, bool bidirectional) {
  const i64 count = bidirectional ? buckets / 2 : buckets, base = bidirectional && delta > 0 ? count : 0;
  const i64 n = bidirectional ? std::abs(delta) : std::max<i64>(-delta, 0), m = count / 2;
  if (n < m) return base + n;
  const double share = std::log(static_cast<double>(n) / static_cast<double>(m)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(m));
  return base + std::min(count - 1, m + static_cast<i64>(std::floor(share * static_cast<double>(count - m) + 1e-9)));
}

// Beyond ±max_distance nothing changes.
PairIndex t5_index(i64 buckets, i64 max_distance, bool bidirectional) {
  PairIndex index{-max_distance, max_distance};
  for (i64 delta = -max_distance; delta <= max_distance; ++delta)
    index.row.push_back(t5_bucket(delta, buckets, max_distance, bidirectional));
  return index;
}

bool t5_bidirectional(const Options& o, bool causal) {
  return o.is_word("bidirectional", "auto") ? !causal : o.boolean("bidirectional");
}

class T5 final : public Encoding {
 public:
  T5(const Options& o, Tensor bias) : bias_(std::move(bias)) {
    const i64 buckets = o.integer("buckets"), distance = o.integer("max_distance");
    open_ = t5_index(buckets, distance, t5_bidirectional(o, false));
    causal_ = t5_index(buckets, distance, t5_bidirectional(o, true));
  }

  void prepare(const EncodingCall& call, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    terms.push_back({"bias", Stage::bias, Distance{bias_.mT(), call.causal ? causal_ : open_}});
  }

 private:
  PairIndex open_, causal_;
  Tensor bias_;  // [buckets, H]
};

}  // namespace

EncodingInfo t5() {
  return {.options = {"t5",
                      {{"buckets", int_option(32, 2, 1 << 20), "rows of the table; even if bidirectional"},
                       {"max_distance", int_option(128, 2, 1 << 20), "from here on all distances share the last bucket"},
                       {"bidirectional", bool_option("auto").or_word({"auto"}), "half of the buckets for keys to the right; auto: unless the call is causal"},
                       {"share_layers", bool_option(true), "one table for all layers"}},
                      "trained bias per bucket of distances and head (Raffel 2020)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f = bias_facts("last bucket");
            f.sees_direction = true;
            f.direction = "yes";
            return f;
          },
          .formulas = {"b_ij = bias[bucket(p_j − p_i), h]",
                       "buckets: one for each small distance, then geometrically wider ones up to max_distance"},
          .flops = bias_flops,
          .check = [](const Options& o, const EncodingSizes&, std::vector<std::string>& problems) {
            const i64 buckets = o.integer("buckets"), distance = o.integer("max_distance");
            const bool both = t5_bidirectional(o, false);
            const i64 near = (both ? buckets / 2 : buckets) / 2;
            if (both && buckets % 2 != 0)
              problems.push_back(fmt::format("buckets={} must be even, half of them for each direction; or set bidirectional=false", buckets));
            if (buckets > distance)
              problems.push_back(fmt::format("buckets={} is more than max_distance={}: some would stay empty", buckets, distance));
            if (near < 1)
              problems.push_back(fmt::format("buckets={} leaves no bucket for small distances; needs at least {}", buckets, both ? 4 : 2));
            else if (distance <= near)
              problems.push_back(fmt::format("max_distance={} must be greater than {}, the distances with a bucket of their own",
                                             distance, near));
          },
          .parameters = [](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"bias", {o.integer("buckets"), s.num_heads}, init::normal(0, 0.02), true, o.boolean("share_layers")}};
          },
          .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) { return std::make_unique<T5>(o, p("bias")); }};
}

}  // namespace waymark::nn::encodings
