// Internal: what encodings with one row per clipped difference share. Row of the pair (query i, key j):
// clip(p_j - p_i, -C, C) + C of R = 2C + 1.
#pragma once

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

OptionDef clip_option();
OptionDef per_head_option();
OptionDef beyond_option();
OptionDef share_layers_option();

// -C ... C; absent with beyond=zero.
PairIndex clip_index(const Options& options);
// beyond=error: throws if an allowed pair is farther apart than the clip.
void check_beyond(const Options& options, const EncodingCall& call);

// [R, d], or [H, R, d] with per_head.
Shape table_shape(const Options& options, const EncodingSizes& sizes);
// [1|H, ...]
Tensor by_head(const Tensor& table, int axes);

// Flops of one product of rows with the table and its gather, all heads: 2·Lq·R·d + Lq·Lk.
double table_flops(const Options& options, const EncodingSizes& sizes, double queries, double keys);

// Facts of an additive or multiplicative table of vectors: needs single tokens and pairs, sees direction, saturates.
EncodingFacts clipped_facts();

inline constexpr double kTableStd = 0.02;

}  // namespace waymark::nn::encodings
