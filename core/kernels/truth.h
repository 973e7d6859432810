// x as a truth value: true unless it is 0 or −0. By its bits: a denormal number is true also while the processor takes
// denormals for zeros.
#pragma once

#include <bit>

#include "core/tensor/types.h"

namespace waymark::kernels {

inline bool is_true(bool x) { return x; }
inline bool is_true(u8 x) { return x != 0; }
inline bool is_true(i64 x) { return x != 0; }
inline bool is_true(float x) { return (std::bit_cast<u32>(x) & 0x7fffffffU) != 0; }
inline bool is_true(double x) { return (std::bit_cast<u64>(x) & 0x7fffffffffffffffULL) != 0; }

}  // namespace waymark::kernels
