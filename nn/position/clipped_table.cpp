#include "nn/position/clipped_table.h"

#include <algorithm>
#include <cstdlib>

#include "core/ops/shape.h"

namespace waymark::nn::encodings {

OptionDef clip_option() { return {"clip", int_option(16, 0, 1 << 20), "largest distance with a row of its own"}; }
OptionDef per_head_option() { return {"per_head", bool_option(false), "a table per head instead of one for all"}; }
OptionDef beyond_option() {
  return {"beyond", word_option("clip", {"clip", "zero", "error"}),
          "pairs beyond the clip: the end row, no relative term, or an error"};
}
OptionDef share_layers_option() { return {"share_layers", bool_option(false), "one set of parameters for all layers"}; }

PairIndex clip_index(const Options& options) {
  const i64 clip = options.integer("clip");
  return {-clip, clip, options.has("beyond") && options.word("beyond") == "zero"};
}

void check_beyond(const Options& options, const EncodingCall& call) {
  if (options.word("beyond") != "error") return;
  const i64 clip = options.integer("clip"), rows = std::max(call.queries.rows(), call.keys.rows());
  const i64 lq = call.queries.length(), lk = call.keys.length();
  Tensor keep;
  if (call.keep.defined()) {
    const i64 batch = std::max(call.keep.size(0), rows), heads = call.keep.size(1);
    keep = call.keep.expand({batch, heads, lq, lk});
  }
  const i64 batch = keep.defined() ? keep.size(0) : rows, heads = keep.defined() ? keep.size(1) : 1;
  for (i64 b = 0; b < batch; ++b)
    for (i64 i = 0; i < lq; ++i)
      for (i64 j = 0; j < lk; ++j) {
        const i64 p = call.queries.at(b, i), q = call.keys.at(b, j);
        if (p < 0 || q < 0 || std::abs(q - p) <= clip) continue;
        bool allowed = !keep.defined();
        for (i64 h = 0; h < heads && !allowed; ++h) allowed = keep.at<bool>({b, h, i, j});
        if (allowed)
          fail(options.name(), "query {} and key {} of row {} have the positions {} and {}, {} apart, beyond clip={}; "
               "raise clip, or use beyond=clip or zero", i, j, b, p, q, std::abs(q - p), clip);
      }
}

Shape table_shape(const Options& options, const EncodingSizes& sizes) {
  const i64 rows = 2 * options.integer("clip") + 1;
  return options.boolean("per_head") ? Shape{sizes.num_heads, rows, sizes.head_dim} : Shape{rows, sizes.head_dim};
}

Tensor by_head(const Tensor& table, int axes) { return table.dim() == axes ? table : unsqueeze(table, 0); }

EncodingFacts clipped_facts() {
  EncodingFacts f;
  f.site = Site::score;
  f.needs = {Capability::pair, Capability::token_qk};
  f.sees_direction = true;
  f.direction = "yes";
  f.shift_invariant = true;
  f.beyond_trained = "saturates at the end rows";
  return f;
}

double table_flops(const Options& options, const EncodingSizes& sizes, double queries, double keys) {
  const double heads = static_cast<double>(sizes.num_heads), width = static_cast<double>(sizes.head_dim);
  const double rows = 2 * static_cast<double>(options.integer("clip")) + 1;
  return heads * (2 * queries * rows * width + queries * keys);
}

}  // namespace waymark::nn::encodings
