// Runs as tables and plots see them: what result.json says, and what a sweep planned beside it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "train/report/result.h"

namespace waymark::train {

enum class RunState { finished, failed, interrupted, nonfinite, running, missing, refused };
WAYMARK_API std::string_view name_of(RunState state);

struct LoadedRun {
  RunState state = RunState::missing;
  std::filesystem::path folder = {};  // empty if there is none
  std::string reason = {};            // why it was refused or failed
  // Complete if there is a result.json; else id, name, seed and config only, as planned.
  RunResult result = {};
};

struct RunSet {
  std::vector<LoadedRun> runs = {};
  // What was passed over, with its path: an unreadable result.json, a folder that no plan knows and that has no result.
  std::vector<std::string> warnings = {};
};

// Reads every result.json and sweep.json in and below the folders (symbolic links to folders are not followed). A run
// that is found twice (same id) is there once; a finished one wins. Order: that of the sweeps' plans, then the
// folders' own, by path. Error if a folder does not exist.
WAYMARK_API RunSet load_runs(const std::vector<std::filesystem::path>& folders);

}  // namespace waymark::train
