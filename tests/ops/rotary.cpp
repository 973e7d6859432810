// Cases of core/ops/rotary.cpp.
#include "tests/ops/op_case.h"

namespace waymark::test {

OP_CASES(rotary_cases) {
  for (const char* layout : {"interleaved", "halves"}) {
    op_case("rotate_pairs", {input({2, 3, 5}), tensor_arg("cos", {3, 2}).no_grad(), tensor_arg("sin", {3, 2}).no_grad(), arg("layout", layout)});
    op_case("rotate_pairs", {input({2, 2, 3, 4}), tensor_arg("cos", {2, 1, 3, 2}).no_grad(), tensor_arg("sin", {2, 1, 3, 2}).no_grad(),
                             arg("layout", layout)});
  }
  op_case("rotate_pairs", {input({0, 2}), tensor_arg("cos", {0, 1}).no_grad(), tensor_arg("sin", {0, 1}).no_grad()});
  op_case("rotate_pairs", {input({3, 4}), tensor_arg("cos", {3, 0}).no_grad(), tensor_arg("sin", {3, 0}).no_grad()});
  bad_input("rotate_pairs", "rotate_pairs: [2, 2] does not fit x [2, 3]: needs [..., 2, at most 1]",
            {input({2, 3}), tensor_arg("cos", {2, 2}).no_grad(), tensor_arg("sin", {2, 2}).no_grad()});
  bad_input("rotate_pairs", "rotate_pairs: cosines and sines are constants; detach() them",
            {input({2, 2}), tensor_arg("cos", {2, 1}), tensor_arg("sin", {2, 1}).no_grad()});
  bad_input("rotate_pairs", "rotate_pairs: the leading axes of [2, 2, 1] do not expand to those of x [3, 2, 2]",
            {input({3, 2, 2}), tensor_arg("cos", {2, 2, 1}).no_grad(), tensor_arg("sin", {2, 2, 1}).no_grad()});
  bad_input("rotate_pairs", "rotate_pairs: layout \"half\" is neither interleaved nor halves",
            {input({2, 2}), tensor_arg("cos", {2, 1}).no_grad(), tensor_arg("sin", {2, 1}).no_grad(), arg("layout", "half")});
}

}  // namespace waymark::test
