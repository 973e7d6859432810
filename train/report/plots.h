// The plots of a set of runs, one line per row of a table: what was measured over steps, over test lengths, and over
// distance. Each returns a chart, to be changed at will before draw(): draw(curves_chart(set.runs)).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/report/chart.h"
#include "train/report/loaded_run.h"

namespace waymark::train {

struct CurvesOptions {
  std::vector<std::string> rows = {"model.position"};  // config keys: runs that agree in them are one line
  std::string field = "loss";                          // of the records of metrics.jsonl
  std::string split = "val";                           // empty: the training records
  bool against_seconds = false;                        // training clock instead of steps
};
// Mean and band of one s.d. over seeds, the runs thin behind it. Runs without metrics.jsonl or without the field are
// left out; the description says how many. Error for an unreadable file.
WAYMARK_API LineChart curves_chart(const std::vector<LoadedRun>& runs, const CurvesOptions& options = {});

// The metric on "test" (at the trained length) and on every "test@N", of the last checkpoint or the best one; the
// trained length is a vertical line, baselines on "test" are horizontal ones.
WAYMARK_API LineChart length_chart(const std::vector<LoadedRun>& runs, std::string_view metric,
                                   const std::vector<std::string>& rows = {"model.position"}, bool best = false);

// Something measured at each distance in one layer of one run: mean attention weight or norm of a table's row at
// key position - query position.
struct DistanceCurve {
  std::string label = {};  // of the line: the encoding
  i64 layer = 0;
  Curve curve = {};        // x = distance
};
// One panel per layer, one line per label, mean and band over the curves of a label (its seeds).
WAYMARK_API PanelChart distance_chart(std::string title, std::string y_label, const std::vector<DistanceCurve>& curves);

}  // namespace waymark::train
