// Cases of core/ops/pointwise.cpp and convert.cpp.
#include "tests/ops/op_case.h"

namespace waymark::test {

OP_CASES(pointwise_cases) {
  for (const char* op : {"square", "exp", "sin", "cos", "tanh", "sigmoid", "erf", "clone", "contiguous"}) {
    op_case(op, {input({3, 4})});
    op_case(op, {input({})});
    op_case(op, {input({2, 0, 3})});
  }
  for (const char* op : {"abs", "sign", "reciprocal"}) op_case(op, {input({3, 4}).away_from(0, 0.2)});
  for (const char* op : {"sqrt", "rsqrt", "log"}) op_case(op, {input({3, 4}).range(0.3, 4)});
  for (const char* op : {"floor", "ceil"}) op_case(op, {input({3, 4}).away_from(-1).away_from(0).away_from(1)});
  op_case("clamp", {input({3, 4}).away_from(-1).away_from(0.5), arg("min", -1.0), arg("max", 0.5)});
  op_case("clamp", {input({5}).away_from(0), arg("min", 0.0)});
  op_case("clamp", {input({5}).away_from(0), arg("max", 0.0)});
  bad_input("clamp", "clamp: at least one of min and max is needed", {input({2})});
  op_case("to", {input({3, 4}), arg("dtype", "f64")});
  op_case("to", {input({3}).no_grad(), arg("dtype", "i64")}).f64_only("truncation");
  bad_input("to", "to: the argument \"dtype\" is \"f16\"; dtypes are f32, f64, i64, b8", {input({2}), arg("dtype", "f16")});
  op_case("detach", {input({3})});
  for (const char* op : {"square", "exp", "sin", "cos", "tanh", "sigmoid", "erf", "clone", "contiguous", "reciprocal", "sqrt",
                         "rsqrt", "log", "detach"})
    bad_input(op, std::string(op) + ": the argument \"input\" (tensor) is missing", {});
  for (const char* op : {"abs", "sign", "floor", "ceil"})
    bad_input(op, std::string(op) + ": b8 is not supported; convert with to(...)", {mask("input", {2})});
}

}  // namespace waymark::test
