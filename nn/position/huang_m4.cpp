// huang-m4: a_ij = q_i·w_r + k_j·w_r (Huang 2020, method 4; HF `relative_key_query` by the paper's first author).
// e_ij = s[(q_i + w_r)·(k_j + w_r) − w_r·w_r]: one vector serves both terms and is not projected.
#include "nn/position/clipped_table.h"
#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

namespace {

class HuangM4 final : public Encoding {
 public:
  HuangM4(Options options, Tensor table) : options_(std::move(options)), table_(std::move(table)) {}

  void prepare(const EncodingCall& call, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    check_beyond(options_, call);
    terms.push_back({"table", Stage::table, Table{by_head(table_, 3), Side::both, clip_index(options_)}});
  }

 private:
  Options options_;
  Tensor table_;
};

}  // namespace

EncodingInfo huang_m4() {
  return {.options = {"huang-m4", {clip_option(), per_head_option(), beyond_option(), share_layers_option()},
                      "relative table added to queries and keys (Huang 2020, method 4)"},
          .facts = [](const Options&, bool, bool) { return clipped_facts(); },
          .formulas = {"e_ij = s·(q_i·k_j + q_i·w_r + k_j·w_r),  r = clip(p_j − p_i, −clip, clip) + clip"},
          .flops = [](const Options& o, const EncodingSizes& s, double queries, double keys) {
            return table_flops(o, s, queries, keys) + table_flops(o, s, keys, queries);
          },
          .parameters = [](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"table", table_shape(o, s), init::normal(0, kTableStd), false, o.boolean("share_layers")}};
          },
          .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) {
            return std::make_unique<HuangM4>(o, p("table"));
          }};
}

}  // namespace waymark::nn::encodings
