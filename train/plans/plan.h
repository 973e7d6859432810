// Plans: experiments that ship with the program, each with the numbers it is compared with.
//
//   waymark sweep --plan list
//   waymark sweep --plan signed-neighbour -j 2
//
// A plan is a config with an axis: the encodings (and attentions) of its rows that this version has. One file and one
// line of the list in plan.cpp add one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/report/loaded_run.h"

namespace waymark::train {

// What was measured for one row of a plan.
struct PlanRow {
  std::string position = {};                     // a spec of model.position
  std::vector<double> expected = {};        // one for each column; empty: not known
  std::string attention = "dense";
  bool one_seed = false;                    // measured on one seed only
};

struct PlanColumn {
  std::string label = {};   // "receiver, 64"
  std::string metric = {};  // "test@64.receiver_accuracy", or "within.3": attention up to this distance, last layer
};

struct Plan {
  std::string name = {}, summary = {};
  std::string recipe = {};                 // TOML: everything but the axis
  std::string seeds = "0..2";
  std::vector<PlanColumn> columns = {};
  std::vector<PlanRow> rows = {};
  // Encodings of the registry without a row are run, too; those that have a clip with this one. 0: they are not.
  i64 others_with_clip = 0;
  std::string reads = {};                  // what the table shows, printed below it
};

WAYMARK_API const std::vector<Plan>& all_plans();
// Null if there is none.
WAYMARK_API const Plan* find_plan(std::string_view name);

// The whole config: the recipe, and [sweep] with the rows that this version can build.
WAYMARK_API std::string plan_toml(const Plan& plan);
// The runs beside what was measured before, as Markdown. A row whose config is not the plan's has no number in brackets.
WAYMARK_API std::string plan_table(const Plan& plan, const std::vector<LoadedRun>& runs);

}  // namespace waymark::train
