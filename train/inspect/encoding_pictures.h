// What the encodings of a layer hold, seen through their interface: the terms they prepare, what they make of queries
// and keys of ones, and what they add to an input of zeros. Nothing here knows an encoding by name.
#pragma once

#include <string>
#include <vector>

#include "core/io/elements.h"
#include "nn/attention/attention.h"
#include "nn/position/module.h"

namespace waymark::train {

struct EncodingPicture {
  enum class Kind : u8 {
    vectors,     // a vector for each distance: [R, d], or [H, R, d]
    multiplier,  // a factor on the content score for each head and distance: [H|1, R]
    bias,        // a summand of the score for each head and distance: [H|1, R]
    kernel,      // ⟨q', k'⟩ / ⟨q, k⟩ of the map of queries and keys, both all ones, mean over pairs: [R]
    added,       // what is added to the embedding at each position: [n, E]
    position_pairs,  // a summand of the score for each head and two positions, that reads nothing of the tokens: [H, n, n]
  };
  Kind kind = Kind::vectors;
  std::string name = {};        // "huang-m4.table"
  std::vector<i64> delta = {};  // distance (added: position) of each row
  Tensor values = {};      // f64
};

// Of an attention; distances between positions 0 ... length - 1. What cannot be asked for is named in `notes`.
std::vector<EncodingPicture> encoding_pictures(const nn::Attention& attention, i64 length, bool causal,
                                               std::vector<std::string>& notes);
// Of the input: the sum of its encodings at positions 0 ... length - 1; nothing if there is none.
std::vector<EncodingPicture> input_pictures(const nn::PositionModule& position, i64 width, i64 length);

// vectors: delta, table, norm [R] (mean over heads), cosine [R, R] of the rows; multiplier and bias: delta, bias,
// norm = mean |bias| over heads for multipliers; kernel: delta, kernel; added: delta, table, norm, gram [n, n],
// gram_mean [2n - 1] by distance; position_pairs: delta (positions), pairs. The names carry `table_`, `bias_`, `kernel_`, `pairs_` or `gram_` before `delta`; from the second
// picture of a kind on, ".<name>" stands behind all of them.
void append_arrays(const std::vector<EncodingPicture>& pictures, NamedTensors& out);

// Products of all pairs of rows of [R, d], divided by their lengths if `cosine`: [R, R].
Tensor row_products(const Tensor& rows, bool cosine);
// Means of a square matrix along its diagonals, from -(n-1) to n-1.
std::vector<double> diagonal_means(const Tensor& square);
// [R]: length of each row of [R, d] or [H, R, d], mean over heads.
std::vector<double> row_lengths(const Tensor& rows);

}  // namespace waymark::train
