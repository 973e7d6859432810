// huang-m3: c_ij = Σ_t q_it k_jt w_rt, a product of query, key and relative position (Huang 2020, method 3 as commonly
// cited). It redefines the content product, so no other encoding may map q and k.
#include "nn/position/clipped_table.h"
#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

namespace {

class HuangM3 final : public Encoding {
 public:
  HuangM3(Options options, Tensor table) : options_(std::move(options)), table_(std::move(table)) {}

  void prepare(const EncodingCall& call, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    check_beyond(options_, call);
    terms.push_back({"content", Stage::content, ThreeWay{by_head(table_, 3), clip_index(options_)}});
  }

 private:
  Options options_;
  Tensor table_;
};

}  // namespace

EncodingInfo huang_m3() {
  return {.options = {"huang-m3", {clip_option(), per_head_option(), beyond_option(), share_layers_option()},
                      "three-way product of query, key and relative table (Huang 2020, method 3 as commonly cited)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f = clipped_facts();
            f.redefines_content = true;
            return f;
          },
          .formulas = {"e_ij = s·Σ_t q_it·k_jt·w_rt,  r = clip(p_j − p_i, −clip, clip) + clip"},
          // One factor more in each of the d summands of a score.
          .flops = [](const Options&, const EncodingSizes& s, double queries, double keys) {
            return static_cast<double>(s.num_heads * s.head_dim) * queries * keys;
          },
          // Around 1, the neutral value.
          .parameters = [](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"table", table_shape(o, s), init::normal(1, kTableStd), true, o.boolean("share_layers")}};
          },
          .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) {
            return std::make_unique<HuangM3>(o, p("table"));
          }};
}

}  // namespace waymark::nn::encodings
