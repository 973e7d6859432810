// Score terms: what a position encoding adds to the score of a (query, key) pair, as plain data.
//
//   c_ij = ⟨q'_i, k'_j⟩, or a three-way product    a_ij = Σ terms of stage table (units of q·k)
//   m_ij = Π terms of stage multiply               b_ij = Σ terms of stage bias (units of logits)
//   e_ij = s_c·m_ij·c_ij + s_a·a_ij + b_ij + gate   z_i = Σ_j α_ij (v_j + terms of stage value)
//
// The tensors of a term are prepared by recorded ops from parameters and positions; they are inputs of the attention,
// which returns a gradient for each. A pair of which one side has no position is neutral: 0, multiplier 1, q·k.
// A gate comes last before the mask, because it reads the score of everything before it; it reads no positions.
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
// Contextual positions (Golovneva et al. 2024): with ê the score so far, P_ij = min(Σ_{t >= j, allowed} σ(ê_it), max_pos - 1)
// counts the keys from j to the end of the row, each by its gate; added is q_i·table at P, interpolated between rows:
// (1 - w)·q_i·table_f + w·q_i·table_{f+1}, f = ⌊P⌋, w = P - f. Keys count in the order of storage.
struct Prefix {
  Tensor table;               // [max_pos, d]
};
struct Value {                // u_r added to v_j;  u [1|H, R, dv]
  Tensor u;
  PairIndex index;
};
struct PairTable {            // b_ij given for every pair of slots, whatever their positions;  t [1|B, 1|H, Lq, Lk]
  Tensor t;
};
// Some pairs of one batch row and head: their slots in the call, and their positions (-1: none).
struct TileRef {
  i64 batch, head;
  std::span<const i32> q_slot, k_slot;
  std::span<const i64> q_pos, k_pos;
};
// Any function of positions and of its inputs: the slow path, in f64 whatever the dtype (core/ops/custom_pairs.h says
// which derivatives hold). The functions are called by several threads at once. What they say of pairs without a
// position is not used.
struct Custom {
  using In = std::span<const std::span<const double>>;  // the inputs, flattened
  using Out = std::span<const std::span<double>>;
  std::vector<Tensor> inputs;
  i64 scratch = 0;      // doubles for each call, with anything in them
  bool batched = true;  // false: rows of the batch with the same positions have the same values
  // value, g: [keys × queries]. forward writes value, which is 0 before.
  std::function<void(const TileRef&, In, std::span<double> scratch, std::span<double> value)> forward;
  // Adds Σ g·∂value/∂input to grads.
  std::function<void(const TileRef&, In, std::span<double> scratch, std::span<const double> g, Out grads)> backward;
};

struct ScoreTerm {
  std::string name;           // of its summand in score parts: "table" gives q_table and k_table
  Stage stage;
  std::variant<Table, Distance, ThreeWay, Prefix, Value, PairTable, Custom> family;
};

// Does it read the positions of the tokens?
WAYMARK_API bool reads_positions(const ScoreTerm& term);

// Rows of all pairs, -1 for those without one: i64 [1|B, 1, Lq, Lk]. Positions: i64 [L] or [B, L].
WAYMARK_API Tensor pair_rows(const PairIndex& index, const Tensor& query_positions, const Tensor& key_positions);

// Error unless stage and family go together, all tensors have the dtype and fit H heads of width d (values: dv), and the
// index names rows that exist. (The axes of pairs of a PairTable are checked where the call is known.)
WAYMARK_API void check_term(const ScoreTerm& term, DType dtype, i64 heads, i64 width, i64 value_width);

}  // namespace waymark
