#include "core/kernels/pick.h"

#include <algorithm>

#include "core/parallel/parallel.h"

namespace waymark::kernels {

template <class T> void pick(const T* x, i64 row, const i64* index, T* y, i64 rows) {
  parallel_for(rows, kGrain, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) y[r] = index[r] < 0 ? T(0) : x[r * row + index[r]];
  });
}

template <class T> void place(const T* y, const i64* index, T* x, i64 rows, i64 n) {
  parallel_for(rows, std::max<i64>(1, kGrain / std::max<i64>(1, n)), [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      std::fill_n(x + r * n, n, T(0));
      if (index[r] >= 0) x[r * n + index[r]] = y[r];
    }
  });
}

template void pick<float>(const float*, i64, const i64*, float*, i64);
template void pick<double>(const double*, i64, const i64*, double*, i64);
template void place<float>(const float*, const i64*, float*, i64, i64);
template void place<double>(const double*, const i64*, double*, i64, i64);

}  // namespace waymark::kernels
