// Cases of core/ops/arithmetic.cpp, power.cpp, select.cpp.
#include "tests/ops/op_case.h"

namespace waymark::test {

OP_CASES(arithmetic_cases) {
  for (const char* op : {"add", "sub", "mul", "maximum", "minimum"}) {
    op_case(op, {input({3, 4}).apart(), other({3, 4}).range(-3, 3).apart()});
    op_case(op, {input({2, 3, 4}).range(0, 2), other({3, 1}).range(2.5, 4)});
    op_case(op, {input({}).range(0, 1), other({5}).range(2, 3)});
    op_case(op, {input({3, 0}), other({1, 1})});
    bad_input(op, std::string(op) + ": shapes do not broadcast: [2, 3] + [4, 5] (axis -1: 3 vs 5)", {input({2, 3}), other({4, 5})});
  }
  op_case("add", {input({3, 4}), other({4}), arg("alpha", -2.5)});
  op_case("sub", {input({3, 4}), other({4}), arg("alpha", 3)});
  op_case("add", {input({3}), arg("other", 2.5)});
  op_case("sub", {input({3}), arg("other", 2.5)});
  op_case("mul", {input({3}), arg("other", 2.5)});
  op_case("rsub", {input({2, 3}), arg("other", 1.5)});
  bad_input("rsub", "rsub: the argument \"other\" (number) is missing", {input({2})});
  bad_input("sub", "sub: b8 has no difference; use logical_xor or logical_not", {mask("input", {2}), mask("other", {2})});
  op_case("div", {input({3, 4}), other({4}).away_from(0, 0.3)});
  op_case("div", {input({3, 4}), arg("other", -1.5)});
  bad_input("div", "div: shapes do not broadcast: [2] + [3] (axis -1: 2 vs 3)", {input({2}), other({3})});
  op_case("neg", {input({2, 3, 4})});
  bad_input("neg", "neg: b8 has no sign; use logical_not", {mask("input", {2})});
  op_case("pow", {input({3, 4}).range(0.3, 2), tensor_arg("exponent", {4})});
  for (double e : {0.0, 1.0, 2.0, 3.0, 0.5, -1.0, -0.5, 1.7}) op_case("pow", {input({5}).range(0.3, 2), arg("exponent", e)});
  op_case("pow", {arg("input", 1.5), tensor_arg("exponent", {4})});
  bad_input("pow", "pow: an integer to the negative power -1 is no integer; convert with .to(kF32)",
            {indices("input", {3}, 5), arg("exponent", -1)});
}

OP_CASES(comparison_cases) {
  for (const char* op : {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"}) {
    op_case(op, {input({3, 4}), other({4})}).f64_only("a comparison of rounded values may differ");
    bad_input(op, std::string(op) + ": shapes do not broadcast: [2] + [3] (axis -1: 2 vs 3)", {input({2}), other({3})});
  }
  for (const char* op : {"logical_not", "isnan", "isfinite"}) {
    op_case(op, {input({3, 4})});
    bad_input(op, std::string(op) + ": the argument \"input\" (tensor) is missing", {});
  }
}

OP_CASES(select_cases) {
  op_case("where", {mask("condition", {3, 4}), input({3, 4}), other({4})});
  op_case("where", {mask("condition", {3, 1}), input({3, 4}), arg("other", 2.0)});
  op_case("where", {mask("condition", {4}), arg("input", -1.0), other({3, 4})});
  bad_input("where", "where: the condition must be b8, got f64; use to(kB8) or a comparison",
            {tensor_arg("condition", {2}), input({2}), other({2})});
  op_case("masked_fill", {input({3, 4}), mask("mask", {3, 4}), arg("value", 7.0)});
  op_case("masked_fill", {input({3, 4}), mask("mask", {4}), arg("value", -1)});
  bad_input("masked_fill", "masked_fill: the mask must be b8, got i64; use to(kB8) or a comparison",
            {input({2}), indices("mask", {2}, 2), arg("value", 1.0)});
}

}  // namespace waymark::test
