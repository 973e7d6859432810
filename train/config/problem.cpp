#include "train/config/problem.h"

#include <algorithm>

namespace waymark::train {

std::string problems_text(const Problems& problems) {
  size_t width = 0;
  for (const Problem& p : problems) width = std::max(width, std::min<size_t>(p.origin.size(), 40));
  std::string out =
      fmt::format("{} problem{}, nothing was read or written", problems.size(), problems.size() == 1 ? "" : "s");
  constexpr size_t kShown = 1000;  // a hostile file may have a million
  for (size_t i = 0; i < problems.size(); ++i) {
    if (i == kShown) return out + fmt::format("\n  ... and {} more", problems.size() - kShown);
    const Problem& p = problems[i];
    out += fmt::format("\n  {:<{}}{}", p.origin, width, width > 0 ? "  " : "");
    for (char c : p.text) {
      out += c;
      if (c == '\n') out.append(width + 4, ' ');  // under the text of the first line
    }
  }
  return out;
}

}  // namespace waymark::train
