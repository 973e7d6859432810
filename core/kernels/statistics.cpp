#include "core/kernels/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/kernels/clones.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {
namespace {

constexpr i64 kChunk = 4096;

template <class T> struct Bits;
template <> struct Bits<float> {
  using Word = u32;
  static constexpr int shift = 23, bias = 127;
  static constexpr Word mask = 0xFF;
};
template <> struct Bits<double> {
  using Word = u64;
  static constexpr int shift = 52, bias = 1023;
  static constexpr Word mask = 0x7FF;
};

template <class T> typename Bits<T>::Word exponent_of(T v) {
  return std::bit_cast<typename Bits<T>::Word>(v) >> Bits<T>::shift & Bits<T>::mask;
}
template <class T> int bin_of(T v) {
  const int k = static_cast<int>(exponent_of(v)) - (Bits<T>::bias - 24);
  return k < 0 ? 0 : k > 31 ? 31 : k;
}

// 1 if any value is NaN or infinite: its exponent bits are all ones.
template <class T> WAYMARK_CLONES bool any_nonfinite(const T* x, i64 n) {
  using Word = typename Bits<T>::Word;
  constexpr Word all = Bits<T>::mask << Bits<T>::shift;
  Word found = 0;
#pragma omp simd reduction(| : found)
  for (i64 i = 0; i < n; ++i) {
    const Word w = std::bit_cast<Word>(x[i]) & all;
    found |= w == all ? Word(1) : Word(0);
  }
  return found != 0;
}

// Sums of x − x[0] and of its square: one pass, and stable, since x[0] is of the data's size. The sum is finite iff all
// values are (but for f64 near its limit).
template <class T> struct Sweep {
  T low, high;
  double sum, squares;
  u32 zeros;
};
template <class T> WAYMARK_CLONES Sweep<T> sweep(const T* x, i64 n) {
  T low = x[0], high = x[0];
  const double first = static_cast<double>(x[0]);
  double sum = 0, squares = 0;
  u32 zeros = 0;
#pragma omp simd reduction(min : low) reduction(max : high) reduction(+ : sum, squares, zeros)
  for (i64 i = 0; i < n; ++i) {
    const T v = x[i];
    const double d = static_cast<double>(v) - first;
    low = v < low ? v : low;
    high = v > high ? v : high;
    sum += d;
    squares += d * d;
    zeros += v == T(0) ? 1U : 0U;
  }
  return {low, high, sum, squares, zeros};
}

// The bin of every element, as a byte.
template <class T> WAYMARK_CLONES void find_bins(const T* x, i64 n, u8* bins) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) bins[i] = static_cast<u8>(bin_of(x[i]));
}

// How many of kChunk bytes are k, and how many are k − 1. Comparing all bytes with each bin that occurs, 64 at a time, is
// several times faster than a table of counters, where neighbours of equal size wait for each other.
static_assert(kChunk / 64 <= 255);  // what a byte of a sum may become
WAYMARK_CLONES std::pair<u32, u32> count_bytes(const u8* bins, i64 n, u8 k) {
  u8 one[64] = {}, other[64] = {};
  for (i64 i = 0; i < n; i += 64) {
#pragma omp simd
    for (int j = 0; j < 64; ++j) one[j] = static_cast<u8>(one[j] + (bins[i + j] == k ? 1 : 0));
#pragma omp simd
    for (int j = 0; j < 64; ++j) other[j] = static_cast<u8>(other[j] + (bins[i + j] == static_cast<u8>(k - 1) ? 1 : 0));
  }
  u32 first = 0, second = 0;
  for (int j = 0; j < 64; ++j) {
    first += one[j];
    second += other[j];
  }
  return {first, second};
}

// From the largest value's bin down, until all are found.
template <class T> void count_bins(const T* x, i64 n, T largest, i64 zeros, std::array<i64, 32>& count) {
  alignas(64) u8 bins[kChunk];
  find_bins(x, n, bins);
  const i64 whole = (n + 63) / 64 * 64;
  std::fill(bins + n, bins + whole, u8{255});
  i64 left = n - zeros;
  for (int k = bin_of(largest); k > 0 && left > 0; k -= 2) {
    const auto [first, second] = count_bytes(bins, whole, static_cast<u8>(k));
    count[static_cast<size_t>(k)] = first;
    left -= first;
    if (k == 1) break;  // the zeros are in bin 0
    count[static_cast<size_t>(k - 1)] = second;
    left -= second;
  }
  count[0] = left;
}

// A chunk of finite values.
template <class T> Summary plain_chunk(const T* x, i64 n, const Sweep<T>& w) {
  Summary s;
  const double first = static_cast<double>(x[0]), count = static_cast<double>(n), shift = w.sum / count;
  s.count = n;
  s.zeros = w.zeros;
  s.min = static_cast<double>(w.low);
  s.max = static_cast<double>(w.high);
  s.mean = first + shift;
  s.deviations = std::max(0.0, w.squares - w.sum * shift);
  s.squares = s.deviations + count * s.mean * s.mean;
  count_bins(x, n, std::max(w.high, -w.low), s.zeros, s.histogram);
  return s;
}

// A chunk with NaN or infinities: the finite values are gathered, the others counted.
template <class T> Summary mixed_chunk(const T* x, i64 n, i64 begin) {
  T finite[kChunk];
  i64 kept = 0;
  Summary other;
  const auto meet = [&](i64& count, i64& first, i64 i) {
    if (++count == 1) first = begin + i;
  };
  for (i64 i = 0; i < n; ++i) {
    if (std::isnan(x[i])) meet(other.nan, other.first_nan, i);
    else if (!std::isinf(x[i])) finite[kept++] = x[i];
    else if (x[i] > 0) meet(other.positive_inf, other.first_positive_inf, i);
    else meet(other.negative_inf, other.first_negative_inf, i);
  }
  Summary s = kept ? plain_chunk(finite, kept, sweep(finite, kept)) : Summary{};
  s.count = n;
  s.nan = other.nan;
  s.positive_inf = other.positive_inf;
  s.negative_inf = other.negative_inf;
  s.first_nan = other.first_nan;
  s.first_positive_inf = other.first_positive_inf;
  s.first_negative_inf = other.first_negative_inf;
  return s;
}

i64 finite_count(const Summary& s) { return s.count - s.nan - s.positive_inf - s.negative_inf; }

// Chan, Golub and LeVeque 1983: mean and deviations of two parts. a lies before b.
Summary combined(const Summary& a, const Summary& b) {
  Summary s = a;
  s.count += b.count;
  s.nan += b.nan;
  s.positive_inf += b.positive_inf;
  s.negative_inf += b.negative_inf;
  s.zeros += b.zeros;
  if (s.first_nan < 0) s.first_nan = b.first_nan;
  if (s.first_positive_inf < 0) s.first_positive_inf = b.first_positive_inf;
  if (s.first_negative_inf < 0) s.first_negative_inf = b.first_negative_inf;
  for (size_t k = 0; k < 32; ++k) s.histogram[k] += b.histogram[k];
  const double na = static_cast<double>(finite_count(a)), nb = static_cast<double>(finite_count(b));
  if (nb == 0) return s;
  if (na == 0) {
    s.min = b.min;
    s.max = b.max;
    s.mean = b.mean;
    s.deviations = b.deviations;
    s.squares = b.squares;
    return s;
  }
  const double delta = b.mean - a.mean;
  s.min = std::min(a.min, b.min);
  s.max = std::max(a.max, b.max);
  s.mean = a.mean + delta * nb / (na + nb);
  s.deviations = a.deviations + b.deviations + delta * delta * na * nb / (na + nb);
  s.squares = a.squares + b.squares;
  return s;
}

template <class T> WAYMARK_CLONES void add_row(const T* x, i64 n, double* sums) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

template <class T> WAYMARK_CLONES Products products_chunk(const T* a, const T* b, i64 n) {
  double ab = 0, aa = 0, bb = 0;
#pragma omp simd reduction(+ : ab, aa, bb)
  for (i64 i = 0; i < n; ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    ab += x * y;
    aa += x * x;
    bb += y * y;
  }
  return {ab, aa, bb};
}

}  // namespace

template <class T> Summary summarize(const T* x, i64 n) {
  if (n <= 0) return {};
  return deterministic_reduce<Summary>(
      n, kChunk,
      [&](i64 begin, i64 end) {
        const i64 size = end - begin;
        const Sweep<T> w = sweep(x + begin, size);
        const bool finite = std::isfinite(w.sum) || !any_nonfinite(x + begin, size);
        return finite ? plain_chunk(x + begin, size, w) : mixed_chunk(x + begin, size, begin);
      },
      combined);
}

template <class T> void block_means(const T* x, i64 rows, i64 columns, i64 down, i64 across, double* means) {
  constexpr i64 kSide = 1024;  // columns whose sums are kept at a time
  const auto first = [](i64 block, i64 n, i64 blocks) { return (block * n + blocks - 1) / blocks; };
  std::fill(means, means + down * across, 0.0);
  double sums[kSide];
  for (i64 i = 0; i < down; ++i) {
    const i64 begin = first(i, rows, down), end = first(i + 1, rows, down);
    i64 j = 0;
    for (i64 left = 0; left < columns; left += kSide) {
      const i64 width = std::min(kSide, columns - left);
      std::fill(sums, sums + width, 0.0);
      for (i64 r = begin; r < end; ++r) add_row(x + r * columns + left, width, sums);
      for (i64 c = 0; c < width; ++c) {
        while (left + c >= first(j + 1, columns, across)) ++j;
        means[i * across + j] += sums[c];
      }
    }
    for (j = 0; j < across; ++j)
      means[i * across + j] /= static_cast<double>((end - begin) * (first(j + 1, columns, across) - first(j, columns, across)));
  }
}

template <class T> int nonfinite_level(const T* x, i64 n) {
  int level = 0;
  for (i64 begin = 0; begin < n && level < 2; begin += kChunk) {
    const i64 size = std::min(kChunk, n - begin);
    if (!any_nonfinite(x + begin, size)) continue;
    level = 1;
    for (i64 i = 0; i < size; ++i)
      if (std::isnan(x[begin + i])) return 2;
  }
  return level;
}

template <class T> Products products(const T* a, const T* b, i64 n) {
  if (n <= 0) return {};
  return deterministic_reduce<Products>(
      n, kChunk, [&](i64 begin, i64 end) { return products_chunk(a + begin, b + begin, end - begin); },
      [](const Products& p, const Products& q) { return Products{p.ab + q.ab, p.aa + q.aa, p.bb + q.bb}; });
}

#define WAYMARK_STATISTICS(T)                            \
  template Summary summarize<T>(const T*, i64);          \
  template int nonfinite_level<T>(const T*, i64);        \
  template Products products<T>(const T*, const T*, i64); \
  template void block_means<T>(const T*, i64, i64, i64, i64, double*);
WAYMARK_STATISTICS(float)
WAYMARK_STATISTICS(double)
#undef WAYMARK_STATISTICS

}  // namespace waymark::kernels
