// sweep.json: what a sweep planned and what became of it (format waymark-sweep-1). It is how a table knows of runs
// that are missing, running or refused, and in which order the rows were asked for.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

struct PlannedRun {
  std::string id = {}, name = {};
  std::string folder = {};  // relative to the folder of sweep.json; empty for a refused one
  i64 seed = 0;
  // As in result.json: every key with its canonical value, and the short form where it differs.
  std::map<std::string, std::string> config = {}, config_short = {};
  std::string state = {};   // planned, running, finished, failed, interrupted, refused: when the file was written
  std::string reason = {};  // why it was refused or failed
};

struct SweepPlan {
  std::vector<PlannedRun> runs = {};  // in the order of the grid
};

WAYMARK_API std::string plan_to_json(const SweepPlan& plan);
// Strict, as result_from_json.
WAYMARK_API SweepPlan plan_from_json(std::string_view text, std::string_view origin);

// <folder>/sweep.json, whole or not at all.
WAYMARK_API void save_plan(const std::filesystem::path& folder, const SweepPlan& plan);
WAYMARK_API SweepPlan load_plan(const std::filesystem::path& file);

}  // namespace waymark::train
