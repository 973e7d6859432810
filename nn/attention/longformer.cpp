// longformer: a window for every token, and global tokens that see and are seen by all, with projections of their own
// (Beltagy et al. 2020; as implemented in huggingface/transformers, LongformerSelfAttention, but `window` is one side).
//
//   i not global: softmax over the window and the global tokens, each key once, by q_proj, k_proj, v_proj
//   i global:     softmax over all kept keys, by global_q_proj, global_k_proj, global_v_proj
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "nn/attention/mask_rows.h"
#include "nn/attention/projected.h"

namespace waymark::nn {

namespace {

bool has_globals(const Options& o) { return o.is_word("global", "input") || o.integer("global") > 0; }
bool projects_globals(const Options& o) { return o.boolean("projections") && has_globals(o); }

class LongformerAttention final : public ProjectedAttention {
 public:
  LongformerAttention(ModuleBase* parent, std::string_view name, AttentionSetup s) : ProjectedAttention(parent, name, std::move(s)) {
    if (!projects_globals(options())) return;
    // A checkpoint that has no global projections gets copies of the others.
    const auto own = [&](const char* which, i64 out) {
      const std::string path = fmt::format("attention.global_{}_proj", which), other = fmt::format("{}_proj", which);
      const double bound = 1 / std::sqrt(static_cast<double>(width()));
      Projection p;
      p.weight = parameter_at(path + ".weight", {out, width()}, init::uniform(-bound, bound), {.otherwise = other + ".weight"});
      if (setup().bias)
        p.bias = parameter_at(path + ".bias", {out}, init::uniform(-bound, bound), {.no_decay = true, .otherwise = other + ".bias"});
      return p;
    };
    q_ = own("q", query_width());
    k_ = own("k", key_width());
    v_ = own("v", key_width());
  }

 protected:
  Projected project(const AttentionInput& in) const override {
    Projected p = ProjectedAttention::project(in);
    if (!q_.weight.defined()) return p;
    const auto parts = linear_packed(position.add_to_input(in.x, in.positions), {q_.weight, k_.weight, v_.weight}, {q_.bias, k_.bias, v_.bias});
    p.global_q = normalised(split_heads(parts[0], setup().sizes.num_heads), q_norm);
    p.global_k = normalised(split_heads(parts[1], setup().kv_heads), k_norm);
    p.global_v = split_heads(parts[2], setup().kv_heads);
    return p;
  }

  std::vector<Pass> passes(const Projected& p, const AttentionInput& in) const override {
    if (!q_.weight.defined()) return ProjectedAttention::passes(p, in);
    if (!p.global_q.defined())
      fail("attention", "{} projects its global tokens from x, which is not given here; use projections=false", options().short_form());
    const Tensor pairs = pattern_pairs(p, in), global = global_rows(mask_call_of(p, in), p.rows), local = logical_not(global);
    std::vector<Pass> list;
    list.push_back(pass_of(p.q, p.k, p.v, in, logical_and(pairs, local), p.rows));
    list.push_back(pass_of(p.global_q, p.global_k, p.global_v, in, logical_and(pairs, global), p.rows,
                           {[this](const Tensor& rows) { return linear(rows, q_.weight, q_.bias); },
                            [this](const Tensor& rows) { return linear(rows, k_.weight, k_.bias); }}));
    list[0].rows = local;
    list[1].rows = global;
    return list;
  }

 private:
  struct Projection {
    Tensor weight, bias;
  };

  // b8 [B, 1, L, 1], of these queries
  Tensor global_rows(const MaskCall& c, QueryRows rows) const {
    if (rows.count == 0) rows = {0, c.queries};
    const Tensor out = make_empty({c.batch, 1, rows.count, 1}, kB8);
    const bool given = options().is_word("global", "input");
    const Tensor which = given && c.arrays.global.dim() == 1 ? c.arrays.global.unsqueeze(0) : c.arrays.global;
    for (i64 b = 0; b < c.batch; ++b) {
      const std::vector<u8> kept = kept_tokens(c.query_keep, b, c.queries);
      const std::vector<u8> is_global = given ? kept_tokens(which, b, c.queries) : first_kept(options().integer("global"), kept);
      for (i64 i = 0; i < rows.count; ++i) out.data<bool>()[b * rows.count + i] = is_global[static_cast<size_t>(rows.first + i)] != 0;
    }
    return out;
  }

  Projection q_, k_, v_;
};

Mask longformer_pattern(const Options& o, const MaskCall& c, std::string_view) {
  const i64 w = o.integer("window");
  std::vector<Mask> windows;
  for (const i64 dilation : o.integers("dilation")) windows.push_back(Mask::window(w, c.causal ? 0 : w, dilation));
  const Mask window = windows.size() == 1 ? windows[0] : Mask::heads(windows);
  if (!has_globals(o)) return window;
  if (!o.is_word("global", "input")) return window | Mask::global_first(o.integer("global"));
  if (!c.arrays.global.defined()) fail("attention", "{} needs the array `global` of the call, b8 [B, L]", o.short_form());
  return window | Mask::global(c.arrays.global);
}

}  // namespace

namespace attentions {

AttentionInfo longformer() {
  return {.options = {"longformer",
                      {{"window", int_option(64, 0, 1 << 30), "tokens on each side that are seen"},
                       {"global", int_option(0, 0, 1 << 30).or_word({"input"}), "the first tokens that see and are seen by all; input: the call says which"},
                       {"dilation", int_list_option(std::vector<i64>{1}, 1, 1 << 20, 1).or_one(), "steps of the window; a list has one for each head"},
                       {"projections", bool_option(true), "global tokens have projections of their own"},
                       qk_norm_option()},
                      "softmax over a window and global tokens"},
          .facts = [](const Options& o, bool, bool) {
            AttentionFacts f = pair_attention_facts();
            f.reads_positions = true;
            f.neighbourhood = !has_globals(o);
            // The rows of global tokens mix values of their own.
            if (projects_globals(o)) f.reproduces = "terms";
            return f;
          },
          .formulas = {"i not global: softmax over |p_j - p_i| <= window (a multiple of dilation) and the global tokens",
                       "i global: softmax over all kept keys, by projections of its own"},
          .check = [](const AttentionSetup& s, std::vector<std::string>& problems) {
            const size_t n = s.attention.integers("dilation").size();
            if (n != 1 && static_cast<i64>(n) != s.sizes.num_heads)
              problems.push_back(fmt::format("dilation has {} numbers for {} heads", n, s.sizes.num_heads));
          },
          .pattern = longformer_pattern,
          .make = make_projected<LongformerAttention>};
}

}  // namespace attentions
}  // namespace waymark::nn
