// bigbird: blocks that see a window of blocks, global blocks, and random blocks (Zaheer et al. 2020). A pair that several
// of them allow counts once.
#include <algorithm>
#include <set>

#include "core/random/generator.h"
#include "core/random/playback.h"
#include "nn/attention/mask_rows.h"
#include "nn/attention/projected.h"
#include "nn/attention/random_blocks.h"

namespace waymark::nn {

namespace {

// The random blocks of every head and block, [H, blocks, r], -1 = none.
struct RandomTable {
  i64 blocks = 0, r = 0;
  std::vector<i64> entry = {};
  i64 at(i64 h, i64 i, i64 t) const { return entry[static_cast<size_t>((h * blocks + i) * r + t)]; }
};

class BigBirdPattern {
 public:
  BigBirdPattern(const Options& o, const MaskCall& c, std::string_view stream)
      : c_(c), size_(o.integer("block")), r_(o.integer("random")), half_((o.integer("window") - 1) / 2),
        first_((o.integer("global") + 1) / 2), last_(c.causal ? 0 : o.integer("global") / 2),
        draw_(current_generator().fixed_draw(stream, c.redraw.value_or(static_cast<u64>(o.integer("seed"))))) {
    reach_ = o.is_word("reach", "all") ? std::numeric_limits<i64>::max() : o.integer("reach") / size_;
  }

  Mask mask() {
    const i64 rows = std::max(c_.query_positions.rows(), c_.key_keep.defined() ? c_.key_keep.size(0) : 1);
    std::vector<std::vector<i64>> block_of;
    std::vector<i64> counts;
    i64 most = 0;
    for (i64 b = 0; b < rows; ++b) {
      block_of.push_back(block_numbers(c_.query_positions, b, c_.queries, size_, c_.shift));
      counts.push_back(count_blocks(block_of.back(), kept_tokens(c_.key_keep, b, c_.keys)));
      most = std::max(most, counts.back());
    }
    play(most);
    const Tensor pairs = make_empty({rows, c_.heads, c_.queries, c_.keys}, kB8);
    bool* to = pairs.data<bool>();
    for (i64 b = 0; b < rows; ++b) {
      const i64 n = counts[static_cast<size_t>(b)];
      const std::vector<i64>& of = block_of[static_cast<size_t>(b)];
      for (i64 h = 0; h < c_.heads; ++h) {
        const std::vector<u8> allowed = block_pairs(h, n);
        for (i64 i = 0; i < c_.queries; ++i)
          for (i64 j = 0; j < c_.keys; ++j) {
            // Positionless tokens are global; blocks beyond the kept ones are padding.
            const i64 a = of[static_cast<size_t>(i)], k = of[static_cast<size_t>(j)];
            *to++ = a < 0 || k < 0 || (a < n && k < n && allowed[static_cast<size_t>(a * n + k)]);
          }
      }
    }
    capture(counts);
    return Mask::dense(pairs);
  }

 private:
  bool is_global(i64 block, i64 n) const { return block < first_ || block >= n - last_; }
  bool is_near(i64 i, i64 j) const { return j >= i - half_ && j <= i + half_; }

  // The injected draw, if there is one.
  void play(i64 blocks) {
    const std::vector<i64> shape = {c_.heads, blocks, r_};
    RandomTable table{.blocks = blocks, .r = r_, .entry = std::vector<i64>(static_cast<size_t>(c_.heads * blocks * r_))};
    if (play_draw(draw_, kI64, shape, table.entry.data())) injected_ = std::move(table);
  }
  std::vector<i64> random_of(i64 h, i64 i, i64 n) const {
    std::vector<i64> list;
    if (injected_) {
      for (i64 t = 0; t < r_; ++t)
        if (const i64 j = injected_->at(h, i, t); j >= 0 && j < n) list.push_back(j);
      return list;
    }
    std::vector<i64> candidates;
    for (i64 j = 0; j < (c_.causal ? i : n); ++j)
      if (!is_global(j, n) && !is_near(i, j) && j < reach_) candidates.push_back(j);
    return pick_blocks(draw_, h, i, std::move(candidates), r_);
  }
  std::vector<u8> block_pairs(i64 h, i64 n) const {
    std::vector<u8> out(static_cast<size_t>(n * n), 0);
    for (i64 i = 0; i < n; ++i) {
      for (i64 j = 0; j < n; ++j) out[static_cast<size_t>(i * n + j)] = is_global(i, n) || is_global(j, n) || is_near(i, j);
      if (is_global(i, n)) continue;
      for (const i64 j : random_of(h, i, n)) out[static_cast<size_t>(i * n + j)] = 1;
    }
    return out;
  }
  void capture(const std::vector<i64>& counts) const {
    if (!is_captured(draw_)) return;
    const i64 n = counts.empty() ? 0 : counts.front();
    for (const i64 other : counts)
      if (other != n) fail("attention", "bigbird: rows of {} and {} blocks have no common pattern to capture", n, other);
    std::vector<i64> entries;
    for (i64 h = 0; h < c_.heads; ++h)
      for (i64 i = 0; i < n; ++i) {
        std::vector<i64> list = is_global(i, n) ? std::vector<i64>() : random_of(h, i, n);
        list.resize(static_cast<size_t>(r_), -1);
        entries.insert(entries.end(), list.begin(), list.end());
      }
    const std::vector<i64> shape = {c_.heads, n, r_};
    capture_draw(draw_, kI64, shape, entries.data());
  }

  const MaskCall& c_;
  i64 size_, r_, half_, first_, last_, reach_ = 0;
  Draw draw_;
  std::optional<RandomTable> injected_;
};

}  // namespace

namespace attentions {

AttentionInfo bigbird() {
  OptionTable options{"bigbird",
                      {{"block", int_option(64, 1, 1 << 30), "size of the blocks"},
                       {"window", int_option(3, 1, 1 << 20), "blocks around its own that a block sees, itself included; odd"},
                       {"global", int_option(2, 0, 1 << 20), "blocks that see and are seen by all: half of them first, half last; causal: the first half"},
                       {"random", int_option(3, 0, 1 << 20), "random blocks of each block, other than these"},
                       {"seed", int_option(0, 0, 1 << 30), "number of the draw"},
                       {"reach", int_option("all", 0, 1 << 30).or_word({"all"}), "random blocks come from the first so many tokens"},
                       qk_norm_option()},
                      "softmax over neighbouring, global and random blocks"};
  options.check = [](const Options& o, std::vector<std::string>& problems) {
    if (o.integer("window") % 2 == 0) problems.push_back(fmt::format("window={} must be odd", o.integer("window")));
  };
  return {.options = std::move(options),
          .facts = [](const Options& o, bool, bool) {
            AttentionFacts f = pair_attention_facts();
            f.reads_positions = f.topology_sensitive = true;
            f.block = o.integer("block");
            f.random_topology = o.integer("random") > 0;
            return f;
          },
          .formulas = {"block i sees: the global blocks, i - (window-1)/2 ... i + (window-1)/2, and `random` drawn ones; a global block all",
                       "the blocks are drawn once for each layer, head and block, and are the same in training and evaluation"},
          .pattern = [](const Options& o, const MaskCall& c, std::string_view stream) { return BigBirdPattern(o, c, stream).mask(); },
          .make = make_projected<ProjectedAttention>};
}

}  // namespace attentions
}  // namespace waymark::nn
