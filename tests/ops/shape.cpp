// Cases of core/ops/shape.cpp and reduce.cpp.
#include "tests/ops/op_case.h"

namespace waymark::test {

OP_CASES(shape_cases) {
  op_case("view", {input({3, 4}).as_is(), arg("shape", List{2, -1})});
  bad_input("view", "view: [2, 3] (6 elements) cannot become [4] (4 elements)", {input({2, 3}), arg("shape", List{4})});
  op_case("reshape", {input({3, 4}), arg("shape", List{2, 6})});
  op_case("reshape", {input({3, 4, 2}), arg("shape", List{-1})});
  op_case("reshape", {input({}), arg("shape", List{1, 1})});
  bad_input("reshape", "reshape: the -1 in [-1, 0] is ambiguous for a tensor of shape [0, 3]",
            {input({0, 3}), arg("shape", List{-1, 0})});
  op_case("permute", {input({2, 3, 4}), arg("dims", List{2, 0, -2})});
  bad_input("permute", "permute: a dim appears twice in [0, 0]", {input({2, 3}), arg("dims", List{0, 0})});
  op_case("expand", {input({3, 1}), arg("size", List{2, 3, 4})});
  op_case("expand", {input({3, 1}), arg("size", List{-1, 0})});
  bad_input("expand", "expand: [2, 3] does not expand to [4, 3] (axis -2: 2 to 4)", {input({2, 3}), arg("size", List{4, 3})});
  op_case("slice", {input({5, 3}), arg("dim", 0), arg("start", 1), arg("end", 4)});
  op_case("slice", {input({5, 3}), arg("dim", 0), arg("step", -2)});
  op_case("slice", {input({5, 3}), arg("dim", 1), arg("start", 7)});
  bad_input("slice", "slice: step 0 is not allowed", {input({3}), arg("step", 0)});
  op_case("select", {input({5, 3}), arg("dim", 0), arg("index", -2)});
  bad_input("select", "select: index 3 is outside [-3, 3) of axis 0", {input({3}), arg("dim", 0), arg("index", 3)});
}

OP_CASES(reduce_cases) {
  for (const char* op : {"sum", "mean"}) {
    op_case(op, {input({3, 4})});
    op_case(op, {input({2, 3, 4}), arg("dim", 1)});
    op_case(op, {input({2, 3, 4}), arg("dim", List{0, 2}), arg("keepdim", Argument(true))});
    op_case(op, {input({}), arg("dim", 0)});
    bad_input(op, std::string(op) + ": a dim appears twice in [0, -2]", {input({2, 3}), arg("dim", List{0, -2})});
  }
  op_case("sum", {input({0, 3}), arg("dim", 0)});
  op_case("sum", {input({600, 33})});
  bad_input("mean", "mean: needs a float tensor, got i64; convert it with .to(kF32)", {indices("input", {3}, 5)});
  op_case("sum_to_size", {input({2, 3, 4}), arg("size", List{3, 1})});
  bad_input("sum_to_size", "sum_to_size: [5] does not broadcast to the input [2, 3]", {input({2, 3}), arg("size", List{5})});
}

}  // namespace waymark::test
