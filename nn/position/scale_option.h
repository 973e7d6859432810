// Options that are lengths and factors: bases of wavelengths, divisors of positions, widths of kernels.
#pragma once

#include "nn/spec/options.h"

namespace waymark::nn {

// From 1e-6 to 1e12. What is divided by such a number, or raised to a power, stays a finite angle at every legal position;
// of 1e-308 an encoding would make NaN.
inline OptionRule scale_option(double fallback) { return real_option(fallback, 1e-6, 1e12); }

}  // namespace waymark::nn
