#include "tests/ops/sampler.h"

#include <algorithm>
#include <cmath>

#include "core/ops/shape.h"

namespace waymark::test {

const char* name_of(MemoryLayout layout) {
  switch (layout) {
    case MemoryLayout::contiguous: return "contiguous";
    case MemoryLayout::permuted: return "permuted";
    case MemoryLayout::every_second: return "every second element";
    case MemoryLayout::reversed: return "reversed";
    case MemoryLayout::offset: return "with an offset";
    default: return "expanded";
  }
}

namespace {

double draw(const CaseArg& a, std::mt19937_64& rng) {
  std::uniform_real_distribution<double> u(a.low, a.high);
  for (;;) {
    const double v = u(rng);
    const bool near = std::any_of(a.kinks.begin(), a.kinks.end(), [&](double k) { return std::abs(v - k) < a.margin; });
    if (!near) return v;
  }
}

void fill(const CaseArg& a, const Tensor& t, std::mt19937_64& rng) {
  const i64 n = t.numel();
  if (a.dtype == kB8) {
    for (i64 i = 0; i < n; ++i) t.data<bool>()[i] = rng() & 1;
  } else if (a.dtype == kI64) {
    std::uniform_int_distribution<i64> u(static_cast<i64>(a.low), std::max(static_cast<i64>(a.low), static_cast<i64>(a.high) - 1));
    for (i64 i = 0; i < n; ++i) t.data<i64>()[i] = u(rng);
  } else if (a.distinct) {  // a shuffled grid: no two values are close
    // On a lattice, which the first argument and the others see from different places: no ties between them either.
    double step = 0.0625;
    while (step * static_cast<double>(n) > a.high - a.low) step /= 2;
    const double phase = a.name == "input" || a.list == 0 ? 0.25 : 0.75;
    std::vector<double> grid(static_cast<size_t>(n));
    for (i64 i = 0; i < n; ++i) {
      const double v = a.low + (a.high - a.low) * static_cast<double>(i) / static_cast<double>(n);
      grid[static_cast<size_t>(i)] = (std::ceil(v / step - 1e-9) + phase) * step;
    }
    std::shuffle(grid.begin(), grid.end(), rng);
    std::copy(grid.begin(), grid.end(), t.data<double>());
  } else {
    for (i64 i = 0; i < n; ++i) t.data<double>()[i] = draw(a, rng);
  }
}

}  // namespace

Tensor Sample::view(const Tensor& t) const {
  switch (layout) {
    case MemoryLayout::contiguous: return t;
    case MemoryLayout::permuted: {
      std::vector<i64> dims;
      for (int i = t.dim() - 1; i >= 0; --i) dims.push_back(i);
      return permute(t, dims);
    }
    case MemoryLayout::every_second: return slice(t, -1, 0, kNoBound, 2);
    case MemoryLayout::reversed: return slice(t, -1, kNoBound, kNoBound, -1);
    case MemoryLayout::offset: return narrow(t, 0, 1, shape[0]);
    default: return expand(t, shape);
  }
}

Sample sample(const CaseArg& a, MemoryLayout layout, std::mt19937_64& rng) {
  Sample s;
  s.layout = layout;
  s.shape = a.shape;
  Shape leaf = a.shape;
  const int n = leaf.size();
  // Layouts that this shape or argument cannot have fall back to the contiguous one.
  if (n == 0 || !a.layouts || (layout == MemoryLayout::permuted && n < 2)) s.layout = MemoryLayout::contiguous;
  if (layout == MemoryLayout::expanded && (a.dtype != kF64 || a.distinct)) s.layout = MemoryLayout::contiguous;
  switch (s.layout) {
    case MemoryLayout::permuted: std::reverse(leaf.begin(), leaf.end()); break;
    case MemoryLayout::every_second: leaf[n - 1] = std::max<i64>(0, 2 * leaf[n - 1] - 1); break;
    case MemoryLayout::offset: leaf[0] += 2; break;
    case MemoryLayout::expanded: leaf[0] = leaf[0] == 0 ? 0 : 1; break;
    default: break;
  }
  s.leaf = make_empty(leaf, a.dtype);
  fill(a, s.leaf, rng);
  if (a.dominant) {
    const Tensor m = s.view(s.leaf);
    const i64 rows = m.size(-1), batch = m.numel() / std::max<i64>(1, rows * rows);
    for (i64 b = 0; b < batch; ++b)
      for (i64 i = 0; i < rows; ++i)
        (n == 2 ? m : m.select(0, b)).at<double>({i, i}) = static_cast<double>(rows) + 0.3 * static_cast<double>(i);
  }
  if (a.dtype == kF64 && a.grad) s.leaf.requires_grad_();
  return s;
}

}  // namespace waymark::test
