// What a mask does to a sequence, counted from its pairs: keys per query, work, how far information reaches, and a picture.
//
//   MaskReport r = mask_report(Mask::parse("window(2, 2)"), sequence_call(64), 32);
//   fmt::print("{}{}", to_string(r), picture_text(r.heads[0].picture));
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "nn/attention/mask.h"

namespace waymark::nn {

// A mask, reduced to at most 64 x 64 cells of equal size: the share of allowed pairs in each, rows first.
struct MaskPicture {
  i64 cells = 0;
  std::vector<double> share = {};
  bool operator==(const MaskPicture&) const = default;
};

struct MaskReport {
  struct Head {
    i64 pairs = 0;                                // allowed pairs
    i64 fewest = 0, most = 0, empty_rows = 0;     // keys per query
    double mean = 0;
    std::vector<std::pair<i64, i64>> histogram = {};   // keys, and how many queries have so many
    // After h = 1, 2, ... layers, the share of ordered pairs of two tokens (i, j) such that what was at j is known at i;
    // until it no longer grows. A token keeps what it has (the residual path).
    std::vector<double> reach = {};
    i64 unreachable = 0;                          // ordered pairs that no number of layers joins
    MaskPicture picture = {};
    // The number of layers at which every token knows all; 0: never (or there is nothing to reach).
    i64 full_at() const { return !reach.empty() && unreachable == 0 ? static_cast<i64>(reach.size()) : 0; }
    bool operator==(const Head&) const = default;
  };
  i64 length = 0, num_heads = 1, head_dim = 1;
  std::vector<Head> heads = {};   // one if they are all equal
  i64 sources = 0;           // reach was followed from so many tokens only; 0: from all
  bool reach_known = true;   // false: the sequence is too long

  i64 pairs() const;         // of all heads
  double density() const;    // pairs / (heads · L²)
  double flops() const;      // forward: 4 · pairs · d
};

// Reach is exact up to this length, followed from 256 tokens up to the second, and not known beyond. The rest is counted
// up to the third (Error beyond: it reads every pair).
inline constexpr i64 kExactReach = 4096, kSampledReach = 32768, kLongestReport = i64{1} << 17;

// A sequence of this length, positions 0, 1, ..., nothing padded.
WAYMARK_API MaskCall sequence_call(i64 length, i64 heads = 1, bool causal = false, i64 shift = 0);
// Of batch row 0. The call's causality and padding are joined with the mask.
WAYMARK_API MaskReport mask_report(const Mask& mask, const MaskCall& call, i64 head_dim = 1);
// Several lines, each with two blanks before it.
WAYMARK_API std::string to_string(const MaskReport& report);

// · none, ▒ some, █ all pairs of a cell; one line of text for each row of cells.
WAYMARK_API std::string picture_text(const MaskPicture& picture);
// PGM, a plain grey picture: white = no pair, black = all.
WAYMARK_API std::string picture_pgm(const MaskPicture& picture);

// Two masks on the same call: the shares of pairs that both allow, only the first (gone), only the second (added).
struct MaskDifference {
  i64 cells = 0;
  std::vector<double> kept = {}, gone = {}, added = {};
  i64 kept_pairs = 0, gone_pairs = 0, added_pairs = 0;
};
WAYMARK_API MaskDifference mask_difference(const Mask& before, const Mask& after, const MaskCall& call, i64 head = 0);
// █ kept, - gone, + added, ± both, ▒ partly kept, · none.
WAYMARK_API std::string picture_text(const MaskDifference& difference);

}  // namespace waymark::nn
