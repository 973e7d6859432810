// cope (Golovneva et al. 2024): contextual positions. Position is a count of keys, each counted by the gate of its score.
//   g_it = σ(ê_it),  P_ij = min(Σ_{t >= j, allowed} g_it, max_pos − 1),  cope_ij = (1−w)·q_i·table_f + w·q_i·table_{f+1}
// ê is the scaled score of everything before it, as both public implementations take it (the paper's text writes σ(q·k)).
// It reads no positions: keys count in the order in which they are stored.
#include "nn/position/clipped_table.h"
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
                      {{"max_pos", int_option(64, 1, 1 << 20), "rows of the table; larger counts share the last"}, share_layers_option()},
                      "positions counted by gates of the scores (Golovneva 2024)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::score;
            f.needs = {Capability::pair, Capability::token_qk, Capability::row};
            f.needs_causal_call = true;
            f.reads_positions = false;
            f.direction = "only in a causal call, which it needs";
            f.shift_invariant = true;
            f.beyond_trained = "saturates at max_pos − 1";
            return f;
          },
          .formulas = {"P_ij = min(Σ_{t ≥ j, t allowed} σ(ê_it), max_pos − 1),  f = ⌊P_ij⌋,  w = P_ij − f",
                       "e_ij = ê_ij + (1−w)·q_i·table_f + w·q_i·table_{f+1},  ê the score of everything else"},
          // A product of the queries with the table; for each pair gate, count and interpolation.
          .flops = [](const Options& o, const EncodingSizes& s, double queries, double keys) {
            const double heads = static_cast<double>(s.num_heads), rows = static_cast<double>(o.integer("max_pos") * s.head_dim);
            return heads * (2 * queries * rows + 6 * queries * keys);
          },
          .parameters = [](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"table", {o.integer("max_pos"), s.head_dim}, init::zeros(), false, o.boolean("share_layers")}};
          },
          .make = [](const Options&, const EncodingSizes&, const ParameterLookup& p) { return std::make_unique<Cope>(p("table")); }};
}

}  // namespace waymark::nn::encodings
