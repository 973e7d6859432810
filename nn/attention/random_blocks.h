// Random blocks of a pattern: for each head and block of queries, r blocks of keys without repetition (BigBird, Zaheer et
// al. 2020).
#pragma once

#include <vector>

#include "core/random/draws.h"

namespace waymark::nn {

// The first `count` of a Fisher–Yates shuffle of `candidates`, fewer if there are fewer. Pick t takes its number at the
// coordinates (head, block, t) of the draw, so that it depends on neither the batch nor the picks of other blocks.
std::vector<i64> pick_blocks(const Draw& draw, i64 head, i64 block, std::vector<i64> candidates, i64 count);

}  // namespace waymark::nn
