// Axis: from values to pixels, with ticks at 1, 2, 5 times a power of ten, linear or logarithmic; thinning of curves.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

struct Tick {
  double value = 0;
  std::string text = {};
};

class WAYMARK_API Axis {
 public:
  // Covers `low`..`high` (drawable, in any order) and puts them on the pixels `from`..`to`.
  // `tight` ends at the data; otherwise the ends are widened to the next ticks. A range of no width is widened.
  // `ticks`, if not empty, are the places to mark (the lengths that were tested); nice places otherwise.
  Axis(double low, double high, double from, double to, bool logarithmic, bool tight, i64 wanted_ticks = 6,
       std::vector<double> ticks = {});

  double operator()(double value) const;  // pixel; the value must be drawable
  bool drawable(double value) const;      // a number of at most 1e300, and above 1e-290 on a logarithmic axis
  const std::vector<Tick>& ticks() const { return ticks_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double low_, high_, from_, to_;
  bool logarithmic_;
  std::vector<Tick> ticks_;
};

// The texts of ticks: equal decimals, thousands as 10k, very small and large as 1e-5.
WAYMARK_API std::vector<std::string> tick_texts(const std::vector<double>& values);

// Which points of a curve to draw so that at most `limit` (even, >= 4) remain and no peak is lost: the smallest and the
// largest of each of limit / 2 slices of neighbours, in order, the first and the last point always.
WAYMARK_API std::vector<std::size_t> thin(const std::vector<double>& y, std::size_t limit = 2000);

}  // namespace waymark::train
