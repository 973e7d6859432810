// deberta (He et al. 2021): a_ij = q_i·K^r_x + k_j·Q^r_x, with rows K^r = key_proj(table), Q^r = query_proj(table) and
//   x = clip(p_i − p_j + C, 0, 2C − 1), C = clip;  buckets = β > 0: x = clip(λ(p_i − p_j) + β, 0, 2β − 1)
//   λ(ρ) = ρ for |ρ| <= mid = ⌊β/2⌋, else sign(ρ)·(⌈ln(|ρ|/mid)/ln((clip−1)/mid)·(mid−1) − 1e-9⌉ + mid)
// Query minus key and an even number of rows, as microsoft/DeBERTa has them; both terms read the row of (i, j), as that code
// and Hugging Face's do. The paper's equation has the row of (j, i) for the second term: p2c_index=ji. The 1e-9 makes the
// formula in f64 equal to exact arithmetic. Scores are divided by √(d·(1 + number of terms)).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "core/ops/matmul.h"
#include "core/ops/normalisation.h"
#include "core/ops/shape.h"
#include "nn/position/clipped_table.h"
#include "nn/position/differences.h"
#include "nn/position/projected_rows.h"

namespace waymark::nn::encodings {

namespace {

bool has_c2p(const Options& o) { return o.word("terms") != "p2c"; }
bool has_p2c(const Options& o) { return o.word("terms") != "c2p"; }
// Rows of the table: half for each sign.
i64 half_rows(const Options& o) { return o.integer("buckets") > 0 ? o.integer("buckets") : o.integer("clip"); }

// The row of t = p_i − p_j.
i64 deberta_row(i64 t, i64 clip, i64 buckets) {
  if (buckets == 0) return std::clamp(t + clip, i64{0}, 2 * clip - 1);
  const i64 mid = buckets / 2, far = std::abs(t);
  i64 bucket = far;
  if (far > mid) {
    const double m = static_cast<double>(mid);
    const double share = std::log(static_cast<double>(far) / m) / std::log(static_cast<double>(clip - 1) / m);
    bucket = static_cast<i64>(std::ceil(share * (m - 1) - 1e-9)) + mid;
  }
  return std::clamp((t < 0 ? -bucket : bucket) + buckets, i64{0}, 2 * buckets - 1);
}

class Deberta final : public Encoding {
 public:
  Deberta(const Options& o, const EncodingSizes& sizes, const ParameterLookup& p)
      : heads_(sizes.num_heads),
        head_dim_(sizes.head_dim),
        clip_(o.integer("clip")),
        buckets_(o.integer("buckets")),
        c2p_(has_c2p(o)),
        p2c_(has_p2c(o)),
        borrowed_(o.boolean("share_projections")),
        swapped_(o.word("p2c_index") == "ji"),
        table_(p("table")) {
    if (c2p_ && !borrowed_) key_ = {p("key_proj.weight"), p("key_proj.bias")};
    if (p2c_ && !borrowed_) query_ = {p("query_proj.weight"), p("query_proj.bias")};
    if (o.boolean("normalize_table")) norm_ = {p("norm.weight"), p("norm.bias")};
  }

  void prepare(const EncodingCall& call, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    if (borrowed_ && !(call.project_query && call.project_key))
      fail("deberta", "share_projections=true uses the q_proj and k_proj of an attention, and there are none; use share_projections=false");
    const Tensor table = norm_[0].defined() ? layer_norm(table_, {table_.size(1)}, norm_[0], norm_[1], kNormEps) : table_;
    const Differences d = differences_of(call);
    if (c2p_) {
      const Tensor rows = borrowed_ ? call.project_key(table) : linear(table, key_[0], key_[1]);
      terms.push_back({"table", Stage::table, Table{rows_by_group(rows, heads_, head_dim_), Side::query, index(d, false)}});
    }
    if (p2c_) {
      const Tensor rows = borrowed_ ? call.project_query(table) : linear(table, query_[0], query_[1]);
      terms.push_back({"table", Stage::table, Table{rows_by_group(rows, heads_, head_dim_), Side::key, index(d, swapped_)}});
    }
  }

 private:
  // Of the differences δ = p_j − p_i of a call; swapped: the rows of (j, i).
  PairIndex index(const Differences& d, bool swapped) const {
    PairIndex x = d.index;
    for (const i64 delta : d.values) x.row.push_back(deberta_row(swapped ? delta : -delta, clip_, buckets_));
    return x;
  }

  i64 heads_, head_dim_, clip_, buckets_;
  bool c2p_, p2c_, borrowed_, swapped_;
  Tensor table_;
  std::array<Tensor, 2> key_, query_, norm_;  // weight and bias
};

}  // namespace

EncodingInfo deberta() {
  return {.options = {"deberta",
                      {{"clip", int_option(16, 1, 1 << 20), "differences beyond it share the end rows"},
                       {"terms", word_option("c2p+p2c", {"c2p+p2c", "c2p", "p2c"}), "query with relative key, key with relative query, or both"},
                       {"share_projections", bool_option(false), "the table goes through the attention's own q_proj and k_proj"},
                       {"buckets", int_option(0, 0, 1 << 20), "rows for each direction that grow geometrically wide up to the clip; 0: a row per difference"},
                       {"p2c_index", word_option("ij", {"ij", "ji"}), "row of the second term: of (i, j) as in the authors' code, or of (j, i) as in the paper"},
                       {"normalize_table", bool_option(false), "LayerNorm of the table before the projections"},
                       {"share_layers", bool_option(true), "one table for all layers; projections stay per layer"}},
                      "relative table, projected to queries and keys (He 2021)"},
          .facts = [](const Options& o, bool, bool) {
            EncodingFacts f = clipped_facts();
            f.extra_terms = (has_c2p(o) ? 1 : 0) + (has_p2c(o) ? 1 : 0);
            f.beyond_trained = "saturates";
            f.key_bias_is_constant = !has_p2c(o);
            if (o.boolean("share_projections")) f.needs = {Capability::pair, Capability::token_qk, Capability::query_key, Capability::free_qk};
            else if (has_c2p(o)) f.invariant_parameters = {"key_proj.bias"};
            // It adds the same to all rows, and so q_i·(the same) to all scores of a row.
            if (!has_p2c(o) && o.boolean("normalize_table")) f.invariant_parameters.emplace_back("norm.bias");
            return f;
          },
          .formulas = {"a_ij = q_i·K_x + k_j·Q_x,  x = clip(p_i − p_j + clip, 0, 2·clip − 1)",
                       "K = key_proj(table), Q = query_proj(table);  scores are divided by √(d·(1 + number of terms))"},
          .flops = [](const Options& o, const EncodingSizes& s, double queries, double keys) {
            const double rows = 2 * static_cast<double>(half_rows(o)), channels = static_cast<double>(s.num_heads * s.head_dim);
            const double pairs = static_cast<double>(s.num_heads) * queries * keys;
            const double projection = 2 * rows * channels * static_cast<double>(s.embed_dim);
            return (has_c2p(o) ? 2 * queries * rows * channels + pairs + projection : 0) +
                   (has_p2c(o) ? 2 * keys * rows * channels + pairs + projection : 0);
          },
          .check = [](const Options& o, const EncodingSizes&, std::vector<std::string>& problems) {
            const i64 buckets = o.integer("buckets"), clip = o.integer("clip");
            if (buckets == 1) problems.push_back("buckets=1 leaves none for small differences; needs at least 2, or 0 for a row per difference");
            else if (buckets > 1 && clip - 1 <= buckets / 2)
              problems.push_back(fmt::format("clip={} must be greater than {}: the first {} differences have a bucket of their own", clip,
                                             buckets / 2 + 1, buckets / 2));
          },
          .parameters = [](const Options& o, const EncodingSizes& s) {
            const bool shared = o.boolean("share_layers"), own = !o.boolean("share_projections");
            std::vector<ParameterSpec> list = {{"table", {2 * half_rows(o), s.embed_dim}, init::normal(0, kTableStd), false, shared}};
            if (has_c2p(o) && own) push_projection(list, "key_proj", s.embed_dim, s.num_heads * s.head_dim, true);
            if (has_p2c(o) && own) push_projection(list, "query_proj", s.embed_dim, s.num_heads * s.head_dim, true);
            if (o.boolean("normalize_table")) push_norm(list, s.embed_dim, shared);
            return list;
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup& p) { return std::make_unique<Deberta>(o, s, p); }};
}

}  // namespace waymark::nn::encodings
