// Adam and AdamW over one piece of a parameter, in one sweep (Kingma, Ba 2015; Loshchilov, Hutter 2019).
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

//   g  = scale · grad + l2 · θ
//   m  = β₁ m + (1 − β₁) g,   v = β₂ v + (1 − β₂) g²
//   θ  = (1 − decay) θ − step_size · m / (√v / root_bias2 + ε)
// with decay = lr·λ (AdamW) and step_size = lr/(1 − β₁ᵗ), root_bias2 = √(1 − β₂ᵗ) or, without bias correction, lr and 1.
struct AdamCoefficients {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double grad_scale = 1, l2 = 0, decay = 0, step_size = 0, root_bias2 = 1;
};

// n elements of each array; the arrays do not overlap. An element's bits do not depend on its place.
void adam_update(const AdamCoefficients& c, i64 n, float* theta, const float* grad, float* m, float* v);
void adam_update(const AdamCoefficients& c, i64 n, double* theta, const double* grad, double* m, double* v);

// Σ x², in f64; the order of the sum depends on n alone.
double sum_of_squares(i64 n, const float* x);
double sum_of_squares(i64 n, const double* x);

}  // namespace waymark::kernels
