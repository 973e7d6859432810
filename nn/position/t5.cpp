// t5 (Raffel et al. 2020): b_ij = bias[bucket(δ), h]. Near distances have a bucket each, far ones share buckets whose
// bounds grow geometrically up to max_distance; the last bucket takes all beyond. The bucket depends on δ alone.
// Bounds of the buckets: nn/position/t5_buckets.h.
#include "core/ops/shape.h"
#include "nn/position/distance_bias.h"
#include "nn/position/t5_buckets.h"

namespace waymark::nn::encodings {

namespace {

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
            check_t5_buckets(buckets, distance, both, "set bidirectional=false", problems);
          },
          .parameters = [](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"bias", {o.integer("buckets"), s.num_heads}, init::normal(0, 0.02), true, o.boolean("share_layers")}};
          },
          .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) { return std::make_unique<T5>(o, p("bias")); }};
}

}  // namespace waymark::nn::encodings
