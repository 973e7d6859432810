// Random blocks of a pattern: for each head and block of queries, r blocks of keys without repetition (BigBird, Zaheer et
// al. 2020).
#pragma once

#include <vector>

#include "core/random/draws.h"

namespace waymark::nn {

// The first `count` of a Fisher–Yates shuffle of 0 ... candidates - 1, fewer if there are fewer. Pick t takes its number at
// the coordinates (head, block, t) of the draw, so that it depends on neither the batch nor the picks of other blocks.
// Memory and time go with the picks, not with the candidates. Error for more than 2^24 picks.
std::vector<i64> pick_blocks(const Draw& draw, i64 head, i64 block, i64 candidates, i64 count);

}  // namespace waymark::nn
