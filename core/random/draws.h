// Draws: random numbers as a pure function of (key of seed and stream, draw number, coordinates of the element).
//
//   counter = {block, row, lead, draw number};  col, row = index on the last, the second last axis,
//   lead = flat index over the axes before them (an axis that is absent: 0).
//   64-bit values: block = col / 2, x = out[2 (col % 2)] | out[2 (col % 2) + 1] << 32
//   32-bit values: block = col / 4, w = out[col % 4]
//
//   uniform      x    (x >> 11) 2^-53; f32: (x >> 40) 2^-24, the f64 value truncated, never 1
//   normal       x, x' of columns 2b, 2b+1: u1 = ((x >> 11) + 1) 2^-53, u2 = (x' >> 11) 2^-53, r = sqrt(-2 ln u1);
//                     r cos 2 pi u2 in the even column, r sin 2 pi u2 in the odd one (Box and Muller 1958)
//   exponential  x    -ln u1
//   gumbel       x    -ln(-ln u), u = ((x >> 11) + 1/2) 2^-53
//   trunc_normal x    Phi^-1(Phi(a) + u (Phi(b) - Phi(a))) in [a, b], u the uniform f64
//   randint      x    low + floor(x (high - low) / 2^64)
//   bernoulli    w    1 iff w < round(p 2^32);  dropout drops iff w < round(p 2^32)
//   randperm     x    stable argsort of the keys x
// f32 values are rounded f64 values, except where the table says otherwise.
//
// So growing the last axis, the second last, or the first of the others changes no earlier draw; nor does the number
// of threads or the cut into pieces: every fill takes a range of flat positions, and may be called from any thread.
// Each coordinate must stay below 2^32 (Error). The bits are the same on every CPU.
#pragma once

#include <cmath>
#include <memory>
#include <span>

#include "core/random/philox.h"
#include "core/tensor/types.h"

namespace waymark {

// Coordinates, draw numbers and lengths stay below this.
inline constexpr u64 kDrawLimit = u64{1} << 32;

struct DrawTap;  // playback.h: where an injected draw comes from, and a captured one goes to

// One draw of one stream, as Generator hands it out. A value: a backward rule keeps it and draws again from it, which
// advances nothing.
struct Draw {
  u64 key = 0;
  u32 number = 0;
  u64 first = 0;                       // added to the index on axis 0 (DrawScope); 0 for draws without a batch axis
  std::shared_ptr<const DrawTap> tap;  // null unless the stream is injected or captured
};

// The index on axis 0 counts from `first`: [n]: col, [B, E]: row, [B, ..., L, M]: lead, times the axes between.
struct AxisOffset {
  u64 first = 0;
};

// Where the coordinates start.
struct Origin {
  u64 lead = 0, row = 0, col = 0;
};

// A dense row-major array [leads, rows, cols] whose element (l, r, c) has the coordinates (at.lead + l, at.row + r,
// at.col + c).
struct DrawGrid {
  u64 leads = 1, rows = 1, cols = 1;
  Origin at;
  i64 numel() const { return static_cast<i64>(leads * rows * cols); }
};
// `shape` in elements; negative sizes and coordinates beyond 2^32 are Errors.
WAYMARK_API DrawGrid draw_grid(std::span<const i64> shape, AxisOffset offset = {});
WAYMARK_API DrawGrid draw_grid(std::span<const i64> shape, Origin at);
inline DrawGrid draw_grid(const Draw& draw, std::span<const i64> shape) {
  return draw_grid(shape, AxisOffset{draw.first});
}

// Positions [begin, end) of the array; out[0] is position `begin`. T: float or double.
template <class T>
WAYMARK_API void fill_uniform(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out);
template <class T>
WAYMARK_API void fill_normal(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out);
template <class T>
WAYMARK_API void fill_exponential(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out);
template <class T>
WAYMARK_API void fill_gumbel(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, T* out);
// The standard normal distribution cut to [a, b]; a < b, either may be infinite (Error otherwise).
template <class T>
WAYMARK_API void fill_trunc_normal(const Draw& draw, const DrawGrid& grid, double a, double b, i64 begin, i64 end,
                                   T* out);

// Integers in [low, high); low >= high is an Error.
WAYMARK_API void fill_randint(const Draw& draw, const DrawGrid& grid, i64 low, i64 high, i64 begin, i64 end, i64* out);
// The 64 bits of each element.
WAYMARK_API void fill_bits(const Draw& draw, const DrawGrid& grid, i64 begin, i64 end, u64* out);

// round(p 2^32), halves up, compared with 32-bit words as u64: p = 1 always, p = 0 never. p outside [0, 1]: Error.
WAYMARK_API u64 bernoulli_threshold(double p);
// 1 with probability p, else 0; p by its threshold.
WAYMARK_API void fill_bernoulli(const Draw& draw, const DrawGrid& grid, u64 threshold, i64 begin, i64 end, u8* out);
// The same with one p for each element, in [0, 1] (Error); p[0] is that of position `begin`.
template <class T>
WAYMARK_API void fill_bernoulli(const Draw& draw, const DrawGrid& grid, const T* p, i64 begin, i64 end, u8* out);
// 0 with probability p (the element is dropped), else 1.
WAYMARK_API void fill_dropout_keep(const Draw& draw, const DrawGrid& grid, u64 threshold, i64 begin, i64 end, u8* out);

// The same decisions for columns [col_begin, col_begin + n) of one row, for fused kernels: nothing is allocated, and
// all coordinates are the caller's (with Draw::first already added; each below 2^32).
WAYMARK_API void dropout_keep_row(u64 key, u32 number, u64 lead, u64 row, u64 col_begin, i64 n, u64 threshold,
                                  u8* keep);

// A permutation of 0 .. n-1, 0 <= n <= 2^32 (Error).
WAYMARK_API void fill_randperm(const Draw& draw, i64 n, i64* out);

// Single elements.
WAYMARK_API u64 bits_at(const Draw& draw, u64 lead, u64 row, u64 col);
WAYMARK_API double uniform_at(const Draw& draw, u64 lead, u64 row, u64 col);
WAYMARK_API double normal_at(const Draw& draw, u64 lead, u64 row, u64 col);
WAYMARK_API i64 randint_at(const Draw& draw, i64 low, i64 high, u64 lead, u64 row, u64 col);

// The elements of the 1-d array of a draw, one after the other: a generator for code that does not know beforehand
// how many numbers it needs (a data set item: its draw number = its index). More than 2^32 numbers are an Error.
class WAYMARK_API DrawSequence {
 public:
  explicit DrawSequence(Draw draw) : draw_(std::move(draw)) {}
  u64 bits();
  double uniform();
  i64 randint(i64 low, i64 high);
  bool bernoulli(double p) { return uniform() < p; }
  // Takes the next even column and the odd one after it; two in a row share nothing.
  double normal();
  u64 position() const { return col_; }

 private:
  Draw draw_;
  u64 col_ = 0, cached_ = ~u64{0};  // number of the block in block_
  PhiloxBlock block_{};
};

}  // namespace waymark
