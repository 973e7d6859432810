// Scores of (query, key) pairs from tables of relative positions: the pair (i, j) has row r_ij of a table. Nothing here
// builds [Lq, Lk, d].
//
// `rows` is i64 [..., Lq, Lk]: values in [0, R), or -1 for a pair without a row. Leading axes broadcast with those of the
// other inputs. Composed of index_select, gather and where these would be the same functions; gradients are exact sums
// in a fixed order.
#pragma once

#include <string_view>

#include "core/autograd/arg.h"

namespace waymark {

// Which side of the pair has values of its own.
enum class PairSide : u8 { shared, query, key };
WAYMARK_API std::string_view name_of(PairSide side);

// shared: y_ij = x[r_ij], x [..., R].  query: y_ij = x[i, r_ij], x [..., Lq, R].  key: y_ij = x[j, r_ij], x [..., Lk, R].
// y [..., Lq, Lk], 0 for pairs without a row.
[[nodiscard]] WAYMARK_API Tensor pair_gather(Arg x, Arg rows, PairSide side);
// The adjoint: g [..., Lq, Lk] summed by row, into [..., R], [..., Lq, R] or [..., Lk, R] with R = num_rows.
[[nodiscard]] WAYMARK_API Tensor pair_scatter(Arg g, Arg rows, PairSide side, i64 num_rows);

// c_ij = Σ_t q_it k_jt w_{r_ij}t, the three-way product of Huang 2020, method 3; the plain product q_i·k_j for pairs
// without a row. q [..., Lq, d], k [..., Lk, d], w [..., R, d] -> [..., Lq, Lk].
[[nodiscard]] WAYMARK_API Tensor three_way_product(Arg q, Arg k, Arg w, Arg rows);
// Its readable twin, composed of plain ops; builds [..., Lq, Lk, d].
[[nodiscard]] WAYMARK_API Tensor three_way_product_twin(Arg q, Arg k, Arg w, Arg rows);

}  // namespace waymark
