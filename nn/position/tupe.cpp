// tupe (Ke et al. 2021): positions correlate among themselves, apart from the content.
//   P̃ = LayerNorm(weight), Π^q = query_proj(P̃), Π^k = key_proj(P̃), row(p) = p + 1;  a_ij = Π^q_row(p_i)·Π^k_row(p_j)
//   a key without position has Π^q_1·Π^k_1 instead, a query without one Π^q_0·Π^k_0, which wins: the paper's untied [CLS].
//   relative=true: + bias[bucket(δ), h], buckets of t5 for both directions; row `buckets` for a key, row buckets/2, which no
//   difference has, for a query without position.
// Scores are divided by √(2d). Row 0 is of no position; to have [CLS] of index 0 as the authors' code has it, use the
// positions −1, 1, 2, ...
#include <algorithm>

#include "core/ops/arithmetic.h"
#include "core/ops/embedding.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/normalisation.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "nn/position/clipped_table.h"
#include "nn/position/projected_rows.h"
#include "nn/position/t5_buckets.h"

namespace waymark::nn::encodings {

namespace {

class Tupe final : public Encoding {
 public:
  Tupe(const Options& o, const EncodingSizes& sizes, const ParameterLookup& p)
      : heads_(sizes.num_heads),
        max_len_(o.integer("max_len")),
        buckets_(o.integer("buckets")),
        weight_(p("weight")),
        norm_weight_(p("norm.weight")),
        norm_bias_(p("norm.bias")),
        query_weight_(p("query_proj.weight")),
        query_bias_(p("query_proj.bias")),
        key_weight_(p("key_proj.weight")),
        key_bias_(p("key_proj.bias")) {
    if (!o.boolean("relative")) return;
    bias_ = p("bias");
    index_ = t5_index(buckets_, o.integer("max_distance"), true);
  }

  void prepare(const EncodingCall& call, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    check_in_table("tupe", call.queries, max_len_);
    check_in_table("tupe", call.keys, max_len_);
    // Rows 0 and 1 and those of the call, each projected once.
    std::vector<i64> rows = {0, 1};
    for (const Positions* p : {&call.queries, &call.keys})
      for (const i64 v : p->tensor().to_vector<i64>()) rows.push_back(v + 1);
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    const Tensor normed = layer_norm(embedding(as_ids(rows), weight_), {weight_.size(1)}, norm_weight_, norm_bias_, kNormEps);
    const Tensor pi_q = linear(normed, query_weight_, query_bias_), pi_k = linear(normed, key_weight_, key_bias_);
    const Tensor own = sum(mul(rows_by_head(pi_q.narrow(0, 0, 2), heads_), rows_by_head(pi_k.narrow(0, 0, 2), heads_)), -1);  // [H, 2]
    terms.push_back({"position_bias", Stage::table,
                     RowProduct{.x = of_tokens(pi_q, call.queries, rows), .y = of_tokens(pi_k, call.keys, rows), .reset = key_first(own)}});
    if (!bias_.defined()) return;
    const Tensor by_row = bias_.mT();  // [H, buckets + 1]
    terms.push_back({"bias", Stage::bias,
                     Distance{by_row, index_, cat({by_row.narrow(1, buckets_, 1), by_row.narrow(1, buckets_ / 2, 1)}, 1)}});
  }

 private:
  static Tensor as_ids(const std::vector<i64>& values) {
    const Tensor t = make_empty({static_cast<i64>(values.size())}, kI64);
    std::copy(values.begin(), values.end(), t.data<i64>());
    return t;
  }
  // Of rows 0 and 1, [H, 2]: first that of a key without position, which is row 1's.
  static Tensor key_first(const Tensor& own) { return cat({own.narrow(1, 1, 1), own.narrow(1, 0, 1)}, 1); }

  // [1|B, H, L, d] of the projected rows [R, H·d].
  Tensor of_tokens(const Tensor& projected, const Positions& positions, const std::vector<i64>& rows) const {
    std::vector<i64> at;
    for (const i64 p : positions.tensor().to_vector<i64>())
      at.push_back(std::lower_bound(rows.begin(), rows.end(), p + 1) - rows.begin());
    const Tensor ids = as_ids(at).view({positions.rows(), positions.length()});
    return embedding(ids, projected).view({positions.rows(), positions.length(), heads_, projected.size(1) / heads_}).transpose(1, 2);
  }

  i64 heads_, max_len_, buckets_;
  PairIndex index_;
  Tensor weight_, norm_weight_, norm_bias_, query_weight_, query_bias_, key_weight_, key_bias_, bias_;
};

}  // namespace

EncodingInfo tupe() {
  return {.options = {"tupe",
                      {{"max_len", int_option(512, 1, i64{1} << 31).default_from("model.max_len"), "positions with a row of their own"},
                       {"relative", bool_option(false), "a bias per bucket of distances, too"},
                       {"buckets", int_option(32, 2, 1 << 20), "of relative=true: rows for distances; even"},
                       {"max_distance", int_option(128, 2, 1 << 20), "of relative=true: from here on all distances share the last bucket"},
                       {"share_layers", bool_option(true), "computed once, for all layers"}},
                      "scores of positions among themselves, apart from the content (Ke 2021)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f = clipped_facts();
            f.extra_terms = 1;
            f.shift_invariant = false;
            f.beyond_trained = "error at p >= max_len";
            f.key_bias_is_constant = true;
            f.terms_of_positions = true;
            f.invariant_parameters = {"key_proj.bias"};
            return f;
          },
          .formulas = {"a_ij = Π^q[p_i]·Π^k[p_j],  Π^q = query_proj(P̃), Π^k = key_proj(P̃), P̃ = LayerNorm(weight);  scores are divided by √(2d)",
                       "relative=true: b_ij = bias[bucket(p_j − p_i), h]", "tokens without position have scores of their own"},
          .flops = [](const Options& o, const EncodingSizes& s, double queries, double keys) {
            const double channels = static_cast<double>(s.num_heads * s.head_dim), pairs = queries * keys;
            return 2 * channels * (pairs + (queries + keys) * static_cast<double>(s.embed_dim)) +
                   (o.boolean("relative") ? static_cast<double>(s.num_heads) * pairs : 0);
          },
          .check = [](const Options& o, const EncodingSizes&, std::vector<std::string>& problems) {
            if (o.boolean("relative")) check_t5_buckets(o.integer("buckets"), o.integer("max_distance"), true, "", problems);
          },
          .parameters = [](const Options& o, const EncodingSizes& s) {
            const bool shared = o.boolean("share_layers");
            std::vector<ParameterSpec> list = {{"weight", {o.integer("max_len") + 1, s.embed_dim}, init::normal(0, kTableStd), false, shared}};
            push_norm(list, s.embed_dim, shared);
            push_projection(list, "query_proj", s.embed_dim, s.num_heads * s.head_dim, true, shared);
            push_projection(list, "key_proj", s.embed_dim, s.num_heads * s.head_dim, true, shared);
            if (o.boolean("relative")) list.push_back({"bias", {o.integer("buckets") + 1, s.num_heads}, init::normal(0, kTableStd), true, shared});
            return list;
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup& p) { return std::make_unique<Tupe>(o, s, p); }};
}

}  // namespace waymark::nn::encodings
