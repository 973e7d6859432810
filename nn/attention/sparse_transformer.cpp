// strided and fixed: the two factorised patterns of the Sparse Transformer (Child et al. 2019, section 4.3). Each joins a
// near part A1 and a far part A2; heads=merged gives every head both, each pair once, heads=split alternates them.
#include "nn/attention/projected.h"

namespace waymark::nn::attentions {

namespace {

OptionDef split_option() {
  return {"heads", word_option("merged", {"merged", "split"}), "every head both parts; or even heads the near one, odd heads the far one"};
}

Mask near_and_far(const Options& o, const MaskCall& c, const Mask& near_part, const Mask& far_part) {
  if (o.is_word("heads", "merged")) return near_part | far_part;
  std::vector<Mask> heads;
  for (i64 h = 0; h < c.heads; ++h) heads.push_back(h % 2 == 0 ? near_part : far_part);
  return Mask::heads(std::move(heads));
}

AttentionFacts sparse_facts() {
  AttentionFacts f = pair_attention_facts();
  f.reads_positions = f.neighbourhood = true;
  return f;
}

}  // namespace

AttentionInfo strided() {
  return {.options = {"strided",
                      {{"stride", int_option(64, 1, 1 << 30), "distance of the far tokens, and length of the near part"},
                       split_option(), qk_norm_option()},
                      "softmax over a window and every stride-th token"},
          .facts = [](const Options&, bool, bool) { return sparse_facts(); },
          .formulas = {"A1: |p_j - p_i| < stride;  A2: p_i - p_j is a multiple of stride;  both with p_j <= p_i if causal"},
          .pattern = [](const Options& o, const MaskCall& c, std::string_view) {
            const i64 stride = o.integer("stride");
            return near_and_far(o, c, Mask::window(stride - 1, c.causal ? 0 : stride - 1), Mask::strided(stride));
          },
          .make = make_projected<ProjectedAttention>};
}

AttentionInfo fixed() {
  OptionTable options{"fixed",
                      {{"stride", int_option(64, 1, 1 << 30), "size of the blocks"},
                       {"c", int_option(8, 1, 1 << 30), "tokens at the end of each block that every token sees"},
                       split_option(), qk_norm_option()},
                      "softmax over the own block and the summary tokens at the end of every block"};
  options.check = [](const Options& o, std::vector<std::string>& problems) {
    if (o.integer("c") > o.integer("stride"))
      problems.push_back(fmt::format("c={} is larger than stride={}", o.integer("c"), o.integer("stride")));
  };
  return {.options = std::move(options),
          .facts = [](const Options& o, bool, bool) {
            AttentionFacts f = sparse_facts();
            f.topology_sensitive = true;
            f.block = o.integer("stride");
            return f;
          },
          .formulas = {"A1: the own block;  A2: the last c places of every block (of the last one its last c tokens, unless causal)"},
          .pattern = [](const Options& o, const MaskCall& c, std::string_view) {
            return near_and_far(o, c, Mask::blocks(o.integer("stride")), Mask::summary(o.integer("stride"), o.integer("c")));
          },
          .make = make_projected<ProjectedAttention>};
}

}  // namespace waymark::nn::attentions
