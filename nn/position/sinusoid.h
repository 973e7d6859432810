// Internal: rows of sines and cosines, for sinusoid and for encodings that project them.
#pragma once

#include <span>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::nn::encodings {

// ω_t = base^(−2t/width), t = 0 ... (width + 1)/2 − 1.
std::vector<double> sinusoid_frequencies(i64 width, double base);
// interleaved: row[2t] = sin(p ω_t), row[2t+1] = cos(p ω_t), the last channel of an odd width is a sine; concat: [sin | cos].
// p may be negative: sines change their sign.
void write_sinusoid(double p, const std::vector<double>& frequencies, bool concat, std::span<double> row);

}  // namespace waymark::nn::encodings
