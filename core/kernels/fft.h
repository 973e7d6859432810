// Discrete Fourier transforms of rows: X_k = Σ_t x_t e^(−2πi k t/n), any n.
//
// Lengths of the primes 2, 3, 5: Stockham's self-sorting passes of radix 4, 2, 3, 5; others: Bluestein's convolution of
// a power of two. All in f64, also for f32 data, with twiddles exact to f64: relative error of the result about
// log2 n · 2^-53 (+ 2^-24 for f32). Complex numbers are pairs (re, im). Parallel over rows.
#pragma once

#include <memory>

#include "core/tensor/types.h"

namespace waymark::kernels {

struct Complex {
  double re, im;
};

// Forward transform of one length; may be used by several threads at once.
class WAYMARK_API FftPlan {
 public:
  explicit FftPlan(i64 n);
  ~FftPlan();
  i64 n() const { return n_; }
  // Complex numbers of scratch memory that run() needs.
  i64 scratch() const;
  void run(Complex* data, Complex* scratch) const;

 private:
  struct Bluestein;
  void passes(Complex* data, Complex* work) const;
  i64 n_;
  std::unique_ptr<Complex[]> twiddle_;   // e^(−2πi t/n), t < n; null for Bluestein
  std::unique_ptr<Bluestein> bluestein_;
};

// y (rows, n, 2) = scale · transform of x (rows, length, 2), which is cut or continued with zeros to n. inverse: e^(+...).
template <class T> void fft_complex(const T* x, i64 length, T* y, i64 n, i64 rows, bool inverse, double scale);
// y (rows, n/2 + 1, 2) of real x (rows, length).
template <class T> void fft_real(const T* x, i64 length, T* y, i64 n, i64 rows, double scale);
// Real y (rows, n) = scale · Σ_k X_k e^(+2πi k t/n) for the bins 0 .. n/2 of X (rows, bins, 2), the others being their
// conjugates; missing bins are 0, and the imaginary parts of bins 0 and n/2 do not count.
template <class T> void fft_to_real(const T* x, i64 bins, T* y, i64 n, i64 rows, double scale);

}  // namespace waymark::kernels
