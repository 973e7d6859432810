// Cases of core/ops/attention.cpp; D27.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/attention.h"
#include "core/ops/create.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/random/generator.h"
#include "tests/ops/op_case.h"
#include "tests/ops/values.h"

namespace waymark::test {

OP_CASES(attention_cases) {
  const auto q = [](Shape s) { return tensor_arg("query", std::move(s)); };
  const auto k = [](Shape s) { return tensor_arg("key", std::move(s)); };
  const auto v = [](Shape s) { return tensor_arg("value", std::move(s)); };
  constexpr const char* op = "scaled_dot_product_attention";
  op_case(op, {q({2, 3, 4, 5}), k({2, 3, 6, 5}), v({2, 3, 6, 2})});
  op_case(op, {q({4, 5}), k({6, 5}), v({6, 2}), arg("scale", 0.7)});
  op_case(op, {q({2, 3, 4}), k({2, 3, 4}), v({2, 3, 4}), arg("is_causal", Argument(true))});
  op_case(op, {q({2, 2, 3, 4}), k({2, 2, 5, 4}), v({2, 2, 5, 3}), mask("attn_mask", {2, 1, 3, 5})});
  op_case(op, {q({2, 2, 3, 4}), k({2, 2, 5, 4}), v({2, 2, 5, 3}), tensor_arg("attn_mask", {2, 3, 5})});
  op_case(op, {q({2, 4, 3, 4}), k({2, 2, 5, 4}), v({2, 2, 5, 3}), arg("enable_gqa", Argument(true)), mask("attn_mask", {3, 5})});
  op_case(op, {q({2, 4, 3, 4}), k({2, 1, 3, 4}), v({2, 1, 3, 3}), arg("enable_gqa", Argument(true)), arg("is_causal", Argument(true))});
  op_case(op, {q({2, 2, 3, 4}), k({2, 2, 0, 4}), v({2, 2, 0, 3})});
  op_case(op, {q({2, 0, 3, 4}), k({2, 0, 5, 4}), v({2, 0, 5, 3})});
  op_case(op, {q({2, 3, 0, 4}), k({2, 3, 5, 4}), v({2, 3, 5, 3})});
  const std::string at = std::string(op) + ": ";
  bad_input(op, at + "the widths of query and key differ: [4, 5] and [6, 4] (5 != 4)", {q({4, 5}), k({6, 4}), v({6, 2})});
  bad_input(op, at + "the lengths of key and value differ: [6, 5] and [7, 2] (6 != 7)", {q({4, 5}), k({6, 5}), v({7, 2})});
  bad_input(op, at + "query, key and value need the same number of axes, at least 2; got [4, 5], [1, 6, 5], [6, 2]", {q({4, 5}), k({1, 6, 5}), v({6, 2})});
  bad_input(op, at + "the leading axes of query [4, 3, 5], key [2, 6, 5] and value [2, 6, 2] do not match; for fewer heads of key and value pass enable_gqa",
            {q({4, 3, 5}), k({2, 6, 5}), v({2, 6, 2})});
  bad_input(op, at + "the leading axes of query [4, 3, 5], key [3, 6, 5] and value [3, 6, 2] do not match: the heads of key and value must be equal and divide those of query",
            {q({4, 3, 5}), k({3, 6, 5}), v({3, 6, 2}), arg("enable_gqa", Argument(true))});
  bad_input(op, at + "attn_mask [3] does not expand to the scores [4, 6]", {q({4, 5}), k({6, 5}), v({6, 2}), mask("attn_mask", {3})});
  bad_input(op, at + "attn_mask must be b8 (true: may attend) or float (added to the scores), got i64", {q({4, 5}), k({6, 5}), v({6, 2}), indices("attn_mask", {6}, 2)});
  bad_input(op, at + "attn_mask and is_causal exclude each other; put the causal part into the mask",
            {q({4, 5}), k({6, 5}), v({6, 2}), mask("attn_mask", {6}), arg("is_causal", Argument(true))});
  bad_input(op, at + "dropout_p = 1.5 is outside [0, 1]", {q({4, 5}), k({6, 5}), v({6, 2}), arg("dropout_p", 1.5)});
  bad_input(op, at + "dtypes differ: f64 x f32; convert one with to(...)", {q({4, 5}), arg("key", Argument(make_empty({6, 5}, kF32))), v({6, 2})});
}

namespace {

Tensor waves(const Shape& shape, double first) { return counted(shape, first, 0.9).requires_grad_(); }

}  // namespace

TEST_CASE("D27 queries without keys: value 0, gradient 0, for masks of both kinds") {
  for (const bool bias : {false, true}) {
    Tensor q = waves({1, 2, 3}, 1), k = waves({1, 2, 3}, 2), v = waves({1, 2, 2}, 3);
    Tensor m = bias ? leaf({2, 2}, {-kInf, -kInf, 0.5, -kInf}) : make<bool>({2, 2}, {false, false, true, false});
    const Tensor y = scaled_dot_product_attention(q, k, v, m);
    const auto rows = y.to_vector<double>(), first = v.to_vector<double>();
    CHECK(rows[0] == 0);
    CHECK(rows[1] == 0);
    CHECK(rows[2] == doctest::Approx(first[0]));
    y.sum().backward();
    for (size_t i = 0; i < 3; ++i) CHECK(q.grad().to_vector<double>()[i] == 0);
    for (const Tensor& t : {q, k, v})
      for (const double g : t.grad().to_vector<double>()) CHECK(std::isfinite(g));
    if (bias) check_values(m.grad(), {0, 0, 0, 0});
  }
}

TEST_CASE("the result of attention lies in memory by tokens: merging the heads is a view") {
  const Tensor y = scaled_dot_product_attention(waves({2, 3, 4, 5}, 1), waves({2, 3, 6, 5}, 2), waves({2, 3, 6, 7}, 3));
  CHECK(y.shape() == Shape{2, 3, 4, 7});
  CHECK(y.transpose(1, 2).is_contiguous());
  CHECK(y.transpose(1, 2).view({2, 4, 21}).shape() == Shape{2, 4, 21});
}

TEST_CASE("grouped heads read the key head h·H_kv/H") {
  const Tensor q = waves({2, 6, 3, 4}, 1), k = waves({2, 2, 5, 4}, 2), v = waves({2, 2, 5, 3}, 3);
  const auto repeated = [](const Tensor& t) {
    const Shape &s = t.shape();
    return reshape(expand(unsqueeze(t, 2), {s[0], s[1], 3, s[2], s[3]}), {s[0], 6, s[2], s[3]});
  };
  const Tensor grouped = scaled_dot_product_attention(q, k, v, {}, 0, false, {}, true);
  const Tensor full = scaled_dot_product_attention(q, repeated(k), repeated(v));
  CHECK(largest_difference(grouped, full) < 1e-14);
  const GradMap a = grad(grouped.square().sum(), {q, k, v}), b = grad(full.square().sum(), {q, k, v});
  for (const Tensor& t : {q, k, v}) CHECK(largest_difference(a[t], b[t]) < 1e-13);
}

TEST_CASE("attention with dropout is the composition of its parts, with the draw of the scope") {
  const Tensor q = waves({2, 2, 3, 4}, 1), k = waves({2, 2, 5, 4}, 2), v = waves({2, 2, 5, 3}, 3);
  const Scope scope("encoder.attention");
  const RandomScope random(7);
  const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0.4);
  CHECK(current_generator().count("encoder.attention.dropout") == 1);
  const RandomScope again(7);
  const Tensor kept = scaled_dot_product_attention(q, k, eye(5).to(kF64).expand({2, 2, 5, 5}), {}, 0.4);  // the weights
  CHECK(largest_difference(y, matmul(kept, v)) < 1e-14);
  i64 zeros = 0;
  for (const double w : kept.to_vector<double>()) zeros += w == 0;
  CHECK(zeros > 10);
  CHECK(zeros < 40);
}

}  // namespace waymark::test
