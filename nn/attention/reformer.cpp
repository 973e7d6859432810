// reformer: tokens meet those that fall into the same bucket of a random hash (Kitaev et al. 2020). Queries and keys are
// one vector.
//
//   x_i = q_proj(h_i),  k_j = x_j/√(mean x_j² + key_eps),  e_ij = q·k as ever
//   each round:  u = x_i R,  bucket = argmax [u ; -u];  kept tokens sorted by bucket and cut into chunks; token i sees its
//   chunk and the one before. N_ij = how often all rounds bring i and j together.
//   duplicates=once: softmax over the union of all pairs that met; count: a pair counts N_ij times (the references').
//   A token sees itself only if it meets no other.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "core/random/playback.h"
#include "nn/attention/mask_rows.h"
#include "nn/attention/projected.h"

namespace waymark::nn {

namespace {

enum class Wrap : u8 { round, chain, none };

// The chunks of one batch row and head: tokens of each, all rounds behind each other.
struct HashChunks {
  std::vector<std::vector<i64>> tokens;
  i64 per_round = 0;
  // The chunk that a chunk looks back to, or -1.
  i64 back(i64 chunk, Wrap wrap) const {
    if (per_round < 2) return -1;
    if (chunk % per_round != 0) return chunk - 1;
    const i64 all = static_cast<i64>(tokens.size());
    return wrap == Wrap::none ? -1 : wrap == Wrap::round ? chunk + per_round - 1 : (chunk + all - 1) % all;
  }
};

class ReformerAttention final : public ProjectedAttention {
 public:
  ReformerAttention(ModuleBase* parent, std::string_view name, AttentionSetup s)
      : ProjectedAttention(parent, name, std::move(s), false),
        hashes_(options().integer("hashes")), chunk_(options().integer("chunk")) {
    wrap_ = options().is_word("wrap", "round") ? Wrap::round : options().is_word("wrap", "chain") ? Wrap::chain : Wrap::none;
  }

 protected:
  Tensor keys_of_queries(const Tensor& q, const Tensor& keep) const override {
    // Padded rows may be 0; their norm is taken of something else.
    const Tensor x = keep.defined() ? masked_fill(q, logical_not(keep).unsqueeze(1).unsqueeze(-1), 1) : q;
    return div(q, sqrt(clamp(add(mean(square(x), -1, true), options().real("key_eps")), 1e-24, {})));
  }

  std::vector<Pass> passes(const Projected& p, const AttentionInput& in) const override {
    const i64 batch = p.q.size(0), heads = p.q.size(1), length = p.q.size(2);
    Tensor allowed = allowed_pairs(in, batch, length, length);
    if (allowed.defined()) allowed = contiguous(allowed.expand({batch, heads, length, length}));
    const Tensor keep = make_empty({batch, heads, length, length}, kB8);
    const Tensor visits = make_empty({batch, heads, length, length}, p.q.dtype());
    count_visits(p.q.detach(), in, visits);
    restrict(visits, allowed, in.key_keep, keep);
    std::vector<Pass> list;
    list.push_back(pass_of(p.q, p.k, p.v, in, keep));
    if (options().is_word("duplicates", "count")) list.back().call.offset = log(visits);
    return list;
  }

 private:
  // Even, and about one chunk each.
  i64 buckets_for(i64 kept) const {
    if (!options().is_word("buckets", "auto")) return options().integer("buckets");
    const i64 chunks = (kept + chunk_ - 1) / chunk_;
    return std::max<i64>(2, chunks + chunks % 2);
  }

  // [H, d, rounds, buckets/2]
  Tensor rotations(i64 heads, i64 width, i64 half, DType dtype, std::optional<u64> redraw) const {
    u64 number = 0;
    if (redraw) {
      number = *redraw;
    } else if (training() && options().is_word("redraw", "train")) {
      const auto place = DrawScope::current();
      number = (place ? place->draw : 0) + 1;
    }
    const Draw draw = fixed_draw(path_of("attention.hash"), number);
    const Shape shape{heads, width, hashes_, half};
    const Tensor r = make_empty(shape, dtype);
    if (play_draw(draw, dtype, shape.vec(), r.raw())) return r;
    if (dtype == kF64) fill_normal(draw, draw_grid(draw, shape.vec()), 0, r.numel(), r.data<double>());
    else fill_normal(draw, draw_grid(draw, shape.vec()), 0, r.numel(), r.data<float>());
    if (is_captured(draw)) capture_draw(draw, dtype, shape.vec(), r.raw());
    return r;
  }

  // The bucket of one vector in one round: x [d], the columns of this head and round.
  static i64 bucket_of(const double* x, const double* r, i64 width, i64 rounds, i64 half, i64 round, i64 used) {
    i64 best = 0;
    double most = -std::numeric_limits<double>::infinity();
    std::vector<double> u(static_cast<size_t>(used), 0);
    for (i64 e = 0; e < width; ++e) {
      const double* row = r + (e * rounds + round) * half;
      for (i64 c = 0; c < used; ++c) u[static_cast<size_t>(c)] += x[e] * row[c];
    }
    for (i64 c = 0; c < 2 * used; ++c) {
      const double value = c < used ? u[static_cast<size_t>(c)] : -u[static_cast<size_t>(c - used)];
      if (value > most) {
        most = value;
        best = c;
      }
    }
    return best;
  }

  HashChunks chunks_of(const double* x, const double* r, const std::vector<i64>& tokens, i64 width, i64 half) const {
    const i64 n = static_cast<i64>(tokens.size()), used = buckets_for(n) / 2;
    HashChunks chunks;
    chunks.per_round = (n + chunk_ - 1) / chunk_;
    for (i64 round = 0; round < hashes_; ++round) {
      std::vector<i64> bucket;
      for (const i64 t : tokens) bucket.push_back(bucket_of(x + t * width, r, width, hashes_, half, round, used));
      std::vector<i64> order(tokens.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](i64 a, i64 b) { return bucket[static_cast<size_t>(a)] < bucket[static_cast<size_t>(b)]; });
      for (i64 begin = 0; begin < n; begin += chunk_) {
        auto& chunk = chunks.tokens.emplace_back();
        for (i64 at = begin; at < std::min(n, begin + chunk_); ++at)
          chunk.push_back(tokens[static_cast<size_t>(order[static_cast<size_t>(at)])]);
      }
    }
    return chunks;
  }

  // N_ij [B, H, L, L]
  void count_visits(const Tensor& q, const AttentionInput& in, const Tensor& visits) const {
    const i64 batch = q.size(0), heads = q.size(1), length = q.size(2), width = q.size(3);
    const Tensor x = contiguous(to(q, kF64)), n = make_empty(visits.shape(), kF64);
    std::fill_n(n.data<double>(), n.numel(), 0.0);
    std::vector<std::vector<i64>> kept(static_cast<size_t>(batch));
    i64 most = 0;
    for (i64 b = 0; b < batch; ++b) {
      const std::vector<u8> keep = kept_tokens(in.key_keep, b, length);
      for (i64 t = 0; t < length; ++t)
        if (keep[static_cast<size_t>(t)]) kept[static_cast<size_t>(b)].push_back(t);
      most = std::max(most, static_cast<i64>(kept[static_cast<size_t>(b)].size()));
    }
    const i64 half = buckets_for(most) / 2;
    const Tensor r = contiguous(to(rotations(heads, width, half, q.dtype(), in.redraw), kF64));
    for (i64 b = 0; b < batch; ++b)
      for (i64 h = 0; h < heads; ++h) {
        const i64 at = b * heads + h;
        const HashChunks chunks = chunks_of(x.data<double>() + at * length * width, r.data<double>() + h * width * hashes_ * half,
                                            kept[static_cast<size_t>(b)], width, half);
        double* to_row = n.data<double>() + at * length * length;
        for (i64 a = 0; a < static_cast<i64>(chunks.tokens.size()); ++a)
          for (const i64 other : {a, chunks.back(a, wrap_)}) {
            if (other < 0) continue;
            for (const i64 i : chunks.tokens[static_cast<size_t>(a)])
              for (const i64 j : chunks.tokens[static_cast<size_t>(other)]) to_row[i * length + j] += 1;
          }
      }
    copy_(visits, n);
  }

  // The pairs that met and are allowed, a token's own key only if there is no other. visits: 1 where they are not.
  static void restrict(const Tensor& visits, const Tensor& allowed, const Tensor& key_keep, const Tensor& keep) {
    const i64 batch = keep.size(0), heads = keep.size(1), length = keep.size(2);
    const Tensor n = contiguous(to(visits, kF64));
    bool* to_keep = keep.data<bool>();
    for (i64 b = 0; b < batch; ++b) {
      const std::vector<u8> kept = kept_tokens(key_keep, b, length);
      for (i64 row = b * heads * length; row < (b + 1) * heads * length; ++row) {
        const i64 i = row % length;
        double* count = n.data<double>() + row * length;
        const bool* may = allowed.defined() ? allowed.data<bool>() + row * length : nullptr;
        bool any = false;
        for (i64 j = 0; j < length; ++j) {
          const bool met = count[j] > 0 && j != i && (!may || may[j]);
          to_keep[row * length + j] = met;
          any = any || met;
          if (!met) count[j] = 1;
        }
        if (!any && kept[static_cast<size_t>(i)] && (!may || may[i])) to_keep[row * length + i] = true;
      }
    }
    copy_(visits, n);
  }

  i64 hashes_, chunk_;
  Wrap wrap_ = Wrap::round;
};

}  // namespace

namespace attentions {

AttentionInfo reformer() {
  OptionTable options{"reformer",
                      {{"buckets", int_option("auto", 2, 1 << 20).or_word({"auto"}), "buckets of a hash, even; auto: tokens/chunk"},
                       {"hashes", int_option(4, 1, 1024), "rounds"},
                       {"chunk", int_option(64, 1, 1 << 30), "tokens of a chunk"},
                       {"duplicates", word_option("once", {"once", "count"}), "pairs that meet in several rounds count once, or as often"},
                       {"wrap", word_option("round", {"round", "chain", "none"}), "what the first chunk looks back to: the last of its round, of the round before, nothing"},
                       {"redraw", word_option("train", {"train", "never"}), "new hashes in each step of training, or never"},
                       {"key_eps", real_option(1e-6, 0, 1), "added to the mean square of a key"}},
                      "softmax over tokens with the same hash"};
  options.check = [](const Options& o, std::vector<std::string>& problems) {
    if (!o.is_word("buckets", "auto") && o.integer("buckets") % 2 != 0)
      problems.push_back(fmt::format("buckets={} must be even", o.integer("buckets")));
  };
  return {.options = std::move(options),
          .facts = [](const Options&, bool, bool) {
            AttentionFacts f = pair_attention_facts();
            f.gives = f.gives.without(Capability::free_qk);
            f.causal_exact = f.shares_key_heads = f.cache = false;
            f.content_pattern = f.random_topology = true;
            f.why_not_causal = "which keys a token meets depends on later tokens";
            f.why_not_cross = "queries and keys are one vector of one sequence";
            f.why_not_shared_heads = "it has no k_proj";
            return f;
          },
          .formulas = {"k_j = x_j/√(mean x_j² + key_eps), x = q_proj(h);  bucket = argmax [x R ; -x R], R drawn",
                       "sorted by bucket and cut into chunks, a token sees its chunk and the one before; itself only if no other"},
          .make = make_projected<ReformerAttention>};
}

}  // namespace attentions
}  // namespace waymark::nn
