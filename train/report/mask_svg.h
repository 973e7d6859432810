// Pictures of masks as SVG: one panel for each head that differs, and what changes between two masks.
#pragma once

#include <string>

#include "nn/attention/mask_report.h"

namespace waymark::train {

// Queries downwards, keys to the right; the darker a cell, the more of its pairs are allowed.
WAYMARK_API std::string mask_svg(const nn::MaskReport& report, const std::string& title);
// Kept pairs in grey, those that are gone and those that are new in two colours.
WAYMARK_API std::string mask_svg(const nn::MaskDifference& difference, const std::string& title);

}  // namespace waymark::train
