// bigbird: blocks that see a window of blocks, global blocks, and random blocks (Zaheer et al. 2020). A pair that several
// of them allow counts once.
#include <algorithm>
#include <limits>

#include "core/random/generator.h"
#include "core/random/playback.h"
#include "nn/attention/mask_node.h"
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

class BigBirdPattern final : public MaskSource {
 public:
  BigBirdPattern(const Options& o, const MaskCall& c, std::string_view stream)
      : size_(o.integer("block")), r_(o.integer("random")), half_((o.integer("window") - 1) / 2),
        first_((o.integer("global") + 1) / 2), last_(c.causal ? 0 : o.integer("global") / 2), is_causal_(c.causal),
        draw_(current_generator().fixed_draw(stream, c.redraw.value_or(static_cast<u64>(o.integer("seed"))))) {
    check_mask_call(c);
    if (!c.query_positions.defined() || c.queries != c.keys)
      fail("attention", "{} reads the positions of one sequence", o.short_form());
    reach_ = o.is_word("reach", "all") ? std::numeric_limits<i64>::max() : o.integer("reach") / size_;
    batch = std::max(c.query_positions.rows(), c.key_keep.defined() ? c.key_keep.size(0) : 1);
    heads = c.heads;
    queries = c.queries;
    keys = c.keys;
    i64 most = 0;
    for (i64 b = 0; b < batch; ++b) {
      block_of_.push_back(block_numbers(c.query_positions, b, c.queries, size_, c.shift));
      counts_.push_back(count_blocks(block_of_.back(), kept_tokens(c.key_keep, b, c.keys)));
      most = std::max(most, counts_.back());
    }
    play(most);
    capture();
  }

  void row(i64 b, i64 h, i64 i, u8* allowed) const override {
    const std::vector<i64>& of = block_of_[static_cast<size_t>(b)];
    const i64 n = counts_[static_cast<size_t>(b)], a = of[static_cast<size_t>(i)];
    // Positionless tokens are global; blocks beyond the kept ones are padding.
    const auto each = [&](auto rule) {
      for (size_t j = 0; j < of.size(); ++j) allowed[j] = of[j] < 0 || rule(of[j]) ? u8{1} : u8{0};
    };
    if (a < 0) return each([](i64) { return true; });
    if (a >= n) return each([](i64) { return false; });
    if (is_global(a, n)) return each([=](i64 k) { return k < n; });
    std::vector<i64> drawn = random_of(h, a, n, false);
    std::sort(drawn.begin(), drawn.end());
    each([&](i64 k) {
      return k < n && (is_global(k, n) || is_near(a, k) || std::binary_search(drawn.begin(), drawn.end(), k));
    });
  }

 private:
  bool is_global(i64 block, i64 n) const { return block < first_ || block >= n - last_; }
  bool is_near(i64 i, i64 j) const { return j >= i - half_ && j <= i + half_; }

  // The injected draw, if there is one.
  void play(i64 blocks) {
    if (!injected_buffer(draw_)) return;
    const std::vector<i64> shape = {heads, blocks, r_};
    check_injected(draw_, kI64, shape);
    RandomTable table{.blocks = blocks, .r = r_, .entry = std::vector<i64>(static_cast<size_t>(heads * blocks * r_))};
    if (play_draw(draw_, kI64, shape, table.entry.data())) injected_ = std::move(table);
  }
  // in_order: as they were drawn. Else where all candidates are taken nothing is drawn.
  std::vector<i64> random_of(i64 h, i64 i, i64 n, bool in_order) const {
    std::vector<i64> list;
    if (injected_) {
      for (i64 t = 0; t < r_; ++t)
        if (const i64 j = injected_->at(h, i, t); j >= 0 && j < n) list.push_back(j);
      return list;
    }
    // Neither global nor near: a range in front of the window, and one behind it.
    const i64 end = std::min({is_causal_ ? i : n, n - last_, reach_}), front = std::max<i64>(0, std::min(end, i - half_) - first_),
              from = std::max(first_, i + half_ + 1), candidates = front + std::max<i64>(0, end - from);
    const auto block = [&](i64 candidate) { return candidate < front ? first_ + candidate : from + candidate - front; };
    if (!in_order && r_ >= candidates) {
      for (i64 k = 0; k < candidates; ++k) list.push_back(block(k));
      return list;
    }
    list = pick_blocks(draw_, h, i, candidates, r_);
    for (i64& j : list) j = block(j);
    return list;
  }
  void capture() const {
    if (!is_captured(draw_)) return;
    const i64 n = counts_.empty() ? 0 : counts_.front();
    for (const i64 other : counts_)
      if (other != n) fail("attention", "bigbird: rows of {} and {} blocks have no common pattern to capture", n, other);
    std::vector<i64> entries;
    for (i64 h = 0; h < heads; ++h)
      for (i64 i = 0; i < n; ++i) {
        std::vector<i64> list = is_global(i, n) ? std::vector<i64>() : random_of(h, i, n, true);
        list.resize(static_cast<size_t>(r_), -1);
        entries.insert(entries.end(), list.begin(), list.end());
      }
    const std::vector<i64> shape = {heads, n, r_};
    capture_draw(draw_, kI64, shape, entries.data());
  }

  i64 size_, r_, half_, first_, last_, reach_ = 0;
  bool is_causal_;
  Draw draw_;
  std::vector<std::vector<i64>> block_of_;
  std::vector<i64> counts_;
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
          .pattern = [](const Options& o, const MaskCall& c, std::string_view stream) {
            return make_mask({.kind = MaskKind::dense, .source = std::make_shared<const BigBirdPattern>(o, c, stream)});
          },
          .make = make_projected<ProjectedAttention>};
}

}  // namespace attentions
}  // namespace waymark::nn
