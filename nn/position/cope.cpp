// cope (Golovneva et al. 2024): positions counted by content. A key stands as far back as gates σ(ê) of the keys from it on
// add up to; ê is the scaled score of everything else, as both public codes have it (the paper's text writes σ(q·k)).
// The count of a pair is capped at max_pos − 1, and the term is q_i·table at the count, between two rows linearly. Keys
// count in the order of their slots: a cache appends.
#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

namespace {

class Cope final : public Encoding {
 public:
  explicit Cope(Tensor table) : table_(std::move(table)) {}

  void prepare(const EncodingCall&, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    terms.push_back({"cope", Stage::gate, Prefix{table_}});
  }

 private:
  Tensor table_;
};

}  // namespace

EncodingInfo cope() {
  return {.options = {"cope",
                      {{"max_pos", int_option(64, 1, 1 << 20), "rows of the table: larger counts are capped"},
                       {"share_layers", bool_option(false), "one table for all layers"}},
                      "positions counted by gates of the content, causal only (Golovneva 2024)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::score;
            f.needs = {Capability::pair, Capability::token_qk, Capability::row};
            f.needs_causal_call = true;
            f.reads_positions = false;
            f.direction = "causal only";
            f.shift_invariant = true;
            f.beyond_trained = "saturates at max_pos − 1";
            return f;
          },
          .formulas = {"cope_ij = q_i·table[P_ij], between two rows linearly,  P_ij = min(Σ_{t=j…i} σ(ê_it), max_pos − 1)",
                       "ê: the score without this term"},
          .flops = [](const Options& o, const EncodingSizes& s, double queries, double keys) {
            const double rows = static_cast<double>(o.integer("max_pos"));
            return static_cast<double>(s.num_heads) * (2 * queries * rows * static_cast<double>(s.head_dim) + queries * keys);
          },
          .parameters = [](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"table", {o.integer("max_pos"), s.head_dim}, init::zeros(), false, o.boolean("share_layers")}};
          },
          .make = [](const Options&, const EncodingSizes&, const ParameterLookup& p) { return std::make_unique<Cope>(p("table")); }};
}

}  // namespace waymark::nn::encodings
