// One page of everything that waymark inspect found: self-contained HTML that works offline and prints.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/inspect/figures.h"

namespace waymark::train {

struct PageFacts {
  std::string title = {};                                          // of the run
  std::vector<std::pair<std::string, std::string>> summary = {};   // name and value
  std::string item = {};                                           // the item whose maps are drawn, as text
  std::vector<std::string> warnings = {};
  std::string command = {};                                        // that makes this page again
};

// All texts may hold anything; they are escaped. No script, no address of anything outside of the page.
WAYMARK_API std::string inspection_page(const PageFacts& facts, const ModelReport& report, const std::vector<Figure>& figures);

}  // namespace waymark::train
