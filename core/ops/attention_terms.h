// Score terms: what a position encoding adds to the score of a (query, key) pair, as plain data.
//
//   c_ij = ⟨q'_i, k'_j⟩, or a three-way product, + terms of stage content      m_ij = Π terms of stage multiply
//   a_ij = Σ terms of stage table (units of q·k)                               b_ij = Σ terms of stage bias (logits)
//   e_ij = s_c·m_ij·c_ij + s_a·a_ij + b_ij + the term of stage gate            z_i = Σ_j α_ij (v_j + terms of stage value)
//
// The tensors of a term are prepared by recorded ops from parameters and positions; they are inputs of the attention,
// which returns a gradient for each. Where a family reads positions, a pair of which one side has none is neutral: 0,
// multiplier 1, q·k.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark {

enum class Stage : u8 { content, multiply, table, bias, gate, value };
enum class Side : u8 { query, key, both };

// The row of a table for a pair: its difference of positions δ = p_j - p_i, clamped to [lo, hi]; or, with classes,
// whether query and key are of one class.
struct PairIndex {
  i64 lo = 0, hi = -1;
  bool absent = false;           // a pair with δ outside [lo, hi] has no row: it is neutral
  std::vector<i64> row = {};     // row of each difference, in their order; empty: 0, 1, ...
  std::vector<i64> listed = {};  // the differences, sorted, where lo ... hi would be too many; empty: lo ... hi
  Tensor query_class = {}, key_class = {};  // i64 [B|1, Lq] and [B|1, Lk]: row 0 if equal, else 1; δ is not read

  bool reads_positions() const { return !query_class.defined(); }
};

// "1|H": one for all heads, or one per head. All tensors have the dtype of the queries unless said.
struct Table {                // q_i·w_r, k_j·w_r, or both;  w [1|H, R, d]
  Tensor w = {};
  Side side = Side::query;
  PairIndex index = {};
};
struct Distance {             // β_r;  beta [1|H, R]
  Tensor beta = {};
  PairIndex index = {};
  Tensor reset = {};          // [1|H, 2]: for a key, and for a query without position (which wins), in place of neutral
};
struct KeyBias {              // κ_j;  kappa [B|1, 1|H, Lk]; positions are not read
  Tensor kappa = {};
};
struct RowProduct {           // x_i·y_j;  x [B|1, 1|H, Lq, w], y [B|1, 1|H, Lk, w]
  Tensor x = {}, y = {};
  Tensor left = {}, right = {};  // i64 [B|1, Lk]: both x and y are per query then, and x_i[left_j]·y_i[right_j] is meant
  Tensor reset = {};             // as of Distance
};
struct PairTable {            // given for every pair;  t [1|B, 1|H, ·, ·]
  Tensor t = {};
  bool by_slot = true;        // read at (i, j), whatever the positions; else at (p_i, p_j)
};
struct ThreeWay {             // Σ_t q_it k_jt w_rt in place of q_i·k_j;  w [1|H, R, d]
  Tensor w = {};
  PairIndex index = {};
};
struct Value {                // u_r added to v_j;  u [1|H, R, dv]
  Tensor u = {};
  PairIndex index = {};
};
// CoPE (Golovneva et al. 2024): with the score ê of everything else and σ of it over the allowed keys from j on,
// P_ij = min(Σ_{t>=j} σ(ê_it), max_pos - 1), the term is q_i·table at P_ij, between two rows linearly. Keys count in the
// order of their slots; positions are not read.
struct Prefix {
  Tensor table = {};          // [max_pos, d]
};

// Some pairs of one batch row and head: their slots in the call, and their positions (-1: none).
struct TileRef {
  i64 batch = 0, head = 0;
  std::span<const i32> q_slot = {}, k_slot = {};
  std::span<const i64> q_pos = {}, k_pos = {};
};
// Any function of positions and of its inputs: the slow path, in f64 whatever the dtype (core/ops/custom_pairs.h says
// which derivatives hold). The functions are called by several threads at once. What they say of pairs without a
// position is not used.
struct Custom {
  using In = std::span<const std::span<const double>>;  // the inputs, flattened
  using Out = std::span<const std::span<double>>;
  std::vector<Tensor> inputs = {};
  i64 scratch = 0;      // doubles for each call, with anything in them
  bool batched = true;  // false: rows of the batch with the same positions have the same values
  // value, g: [keys × queries]. forward writes value, which is 0 before.
  std::function<void(const TileRef&, In, std::span<double> scratch, std::span<double> value)> forward = {};
  // Adds Σ g·∂value/∂input to grads.
  std::function<void(const TileRef&, In, std::span<double> scratch, std::span<const double> g, Out grads)> backward = {};
};

struct ScoreTerm {
  std::string name = {};      // of its summand in score parts: "table" gives q_table and k_table
  Stage stage = Stage::content;
  std::variant<Table, Distance, KeyBias, RowProduct, PairTable, ThreeWay, Prefix, Value, Custom> family = {};

  bool reads_positions() const;
};

// Rows of all pairs, -1 for those without one: i64 [1|B, 1, Lq, Lk]. Positions: i64 [L] or [B, L]; undefined if the index
// reads none. Error for a difference that is not listed.
WAYMARK_API Tensor pair_rows(const PairIndex& index, const Tensor& query_positions, const Tensor& key_positions);

// What the tensors of a term must fit: B rows, H heads, queries and keys of width d, values of width dv.
struct TermSizes {
  i64 batch = 1, heads = 1, queries = 0, keys = 0, width = 0, value_width = 0;
};
// Error unless stage and family go together, all tensors have the dtype and fit the sizes, and the index names rows that
// exist.
WAYMARK_API void check_term(const ScoreTerm& term, DType dtype, const TermSizes& sizes);

}  // namespace waymark
