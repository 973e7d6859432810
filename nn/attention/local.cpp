// local: a window of tokens on both sides, or blocks (Beltagy et al. 2020; Tay et al. 2021, "local attention").
#include "nn/attention/projected.h"

namespace waymark::nn::attentions {

AttentionInfo local() {
  OptionTable options{
      "local",
      {{"window", int_option("auto", 0, 1 << 30).or_word({"auto"}), "tokens on each side that are seen; auto: 64, if block is not given"},
       {"block", int_option("none", 1, 1 << 30).or_word({"none"}), "blocks of this size in place of a window"},
       {"before", int_option(0, 0, 1 << 30), "blocks before its own that a token sees"},
       {"after", int_option(0, 0, 1 << 30), "blocks behind its own"},
       qk_norm_option()},
      "softmax over the neighbourhood: a window, or blocks"};
  options.check = [](const Options& o, std::vector<std::string>& problems) {
    const bool blocks = !o.is_word("block", "none");
    if (blocks && !o.is_word("window", "auto")) problems.emplace_back("window and block exclude each other");
    if (!blocks && (o.integer("before") > 0 || o.integer("after") > 0)) problems.emplace_back("before and after count blocks: give block");
  };
  return {.options = std::move(options),
          .facts = [](const Options& o, bool, bool) {
            AttentionFacts f = pair_attention_facts();
            f.reads_positions = f.neighbourhood = true;
            f.topology_sensitive = !o.is_word("block", "none");
            if (f.topology_sensitive) f.block = o.integer("block");
            return f;
          },
          .formulas = {"z_i = Σ_j softmax_j(e_ij)·v_j over |p_j - p_i| <= window (causal: p_j <= p_i, too)",
                       "block=b: over the tokens of the own block, floor((p + shift)/b), and of `before` and `after` more"},
          .pattern = [](const Options& o, const MaskCall& c, std::string_view) {
            if (!o.is_word("block", "none")) return Mask::blocks(o.integer("block"), o.integer("before"), o.integer("after"));
            const i64 w = o.is_word("window", "auto") ? 64 : o.integer("window");
            return Mask::window(w, c.causal ? 0 : w);
          },
          .make = make_projected<ProjectedAttention>};
}

}  // namespace waymark::nn::attentions
