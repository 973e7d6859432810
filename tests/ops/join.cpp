// core/ops/join.cpp, rearrange.cpp, pad.cpp and the views of shape.cpp, axes.cpp, strided.cpp: cases and values.
#include <doctest/doctest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/inplace.h"
#include "core/ops/join.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/ops/op_case.h"
#include "tests/ops/rows.h"

namespace waymark::test {

OP_CASES(join_cases) {
  op_case("cat", {list_arg("tensors", 0, {2, 3}), list_arg("tensors", 1, {2, 0}), list_arg("tensors", 2, {2, 2}),
                  arg("dim", -1)});
  op_case("cat", {list_arg("tensors", 0, {0}), list_arg("tensors", 1, {2, 3}), list_arg("tensors", 2, {1, 3})});
  bad_input("cat", "cat: tensor 1 is [2, 4], tensor 0 is [2, 3]; they may differ on axis 0 only (axis 1: 4 vs 3)",
            {list_arg("tensors", 0, {2, 3}), list_arg("tensors", 1, {2, 4})});
  op_case("stack", {list_arg("tensors", 0, {2, 3}), list_arg("tensors", 1, {2, 3}), arg("dim", -1)});
  op_case("stack", {list_arg("tensors", 0, {}), list_arg("tensors", 1, {})});
  bad_input("stack", "stack: tensor 1 is [3], tensor 0 is [2]; all shapes must be equal",
            {list_arg("tensors", 0, {2}), list_arg("tensors", 1, {3})});
  op_case("hstack", {list_arg("tensors", 0, {2, 3}), list_arg("tensors", 1, {2, 1})});
  op_case("hstack", {list_arg("tensors", 0, {}), list_arg("tensors", 1, {3})});
  bad_input("hstack", "hstack: needs at least one tensor", {arg("tensors", Argument(std::vector<Tensor>{}))});
  op_case("vstack", {list_arg("tensors", 0, {3}), list_arg("tensors", 1, {2, 3})});
  bad_input("vstack", "vstack: needs at least one tensor", {arg("tensors", Argument(std::vector<Tensor>{}))});
  op_case("split", {input({5, 3}), arg("split_size_or_sections", 2)});
  op_case("split", {input({3, 5}), arg("split_size_or_sections", List{2, 0, 3}), arg("dim", 1)});
  bad_input("split", "split: the sizes [2, 2] add up to 4, but axis 0 has extent 5",
            {input({5}), arg("split_size_or_sections", List{2, 2})});
  op_case("chunk", {input({5, 3}), arg("chunks", 4)});
  op_case("chunk", {input({0, 3}), arg("chunks", 2)});
  bad_input("chunk", "chunk: chunks must be positive, got 0", {input({5}), arg("chunks", 0)});
  op_case("tensor_split", {input({5, 3}), arg("indices_or_sections", 4)});
  op_case("tensor_split", {input({5, 3}), arg("indices_or_sections", List{1, -1})});
  bad_input("tensor_split", "tensor_split: sections must be positive, got -1",
            {input({5}), arg("indices_or_sections", -1)});
  op_case("unbind", {input({2, 3, 4}), arg("dim", 1)});
  bad_input("unbind", "unbind: a 0-d tensor has no axis to cut", {input({})});
  op_case("meshgrid", {list_arg("tensors", 0, {3}), list_arg("tensors", 1, {}), list_arg("tensors", 2, {2})});
  op_case("meshgrid", {list_arg("tensors", 0, {3}), list_arg("tensors", 1, {2}), arg("indexing", "xy")});
  bad_input("meshgrid", "meshgrid: indexing must be \"ij\" or \"xy\", got \"yx\"",
            {list_arg("tensors", 0, {3}), arg("indexing", "yx")});
}

OP_CASES(rearrange_cases) {
  op_case("repeat", {input({2, 3}), arg("repeats", List{2, 1, 3})});
  op_case("repeat", {input({2, 3}), arg("repeats", List{0, 1})});
  bad_input("repeat", "repeat: 1 repeats for a tensor with 2 axes ([2, 3])", {input({2, 3}), arg("repeats", List{2})});
  op_case("tile", {input({2, 3}), arg("dims", List{2})});
  bad_input("tile", "repeat: the repeats [1, -1] must not be negative", {input({2, 3}), arg("dims", List{-1})});
  op_case("repeat_interleave", {input({2, 3}), arg("repeats", 2), arg("dim", 1)});
  op_case("repeat_interleave", {input({2, 3}), arg("repeats", 2)});
  op_case("repeat_interleave", {input({3, 2}), arg("repeats", Argument(tensor({2, 0, 1}))), arg("dim", 0)});
  bad_input("repeat_interleave", "repeat_interleave: 2 repeats for an extent of 3 on axis 0",
            {input({3, 2}), arg("repeats", Argument(tensor({2, 0}))), arg("dim", 0)});
  op_case("roll", {input({3, 4}), arg("shifts", List{1, -2}), arg("dims", List{0, 1})});
  op_case("roll", {input({3, 4}), arg("shifts", List{5})});
  op_case("roll", {input({3, 0}), arg("shifts", List{5}), arg("dims", List{1})});
  bad_input("roll", "roll: 2 shifts ([1, 2]) for 1 dims ([0])",
            {input({3}), arg("shifts", List{1, 2}), arg("dims", List{0})});
  op_case("flip", {input({3, 4}), arg("dims", List{0, -1})});
  op_case("flip", {input({3, 0}), arg("dims", List{1})});
  bad_input("flip", "flip: a dim appears twice in [0, 0]", {input({3}), arg("dims", List{0, 0})});
  for (int k : {0, 1, 2, 3, -1}) op_case("rot90", {input({3, 4}), arg("k", k)});
  bad_input("rot90", "rot90: needs 2 dims, got [0]", {input({3, 4}), arg("dims", List{0})});
  op_case("pad", {input({3, 4}), arg("pad", List{1, 2, -1, 1}), arg("value", 7.0)});
  op_case("pad", {input({3, 4}), arg("pad", List{-1, -1})});
  for (const char* mode : {"reflect", "replicate", "circular"}) {
    op_case("pad", {input({3, 4}), arg("pad", List{2, 1, 1, 2}), arg("mode", mode)});
    op_case("pad", {input({3, 4}), arg("pad", List{-1, 2}), arg("mode", mode)});
    op_case("pad", {input({2, 2, 3, 4}), arg("pad", List{0, 0, 1, 0}), arg("mode", mode)});
  }
  bad_input("pad", "pad: reflect needs pads below the extent 3 of axis 0, got 3",
            {input({3}), arg("pad", List{3, 0}), arg("mode", "reflect")});
  for (const char* op : {"tril", "triu"}) {
    op_case(op, {input({2, 3, 4}), arg("diagonal", 1)});
    op_case(op, {input({4, 3}), arg("diagonal", -2)});
    op_case(op, {input({0, 3})});
    bad_input(op, std::string(op) + ": needs at least 2 axes, got [3]", {input({3})});
  }
  op_case("diag", {input({3}), arg("diagonal", -1)});
  op_case("diag", {input({3, 4}), arg("diagonal", 1)});
  bad_input("diag", "diag: needs 1 or 2 axes, got [1, 1, 1]", {input({1, 1, 1})});
  op_case("diag_embed", {input({2, 3}), arg("offset", -1), arg("dim1", 0), arg("dim2", 2)});
  op_case("diag_embed", {input({2, 3}), arg("offset", 1), arg("dim1", 2), arg("dim2", 0)});
  bad_input("diag_embed", "diag_embed: dim1 0 and dim2 -2 are the same axis",
            {input({3}), arg("dim1", 0), arg("dim2", -2)});
  op_case("trace", {input({3, 4})});
  bad_input("trace", "trace: needs a matrix, got [3]", {input({3})});
}

OP_CASES(view_cases) {
  op_case("flatten", {input({2, 3, 4}), arg("start_dim", 1)});
  bad_input("flatten", "flatten: start_dim 1 comes after end_dim 0",
            {input({2, 3}), arg("start_dim", 1), arg("end_dim", 0)});
  op_case("transpose", {input({2, 3, 4}), arg("dim0", 0), arg("dim1", -1)});
  bad_input("transpose", "transpose: dim 2 is outside [-2, 1] of a tensor with 2 axes*",
            {input({2, 3}), arg("dim0", 0), arg("dim1", 2)});
  op_case("mT", {input({2, 3, 4})});
  bad_input("mT", "mT: needs at least 2 axes, got [3]", {input({3})});
  op_case("t", {input({2, 3})});
  op_case("t", {input({})});
  bad_input("t", "t: needs at most 2 axes, got [1, 1, 1]; use mT", {input({1, 1, 1})});
  op_case("squeeze", {input({1, 3, 1}), arg("dim", 0)});
  op_case("squeeze", {input({1, 3, 1})});
  bad_input("squeeze", "squeeze: dim 3 is outside*", {input({1, 3, 1}), arg("dim", 3)});
  op_case("unsqueeze", {input({2, 3}), arg("dim", -2)});
  bad_input("unsqueeze", "unsqueeze: dim 3 is outside*", {input({2}), arg("dim", 3)});
  op_case("narrow", {input({5, 2}), arg("dim", 0), arg("start", -3), arg("length", 2)});
  bad_input("narrow", "narrow: start 2 and length 2 do not lie in axis 0 of extent 3",
            {input({3}), arg("dim", 0), arg("start", 2), arg("length", 2)});
  op_case("swapaxes", {input({2, 3, 4}), arg("axis0", 0), arg("axis1", 2)});
  bad_input("swapaxes", "swapaxes: dim 5 is outside*", {input({2, 3}), arg("axis0", 0), arg("axis1", 5)});
  op_case("movedim", {input({2, 3, 4}), arg("source", List{0, -1}), arg("destination", List{2, 0})});
  bad_input("movedim", "movedim: [0] and [0, 1] differ in length",
            {input({2, 3}), arg("source", List{0}), arg("destination", List{0, 1})});
  op_case("unflatten", {input({2, 6}), arg("dim", -1), arg("sizes", List{3, -1})});
  bad_input("unflatten", "unflatten: axis 1 of [2, 6] cannot become [4, -1]",
            {input({2, 6}), arg("dim", 1), arg("sizes", List{4, -1})});
  op_case("ravel", {input({2, 3})});
  bad_input("ravel", "ravel: the argument \"input\" (tensor) is missing", {});
  op_case("broadcast_to", {input({3, 1}), arg("size", List{2, 3, 4})});
  op_case("broadcast_to", {input({3, 1}), arg("size", List{2, -1, 4})});  // -1: as it is
  bad_input("broadcast_to", "broadcast_to: [3] does not broadcast to [2]", {input({3}), arg("size", List{2})});
  op_case("expand_as", {input({3, 1}), other({2, 3, 4}).no_grad()});
  bad_input("expand_as", "expand: [3] does not expand to [2] (axis -1: 3 to 2)", {input({3}), other({2})});
  op_case("diagonal", {input({3, 4, 2}), arg("offset", 1)});
  op_case("diagonal", {input({3, 4, 2}), arg("offset", -1), arg("dim1", 2), arg("dim2", 0)});
  bad_input("diagonal", "diagonal: needs at least 2 axes, got [3]", {input({3})});
  op_case("unfold", {input({2, 7}), arg("dimension", 1), arg("size", 3), arg("step", 2)});
  op_case("unfold", {input({7, 2}), arg("dimension", 0), arg("size", 4), arg("step", 1)});
  bad_input("unfold", "unfold: windows of 4 do not fit into axis 0 of extent 3",
            {input({3}), arg("dimension", 0), arg("size", 4), arg("step", 1)});
  op_case("as_strided",
          {input({12}).as_is(), arg("size", List{3, 2}), arg("stride", List{2, 1}), arg("storage_offset", 1)});
  op_case("as_strided", {input({3, 4}).as_is(), arg("size", List{2, 2}), arg("stride", List{1, 1})});
  bad_input("as_strided", "as_strided: [3] with strides [2] and offset 0 reaches outside the storage of 4 elements",
            {input({4}), arg("size", List{3}), arg("stride", List{2})});
}

TEST_CASE("V20_view_of_transposed") {
  const Tensor x = arange(6).view({2, 3}).t();
  CHECK_VALUES(x.reshape({6}), {0, 3, 1, 4, 2, 5});
  CHECK_ERROR(x.view({6}),
              "view: [3, 2] with strides [1, 3] cannot become [6] without a copy (axes 0 and 1 are not adjacent in "
              "memory); use reshape");
}

TEST_CASE("V21_V22_pad_constant") {
  check_rule({1, 2},
        [](const Tensor& x) {
          return pad(x, {1, 2}, "constant", 7) * f64({1, 2, 3, 4, 5});
        },
        {7, 2, 6, 28, 35}, {2, 3});
  check_rule({1, 2}, [](const Tensor& x) { return pad(x, {-1, 1}); }, {2, 0}, {0, 1});
}

TEST_CASE("V23_V24_pad_modes") {
  check_rule({1, 2, 3}, [](const Tensor& x) { return pad(x, {2, 1}, "reflect"); }, {3, 2, 1, 2, 3, 2}, {1, 3, 2});
  CHECK_ERROR(pad(f64({1, 2, 3}), {3, 0}, "reflect"), "pad: reflect needs pads below the extent 3 of axis 0, got 3");
  check_rule({1, 2, 3}, [](const Tensor& x) { return pad(x, {2, 1}, "replicate"); }, {1, 1, 1, 2, 3, 3}, {3, 1, 2});
  check_rule({1, 2, 3}, [](const Tensor& x) { return pad(x, {2, 1}, "circular"); }, {2, 3, 1, 2, 3, 1}, {2, 2, 2});
  CHECK_ERROR(pad(f64({1, 2, 3}), {4, 0}, "circular"), "pad: circular needs pads up to the extent 3 of axis 0, got 4");
  CHECK_ERROR(pad(f64({1, 2, 3}), {1}),
              "pad: 1 pads for a tensor with 1 axes ([3]); two for each axis, last axis first");
}

TEST_CASE("V25_V26_roll_flip") {
  check_rule({1, 2, 3}, [](const Tensor& x) { return roll(x, {1}); }, {3, 1, 2}, {2, 3, 1}, {1, 2, 3});
  check_rule({1, 2, 3}, [](const Tensor& x) { return flip(x, {0}); }, {3, 2, 1}, {3, 2, 1}, {1, 2, 3});
  CHECK_VALUES(roll(arange(6).view({2, 3}), {1, -1}, {0, 1}), {4, 5, 3, 1, 2, 0});
  CHECK_VALUES(roll(arange(4).view({2, 2}), {1}), {3, 0, 1, 2});
  const Tensor x = arange(3);
  CHECK(overlap_of(roll(x, {0}), x) == Overlap::none);
  CHECK(overlap_of(flip(x, {}), x) == Overlap::none);
}

TEST_CASE("V27_repeat") {
  check_rule({1, 2}, [](const Tensor& x) { return x.repeat({2, 2}); }, {1, 2, 1, 2, 1, 2, 1, 2}, {4, 4});
  check_rule({1, 2, 3},
        [](const Tensor& x) {
          return x.repeat_interleave(tensor({2, 0, 1}));
        },
        {1, 1, 3}, {11, 0, 100}, {1, 10, 100});
}

TEST_CASE("V28_diagonals") {
  check_rule({{1, 2}, {3, 4}}, [](const Tensor& x) { return diag(x, 1); }, {2}, {0, 1, 0, 0});
  CHECK_VALUES(diag_embed(f64({1, 2}), -1), {0, 0, 0, 1, 0, 0, 0, 2, 0});
  CHECK(diagonal(zeros({3, 4}), 5).shape() == Shape{0});
  CHECK(diagonal(zeros({3, 4}), INT64_MIN).shape() == Shape{0});
  CHECK(trace(ones({2, 3})).item<double>() == 2);
}

TEST_CASE("V29_as_strided") {
  check_rule({1, 2, 3}, [](const Tensor& x) { return x.as_strided({2, 2}, {1, 1}); }, {1, 2, 2, 3}, {1, 2, 1});
  // Elements that share memory share the gradient.
  const Tensor x = leaf({1});
  const Tensor y = x.expand({2}).as_strided({3}, {0});
  backward_of(y);
  CHECK_VALUES(x.grad(), {3});
}

TEST_CASE("V30_expand") {
  check_rule({{1, 2}}, [](const Tensor& x) { return x.expand({3, 2}); }, {1, 2, 1, 2, 1, 2}, {3, 3});
  check_rule({{1, 2}}, [](const Tensor& x) { return x.expand({3, 2}); }, {1, 2, 1, 2, 1, 2}, {6, 9}, {0, 1, 2, 3, 4, 5});
}

TEST_CASE("C72_V31_unfold") {
  CHECK(unfold(zeros({2, 7}), 1, 3, 2).shape() == Shape{2, 3, 3});
  CHECK_ERROR(unfold(zeros({3}), 0, 4, 1), "unfold: windows of 4 do not fit into axis 0 of extent 3");
  check_rule({1, 2, 3, 4, 5}, [](const Tensor& x) { return x.unfold(0, 3, 1); }, {1, 2, 3, 2, 3, 4, 3, 4, 5},
        {0, 4, 12, 12, 8}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("V32_split_sizes") {
  const auto sizes = [](const std::vector<Tensor>& list) {
    List out;
    for (const Tensor& t : list) out.push_back(t.size(0));
    return out;
  };
  const Tensor x = zeros({5});
  CHECK(sizes(x.split(2)) == List{2, 2, 1});
  CHECK(sizes(x.chunk(4)) == List{2, 2, 1});
  CHECK(sizes(x.tensor_split(4)) == List{2, 1, 1, 1});
  CHECK(sizes(tensor_split(x, List{1, 1, -1})) == List{1, 0, 3, 1});
  CHECK_ERROR(x.split(List{2, 2}), "split: the sizes [2, 2] add up to 4, but axis 0 has extent 5");
}

TEST_CASE("pieces of one node: gradients where some do not arrive, in-place refused") {
  const Tensor x = leaf({1, 2, 3, 4, 5});
  const std::vector<Tensor> parts = x.split(2);
  backward_of(parts[1] * parts[1]);
  CHECK_VALUES(x.grad(), {0, 0, 6, 8, 0});
  const Tensor y = x * 1;
  const std::vector<Tensor> rows = y.unbind();
  CHECK_ERROR(rows[0].add_(1),
              "add_: the target is one of several views that one op returned; use clone() or narrow()");
  CHECK(overlap_of(rows[0], y) != Overlap::none);
  const NoGrad off;
  rows[0].add_(1);
  CHECK(y.at<double>({0}) == 2);
}

TEST_CASE("V33_cat_stack") {
  CHECK(cat({zeros({0}), zeros({2, 3})}).shape() == Shape{2, 3});
  CHECK_ERROR(cat({}), "cat: needs at least one tensor");
  CHECK_ERROR(stack({zeros({2}), zeros({3})}), "stack: tensor 1 is [3], tensor 0 is [2]; all shapes must be equal");
  CHECK_ERROR(cat({zeros({})}), "cat: tensor 0 is 0-d and has no axis; use stack");
  CHECK(cat({zeros({0}), zeros({0})}).shape() == Shape{0});
  CHECK(cat({zeros({1}, kI64), zeros({1})}).dtype() == kF32);
  const Tensor a = leaf({1}), b = leaf({2});
  backward_of(cat({a, b, a}) * f64({1, 10, 100}));
  CHECK_VALUES(a.grad(), {101});
  CHECK_VALUES(b.grad(), {10});
  std::vector<Tensor> many(2000, zeros({1, 2}));
  CHECK(cat(many).shape() == Shape{2000, 2});
}

TEST_CASE("V34_view_errors") {
  CHECK_ERROR(zeros({2, 3}).expand({4, 3}), "expand: [2, 3] does not expand to [4, 3] (axis -2: 2 to 4)");
  CHECK_ERROR(zeros({2, 3}).permute({0, 0}), "permute: a dim appears twice in [0, 0]");
  CHECK_ERROR(zeros({2}).unsqueeze(3), "unsqueeze: dim 3 is outside [-2, 1] of a tensor with 2 axes");
  CHECK_ERROR(zeros({3}).narrow(0, 2, 2), "narrow: start 2 and length 2 do not lie in axis 0 of extent 3");
}

TEST_CASE("C17_strided_slices") {
  check_rule({1, 2, 3, 4, 5}, [](const Tensor& x) { return x.slice(0, 0, kNoBound, 2); }, {1, 3, 5}, {1, 0, 10, 0, 100},
        {1, 10, 100});
  check_rule({1, 2, 3, 4, 5}, [](const Tensor& x) { return x.slice(0, 1, kNoBound, 2); }, {2, 4}, {0, 1, 0, 10, 0}, {1, 10});
  check_rule({1, 2, 3, 4, 5}, [](const Tensor& x) { return x.slice(0, kNoBound, kNoBound, -2); }, {5, 3, 1},
        {100, 0, 10, 0, 1}, {1, 10, 100});
}

TEST_CASE("C68_skew_trick") {
  const auto skew = [](const Tensor& x) { return pad(x, {1, 0}).view({4, 2}).slice(0, 1).reshape({2, 3}); };
  CHECK_VALUES(skew(f64({{0, 1, 2}, {3, 4, 5}})), {1, 2, 0, 3, 4, 5});
  const Tensor x = leaf({{0, 1, 2}, {3, 4, 5}});
  backward_of(skew(x), {0, 1, 2, 3, 4, 5});
  CHECK_VALUES(x.grad(), {0, 0, 1, 3, 4, 5});
}

TEST_CASE("meshgrid, movedim, triangles") {
  const auto grid = meshgrid({tensor({0, 1}), tensor({2, 3})});
  CHECK_VALUES(grid[0], {0, 0, 1, 1});
  CHECK_VALUES(grid[1], {2, 3, 2, 3});
  CHECK(meshgrid({tensor({0, 1, 2}), tensor({2, 3})}, "xy")[0].shape() == Shape{2, 3});
  CHECK(movedim(zeros({2, 3, 4}), {0, -1}, {2, 0}).shape() == Shape{4, 3, 2});
  CHECK_VALUES(tril(ones({3, 3}), -1), {0, 0, 0, 1, 0, 0, 1, 1, 0});
  CHECK_VALUES(triu(ones({2, 3}), 1), {0, 1, 1, 0, 0, 1});
  CHECK_VALUES(tril(ones({2, 2}), INT64_MAX), {1, 1, 1, 1});
  CHECK_VALUES(rot90(arange(4).view({2, 2})), {1, 3, 0, 2});
}

}  // namespace waymark::test
