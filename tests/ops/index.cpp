// core/ops/index.cpp, index_rows.cpp, gather.cpp, scatter_reduce.cpp, masked.cpp: cases and values.
#include <doctest/doctest.h>

#include <random>

#include "core/ops/arithmetic.h"
#include "core/ops/index.h"
#include "core/ops/inplace.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "tests/ops/expect.h"
#include "tests/ops/op_case.h"
#include "tests/tensors.h"

namespace waymark::test {

using Items = std::vector<IndexArgument>;

OP_CASES(index_cases) {
  const Tensor two = tensor({0, 1}), again = tensor({1, 1, -1}),
               cover = tensor({{true, false, true}, {false, false, true}});
  op_case("index", {input({2, 3, 4, 5}), arg("indices", Items{two, Slice(), two})});
  op_case("index", {input({2, 3, 4}), arg("indices", Items{Slice(), again, Slice(None, None, -2)})});
  op_case("index", {input({2, 3, 4}), arg("indices", Items{EllipsisIndex(), None, Slice(1, None, 2)})});
  op_case("index", {input({2, 3, 4}), arg("indices", Items{i64{0}, Slice(), again})});
  op_case("index", {input({2, 3, 4}), arg("indices", Items{cover})});
  op_case("index", {input({2, 3, 4}), arg("indices", Items{again, None, i64{-1}, again})});
  op_case("index", {input({2, 0}), arg("indices", Items{two})});
  bad_input("index", "index: 3 indices for a tensor with 2 axes ([2, 3])",
            {input({2, 3}), arg("indices", Items{i64{0}, i64{0}, i64{0}})});
  op_case("index_put",
          {input({3, 4, 2}), arg("indices", Items{two, again.slice(0, 0, 2)}), tensor_arg("values", {2, 2})});
  op_case("index_put", {input({3, 4}), arg("indices", Items{Slice(), again}), tensor_arg("values", {3}),
                        arg("accumulate", Argument(true))});
  op_case("index_put", {input({3, 4}), arg("indices", Items{again, Slice(1, 3)}), tensor_arg("values", {3, 2})});
  op_case("index_put", {input({3, 4}), arg("indices", Items{i64{1}, Slice(1, None)}), tensor_arg("values", {})});
  op_case("index_put", {input({2, 3, 4}), arg("indices", Items{again, Slice(), again}), tensor_arg("values", {3, 3}),
                        arg("accumulate", Argument(true))});
  bad_input("index_put", "index_put: the values [3] do not broadcast to the places [2]",
            {input({4}), arg("indices", Items{two}), tensor_arg("values", {3})});

  op_case("index_select", {input({2, 3, 4}), arg("dim", 1), indices("index", {5}, 3)});
  op_case("index_select", {input({3}), arg("dim", 0), indices("index", {}, 3)});
  op_case("index_select", {input({2, 3}), arg("dim", 1), indices("index", {0}, 3)});
  bad_input("index_select", "index_select: index -1 at position [1] is outside [0, 3) of axis 0",
            {input({3}), arg("dim", 0), arg("index", Argument(tensor({0, -1})))});
  op_case("index_add", {input({2, 3, 4}), arg("dim", 1), indices("index", {5}, 3), tensor_arg("source", {2, 5, 4}),
                        arg("alpha", -0.6)});
  op_case("index_add", {input({3}), arg("dim", 0), indices("index", {70}, 3), tensor_arg("source", {70})});
  bad_input("index_add", "index_add: the source [2] must be [3]: the tensor [4] with 3 slices on axis 0",
            {input({4}), arg("dim", 0), indices("index", {3}, 4), tensor_arg("source", {2})});
  op_case("index_copy",
          {input({2, 4}), arg("dim", 1), arg("index", Argument(tensor({3, 0, 3}))), tensor_arg("source", {2, 3})});
  bad_input("index_copy", "index_copy: index 4 at position [0] is outside [0, 4) of axis 0",
            {input({4}), arg("dim", 0), arg("index", Argument(tensor({4}))), tensor_arg("source", {1})});
  op_case("index_fill", {input({2, 4}), arg("dim", 1), arg("index", Argument(tensor({3, -1, 0}))), arg("value", 1.5)});
  op_case("index_fill",
          {input({2, 4}), arg("dim", 1), arg("index", Argument(tensor({3, -1, 0}))), tensor_arg("value", {})});
  bad_input("index_fill", "index_fill: index -5 at position [0] is outside [-4, 4) of axis 0",
            {input({4}), arg("dim", 0), arg("index", Argument(tensor({-5}))), arg("value", 1.5)});

  op_case("gather", {input({3, 4}), arg("dim", 1), indices("index", {3, 6}, 4)});
  op_case("gather", {input({3, 4, 2}), arg("dim", 0), indices("index", {5, 2, 1}, 3)});
  op_case("gather", {input({}), arg("dim", 0), indices("index", {}, 1)});
  bad_input("gather", "gather: the index [4, 2] is larger than the tensor [3, 2] on axis 0",
            {input({3, 2}), arg("dim", 1), indices("index", {4, 2}, 2)});
  op_case("take", {input({3, 4}), arg("index", Argument(tensor({{0, -1}, {11, 0}})))});
  bad_input("take", "take: index 12 at position [0] is outside [-12, 12) of the flattened tensor",
            {input({3, 4}), arg("index", Argument(tensor({12})))});
  op_case("take_along_dim", {input({3, 4}), indices("indices", {1, 5}, 4), arg("dim", 1)});
  op_case("take_along_dim", {input({3, 4}), indices("indices", {5}, 12)});
  bad_input("take_along_dim", "take_along_dim: the indices [2] must have as many axes as the tensor [3, 4]",
            {input({3, 4}), indices("indices", {2}, 4), arg("dim", 1)});
  op_case("scatter", {input({3, 4}), arg("dim", 1), indices("index", {2, 6}, 4), tensor_arg("src", {3, 7})});
  op_case("scatter", {input({3, 4}), arg("dim", 0), indices("index", {2, 3}, 3), arg("value", 2.5)});
  bad_input("scatter", "scatter: the index [3] is larger than the source [2] on axis 0",
            {input({3}), arg("dim", 0), indices("index", {3}, 3), tensor_arg("src", {2})});
  op_case("scatter_add", {input({3, 4}), arg("dim", 1), indices("index", {2, 6}, 4), tensor_arg("src", {3, 7})});
  op_case("scatter_add", {input({2, 3}), arg("dim", 0), indices("index", {100, 3}, 2), tensor_arg("src", {100, 3})});
  bad_input("scatter_add", "scatter_add: index 9 at position [0] is outside [0, 3) of axis 0",
            {input({3}), arg("dim", 0), arg("index", Argument(tensor({9}))), tensor_arg("src", {2})});
  for (const char* reduce : {"sum", "mean", "prod", "amax", "amin"})
    for (bool self : {true, false})
      op_case("scatter_reduce", {input({3, 4}).apart(), arg("dim", 1), indices("index", {2, 6}, 4),
                                 tensor_arg("src", {3, 6}).range(-3.1, 3.05).apart(), arg("reduce", reduce),
                                 arg("include_self", Argument(self))});
  bad_input("scatter_reduce", "scatter_reduce: reduce must be sum, mean, prod, amax or amin, got \"max\"",
            {input({3}), arg("dim", 0), indices("index", {3}, 3), tensor_arg("src", {3}), arg("reduce", "max")});

  op_case("masked_select", {input({3, 4}), mask("mask", {4})});
  op_case("masked_select", {input({4}), mask("mask", {3, 1})});
  bad_input("masked_select", "masked_select: the mask must be b8, got i64; use to(kB8) or a comparison",
            {input({3}), indices("mask", {3}, 2)});
  op_case("masked_scatter", {input({3, 4}), mask("mask", {4}), tensor_arg("source", {5, 3})});
  bad_input("masked_scatter", "masked_scatter: the mask selects 3 elements, but the source [2] has 2",
            {input({3}), arg("mask", Argument(tensor({true, true, true}))), tensor_arg("source", {2})});
  for (const char* op : {"nonzero", "argwhere"}) {
    op_case(op, {mask("input", {3, 4})});
    op_case(op, {input({})});
    bad_input(op, std::string(op) + ": the argument \"input\" (tensor) is missing", {});
  }
}

TEST_CASE("V60_gather") {
  const Tensor x = leaf({{1, 2}, {3, 4}});
  const Tensor y = gather(x, 1, tensor({{0, 0}, {1, 0}}));
  CHECK_VALUES(y, {1, 1, 4, 3});
  backward_of(y);
  CHECK_VALUES(x.grad(), {2, 0, 1, 1});
}

TEST_CASE("V61_index_positions") {
  const Tensor x = leaf({1, 2});
  backward_of(x.index({tensor({0, 0, 1})}));
  CHECK_VALUES(x.grad(), {2, 1});
  const Tensor z = leaf({1, 2, 3});
  const Tensor y = z.index({tensor({-1, 0})});
  CHECK_VALUES(y, {3, 1});
  backward_of(y);
  CHECK_VALUES(z.grad(), {1, 0, 1});
  const Tensor u = leaf({1, 2});
  const Tensor v = index_select(u, 0, tensor({1, 1}));
  CHECK_VALUES(v, {2, 2});
  backward_of(v);
  CHECK_VALUES(u.grad(), {0, 2});
}

TEST_CASE("V62_V63_scatter") {
  const Tensor x = leaf({1, 2, 3}), s = leaf({7, 8});
  Tensor y = scatter(x, 0, tensor({2, 0}), s) * f64({1, 10, 100});
  CHECK_VALUES(y, {8, 20, 700});
  backward_of(y);
  CHECK_VALUES(x.grad(), {0, 10, 0});
  CHECK_VALUES(s.grad(), {100, 1});
  const Tensor a = leaf({1, 2, 3}), b = leaf({7, 8});
  y = scatter_add(a, 0, tensor({0, 0}), b) * f64({1, 10, 100});
  CHECK_VALUES(y, {16, 20, 300});
  backward_of(y);
  CHECK_VALUES(a.grad(), {1, 10, 100});
  CHECK_VALUES(b.grad(), {1, 1});
}

TEST_CASE("V64_V65_scatter_reduce") {
  const Tensor i = tensor({0, 0, 1});
  const auto check = [&](const NestedList& x0, const NestedList& s0, const char* reduce, bool self, const Numbers& y0,
                         const Numbers& dx, const Numbers& ds) {
    const Tensor x = leaf(x0), s = leaf(s0);
    const Tensor y = scatter_reduce(x, 0, i, s, reduce, self);
    CHECK(mismatch(y, y0) == "");
    backward_of(y);
    CHECK(mismatch(x.grad(), dx) == "");
    CHECK(mismatch(s.grad(), ds) == "");
  };
  check({5, 0}, {5, 5, 7}, "amax", true, {5, 7}, {1. / 3, 0}, {1. / 3, 1. / 3, 1});
  check({5, 0}, {5, 5, 7}, "mean", true, {5, 3.5}, {1. / 3, 0.5}, {1. / 3, 1. / 3, 0.5});
  check({5, 0}, {5, 5, 7}, "mean", false, {5, 7}, {0, 0}, {0.5, 0.5, 1});
  check({5, 1}, {0, 3, 7}, "prod", true, {0, 7}, {0, 7}, {15, 0, 1});
  check({5, kNan}, {5, 5, 7}, "amax", true, {5, kNan}, {1. / 3, 1}, {1. / 3, 1. / 3, 0});
  CHECK_VALUES(scatter_reduce(tensor({1, 2}), 0, tensor({0, 0}), tensor({-4, 1}), "mean"), {-1, 2});
}

TEST_CASE("V66_index_copy_fill_put") {
  const Tensor x = leaf({1, 2}), s = leaf({5});
  const Tensor y = index_copy(x, 0, tensor({1}), s) * f64({2, 3});
  CHECK_VALUES(y, {2, 15});
  backward_of(y);
  CHECK_VALUES(x.grad(), {2, 0});
  CHECK_VALUES(s.grad(), {3});
  const Tensor f = leaf({1, 2});
  backward_of(index_fill(f, 0, tensor({1}), 5));
  CHECK_VALUES(f.grad(), {1, 0});
  const Tensor p = leaf({1, 2}), v = leaf({5, 6});
  const Tensor put = index_put(p, {tensor({0, 0})}, v, true);
  CHECK_VALUES(put, {12, 2});
  backward_of(put);
  CHECK_VALUES(p.grad(), {1, 1});
  CHECK_VALUES(v.grad(), {1, 1});
}

TEST_CASE("V67_V68_V69_masks") {
  const Tensor m = tensor({true, false, true});
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = masked_select(x, m) * f64({2, 3});
  CHECK_VALUES(y, {2, 9});
  backward_of(y);
  CHECK_VALUES(x.grad(), {2, 0, 3});
  const Tensor a = leaf({1, 2, 3}), s = leaf({7, 8, 9});
  const Tensor z = masked_scatter(a, tensor({false, true, true}), s) * f64({1, 10, 100});
  CHECK_VALUES(z, {1, 70, 800});
  backward_of(z);
  CHECK_VALUES(a.grad(), {1, 0, 0});
  CHECK_VALUES(s.grad(), {10, 100, 0});
  const Tensor e = leaf({1, 2, 3});
  const Tensor none = masked_select(e, tensor({false, false, false}));
  CHECK(none.shape() == Shape{0});
  backward_of(none);
  CHECK_VALUES(e.grad(), {0, 0, 0});
}

TEST_CASE("V70_index_shapes") {
  const Tensor x = zeros({2, 3, 4, 5}), y = zeros({2, 3, 4}), t = tensor({0, 1});
  CHECK(x.index({t, Slice(), t}).shape() == Shape{2, 3, 5});
  CHECK(x.index({Slice(), t, t}).shape() == Shape{2, 2, 5});
  CHECK(y.index({0, Slice(), t}).shape() == Shape{3, 2});
  CHECK(y.index({Ellipsis, None, 0}).shape() == Shape{2, 3, 1});
  CHECK(y.index({t, None, t}).shape() == Shape{2, 1, 4});
  CHECK(y.index({t, Ellipsis, tensor({{0}, {1}, {2}})}).shape() == Shape{3, 2, 3});
  CHECK(y.index({tensor(1)}).shape() == Shape{3, 4});
  CHECK(y.index({ones({2, 3}, kB8)}).shape() == Shape{6, 4});
  CHECK(y.index({Slice(), ones({3, 4}, kB8)}).shape() == Shape{2, 12});
  CHECK(y.index({tensor(true)}).shape() == Shape{1, 2, 3, 4});
  CHECK(y.index({tensor(false)}).shape() == Shape{0, 2, 3, 4});
  CHECK(overlap_of(y.index({Ellipsis}), y) == Overlap::full);
  CHECK(overlap_of(y.index({0, Slice(1, None)}), y) != Overlap::none);
  CHECK(overlap_of(y.index({t}), y) == Overlap::none);
}

TEST_CASE("V71_index_errors") {
  CHECK_ERROR(f64({1, 2, 3}).index({3}), "index: index 3 is outside [-3, 3) of axis 0");
  CHECK_ERROR(f64({1, 2, 3}).index({tensor({0, 3})}), "index: index 3 at position [1] is outside [-3, 3) of axis 0");
  CHECK_ERROR(f64({1, 2, 3}).index({tensor({true, false})}),
              "index: the mask [2] does not fit axes 0 to 0 of [3] (axis 0: 2 vs 3)");
  CHECK_ERROR(zeros({3, 3}).index({tensor({0, 1}), tensor({0, 1, 2})}),
              "index: shapes do not broadcast: [2] + [3] (axis -1: 2 vs 3)");
  CHECK_ERROR(zeros({3}).index({Ellipsis, Ellipsis}), "index: only one Ellipsis is allowed, got 2");
  CHECK_ERROR(zeros({3}).index({zeros({2})}), "index: index tensors are i64 positions or b8 masks, got f32");
  CHECK_ERROR(zeros({3}).index({Slice(0, 1, 0)}), "index: step 0 is not allowed");
  const Tensor x = f64({{1, 2, 3}}), minus = tensor({{-1}}), one = tensor({-1});
  CHECK_ERROR(gather(x, 1, minus), "gather: index -1 at position [0, 0] is outside [0, 3) of axis 1");
  CHECK_ERROR(scatter(x, 1, minus, f64({{1}})), "scatter: index -1 at position [0, 0] is outside [0, 3) of axis 1");
  CHECK_ERROR(index_select(x, 1, one), "index_select: index -1 at position [0] is outside [0, 3) of axis 1");
  CHECK_ERROR(index_add(x, 1, one, f64({{1}})), "index_add: index -1 at position [0] is outside [0, 3) of axis 1");
  CHECK_ERROR(gather(x, 1, x), "gather: the index must be i64, got f64; convert it with .to(kI64)");
  // Nothing is written before all indices are checked.
  const Tensor y = f64({1, 2, 3});
  CHECK_ERROR(y.index_put_({tensor({0, 9})}, f64({7, 8})),
              "index_put_: index 9 at position [1] is outside [-3, 3) of axis 0");
  CHECK_ERROR(y.scatter_(0, tensor({0, 9}), f64({7, 8})),
              "scatter_: index 9 at position [1] is outside [0, 3) of axis 0");
  CHECK_VALUES(y, {1, 2, 3});
  CHECK(y.version() == 0);
}

TEST_CASE("V73_nonzero") {
  CHECK_VALUES(nonzero(tensor({{0, 1}, {2, 0}})), {0, 1, 1, 0});
  CHECK(nonzero(tensor(1)).shape() == Shape{1, 0});
  CHECK(nonzero(tensor(0)).shape() == Shape{0, 0});
  const auto at = where(tensor({{false, true}, {true, false}}));
  REQUIRE(at.size() == 2);
  CHECK_VALUES(at[0], {0, 1});
  CHECK_VALUES(at[1], {1, 0});
}

TEST_CASE("duplicates_last_wins") {
  const Tensor s = leaf({1, 2});
  const Tensor y = scatter(zeros({2}, kF64), 0, tensor({0, 0}), s);
  CHECK_VALUES(y, {2, 0});
  backward_of(y);
  CHECK_VALUES(s.grad(), {0, 1});
  const Tensor x = leaf({1, 2}), v = leaf({5, 6});
  const Tensor z = index_put(x, {tensor({0, 0})}, v);
  CHECK_VALUES(z, {6, 2});
  backward_of(z);
  CHECK_VALUES(v.grad(), {0, 1});
  CHECK_VALUES(x.grad(), {0, 1});
  const Tensor w = leaf({5, 6});
  backward_of(index_copy(zeros({2}, kF64), 0, tensor({1, 1}), w));
  CHECK_VALUES(w.grad(), {0, 1});
}

TEST_CASE("C28_index_add") {
  const Tensor s = leaf({1, 2, 3});
  const Tensor y = index_add(zeros({3}, kF64), 0, tensor({0, 0, 2}), s);
  CHECK_VALUES(y, {3, 0, 3});
  backward_of(y * s);  // Σ y·s with y from s: both paths
  const Tensor t = leaf({1, 2, 3});
  backward_of(index_add(zeros({3}, kF64), 0, tensor({0, 0, 2}), t * t));
  CHECK_VALUES(t.grad(), {2, 4, 6});

  // Many duplicates: the same bits for any number of threads, within the bound of pairwise sums.
  std::mt19937_64 rng(1);
  for (const i64 inner : {i64{1}, i64{5}}) {
    const i64 n = 1'000'000 / inner;
    std::vector<float> values(static_cast<size_t>(n * inner));
    std::vector<i64> places(static_cast<size_t>(n));
    for (float& v : values) v = static_cast<float>(rng() % 1000) / 1000 + 0.1f;
    for (i64& p : places) p = static_cast<i64>(rng() % 3);
    const Tensor src = tensor(values).view({n, inner}), at = tensor(places);
    const int before = num_threads();
    set_num_threads(1);
    const Tensor one = index_add(zeros({5, inner}), 0, at, src);
    for (int threads : {2, 4}) {
      set_num_threads(threads);
      CHECK(index_add(zeros({5, inner}), 0, at, src).to_vector<float>() == one.to_vector<float>());
    }
    set_num_threads(before);
    std::vector<double> exact(static_cast<size_t>(5 * inner));
    for (i64 i = 0; i < n; ++i)
      for (i64 j = 0; j < inner; ++j)
        exact[static_cast<size_t>(places[static_cast<size_t>(i)] * inner + j)] +=
            double{values[static_cast<size_t>(i * inner + j)]};
    for (size_t k = 0; k < exact.size(); ++k)
      CHECK(std::abs(double{one.to_vector<float>()[k]} - exact[k]) <=
            2 * (16 + std::log2(static_cast<double>(n))) * 0x1p-24 * exact[k]);
  }
}

TEST_CASE("in-place index ops equal the others, on strided targets, too") {
  const Tensor base = arange(12., {.dtype = kF64}).view({3, 4});
  for (const bool turned : {false, true}) {
    const auto target = [&] { return turned ? base.clone().t().contiguous().t() : base.clone(); };
    const Tensor i = tensor({2, 0, 2}), src = arange(20., 32., {.dtype = kF64}).view({3, 4}),
                 e = tensor({{1, 1}, {0, 3}});
    CHECK(difference(target().index_add_(0, i, src, 0.5), index_add(target(), 0, i, src, 0.5)) == "");
    CHECK(difference(target().index_copy_(0, i, src), index_copy(target(), 0, i, src)) == "");
    CHECK(difference(target().index_fill_(1, tensor({-1}), 7), index_fill(target(), 1, tensor({-1}), 7)) == "");
    CHECK(difference(target().scatter_(1, e, src), scatter(target(), 1, e, src)) == "");
    CHECK(difference(target().scatter_(1, e, 9), scatter(target(), 1, e, 9)) == "");
    CHECK(difference(target().scatter_add_(1, e, src), scatter_add(target(), 1, e, src)) == "");
    CHECK(difference(target().index_put_({i, Slice(1, 3)}, src.slice(1, 0, 2)),
                     index_put(target(), {i, Slice(1, 3)}, src.slice(1, 0, 2))) == "");
    CHECK(difference(target().index_put_({i, Slice(1, 3)}, src.slice(1, 0, 2), true),
                     index_put(target(), {i, Slice(1, 3)}, src.slice(1, 0, 2), true)) == "");
  }
  // y[0] = 3x with history.
  const Tensor x = leaf({1, 2});
  const Tensor y = x * x.flip({0});
  y.index_put_({0}, x.select(0, 0) * 3);
  CHECK_VALUES(y, {3, 2});
  backward_of(y);
  CHECK_VALUES(x.grad(), {5, 1});
}

TEST_CASE("index gradients: ints, masks, and values that share memory with the target") {
  const Tensor x = leaf({{1, 2, 3}, {4, 5, 6}});
  backward_of(x.index({x.detach() > 3}), {1, 10, 100});
  CHECK_VALUES(x.grad(), {0, 0, 0, 1, 10, 100});
  const Tensor y = arange(5);
  y.index_put_({tensor({4, 3, 2, 1, 0})}, y);
  CHECK_VALUES(y, {4, 3, 2, 1, 0});
}

}  // namespace waymark::test
