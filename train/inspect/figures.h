// The pictures of a ModelReport.
#pragma once

#include <string>
#include <vector>

#include "train/inspect/layer_report.h"

namespace waymark::train {

struct Figure {
  i64 layer = -1;           // -1: of the input
  std::string name = {};         // of its file, without layer and suffix: "attention"
  std::string title = {}, text = {};  // text: what is seen, one or two sentences
  std::string svg = {};
};

WAYMARK_API std::vector<Figure> figures_of(const ModelReport& report);

}  // namespace waymark::train
