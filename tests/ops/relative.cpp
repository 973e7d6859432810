// Cases of core/ops/relative.cpp.
#include "tests/ops/op_case.h"
#include "tests/tensors.h"

namespace waymark::test {

namespace {

// Clipped differences of consecutive positions, clip 1 and 3 rows; one pair of the second has no row.
Tensor clipped() { return make<i64>({3, 4}, {1, 2, 2, 2, 0, 1, 2, 2, 0, 0, 1, 2}); }
Tensor holes() { return make<i64>({3, 4}, {2, -1, 0, 1, 1, 1, -1, 0, 2, 2, 0, -1}); }
Tensor ends() { return make<i64>({2, 4}, {-1, 0, 1, -1, -1, -1, 0, 1}); }
Tensor batched() { return make<i64>({2, 1, 2, 2}, {0, 1, 1, -1, 1, 0, 0, 1}); }

}  // namespace

OP_CASES(relative_cases) {
  for (const Tensor& rows : {clipped(), holes()}) {
    op_case("pair_gather", {input({2, 3}), arg("rows", rows), arg("side", "shared")});
    op_case("pair_gather", {input({2, 3, 3}), arg("rows", rows), arg("side", "query")});
    op_case("pair_gather", {input({2, 4, 3}), arg("rows", rows), arg("side", "key")});
    op_case("pair_scatter", {input({2, 3, 4}), arg("rows", rows), arg("side", "shared"), arg("num_rows", 3)});
    op_case("pair_scatter", {input({2, 3, 4}), arg("rows", rows), arg("side", "query"), arg("num_rows", 4)});
    op_case("pair_scatter", {input({3, 4}), arg("rows", rows), arg("side", "key"), arg("num_rows", 3)});
    op_case("three_way_product", {tensor_arg("query", {2, 3, 2}), tensor_arg("key", {2, 4, 2}), tensor_arg("table", {3, 2}),
                                  arg("rows", rows)});
  }
  for (const char* side : {"query", "shared"})
    op_case("pair_gather", {input({2, 2}), arg("rows", ends()), arg("side", side)});
  op_case("pair_gather", {input({4, 2}), arg("rows", ends()), arg("side", "key")});
  op_case("pair_gather", {input({3, 2, 2}), arg("rows", batched()), arg("side", "query")});
  op_case("pair_gather", {input({3, 2}), arg("rows", batched()), arg("side", "shared")});
  op_case("pair_scatter", {input({3, 2, 2}), arg("rows", batched()), arg("side", "key"), arg("num_rows", 2)});
  op_case("three_way_product", {tensor_arg("query", {2, 3, 2, 2}), tensor_arg("key", {2, 1, 2, 2}),
                                tensor_arg("table", {3, 2, 2}), arg("rows", batched())});
  const Tensor empty = make<i64>({0, 2}, {}), no_keys = make<i64>({2, 0}, {});
  op_case("pair_gather", {input({2, 3}), arg("rows", empty), arg("side", "shared")});
  op_case("pair_scatter", {input({2, 0}), arg("rows", no_keys), arg("side", "query"), arg("num_rows", 3)});
  op_case("three_way_product", {tensor_arg("query", {2, 3}), tensor_arg("key", {0, 3}), tensor_arg("table", {3, 3}),
                                arg("rows", no_keys)});

  bad_input("pair_gather", "pair_gather: row 3 at position [0, 1] is outside the table of 3 rows (-1: no row)",
            {input({3}), arg("rows", make<i64>({1, 2}, {0, 3})), arg("side", "shared")});
  bad_input("pair_gather", "pair_gather: [2, 3] has 2 query rows of values, but the pairs are [3, 4]",
            {input({2, 3}), arg("rows", clipped()), arg("side", "query")});
  bad_input("pair_gather", "pair_gather: side \"both\" is none of shared, query, key",
            {input({2, 3}), arg("rows", clipped()), arg("side", "both")});
  bad_input("pair_gather", "pair_gather: rows must be i64, got f64",
            {input({3}), tensor_arg("rows", {2, 2}), arg("side", "shared")});
  bad_input("pair_gather", "pair_gather: side key needs [..., L, R], got [3]",
            {input({3}), arg("rows", clipped()), arg("side", "key")});
  bad_input("pair_scatter", "pair_scatter: the last two axes differ: [3, 3] and rows [3, 4]",
            {input({3, 3}), arg("rows", clipped()), arg("side", "key"), arg("num_rows", 3)});
  bad_input("pair_scatter", "pair_scatter: num_rows is -1, it must be at least 0",
            {input({3, 4}), arg("rows", clipped()), arg("side", "key"), arg("num_rows", -1)});
  bad_input("three_way_product", "three_way_product: widths differ: q [3, 2], k [4, 3], w [3, 2]",
            {tensor_arg("query", {3, 2}), tensor_arg("key", {4, 3}), tensor_arg("table", {3, 2}), arg("rows", clipped())});
  bad_input("three_way_product", "three_way_product: rows [3, 4] do not fit q [2, 2] and k [4, 2]",
            {tensor_arg("query", {2, 2}), tensor_arg("key", {4, 2}), tensor_arg("table", {3, 2}), arg("rows", clipped())});
}

}  // namespace waymark::test
