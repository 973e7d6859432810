#include "core/kernels/integer_product.h"

namespace waymark::kernels {

void integer_product(i64 m, i64 n, i64 k, MatrixView<i64> a, MatrixView<i64> b, i64* c, i64 ldc) {
  for (i64 i = 0; i < m; ++i)
    for (i64 p = 0; p < k; ++p) {
      const u64 x = static_cast<u64>(a.data[i * a.row_stride + p * a.col_stride]);
      const i64* y = b.data + p * b.row_stride;
      i64* to = c + i * ldc;
      for (i64 j = 0; j < n; ++j)
        to[j] = static_cast<i64>(static_cast<u64>(to[j]) + x * static_cast<u64>(y[j * b.col_stride]));
    }
}

}  // namespace waymark::kernels
