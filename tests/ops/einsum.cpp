// Cases of core/ops/einsum.cpp; V44, V45.
#include "core/engine/backward.h"
#include "core/kernels/gemm.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/einsum.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "tests/error_text.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(einsum_cases) {
  const auto run = [](const char* equation, std::initializer_list<Shape> shapes) {
    std::vector<CaseArg> args{arg("equation", equation)};
    int n = 0;
    for (const Shape& s : shapes) args.push_back(list_arg("operands", n++, s));
    op_case("einsum", std::move(args));
  };
  run("bhid,bhjd->bhij", {{2, 2, 3, 4}, {2, 2, 5, 4}});
  run("bii->bi", {{2, 4, 4}});
  run("ii", {{3, 3}});
  run("iji->j", {{3, 2, 3}});
  run("...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 2}});
  run("ba,c", {{2, 3}, {4}});
  run("bi,ij,bj->b", {{2, 3}, {3, 4}, {2, 4}});
  run("ij,ij->ij", {{1, 3}, {2, 3}});
  run("ij,jk->ki", {{2, 1}, {4, 3}});
  run("ij->", {{2, 3}});
  run("i,i->", {{0}, {0}});
  run("ij,jk->ik", {{2, 0}, {0, 3}});
  run(" B i , j -> j i B", {{2, 3}, {4}});
  run("...i->...", {{2, 3, 4}});
  run("a,b,c,abc->a", {{2}, {3}, {4}, {2, 3, 4}});
  const auto bad = [](const char* equation, const std::string& text, std::initializer_list<Shape> shapes) {
    std::vector<CaseArg> args{arg("equation", equation)};
    int n = 0;
    for (const Shape& s : shapes) args.push_back(list_arg("operands", n++, s));
    bad_input("einsum", "einsum: " + text, std::move(args));
  };
  bad("ij,jk->ik", "letter j has size 3 in operand 0, but 4 in operand 1", {{2, 3}, {4, 2}});
  bad("ij->ii", "output letter i appears twice in \"ij->ii\"", {{2, 3}});
  bad("ij->ik", "output letter k of \"ij->ik\" is in no operand", {{2, 3}});
  bad("ij,jk->ik", "the equation \"ij,jk->ik\" names 2 operands, got 1", {{2, 3}});
  bad("ij", "operand 0 has 3 axes ([2, 3, 4]), its term \"ij\" has 2", {{2, 3, 4}});
  bad("ijk...", "operand 0 has 2 axes ([2, 3]), its term \"ijk...\" has 3", {{2, 3}});
  bad("ii", "letter i has sizes 2 and 3 in operand 0", {{2, 3}});
  bad("i1->i", "'1' in the term \"i1\" is no letter and no ellipsis", {{2, 3}});

  const auto a = [](Shape s) { return tensor_arg("a", std::move(s)); };
  const auto b = [](Shape s) { return tensor_arg("b", std::move(s)); };
  op_case("tensordot", {a({2, 3, 4}), b({3, 4, 5})});
  op_case("tensordot", {a({2, 3}), b({4}), arg("dims", 0)});
  op_case("tensordot", {a({2, 3, 4, 5}), b({4, 3, 6}), arg("dims", Argument(std::vector<std::vector<i64>>{{2, 1}, {0, 1}}))});
  bad_input("tensordot", "tensordot: axis 1 of [2, 3] and axis 0 of [4, 5] differ (3 != 4)", {a({2, 3}), b({4, 5}), arg("dims", 1)});
  bad_input("tensordot", "tensordot: 3 axes cannot be paired in [2, 3] and [4, 5]", {a({2, 3}), b({4, 5}), arg("dims", 3)});
  op_case("kron", {input({2, 3}), other({4, 2})});
  op_case("kron", {input({2}), other({3, 2, 2})});
  op_case("kron", {input({}), other({3})});
  bad_input("kron", "kron: the argument \"other\" (tensor) is missing", {input({2})});
}

TEST_CASE("V44 V45 einsum: diagonals, implicit and broadcast letters") {
  Tensor m = leaf({2, 2}, {0, 1, 2, 3});
  const Tensor d = einsum("ii->i", {m});
  check_values(d, {0, 3});
  d.sum().backward();
  check_values(m.grad(), {1, 0, 0, 1});
  check_values(einsum("ii", {m}), {3});
  check_values(einsum("ij->", {ones({2, 3}, kF64)}), {6});
  CHECK(einsum("ba,c", {ones({2, 3}), ones({4})}).shape() == Shape{3, 2, 4});
  CHECK(einsum("ij,ij->ij", {ones({1, 3}), ones({2, 3})}).shape() == Shape{2, 3});
}

TEST_CASE("einsum agrees with plain sums, in every order of the letters") {
  const Tensor a = make_empty({2, 3, 4}, kF64), b = make_empty({4, 3, 5}, kF64);
  for (i64 i = 0; i < a.numel(); ++i) a.data<double>()[i] = std::sin(static_cast<double>(i));
  for (i64 i = 0; i < b.numel(); ++i) b.data<double>()[i] = std::cos(static_cast<double>(i));
  const Tensor y = einsum("bij,jik->kb", {a, b});
  for (i64 k = 0; k < 5; ++k)
    for (i64 n = 0; n < 2; ++n) {
      double sum = 0;
      for (i64 i = 0; i < 3; ++i)
        for (i64 j = 0; j < 4; ++j) sum += a.at<double>({n, i, j}) * b.at<double>({j, i, k});
      CHECK(y.at<double>({k, n}) == doctest::Approx(sum).epsilon(1e-13));
    }
}

TEST_CASE("einsum goes to one product, and contracts three operands by the smallest intermediate") {
  const Tensor q = ones({2, 2, 3, 4}), k = ones({2, 2, 5, 4});
  i64 before = kernels::gemm_calls();
  (void)einsum("bhid,bhjd->bhij", {q, k});
  CHECK(kernels::gemm_calls() - before == 1);
  // (1000) x (1000, 1000) x (1000): vector first, never the outer product of 10^6 elements with a matrix.
  const Tensor u = ones({300}), m = ones({300, 300}), v = ones({300});
  reset_peak();
  const i64 live = memory_counters().bytes_live;
  check_values(einsum("i,j,ij->", {u, v, m}), {90000});
  CHECK(memory_counters().bytes_peak - live < 100000);
}

TEST_CASE("kron and tensordot of small matrices") {
  check_values(kron(make<double>({1, 2}, {1, 2}), make<double>({2, 1}, {3, 4})), {3, 6, 4, 8});
  check_values(tensordot(make<double>({2, 2}, {1, 2, 3, 4}), make<double>({2, 2}, {1, 1, 1, 1}), 2), {10});
}

}  // namespace waymark::test
