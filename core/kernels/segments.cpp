#include "core/kernels/segments.h"

#include <algorithm>

#include "core/parallel/parallel.h"

namespace waymark::kernels {

Segments group_by_destination(std::span<const i64> destination, i64 destinations) {
  Segments s;
  s.begin.assign(static_cast<size_t>(destinations) + 1, 0);
  for (i64 d : destination)
    if (d >= 0) ++s.begin[static_cast<size_t>(d) + 1];
  for (size_t d = 0; d + 1 < s.begin.size(); ++d) s.begin[d + 1] += s.begin[d];
  s.source.resize(static_cast<size_t>(s.begin.back()));
  std::vector<i64> next(s.begin.begin(), s.begin.end() - 1);
  for (size_t i = 0; i < destination.size(); ++i)  // a counting sort keeps the order of the sources
    if (destination[i] >= 0) s.source[static_cast<size_t>(next[static_cast<size_t>(destination[i])]++)] = static_cast<i64>(i);
  return s;
}

namespace {

constexpr i64 kSequence = 16;  // rows added one after the other; sequences are joined pairwise
constexpr i64 kStrip = 128;    // columns of one pass, so that the partial sums stay in the first cache

// out[0 .. width) = Σ x[list[i], :], n >= 1.
template <class T> void sum_list(const i64* list, i64 n, const T* x, i64 row, i64 width, T* out) {
  if (n <= kSequence) {
    std::copy_n(x + list[0] * row, width, out);
    for (i64 i = 1; i < n; ++i) {
      const T* from = x + list[i] * row;
      for (i64 j = 0; j < width; ++j) out[j] += from[j];
    }
    return;
  }
  i64 half = kSequence;
  while (half * 2 < n) half *= 2;
  T right[kStrip];
  sum_list(list, half, x, row, width, out);
  sum_list(list + half, n - half, x, row, width, right);
  for (i64 j = 0; j < width; ++j) out[j] += right[j];
}

}  // namespace

template <class T>
void sum_segments(const Segments& s, const T* x, i64 row, i64 width, T* out, i64 out_row, bool add) {
  const i64 destinations = static_cast<i64>(s.begin.size()) - 1;
  if (width == 0 || destinations == 0) return;
  const i64 work = (static_cast<i64>(s.source.size()) + destinations) * width;
  const i64 grain = std::max<i64>(1, destinations * kGrain / std::max<i64>(work, 1));
  parallel_for(destinations, grain, [&](i64 first, i64 last) {
    T sum[kStrip];
    for (i64 d = first; d < last; ++d) {
      const i64 begin = s.begin[static_cast<size_t>(d)], n = s.begin[static_cast<size_t>(d) + 1] - begin;
      for (i64 at = 0; at < width; at += kStrip) {
        const i64 columns = std::min(kStrip, width - at);
        T* to = out + d * out_row + at;
        if (n == 0) {
          if (!add) std::fill_n(to, columns, T(0));
          continue;
        }
        sum_list(s.source.data() + begin, n, x + at, row, columns, sum);
        if (add) for (i64 j = 0; j < columns; ++j) to[j] += sum[j];
        else std::copy_n(sum, columns, to);
      }
    }
  });
}
template void sum_segments<float>(const Segments&, const float*, i64, i64, float*, i64, bool);
template void sum_segments<double>(const Segments&, const double*, i64, i64, double*, i64, bool);
template void sum_segments<i64>(const Segments&, const i64*, i64, i64, i64*, i64, bool);

}  // namespace waymark::kernels
