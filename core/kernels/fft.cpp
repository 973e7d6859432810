#include "core/kernels/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "core/kernels/clones.h"
#include "core/kernels/scratch.h"
#include "core/kernels/vmath.h"
#include "core/parallel/parallel.h"

namespace waymark::kernels {
namespace {

WAYMARK_INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
WAYMARK_INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
WAYMARK_INLINE Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
WAYMARK_INLINE Complex operator*(double s, Complex a) { return {s * a.re, s * a.im}; }
WAYMARK_INLINE Complex minus_i(Complex a) { return {a.im, -a.re}; }  // −i·a

// e^(−2πi t/n), 0 <= t < n, from angles of at most an eighth turn: symmetric values agree to the bit, and ±1, ±i are
// exact.
Complex unit_root(i64 t, i64 n) {
  if (2 * t > n) {
    const Complex w = unit_root(n - t, n);
    return {w.re, -w.im};
  }
  // quarters: the angle from the nearest of 1, −i, −1, in quarters of a step
  const auto angle = [n](i64 quarters) {
    return 2 * std::numbers::pi * static_cast<double>(quarters) / static_cast<double>(4 * n);
  };
  if (8 * t <= n) return {std::cos(angle(4 * t)), -std::sin(angle(4 * t))};
  if (8 * t <= 3 * n) return {std::sin(angle(n - 4 * t)), -std::cos(angle(n - 4 * t))};
  return {-std::cos(angle(2 * n - 4 * t)), -std::sin(angle(2 * n - 4 * t))};
}

// One pass of radix r over n = r·m values of `stride` interleaved transforms; w: roots of the whole length.
// y[q + stride·(r·p + k)] = w^(p·k·stride) Σ_j x[q + stride·(p + m·j)] e^(−2πi jk/r)
template <int kRadix> WAYMARK_INLINE void pass(i64 m, i64 stride, const Complex* w, const Complex* x, Complex* y) {
  for (i64 p = 0; p < m; ++p) {
    Complex root[kRadix];
    for (int k = 1; k < kRadix; ++k) root[k] = w[p * k * stride];
    const Complex* const from = x + stride * p;
    Complex* const to = y + stride * kRadix * p;
    for (i64 q = 0; q < stride; ++q) {
      const Complex a = from[q], b = from[q + stride * m];
      if constexpr (kRadix == 2) {
        to[q] = a + b;
        to[q + stride] = root[1] * (a - b);
      } else {
        const Complex c = from[q + stride * m * 2];
        if constexpr (kRadix == 3) {
          constexpr double kSin = 0.86602540378443864676;
          const Complex sum = b + c, t = a - 0.5 * sum, s = minus_i(kSin * (b - c));
          to[q] = a + sum;
          to[q + stride] = root[1] * (t + s);
          to[q + stride * 2] = root[2] * (t - s);
        } else {
          const Complex d = from[q + stride * m * 3];
          if constexpr (kRadix == 4) {
            const Complex ac = a + c, bd = b + d, ac_ = a - c, bd_ = minus_i(b - d);
            to[q] = ac + bd;
            to[q + stride] = root[1] * (ac_ + bd_);
            to[q + stride * 2] = root[2] * (ac - bd);
            to[q + stride * 3] = root[3] * (ac_ - bd_);
          } else {
            constexpr double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
            constexpr double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
            const Complex e = from[q + stride * m * 4];
            const Complex be = b + e, cd = c + d, be_ = b - e, cd_ = c - d;
            const Complex t1 = a + c1 * be + c2 * cd, t2 = a + c2 * be + c1 * cd;
            const Complex u1 = minus_i(s1 * be_ + s2 * cd_), u2 = minus_i(s2 * be_ - s1 * cd_);
            to[q] = a + be + cd;
            to[q + stride] = root[1] * (t1 + u1);
            to[q + stride * 2] = root[2] * (t2 + u2);
            to[q + stride * 3] = root[3] * (t2 - u2);
            to[q + stride * 4] = root[4] * (t1 - u1);
          }
        }
      }
    }
  }
}

WAYMARK_CLONES void run_pass(int radix, i64 m, i64 stride, const Complex* w, const Complex* x, Complex* y) {
  if (radix == 2) pass<2>(m, stride, w, x, y);
  else if (radix == 3) pass<3>(m, stride, w, x, y);
  else if (radix == 4) pass<4>(m, stride, w, x, y);
  else pass<5>(m, stride, w, x, y);
}

int next_radix(i64 n) { return n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : n % 5 == 0 ? 5 : 0; }
bool has_small_factors(i64 n) {
  for (int r = next_radix(n); n > 1; r = next_radix(n)) {
    if (r == 0) return false;
    n /= r;
  }
  return true;
}

}  // namespace

// X_k = c_k Σ_t (x_t c_t) conj(c_(k−t)), c_t = e^(−πi t²/n): a convolution of power-of-two length.
struct FftPlan::Bluestein {
  explicit Bluestein(i64 n) : inner(static_cast<i64>(std::bit_ceil(static_cast<u64>(2 * n - 1)))), chirp(new Complex[static_cast<size_t>(n)]),
        kernel(new Complex[static_cast<size_t>(inner.n())]()) {
    i64 square = 0;  // t² mod 2n
    for (i64 t = 0; t < n; ++t) {
      chirp[static_cast<size_t>(t)] = unit_root(square, 2 * n);
      square = (square + 2 * t + 1) % (2 * n);
    }
    for (i64 t = 0; t < n; ++t) {
      const Complex c = chirp[static_cast<size_t>(t)], conjugate{c.re, -c.im};
      kernel[static_cast<size_t>(t)] = conjugate;
      if (t) kernel[static_cast<size_t>(inner.n() - t)] = conjugate;
    }
    const std::unique_ptr<Complex[]> work(new Complex[static_cast<size_t>(inner.scratch())]);
    inner.run(kernel.get(), work.get());
  }
  FftPlan inner;
  std::unique_ptr<Complex[]> chirp, kernel;  // kernel: transformed
};

FftPlan::FftPlan(i64 n) : n_(n) {
  if (!has_small_factors(n)) {
    bluestein_ = std::make_unique<Bluestein>(n);
    return;
  }
  twiddle_.reset(new Complex[static_cast<size_t>(n)]);
  for (i64 t = 0; t < n; ++t) twiddle_[static_cast<size_t>(t)] = unit_root(t, n);
}
FftPlan::~FftPlan() = default;

i64 FftPlan::scratch() const { return bluestein_ ? bluestein_->inner.n() + bluestein_->inner.scratch() : n_; }

void FftPlan::passes(Complex* data, Complex* work) const {
  Complex *x = data, *y = work;
  for (i64 n = n_, stride = 1; n > 1;) {
    const int radix = next_radix(n);
    run_pass(radix, n / radix, stride, twiddle_.get(), x, y);
    std::swap(x, y);
    n /= radix;
    stride *= radix;
  }
  if (x != data) std::copy_n(x, n_, data);
}

void FftPlan::run(Complex* data, Complex* scratch) const {
  if (!bluestein_) return passes(data, scratch);
  const Bluestein& b = *bluestein_;
  const i64 m = b.inner.n();
  Complex* const a = scratch;
  for (i64 t = 0; t < n_; ++t) a[t] = data[t] * b.chirp[static_cast<size_t>(t)];
  std::fill(a + n_, a + m, Complex{0, 0});
  b.inner.run(a, scratch + m);
  // The inverse transform by conjugates: conj(F(conj(A·B)))/m.
  for (i64 k = 0; k < m; ++k) {
    const Complex c = a[k] * b.kernel[static_cast<size_t>(k)];
    a[k] = {c.re, -c.im};
  }
  b.inner.run(a, scratch + m);
  const double scale = 1 / static_cast<double>(m);
  for (i64 k = 0; k < n_; ++k) data[k] = scale * (Complex{a[k].re, -a[k].im} * b.chirp[static_cast<size_t>(k)]);
}

namespace {

// load(row, buffer), transform, store(row, buffer) for every row.
template <class Load, class Store> void transform_rows(i64 n, i64 rows, Load load, Store store) {
  if (rows == 0) return;
  const FftPlan plan(n);
  parallel_for(rows, std::max<i64>(1, kGrain / (8 * n)), [&](i64 begin, i64 end) {
    const Scratch<Complex> memory(n + plan.scratch());
    for (i64 r = begin; r < end; ++r) {
      load(r, memory.data());
      plan.run(memory.data(), memory.data() + n);
      store(r, memory.data());
    }
  });
}

}  // namespace

// An inverse transform is a forward one with re and im exchanged on both sides.
template <class T> void fft_complex(const T* x, i64 length, T* y, i64 n, i64 rows, bool inverse, double scale) {
  const i64 used = std::min(length, n);
  const int re = inverse ? 1 : 0, im = 1 - re;
  transform_rows(n, rows, [&](i64 r, Complex* to) {
    const T* const from = x + r * length * 2;
    for (i64 t = 0; t < used; ++t) to[t] = {static_cast<double>(from[2 * t + re]), static_cast<double>(from[2 * t + im])};
    std::fill(to + used, to + n, Complex{0, 0});
  }, [&](i64 r, const Complex* from) {
    T* const to = y + r * n * 2;
    for (i64 k = 0; k < n; ++k) {
      to[2 * k + re] = static_cast<T>(scale * from[k].re);
      to[2 * k + im] = static_cast<T>(scale * from[k].im);
    }
  });
}

template <class T> void fft_real(const T* x, i64 length, T* y, i64 n, i64 rows, double scale) {
  const i64 used = std::min(length, n), bins = n / 2 + 1;
  transform_rows(n, rows, [&](i64 r, Complex* to) {
    for (i64 t = 0; t < used; ++t) to[t] = {static_cast<double>(x[r * length + t]), 0};
    std::fill(to + used, to + n, Complex{0, 0});
  }, [&](i64 r, const Complex* from) {
    T* const to = y + r * bins * 2;
    for (i64 k = 0; k < bins; ++k) {
      to[2 * k] = static_cast<T>(scale * from[k].re);
      to[2 * k + 1] = 2 * k % n == 0 ? T(0) : static_cast<T>(scale * from[k].im);  // exactly real
    }
  });
}

template <class T> void fft_to_real(const T* x, i64 bins, T* y, i64 n, i64 rows, double scale) {
  const i64 used = std::min(bins, n / 2 + 1);
  transform_rows(n, rows, [&](i64 r, Complex* to) {
    const T* const from = x + r * bins * 2;
    std::fill(to, to + n, Complex{0, 0});
    // The forward transform of the conjugates is the inverse transform, for a real result.
    for (i64 k = 0; k < used; ++k) {
      const double re = static_cast<double>(from[2 * k]), im = static_cast<double>(from[2 * k + 1]);
      if (2 * k % n == 0) {
        to[k] = {re, 0};
      } else {
        to[k] = {re, -im};
        to[n - k] = {re, im};
      }
    }
  }, [&](i64 r, const Complex* from) {
    for (i64 t = 0; t < n; ++t) y[r * n + t] = static_cast<T>(scale * from[t].re);
  });
}

#define WAYMARK_FFT(T)                                                            \
  template void fft_complex<T>(const T*, i64, T*, i64, i64, bool, double);        \
  template void fft_real<T>(const T*, i64, T*, i64, i64, double);                 \
  template void fft_to_real<T>(const T*, i64, T*, i64, i64, double);
WAYMARK_FFT(float)
WAYMARK_FFT(double)

}  // namespace waymark::kernels
