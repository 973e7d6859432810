// One channel at a time: the three products of a convolution whose groups have one input and one output channel.
#pragma once

#include "core/tensor/types.h"

namespace waymark::kernels {

// Lengths and steps along one channel; x is padded already: (outputs − 1)·stride + (taps − 1)·dilation < x's length.
struct DepthwiseStep {
  i64 taps, dilation, stride, outputs;
};

// y (rows, outputs) += Σ_k w[k]·x[t·stride + k·dilation]; row r uses the taps of channel r mod channels.
template <class T>
void depthwise(const DepthwiseStep& s, const T* x, i64 length, const T* w, i64 channels, T* y, i64 rows);
// x[t·stride + k·dilation] += w[k]·y[t]: the adjoint.
template <class T>
void depthwise_adjoint(const DepthwiseStep& s, const T* y, const T* w, i64 channels, T* x, i64 length, i64 rows);
// dw (channels, taps) = Σ over the rows of a channel and t of y[t]·x[t·stride + k·dilation].
template <class T>
void depthwise_weight(const DepthwiseStep& s, const T* x, i64 length, const T* y, i64 channels, T* dw, i64 rows);

}  // namespace waymark::kernels
