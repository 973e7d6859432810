// shaw (Shaw et al. 2018, eq. 3 and 4): a_ij = q_i·w_r, and with values=true z_i = Σ_j α_ij (v_j + u_r).
// The paper finds the value side unnecessary; HF `relative_key` is key only, tensor2tensor uses both.
#include "nn/position/clipped_table.h"
#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

namespace {

class Shaw final : public Encoding {
 public:
  Shaw(Options options, Tensor keys, Tensor values)
      : options_(std::move(options)), keys_(std::move(keys)), values_(std::move(values)) {}

  void prepare(const EncodingCall& call, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    check_beyond(options_, call);
    terms.push_back({"table", Stage::table, Table{by_head(keys_, 3), Side::query, clip_index(options_)}});
    if (values_.defined()) terms.push_back({"values", Stage::value, Value{by_head(values_, 3), clip_index(options_)}});
  }

 private:
  Options options_;
  Tensor keys_, values_;
};

}  // namespace

EncodingInfo shaw() {
  return {.options = {"shaw",
                      {clip_option(), {"values", bool_option(false), "a second table, added to the values"}, per_head_option(),
                       beyond_option(), share_layers_option()},
                      "relative table added to the keys (Shaw 2018)"},
          .facts = [](const Options& o, bool, bool) {
            EncodingFacts f = clipped_facts();
            f.key_bias_is_constant = true;
            if (o.boolean("values")) {
              f.value_side = true;
              f.needs = {Capability::pair, Capability::token_qk, Capability::weight};
            }
            return f;
          },
          .formulas = {"a_ij = q_i·w_r,  r = clip(p_j − p_i, −clip, clip) + clip", "values=true: z_i = Σ_j α_ij·(v_j + u_r)"},
          .flops = [](const Options& o, const EncodingSizes& s, double queries, double keys) {
            return table_flops(o, s, queries, keys) * (o.boolean("values") ? 2 : 1);
          },
          .parameters = [](const Options& o, const EncodingSizes& s) {
            const bool shared = o.boolean("share_layers");
            std::vector<ParameterSpec> list = {{"key_table", table_shape(o, s), init::normal(0, kTableStd), false, shared}};
            if (o.boolean("values")) list.push_back({"value_table", table_shape(o, s), init::normal(0, kTableStd), false, shared});
            return list;
          },
          .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) {
            return std::make_unique<Shaw>(o, p("key_table"), o.boolean("values") ? p("value_table") : Tensor());
          }};
}

}  // namespace waymark::nn::encodings
