#include "core/kernels/index.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/kernels/segments.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {
namespace {

template <class T> void gather_elements(const T* x, const i64* start, i64 n, T* y) {
  parallel_for(n, kGrain, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) y[i] = x[start[i]];
  });
}

constexpr i64 kDirect = 32;  // up to so many terms for a place need no tree: 2(16 + log n) ulp allow it

}  // namespace

void gather_rows(i64 size, const std::byte* x, const i64* start, i64 rows, i64 inner, std::byte* y) {
  if (inner == 1 && size == 8)
    return gather_elements(reinterpret_cast<const u64*>(x), start, rows, reinterpret_cast<u64*>(y));
  if (inner == 1 && size == 4)
    return gather_elements(reinterpret_cast<const u32*>(x), start, rows, reinterpret_cast<u32*>(y));
  const auto bytes = static_cast<size_t>(inner * size);
  parallel_for(rows, std::max<i64>(1, kGrain / std::max<i64>(inner, 1)), [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) std::memcpy(y + i * inner * size, x + start[i] * size, bytes);
  });
}

void assign_rows(i64 size, std::byte* y, i64 y_elements, const i64* start, i64 rows, i64 inner, const std::byte* x) {
  const auto bytes = static_cast<size_t>(inner * size);
  // Each task owns a range of destinations and reads all starts: the order of writes to one place is that of i.
  const i64 tasks = rows * inner > 4 * kGrain ? 8 : 1;
  const i64 span = (y_elements + tasks - 1) / tasks;
  parallel_for(tasks, 1, [&](i64 begin, i64 end) {
    const i64 low = begin * span, high = end * span;
    for (i64 i = 0; i < rows; ++i)
      if (start[i] >= low && start[i] < high) std::memcpy(y + start[i] * size, x + i * inner * size, bytes);
  });
}

template <class T> void accumulate_rows(T* y, i64 y_elements, const i64* start, i64 rows, i64 inner, const T* x) {
  if (rows == 0 || inner == 0 || y_elements == 0) return;
  if constexpr (!std::is_floating_point_v<T>) {
    for (i64 i = 0; i < rows; ++i)
      for (i64 j = 0; j < inner; ++j) {
        T& to = y[start[i] + j];
        const T v = x[i * inner + j];
        if constexpr (std::is_same_v<T, bool>)
          to |= v;
        else
          to = static_cast<i64>(static_cast<u64>(to) + static_cast<u64>(v));
      }
    return;
  } else {
    const i64 destinations = y_elements / inner;
    std::vector<i64> to(start, start + rows);
    if (inner > 1)
      for (i64& d : to) d /= inner;
    // Little work: one after the other, as long as no destination gets too many.
    if (rows * inner <= kGrain) {
      i64 most = rows;
      if (rows > kDirect) {
        std::vector<i64> count(static_cast<size_t>(destinations));
        most = 0;
        for (const i64 d : to) most = std::max(most, ++count[static_cast<size_t>(d)]);
      }
      if (most <= kDirect) {
        for (i64 i = 0; i < rows; ++i)
          for (i64 j = 0; j < inner; ++j) y[start[i] + j] += x[i * inner + j];
        return;
      }
    }
    sum_segments(group_by_destination(to, destinations), x, inner, inner, y, inner, true);
  }
}

template void accumulate_rows<float>(float*, i64, const i64*, i64, i64, const float*);
template void accumulate_rows<double>(double*, i64, const i64*, i64, i64, const double*);
template void accumulate_rows<i64>(i64*, i64, const i64*, i64, i64, const i64*);
template void accumulate_rows<bool>(bool*, i64, const i64*, i64, i64, const bool*);

}  // namespace waymark::kernels
