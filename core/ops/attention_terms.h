// Score terms: what a position encoding adds to the score of a (query, key) pair, as plain data.
//
//   c_ij = ⟨q'_i, k'_j⟩, or a three-way product    a_ij = Σ terms of stage table (units of q·k)
//   m_ij = Π terms of stage multiply               b_ij = Σ terms of stage bias (units of logits)
//   e_ij = s_c·m_ij·c_ij + s_a·a_ij + b_ij          z_i = Σ_j α_ij (v_j + terms of stage value)
//
// The tensors of a term are prepared by recorded ops from parameters and positions; they are inputs of the attention,
// which returns a gradient for each. A pair of which one side has no position is neutral: 0, multiplier 1, q·k.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark {

enum class Stage : u8 { content, multiply, table, bias, value };
enum class Side : u8 { query, key, both };

// The row of a table for a pair: its difference of positions δ = p_j - p_i, clamped to [lo, hi].
struct PairIndex {
  i64 lo = 0, hi = -1;
  bool absent = false;        // a pair with δ outside [lo, hi] has no row: it is neutral
  std::vector<i64> row = {};  // row of δ = lo ... hi; empty: δ - lo
};

// "1|H": one for all heads, or one per head. All tensors have the dtype of the queries.
struct Table {                // q_i·w_r, k_j·w_r, or both;  w [1|H, R, d]
  Tensor w;
  Side side = Side::query;
  PairIndex index;
};
struct Distance {             // β_r;  beta [1|H, R]
  Tensor beta;
  PairIndex index;
};
struct ThreeWay {             // Σ_t q_it k_jt w_rt in place of q_i·k_j;  w [1|H, R, d]
  Tensor w;
  PairIndex index;
};
struct Value {                // u_r added to v_j;  u [1|H, R, dv]
  Tensor u;
  PairIndex index;
};

struct PairTable {            // b_ij given for every pair of slots, whatever their positions;  t [1|B, 1|H, Lq, Lk]
  Tensor t;
};

struct ScoreTerm {
  std::string name;           // of its summand in score parts: "table" gives q_table and k_table
  Stage stage;
  std::variant<Table, Distance, ThreeWay, Value, PairTable> family;
};

// Rows of all pairs, -1 for those without one: i64 [1|B, 1, Lq, Lk]. Positions: i64 [L] or [B, L].
WAYMARK_API Tensor pair_rows(const PairIndex& index, const Tensor& query_positions, const Tensor& key_positions);

// Error unless stage and family go together, all tensors have the dtype and fit H heads of width d (values: dv), and the
// index names rows that exist. (The axes of pairs of a PairTable are checked where the call is known.)
WAYMARK_API void check_term(const ScoreTerm& term, DType dtype, i64 heads, i64 width, i64 value_width);

}  // namespace waymark
