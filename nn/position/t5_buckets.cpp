#include "nn/position/t5_buckets.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace waymark::nn::encodings {

namespace {

i64 t5_bucket(i64 delta, i64 buckets, i64 max_distance, bool bidirectional) {
  const i64 count = bidirectional ? buckets / 2 : buckets, base = bidirectional && delta > 0 ? count : 0;
  const i64 n = bidirectional ? std::abs(delta) : std::max<i64>(-delta, 0), m = count / 2;
  if (n < m) return base + n;
  const double share = std::log(static_cast<double>(n) / static_cast<double>(m)) /
                       std::log(static_cast<double>(max_distance) / static_cast<double>(m));
  return base + std::min(count - 1, m + static_cast<i64>(std::floor(share * static_cast<double>(count - m) + 1e-9)));
}

}  // namespace

PairIndex t5_index(i64 buckets, i64 max_distance, bool bidirectional) {
  PairIndex index{-max_distance, max_distance};
  for (i64 delta = -max_distance; delta <= max_distance; ++delta)
    index.row.push_back(t5_bucket(delta, buckets, max_distance, bidirectional));
  return index;
}

void check_t5_buckets(i64 buckets, i64 max_distance, bool bidirectional, const std::string& odd_remedy, std::vector<std::string>& problems) {
  const i64 near = (bidirectional ? buckets / 2 : buckets) / 2;
  if (bidirectional && buckets % 2 != 0)
    problems.push_back(fmt::format("buckets={} must be even, half of them for each direction{}", buckets,
                                   odd_remedy.empty() ? "" : "; or " + odd_remedy));
  if (buckets > max_distance)
    problems.push_back(fmt::format("buckets={} is more than max_distance={}: some would stay empty", buckets, max_distance));
  if (near < 1)
    problems.push_back(fmt::format("buckets={} leaves no bucket for small distances; needs at least {}", buckets, bidirectional ? 4 : 2));
  else if (max_distance <= near)
    problems.push_back(fmt::format("max_distance={} must be greater than {}, the distances with a bucket of their own", max_distance, near));
}

}  // namespace waymark::nn::encodings
