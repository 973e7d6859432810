#include "nn/position/differences.h"

#include <algorithm>

namespace waymark::nn::encodings {

namespace {

// Smallest and largest position of a row; first > second: there is none.
std::pair<i64, i64> ends_of(const Positions& p, i64 row) {
  i64 low = Positions::kLargest + 1, high = -1;
  for (i64 i = 0; i < p.length(); ++i)
    if (const i64 v = p.at(row, i); v >= 0) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
  return {low, high};
}

// Smallest and largest difference of the call; {0, 0} if no pair has one.
std::pair<i64, i64> range_of(const EncodingCall& call) {
  bool any = false;
  i64 lo = 0, hi = 0;
  for (i64 b = 0; b < std::max(call.queries.rows(), call.keys.rows()); ++b) {
    const auto [q_low, q_high] = ends_of(call.queries, b);
    const auto [k_low, k_high] = ends_of(call.keys, b);
    if (q_high < 0 || k_high < 0) continue;
    lo = any ? std::min(lo, k_low - q_high) : k_low - q_high;
    hi = any ? std::max(hi, k_high - q_low) : k_high - q_low;
    any = true;
  }
  return {lo, hi};
}

// Those that occur, sorted.
std::vector<i64> occurring(const EncodingCall& call, i64 lo, i64 hi) {
  std::vector<i64> values;
  size_t distinct = 0;
  const auto reduce = [&] {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    distinct = values.size();
  };
  for (i64 b = 0; b < std::max(call.queries.rows(), call.keys.rows()); ++b)
    for (i64 i = 0; i < call.queries.length(); ++i) {
      const i64 p = call.queries.at(b, i);
      if (p < 0) continue;
      for (i64 j = 0; j < call.keys.length(); ++j)
        if (const i64 q = call.keys.at(b, j); q >= 0) values.push_back(std::clamp(q - p, lo, hi));
      if (values.size() > 2 * distinct + 65536) reduce();
    }
  reduce();
  return values;
}

}  // namespace

Differences differences_of(const EncodingCall& call, i64 lo, i64 hi) {
  const auto [smallest, largest] = range_of(call);
  const i64 first = std::clamp(smallest, lo, hi), last = std::clamp(largest, lo, hi);
  Differences d;
  d.index.lo = first;
  d.index.hi = last;
  if (last - first < 4 * (call.queries.length() + call.keys.length()) + 16) {
    for (i64 delta = first; delta <= last; ++delta) d.values.push_back(delta);
  } else {
    d.values = occurring(call, lo, hi);
    d.index.listed = d.values;
  }
  return d;
}

}  // namespace waymark::nn::encodings
