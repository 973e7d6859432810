#include "core/random/draws.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/random/values.h"
#include "core/tensor/error.h"
#include "core/tensor/shape.h"

namespace waymark {

namespace {


// Cuts [begin, end) into pieces of rows, collects up to kPhiloxBatch blocks (from several rows if they are short), and
// has `make(words, n, values)` turn them into kPer values per block.
template <int kPer, class T, class Make> class Filler {
 public:
  Filler(const Draw& draw, const DrawGrid& grid, Make make) : draw_(draw), grid_(grid), make_(std::move(make)) {}

  // to: where position `begin` goes.
  void run(i64 begin, i64 end, T* to) {
    if (begin >= end) return;
    const u64 line0 = static_cast<u64>(begin) / grid_.cols;
    u64 col = static_cast<u64>(begin) % grid_.cols, lead = line0 / grid_.rows, row = line0 % grid_.rows;
    for (u64 flat = static_cast<u64>(begin), stop = static_cast<u64>(end); flat < stop;) {
      const u64 n = std::min(grid_.cols - col, stop - flat);
      add_row(grid_.at.lead + lead, grid_.at.row + row, grid_.at.col + col, n, to);
      flat += n;
      to += n;
      col = 0;
      if (++row == grid_.rows) {
        row = 0;
        ++lead;
      }
    }
    flush();
  }

 private:
  struct Piece {
    int from;
    u64 count;
    T* to;
  };

  void add_row(u64 lead, u64 row, u64 col, u64 n, T* to) {
    while (n > 0) {
      const u64 block = col / kPer, skip = col % kPer;
      const int take =
          static_cast<int>(std::min((skip + n + kPer - 1) / kPer, static_cast<u64>(kPhiloxBatch - blocks_)));
      const u64 count = std::min(n, static_cast<u64>(take) * kPer - skip);
      for (int i = 0; i < take; ++i) {
        counters_.block[blocks_ + i] = static_cast<u32>(block) + static_cast<u32>(i);
        counters_.row[blocks_ + i] = static_cast<u32>(row);
        counters_.lead[blocks_ + i] = static_cast<u32>(lead);
      }
      pieces_[piece_count_++] = {blocks_ * kPer + static_cast<int>(skip), count, to};
      blocks_ += take;
      col += count;
      n -= count;
      to += count;
      if (blocks_ == kPhiloxBatch) flush();
    }
  }

  void flush() {
    if (blocks_ == 0) return;
    for (int i = blocks_; i % 16 != 0; ++i) counters_.block[i] = counters_.row[i] = counters_.lead[i] = 0;
    philox_batch(draw_.key, draw_.number, counters_, blocks_, words_);
    const Piece& only = pieces_[0];
    if (piece_count_ == 1 && only.from == 0 && only.count == static_cast<u64>(blocks_) * kPer) {
      make_(words_, blocks_, only.to);
    } else {
      make_(words_, blocks_, values_);
      for (int i = 0; i < piece_count_; ++i) std::copy_n(values_ + pieces_[i].from, pieces_[i].count, pieces_[i].to);
    }
    blocks_ = piece_count_ = 0;
  }

  const Draw& draw_;
  const DrawGrid& grid_;
  Make make_;
  int blocks_ = 0, piece_count_ = 0;
  PhiloxCounters counters_;
  PhiloxWords words_;
  Piece pieces_[kPhiloxBatch];
  alignas(64) T values_[kPer * kPhiloxBatch];
};

template <int kPer, class T, class Make>
void fill(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out, Make make) {
  Filler<kPer, T, Make>(draw, grid, std::move(make)).run(begin, end, out);
}

// The values of one 64-bit block by the batch functions, so that a single element has the bits of the array.
template <class T, class Make> T one_of_block(const Draw& draw, u64 lead, u64 row, u64 col, Make make) {
  const PhiloxBlock block = philox_block(
      {static_cast<u32>(col / 2), static_cast<u32>(row), static_cast<u32>(lead), draw.number}, draw.key);
  PhiloxWords words;
  for (int i = 0; i < 4; ++i) words.w[i][0] = block[static_cast<std::size_t>(i)];
  T values[2];
  make(words, 1, values);
  return values[col % 2];
}

void check_at(u64 lead, u64 row, u64 col) {
  if (lead >= kDrawLimit || row >= kDrawLimit || col >= kDrawLimit)
    fail("random", "coordinates (lead {}, row {}, column {}) must be below 2^32", lead, row, col);
}

u64 randint_range(i64 low, i64 high) {
  if (low >= high) fail("randint", "low = {} must be less than high = {}", low, high);
  return static_cast<u64>(high) - static_cast<u64>(low);
}

}  // namespace

DrawGrid draw_grid(std::span<const i64> shape, Origin at) {
  DrawGrid grid;
  grid.at = at;
  i64 numel = 1;
  bool too_large = false;
  for (i64 size : shape) {
    if (size < 0) fail("random", "shape {} has a negative size", Shape(shape));
    too_large |= __builtin_mul_overflow(numel, size, &numel);
  }
  const std::size_t rank = shape.size();
  if (numel == 0) {
    grid.leads = grid.rows = grid.cols = 0;
    return grid;
  }
  if (rank > 0) grid.cols = static_cast<u64>(shape[rank - 1]);
  if (rank > 1) grid.rows = static_cast<u64>(shape[rank - 2]);
  for (std::size_t i = 0; i + 2 < rank; ++i) grid.leads *= static_cast<u64>(shape[i]);
  const auto beyond = [](u64 from, u64 n) { return from >= kDrawLimit || n > kDrawLimit - from; };
  if (too_large || beyond(at.lead, grid.leads) || beyond(at.row, grid.rows) || beyond(at.col, grid.cols))
    fail("random", "shape {} from (lead {}, row {}, column {}): every coordinate of a draw must be below 2^32",
         Shape(shape), at.lead, at.row, at.col);
  return grid;
}

DrawGrid draw_grid(std::span<const i64> shape, AxisOffset offset) {
  Origin at;
  if (offset.first >= kDrawLimit) fail("random", "index {} on axis 0 must be below 2^32", offset.first);
  switch (shape.size()) {
    case 0: break;
    case 1: at.col = offset.first; break;
    case 2: at.row = offset.first; break;
    default:
      at.lead = offset.first;
      for (std::size_t i = 1; i + 2 < shape.size(); ++i)
        if (__builtin_mul_overflow(at.lead, static_cast<u64>(shape[i]), &at.lead)) at.lead = kDrawLimit;
  }
  return draw_grid(shape, at);
}

template <class T> void fill_uniform(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out) {
  fill<2>(draw, grid, begin, end, out, [](const PhiloxWords& w, int n, T* v) { random_values::uniform(w, n, v); });
}
template <class T> void fill_normal(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out) {
  fill<2>(draw, grid, begin, end, out, [](const PhiloxWords& w, int n, T* v) { random_values::normal(w, n, v); });
}
template <class T> void fill_exponential(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out) {
  fill<2>(draw, grid, begin, end, out, [](const PhiloxWords& w, int n, T* v) { random_values::exponential(w, n, v); });
}
template <class T> void fill_gumbel(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out) {
  fill<2>(draw, grid, begin, end, out, [](const PhiloxWords& w, int n, T* v) { random_values::gumbel(w, n, v); });
}
template <class T>
void fill_trunc_normal(const Draw& draw, const DrawGrid& grid, double a, double b, i64 begin, i64 end, T* out) {
  if (!(a < b)) fail("trunc_normal", "a = {} must be less than b = {}", a, b);
  const random_values::TruncNormal cut(a, b);
  fill<2>(draw, grid, begin, end, out, [&cut](const PhiloxWords& w, int n, T* v) {
    double u[2 * kPhiloxBatch];
    random_values::uniform(w, n, u);
    for (int i = 0; i < 2 * n; ++i) v[i] = static_cast<T>(cut(u[i]));
  });
}

void fill_randint(const Draw& draw, const DrawGrid& grid, i64 low, i64 high, i64 begin, i64 end, i64* out) {
  const u64 range = randint_range(low, high);
  fill<2>(draw, grid, begin, end, out,
          [=](const PhiloxWords& w, int n, i64* v) { random_values::randint(w, n, low, range, v); });
}

void fill_bits(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, u64* out) {
  fill<2>(draw, grid, begin, end, out, [](const PhiloxWords& w, int n, u64* v) { random_values::bits(w, n, v); });
}

u64 bernoulli_threshold(double p) {
  if (!(p >= 0.0 && p <= 1.0)) fail("bernoulli", "p = {} must be in [0, 1]", p);
  const double scaled = p * 0x1p32;
  const u64 whole = static_cast<u64>(scaled);
  return whole + (scaled - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

void fill_bernoulli(const Draw& draw, const DrawGrid& grid, u64 threshold, i64 begin, i64 end, u8* out) {
  fill<4>(draw, grid, begin, end, out,
          [=](const PhiloxWords& w, int n, u8* v) { random_values::below(w, n, threshold, v); });
}

template <class T>
void fill_bernoulli(const Draw& draw, const DrawGrid& grid, const T* p, i64 begin, i64 end, u8* out) {
  constexpr i64 kChunk = 1024;
  u32 w[kChunk];
  for (i64 at = begin; at < end; at += kChunk) {
    const i64 n = std::min(kChunk, end - at);
    fill<4>(draw, grid, at, at + n, w, [](const PhiloxWords& words, int blocks, u32* v) {
      for (int i = 0; i < blocks; ++i)
        for (int j = 0; j < 4; ++j) v[4 * i + j] = words.w[j][i];
    });
    for (i64 i = 0; i < n; ++i, ++p, ++out) *out = w[i] < bernoulli_threshold(static_cast<double>(*p));
  }
}

void fill_dropout_keep(const Draw& draw, const DrawGrid& grid, u64 threshold, i64 begin, i64 end, u8* out) {
  fill<4>(draw, grid, begin, end, out,
          [=](const PhiloxWords& w, int n, u8* v) { random_values::not_below(w, n, threshold, v); });
}

void dropout_keep_row(u64 key, u32 number, u64 lead, u64 row, u64 col_begin, i64 n, u64 threshold, u8* keep) {
  if (n <= 0) return;
  Draw draw;
  draw.key = key;
  draw.number = number;
  const DrawGrid grid{1, 1, static_cast<u64>(n), {lead, row, col_begin}};
  fill_dropout_keep(draw, grid, threshold, 0, n, keep);
}

void fill_randperm(const Draw& draw, i64 n, i64* out) {
  if (n < 0) fail("randperm", "n = {} is negative", n);
  const i64 shape[] = {n};
  const DrawGrid grid = draw_grid(shape, Origin{});
  std::vector<u64> keys(static_cast<std::size_t>(n));
  fill_bits(draw, grid, 0, n, keys.data());
  std::vector<std::pair<u64, i64>> order(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = {keys[i], static_cast<i64>(i)};
  std::sort(order.begin(), order.end());  // ties by index: the stable order
  for (std::size_t i = 0; i < order.size(); ++i) out[i] = order[i].second;
}

u64 bits_at(const Draw& draw, u64 lead, u64 row, u64 col) {
  check_at(lead, row, col);
  return one_of_block<u64>(draw, lead, row, col,
                           [](const PhiloxWords& w, int n, u64* v) { random_values::bits(w, n, v); });
}
double uniform_at(const Draw& draw, u64 lead, u64 row, u64 col) {
  check_at(lead, row, col);
  return one_of_block<double>(draw, lead, row, col,
                              [](const PhiloxWords& w, int n, double* v) { random_values::uniform(w, n, v); });
}
double normal_at(const Draw& draw, u64 lead, u64 row, u64 col) {
  check_at(lead, row, col);
  return one_of_block<double>(draw, lead, row, col,
                              [](const PhiloxWords& w, int n, double* v) { random_values::normal(w, n, v); });
}
i64 randint_at(const Draw& draw, i64 low, i64 high, u64 lead, u64 row, u64 col) {
  check_at(lead, row, col);
  const u64 range = randint_range(low, high);
  return one_of_block<i64>(draw, lead, row, col, [=](const PhiloxWords& w, int n, i64* v) {
    random_values::randint(w, n, low, range, v);
  });
}

u64 DrawSequence::bits() {
  if (col_ >= kDrawLimit) fail("random", "a sequence holds 2^32 numbers; use another draw number");
  const u64 block = col_ / 2, half = col_ % 2 * 2;
  if (block != cached_) {
    block_ = philox_block({static_cast<u32>(block), 0, 0, draw_.number}, draw_.key);
    cached_ = block;
  }
  ++col_;
  return u64{block_[half]} | u64{block_[half + 1]} << 32;
}

double DrawSequence::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

i64 DrawSequence::randint(i64 low, i64 high) {
  const u64 range = randint_range(low, high);
  return random_values::randint_of(bits(), low, range);
}

double DrawSequence::normal() {
  col_ += col_ % 2;
  if (col_ >= kDrawLimit) fail("random", "a sequence holds 2^32 numbers; use another draw number");
  const double value = normal_at(draw_, 0, 0, col_);
  col_ += 2;
  return value;
}

template void fill_uniform(const Draw&, const DrawGrid&, i64, i64, float*);
template void fill_uniform(const Draw&, const DrawGrid&, i64, i64, double*);
template void fill_normal(const Draw&, const DrawGrid&, i64, i64, float*);
template void fill_normal(const Draw&, const DrawGrid&, i64, i64, double*);
template void fill_exponential(const Draw&, const DrawGrid&, i64, i64, float*);
template void fill_exponential(const Draw&, const DrawGrid&, i64, i64, double*);
template void fill_gumbel(const Draw&, const DrawGrid&, i64, i64, float*);
template void fill_gumbel(const Draw&, const DrawGrid&, i64, i64, double*);
template void fill_trunc_normal(const Draw&, const DrawGrid&, double, double, i64, i64, float*);
template void fill_trunc_normal(const Draw&, const DrawGrid&, double, double, i64, i64, double*);
template void fill_bernoulli(const Draw&, const DrawGrid&, const float*, i64, i64, u8*);
template void fill_bernoulli(const Draw&, const DrawGrid&, const double*, i64, i64, u8*);

}  // namespace waymark
