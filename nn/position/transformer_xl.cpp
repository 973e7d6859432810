// transformer-xl (Dai et al. 2019, section 3.3; segments: Yang et al. 2019, section 2.5), with t = p_i − p_j:
//   a_ij = q_i·ρ_t + content_bias·k_j + position_bias·ρ_t,  ρ_t = r_proj([sin | cos] of t, width E)
//          [+ (q_i + segment_bias)·segment_embed_σ,  σ = 0 in the same segment, 1 else]
// sin(−t) = −sin t, so both directions differ. clamp acts on t before the sinusoid. ρ is computed once per call, for the t
// that the call has.
#include "core/ops/convert.h"
#include "core/ops/matmul.h"
#include "core/ops/rearrange.h"
#include "core/ops/shape.h"
#include "nn/position/clipped_table.h"
#include "nn/position/differences.h"
#include "nn/position/projected_rows.h"
#include "nn/position/sinusoid.h"

namespace waymark::nn::encodings {

namespace {

// ⟨x_hr, bias_h⟩ of x [..., H, R, d] with bias [H, d]: [..., H, R]
Tensor dot_by_head(const Tensor& x, const Tensor& bias) { return matmul(x, bias.unsqueeze(-1)).squeeze(-1); }

class TransformerXl final : public Encoding {
 public:
  TransformerXl(const Options& o, const EncodingSizes& sizes, const ParameterLookup& p)
      : heads_(sizes.num_heads),
        clamp_(o.integer("clamp")),
        omega_(sinusoid_frequencies(sizes.embed_dim, 10000)),
        projection_(p("r_proj.weight")),
        content_bias_(p("content_bias")),
        position_bias_(p("position_bias")) {
    if (!o.boolean("segments")) return;
    segment_bias_ = p("segment_bias");
    segment_embed_ = p("segment_embed");
  }

  void prepare(const EncodingCall& call, const Tensor& q, const Tensor& k, std::vector<ScoreTerm>& terms) const override {
    if (segment_embed_.defined() && !call.key_segments.defined())
      fail("transformer-xl", "segments=true reads the segments of the call, and there are none");
    Differences d = clamp_ > 0 ? differences_of(call, -clamp_, clamp_) : differences_of(call);
    const Tensor rho = rows_by_head(linear(to(sinusoids(d.values), q.dtype()), projection_), heads_);
    const Tensor keys = k.size(1) == heads_ ? k : repeat_interleave(k, heads_ / k.size(1), 1);
    terms.push_back({"table", Stage::table, Table{rho, Side::query, d.index}});
    terms.push_back({"content_bias", Stage::table, KeyBias{dot_by_head(keys, content_bias_)}});
    terms.push_back({"position_bias", Stage::table, Distance{dot_by_head(rho, position_bias_), d.index}});
    if (!segment_embed_.defined()) return;
    const PairIndex classes{.query_class = call.query_segments, .key_class = call.key_segments};
    const Tensor embed = segment_embed_.transpose(0, 1);  // [H, 2, d]
    terms.push_back({"segment", Stage::table, Table{embed, Side::query, classes}});
    terms.push_back({"segment_bias", Stage::table, Distance{dot_by_head(embed, segment_bias_), classes}});
  }

 private:
  // Of t = −δ: [T, E]
  Tensor sinusoids(const std::vector<i64>& differences) const {
    const i64 width = projection_.size(1);
    const Tensor rows = make_empty({static_cast<i64>(differences.size()), width}, kF64);
    double* row = rows.data<double>();
    for (const i64 delta : differences) {
      write_sinusoid(static_cast<double>(-delta), omega_, true, {row, static_cast<size_t>(width)});
      row += width;
    }
    return rows;
  }

  i64 heads_, clamp_;
  std::vector<double> omega_;
  Tensor projection_, content_bias_, position_bias_, segment_bias_, segment_embed_;
};

}  // namespace

EncodingInfo transformer_xl() {
  return {.options = {"transformer-xl",
                      {{"clamp", int_option(0, 0, Positions::kLargest), "farther differences count as this one; 0: no limit"},
                       {"segments", bool_option(false), "a term for tokens of the same segment and one for others (XLNet)"},
                       {"share_layers", bool_option(false), "one content_bias and position_bias for all layers; r_proj stays per layer"}},
                      "projected sinusoids of relative positions, with trained biases in place of the query (Dai 2019)"},
          .facts = [](const Options& o, bool, bool) {
            EncodingFacts f = clipped_facts();
            f.key_bias_is_constant = true;
            f.reads_segments = o.boolean("segments");
            f.beyond_trained = o.integer("clamp") > 0 ? "computed; saturates at the clamp" : "computed";
            return f;
          },
          .formulas = {"a_ij = q_i·ρ_t + content_bias·k_j + position_bias·ρ_t,  t = p_i − p_j,  ρ_t = r_proj([sin | cos] of t)",
                       "segments=true: + (q_i + segment_bias)·segment_embed_σ,  σ = 0 in the same segment, 1 else"},
          // One more product of the size of the content, the key bias, and ρ of the differences that runs of tokens have.
          .flops = [](const Options&, const EncodingSizes& s, double queries, double keys) {
            const double channels = static_cast<double>(s.num_heads * s.head_dim);
            return 2 * channels * (queries * keys + keys + (queries + keys) * static_cast<double>(s.embed_dim));
          },
          .check = [](const Options&, const EncodingSizes& s, std::vector<std::string>& problems) {
            if (s.embed_dim % 2 != 0) problems.push_back(fmt::format("needs an even width, half sines and half cosines, not {}", s.embed_dim));
          },
          .parameters = [](const Options& o, const EncodingSizes& s) {
            const bool shared = o.boolean("share_layers");
            const Init start = init::normal(0, 0.02);
            std::vector<ParameterSpec> list;
            push_projection(list, "r_proj", s.embed_dim, s.num_heads * s.head_dim, false);
            list.push_back({"content_bias", {s.num_heads, s.head_dim}, start, true, shared});
            list.push_back({"position_bias", {s.num_heads, s.head_dim}, start, true, shared});
            if (!o.boolean("segments")) return list;
            list.push_back({"segment_bias", {s.num_heads, s.head_dim}, start, true});
            list.push_back({"segment_embed", {2, s.num_heads, s.head_dim}, start});
            return list;
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup& p) { return std::make_unique<TransformerXl>(o, s, p); }};
}

}  // namespace waymark::nn::encodings
