// Positions: values, helpers, errors; causal pairs.
#include "nn/position/positions.h"

#include <doctest/doctest.h>

#include "core/ops/shape.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::nn;
using test::error_text;
using test::make;
using Places = std::vector<i64>;

TEST_CASE("positions: helpers") {
  CHECK(Positions::range(4).tensor().to_vector<i64>() == Places{0, 1, 2, 3});
  CHECK(Positions::range(3, 60).tensor().to_vector<i64>() == Places{60, 61, 62});
  CHECK(Positions::range(0).largest() == -1);
  CHECK(Positions::packed({3, 0, 2}).tensor().to_vector<i64>() == Places{0, 1, 2, 0, 1});
  const Tensor keep = make<bool>({2, 4}, {false, true, true, false, true, true, true, true});
  const Positions p = Positions::from_mask(keep);
  CHECK(p.tensor().to_vector<i64>() == Places{-1, 0, 1, -1, 0, 1, 2, 3});
  CHECK(p.rows() == 2);
  CHECK(p.length() == 4);
  CHECK(p.largest() == 3);
  CHECK(p.any_positionless());
  CHECK(p.at(1, 2) == 2);
  CHECK(!Positions::range(2).any_positionless());
  CHECK(!Positions().defined());
  // A strided tensor is read by its elements.
  CHECK(Positions(transpose(make<i64>({2, 2}, {0, 1, 2, 3}), 0, 1)).tensor().to_vector<i64>() == Places{0, 2, 1, 3});
}

TEST_CASE("positions: hostile values name the place") {
  CHECK(error_text([] { Positions(make<i64>({3}, {0, -2, 1})); }) ==
        "positions: -2 at [1] is no position: legal are 0 ... 2147483646 and -1 (none)");
  CHECK(error_text([] { Positions(make<i64>({2, 2}, {0, 1, 0, i64{1} << 31})); }) ==
        "positions: 2147483648 at [1, 1] is no position: legal are 0 ... 2147483646 and -1 (none)");
  CHECK(Positions(make<i64>({1}, {(i64{1} << 31) - 2})).largest() == 2147483646);
  CHECK(error_text([] { Positions(make<i64>({1}, {(i64{1} << 31) - 1})); }) != "(no error)");
  for (const i64 extreme : {INT64_MIN, INT64_MAX}) CHECK(error_text([&] { Positions(make<i64>({1}, {extreme})); }) != "(no error)");
  CHECK(error_text([] { Positions(make<float>({2}, {0, 1})); }) == "positions: must be i64, got f32");
  CHECK(error_text([] { Positions(make<i64>({1, 1, 1}, {0})); }) == "positions: must be [L] or [B, L], got [1, 1, 1]");
  CHECK(error_text([] { Positions::range(-1); }) == "positions: range of length -1: must be at least 0");
  CHECK(error_text([] { Positions::range(2, 2147483646); }) ==
        "positions: range of length 2 from 2147483646: legal positions are 0 ... 2147483646");
  CHECK(error_text([] { Positions::packed({2, -1}); }) == "positions: a document of length -1: must be at least 0");
  CHECK(error_text([] { Positions::from_mask(make<i64>({1, 2}, {1, 2})); }) == "positions: the mask has 2 at [0, 1]: must be 0 or 1");
  CHECK(error_text([] { Positions::range(3).check_fits("attention", "positions", 2, 4); }) ==
        "attention: positions [3] do not fit 4 tokens in 2 rows: must be [4] or [2, 4]");
  CHECK(error_text([] { Positions(make<i64>({3, 1}, {0, 0, 0})).check_fits("attention", "positions", 2, 1); }) ==
        "attention: positions [3, 1] do not fit 1 tokens in 2 rows: must be [1] or [2, 1]");
}

TEST_CASE("positions: causal pairs compare positions; a key without one is seen by all") {
  const Tensor pairs = causal_pairs(Positions(make<i64>({3}, {-1, 5, 2})), Positions(make<i64>({4}, {5, -1, 2, 3})));
  CHECK(pairs.to_vector<i64>() == Places{0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0});
  CHECK(pairs.shape() == Shape{1, 1, 3, 4});
  const Tensor by_row = causal_pairs(Positions(make<i64>({2, 1}, {0, 1})), Positions(make<i64>({2, 2}, {0, 1, 0, 1})));
  CHECK(by_row.to_vector<i64>() == Places{1, 0, 1, 1});
}

TEST_CASE("positions: repeated ones in a causal call") {
  check_distinct(Positions(make<i64>({1, 5}, {4, -1, -1, 0, 2})), {});
  CHECK(error_text([] { check_distinct(Positions(make<i64>({2, 3}, {0, 1, 2, 3, 0, 3})), {}); }) ==
        "attention: row 1 repeats position 3 in a causal call: packed documents need documents(...)");
  check_distinct(Positions(make<i64>({3}, {3, 0, 3})), make<bool>({2, 3}, {true, true, false, false, true, true}));
}
