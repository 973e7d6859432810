// The cells of a sweep: the grid written out, every cell resolved and checked before anything runs.
//
// Axes come from [sweep.grid] and [sweep.zip] of the files and from --set with several values, the first one outermost;
// seeds vary fastest. A later source replaces an axis of the same key. [[sweep.case]] adds single runs beside the grid,
// [[sweep.exclude]] takes away cells whose short forms match all its globs.
#pragma once

#include <string>
#include <vector>

#include "train/config/registries.h"
#include "train/config/resolve.h"

namespace waymark::train {

struct SweepCell {
  Config config = {};
  std::string refused = {};  // why the judge refuses it; empty for a run
};

struct SweepCells {
  std::vector<SweepCell> cells = {};    // in the order of the grid; an id appears once
  i64 excluded = 0, repeated = 0;  // taken away by [[sweep.exclude]]; equal to an earlier cell
};

// `overrides` as for a single run, but a value may be a list with commas at top level: none,rope,"t5(buckets=32)".
// `seeds`: "0..4" (inclusive), "0,3,7", or empty: those of the file, else the one seed of the config.
// With `strict`, refused cells are problems. Problems of all cells are appended, each text once;
// then there are no cells.
WAYMARK_API SweepCells expand_sweep(const std::vector<Source>& files, const std::vector<Override>& overrides,
                                    const std::string& seeds, bool strict, Problems& problems,
                                    const Registries& registries = train::registries());

}  // namespace waymark::train
