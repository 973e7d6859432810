// Every method that a tensor declares is defined: a declaration alone would be a link error in a user's program.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <iterator>
#include <regex>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/extremes.h"
#include "core/ops/functions.h"
#include "core/ops/inplace.h"
#include "core/ops/order.h"
#include "core/ops/pointwise.h"
#include "tests/ops/expect.h"

namespace waymark::test {
namespace {

struct Method {
  std::string name;
  std::array<std::byte, 16> address;  // read from the object file: the linker must find the definition
};
template <class F> Method method(const char* name, F f) {
  static_assert(sizeof(F) <= 16);
  Method m{name, {}};
  std::memcpy(m.address.data(), &f, sizeof(F));
  return m;
}
#define METHOD(NAME, RESULT, ARGUMENTS) method(#NAME, static_cast<RESULT(Tensor::*) ARGUMENTS const>(&Tensor::NAME)),

std::vector<Method> methods() {
  return {
    METHOD(add, Tensor, (const Tensor&, Scalar, Loc))
    METHOD(sub, Tensor, (const Tensor&, Scalar, Loc))
    METHOD(mul, Tensor, (const Tensor&, Loc))
    METHOD(div, Tensor, (const Tensor&, Loc))
    METHOD(add, Tensor, (Scalar, Scalar, Loc))
    METHOD(sub, Tensor, (Scalar, Scalar, Loc))
    METHOD(mul, Tensor, (Scalar, Loc))
    METHOD(div, Tensor, (Scalar, Loc))
    METHOD(neg, Tensor, (Loc))
    METHOD(pow, Tensor, (Scalar, Loc))
    METHOD(masked_fill, Tensor, (const Tensor&, Scalar, Loc))
    METHOD(abs, Tensor, (Loc))
    METHOD(square, Tensor, (Loc))
    METHOD(sqrt, Tensor, (Loc))
    METHOD(rsqrt, Tensor, (Loc))
    METHOD(exp, Tensor, (Loc))
    METHOD(log, Tensor, (Loc))
    METHOD(sin, Tensor, (Loc))
    METHOD(cos, Tensor, (Loc))
    METHOD(tanh, Tensor, (Loc))
    METHOD(sigmoid, Tensor, (Loc))
    METHOD(clamp, Tensor, (std::optional<Scalar>, std::optional<Scalar>, Loc))
    METHOD(matmul, Tensor, (const Tensor&, Loc))
    METHOD(mm, Tensor, (const Tensor&, Loc))
    METHOD(bmm, Tensor, (const Tensor&, Loc))
    METHOD(mv, Tensor, (const Tensor&, Loc))
    METHOD(dot, Tensor, (const Tensor&, Loc))
    METHOD(outer, Tensor, (const Tensor&, Loc))
    METHOD(addmm, Tensor, (const Tensor&, const Tensor&, Scalar, Scalar, Loc))
    METHOD(kron, Tensor, (const Tensor&, Loc))
    METHOD(baddbmm, Tensor, (const Tensor&, const Tensor&, Scalar, Scalar, Loc))
    METHOD(to, Tensor, (DType, Loc))
    METHOD(clone, Tensor, (Loc))
    METHOD(contiguous, Tensor, (Loc))
    METHOD(detach, Tensor, (Loc))
    METHOD(sum, Tensor, (Dims, bool, Loc))
    METHOD(mean, Tensor, (Dims, bool, Loc))
    METHOD(view, Tensor, (const Shape&, Loc))
    METHOD(reshape, Tensor, (const Shape&, Loc))
    METHOD(flatten, Tensor, (i64, i64, Loc))
    METHOD(permute, Tensor, (const std::vector<i64>&, Loc))
    METHOD(transpose, Tensor, (i64, i64, Loc))
    METHOD(mT, Tensor, (Loc))
    METHOD(squeeze, Tensor, (Dims, Loc))
    METHOD(unsqueeze, Tensor, (i64, Loc))
    METHOD(expand, Tensor, (const Shape&, Loc))
    METHOD(slice, Tensor, (i64, i64, i64, i64, Loc))
    METHOD(narrow, Tensor, (i64, i64, i64, Loc))
    METHOD(select, Tensor, (i64, i64, Loc))
    METHOD(operator[], Tensor, (Position))
    METHOD(add_, const Tensor&, (const Tensor&, Scalar, Loc))
    METHOD(sub_, const Tensor&, (const Tensor&, Scalar, Loc))
    METHOD(mul_, const Tensor&, (const Tensor&, Loc))
    METHOD(div_, const Tensor&, (const Tensor&, Loc))
    METHOD(add_, const Tensor&, (Scalar, Loc))
    METHOD(sub_, const Tensor&, (Scalar, Loc))
    METHOD(mul_, const Tensor&, (Scalar, Loc))
    METHOD(div_, const Tensor&, (Scalar, Loc))
    METHOD(fill_, const Tensor&, (Scalar, Loc))
    METHOD(zero_, const Tensor&, (Loc))
    METHOD(copy_, const Tensor&, (const Tensor&, Loc))
    METHOD(new_empty, Tensor, (const Shape&, std::optional<DType>))
    METHOD(new_zeros, Tensor, (const Shape&, std::optional<DType>))
    METHOD(new_ones, Tensor, (const Shape&, std::optional<DType>))
    METHOD(new_full, Tensor, (const Shape&, Scalar, std::optional<DType>))
    METHOD(bernoulli, Tensor, (std::optional<double>, Loc))
    METHOD(multinomial, Tensor, (i64, bool, Loc))
    METHOD(uniform_, const Tensor&, (double, double, std::string_view, Loc))
    METHOD(normal_, const Tensor&, (double, double, std::string_view, Loc))
    METHOD(bernoulli_, const Tensor&, (double, std::string_view, Loc))
    METHOD(exponential_, const Tensor&, (double, std::string_view, Loc))
    METHOD(softmax, Tensor, (i64, std::optional<DType>, Loc))
    METHOD(log_softmax, Tensor, (i64, std::optional<DType>, Loc))
    METHOD(relu, Tensor, (Loc))
    METHOD(logsigmoid, Tensor, (Loc))
    METHOD(pow, Tensor, (const Tensor&, Loc))
    METHOD(div, Tensor, (const Tensor&, std::string_view, Loc))
    METHOD(div, Tensor, (Scalar, std::string_view, Loc))
    METHOD(remainder, Tensor, (const Tensor&, Loc))
    METHOD(remainder, Tensor, (Scalar, Loc))
    METHOD(fmod, Tensor, (const Tensor&, Loc))
    METHOD(fmod, Tensor, (Scalar, Loc))
    METHOD(floor_divide, Tensor, (const Tensor&, Loc))
    METHOD(floor_divide, Tensor, (Scalar, Loc))
    METHOD(maximum, Tensor, (const Tensor&, Loc))
    METHOD(minimum, Tensor, (const Tensor&, Loc))
    METHOD(fmax, Tensor, (const Tensor&, Loc))
    METHOD(fmin, Tensor, (const Tensor&, Loc))
    METHOD(atan2, Tensor, (const Tensor&, Loc))
    METHOD(hypot, Tensor, (const Tensor&, Loc))
    METHOD(logaddexp, Tensor, (const Tensor&, Loc))
    METHOD(xlogy, Tensor, (const Tensor&, Loc))
    METHOD(xlogy, Tensor, (Scalar, Loc))
    METHOD(copysign, Tensor, (const Tensor&, Loc))
    METHOD(eq, Tensor, (const Tensor&, Loc))
    METHOD(eq, Tensor, (Scalar, Loc))
    METHOD(ne, Tensor, (const Tensor&, Loc))
    METHOD(ne, Tensor, (Scalar, Loc))
    METHOD(lt, Tensor, (const Tensor&, Loc))
    METHOD(lt, Tensor, (Scalar, Loc))
    METHOD(le, Tensor, (const Tensor&, Loc))
    METHOD(le, Tensor, (Scalar, Loc))
    METHOD(gt, Tensor, (const Tensor&, Loc))
    METHOD(gt, Tensor, (Scalar, Loc))
    METHOD(ge, Tensor, (const Tensor&, Loc))
    METHOD(ge, Tensor, (Scalar, Loc))
    METHOD(logical_and, Tensor, (const Tensor&, Loc))
    METHOD(logical_or, Tensor, (const Tensor&, Loc))
    METHOD(logical_xor, Tensor, (const Tensor&, Loc))
    METHOD(bitwise_and, Tensor, (const Tensor&, Loc))
    METHOD(bitwise_or, Tensor, (const Tensor&, Loc))
    METHOD(bitwise_xor, Tensor, (const Tensor&, Loc))
    METHOD(bitwise_and, Tensor, (Scalar, Loc))
    METHOD(bitwise_or, Tensor, (Scalar, Loc))
    METHOD(bitwise_xor, Tensor, (Scalar, Loc))
    METHOD(heaviside, Tensor, (const Tensor&, Loc))
    METHOD(lerp, Tensor, (const Tensor&, const Tensor&, Loc))
    METHOD(lerp, Tensor, (const Tensor&, Scalar, Loc))
    METHOD(addcmul, Tensor, (const Tensor&, const Tensor&, Scalar, Loc))
    METHOD(addcdiv, Tensor, (const Tensor&, const Tensor&, Scalar, Loc))
    METHOD(clamp, Tensor, (const Tensor&, const Tensor&, Loc))
    METHOD(where, Tensor, (const Tensor&, const Tensor&, Loc))
    METHOD(where, Tensor, (const Tensor&, Scalar, Loc))
    METHOD(masked_fill, Tensor, (const Tensor&, const Tensor&, Loc))
    METHOD(isclose, Tensor, (const Tensor&, double, double, bool, Loc))
    METHOD(allclose, bool, (const Tensor&, double, double, bool, Loc))
    METHOD(equal, bool, (const Tensor&, Loc))
    METHOD(positive, Tensor, (Loc))
    METHOD(prelu, Tensor, (const Tensor&, Loc))
    METHOD(reciprocal, Tensor, (Loc))
    METHOD(erf, Tensor, (Loc))
    METHOD(erfc, Tensor, (Loc))
    METHOD(erfinv, Tensor, (Loc))
    METHOD(sign, Tensor, (Loc))
    METHOD(floor, Tensor, (Loc))
    METHOD(ceil, Tensor, (Loc))
    METHOD(trunc, Tensor, (Loc))
    METHOD(frac, Tensor, (Loc))
    METHOD(exp2, Tensor, (Loc))
    METHOD(expm1, Tensor, (Loc))
    METHOD(log2, Tensor, (Loc))
    METHOD(log10, Tensor, (Loc))
    METHOD(log1p, Tensor, (Loc))
    METHOD(tan, Tensor, (Loc))
    METHOD(asin, Tensor, (Loc))
    METHOD(acos, Tensor, (Loc))
    METHOD(atan, Tensor, (Loc))
    METHOD(sinh, Tensor, (Loc))
    METHOD(cosh, Tensor, (Loc))
    METHOD(asinh, Tensor, (Loc))
    METHOD(acosh, Tensor, (Loc))
    METHOD(atanh, Tensor, (Loc))
    METHOD(isnan, Tensor, (Loc))
    METHOD(isinf, Tensor, (Loc))
    METHOD(isfinite, Tensor, (Loc))
    METHOD(isposinf, Tensor, (Loc))
    METHOD(isneginf, Tensor, (Loc))
    METHOD(signbit, Tensor, (Loc))
    METHOD(logical_not, Tensor, (Loc))
    METHOD(bitwise_not, Tensor, (Loc))
    METHOD(round, Tensor, (i64, Loc))
    METHOD(logit, Tensor, (std::optional<double>, Loc))
    METHOD(nan_to_num, Tensor, (double, std::optional<double>, std::optional<double>, Loc))
    METHOD(nansum, Tensor, (Dims, bool, Loc))
    METHOD(nanmean, Tensor, (Dims, bool, Loc))
    METHOD(prod, Tensor, (Loc))
    METHOD(prod, Tensor, (i64, bool, Loc))
    METHOD(var, Tensor, (Dims, i64, bool, Loc))
    METHOD(std, Tensor, (Dims, i64, bool, Loc))
    METHOD(norm, Tensor, (Scalar, Dims, bool, Loc))
    METHOD(amax, Tensor, (Dims, bool, Loc))
    METHOD(amin, Tensor, (Dims, bool, Loc))
    METHOD(max, Tensor, (Loc))
    METHOD(max, ValuesIndices, (i64, bool, Loc))
    METHOD(min, Tensor, (Loc))
    METHOD(min, ValuesIndices, (i64, bool, Loc))
    METHOD(max, Tensor, (const Tensor&, Loc))
    METHOD(min, Tensor, (const Tensor&, Loc))
    METHOD(aminmax, MinMax, (std::optional<i64>, bool, Loc))
    METHOD(median, Tensor, (Loc))
    METHOD(median, ValuesIndices, (i64, bool, Loc))
    METHOD(nanmedian, Tensor, (Loc))
    METHOD(nanmedian, ValuesIndices, (i64, bool, Loc))
    METHOD(argmax, Tensor, (std::optional<i64>, bool, Loc))
    METHOD(argmin, Tensor, (std::optional<i64>, bool, Loc))
    METHOD(kthvalue, ValuesIndices, (i64, i64, bool, Loc))
    METHOD(quantile, Tensor, (double, std::optional<i64>, bool, Loc))
    METHOD(quantile, Tensor, (const std::vector<double>&, std::optional<i64>, bool, Loc))
    METHOD(logsumexp, Tensor, (Dims, bool, Loc))
    METHOD(all, Tensor, (Dims, bool, Loc))
    METHOD(any, Tensor, (Dims, bool, Loc))
    METHOD(count_nonzero, Tensor, (Dims, Loc))
    METHOD(bincount, Tensor, (i64, Loc))
    METHOD(bincount, Tensor, (const Tensor&, i64, Loc))
    METHOD(histc, Tensor, (i64, double, double, Loc))
    METHOD(unique, Unique, (bool, bool, bool, Loc))
    METHOD(sum_to_size, Tensor, (const Shape&, Loc))
    METHOD(cumsum, Tensor, (i64, Loc))
    METHOD(cumprod, Tensor, (i64, Loc))
    METHOD(logcumsumexp, Tensor, (i64, Loc))
    METHOD(cummax, ValuesIndices, (i64, Loc))
    METHOD(cummin, ValuesIndices, (i64, Loc))
    METHOD(diff, Tensor, (i64, i64, Loc))
    METHOD(sort, ValuesIndices, (i64, bool, Loc))
    METHOD(argsort, Tensor, (i64, bool, Loc))
    METHOD(topk, ValuesIndices, (i64, i64, bool, bool, Loc))
    METHOD(unflatten, Tensor, (i64, const Shape&, Loc))
    METHOD(ravel, Tensor, (Loc))
    METHOD(t, Tensor, (Loc))
    METHOD(movedim, Tensor, (i64, i64, Loc))
    METHOD(movedim, Tensor, (const std::vector<i64>&, const std::vector<i64>&, Loc))
    METHOD(swapaxes, Tensor, (i64, i64, Loc))
    METHOD(expand_as, Tensor, (const Tensor&, Loc))
    METHOD(broadcast_to, Tensor, (const Shape&, Loc))
    METHOD(repeat, Tensor, (const Shape&, Loc))
    METHOD(tile, Tensor, (const Shape&, Loc))
    METHOD(repeat_interleave, Tensor, (i64, std::optional<i64>, Loc))
    METHOD(repeat_interleave, Tensor, (const Tensor&, std::optional<i64>, Loc))
    METHOD(split, std::vector<Tensor>, (i64, i64, Loc))
    METHOD(split, std::vector<Tensor>, (const std::vector<i64>&, i64, Loc))
    METHOD(chunk, std::vector<Tensor>, (i64, i64, Loc))
    METHOD(tensor_split, std::vector<Tensor>, (i64, i64, Loc))
    METHOD(tensor_split, std::vector<Tensor>, (const std::vector<i64>&, i64, Loc))
    METHOD(unbind, std::vector<Tensor>, (i64, Loc))
    METHOD(roll, Tensor, (const std::vector<i64>&, const std::vector<i64>&, Loc))
    METHOD(flip, Tensor, (const std::vector<i64>&, Loc))
    METHOD(rot90, Tensor, (i64, const std::vector<i64>&, Loc))
    METHOD(tril, Tensor, (i64, Loc))
    METHOD(triu, Tensor, (i64, Loc))
    METHOD(diag, Tensor, (i64, Loc))
    METHOD(diagonal, Tensor, (i64, i64, i64, Loc))
    METHOD(diag_embed, Tensor, (i64, i64, i64, Loc))
    METHOD(trace, Tensor, (Loc))
    METHOD(unfold, Tensor, (i64, i64, i64, Loc))
    METHOD(as_strided, Tensor, (const Shape&, const Shape&, std::optional<i64>, Loc))
    METHOD(index, Tensor, (const std::vector<IndexItem>&, Loc))
    METHOD(index_select, Tensor, (i64, const Tensor&, Loc))
    METHOD(gather, Tensor, (i64, const Tensor&, Loc))
    METHOD(take, Tensor, (const Tensor&, Loc))
    METHOD(take_along_dim, Tensor, (const Tensor&, std::optional<i64>, Loc))
    METHOD(masked_select, Tensor, (const Tensor&, Loc))
    METHOD(nonzero, Tensor, (Loc))
    METHOD(argwhere, Tensor, (Loc))
    METHOD(scatter, Tensor, (i64, const Tensor&, const Tensor&, Loc))
    METHOD(scatter, Tensor, (i64, const Tensor&, Scalar, Loc))
    METHOD(scatter_add, Tensor, (i64, const Tensor&, const Tensor&, Loc))
    METHOD(scatter_reduce, Tensor, (i64, const Tensor&, const Tensor&, std::string_view, bool, Loc))
    METHOD(index_add, Tensor, (i64, const Tensor&, const Tensor&, Scalar, Loc))
    METHOD(index_copy, Tensor, (i64, const Tensor&, const Tensor&, Loc))
    METHOD(index_fill, Tensor, (i64, const Tensor&, Scalar, Loc))
    METHOD(index_fill, Tensor, (i64, const Tensor&, const Tensor&, Loc))
    METHOD(index_put, Tensor, (const std::vector<IndexItem>&, const Tensor&, bool, Loc))
    METHOD(masked_scatter, Tensor, (const Tensor&, const Tensor&, Loc))
    METHOD(neg_, const Tensor&, (Loc))
    METHOD(exp_, const Tensor&, (Loc))
    METHOD(sqrt_, const Tensor&, (Loc))
    METHOD(relu_, const Tensor&, (Loc))
    METHOD(tanh_, const Tensor&, (Loc))
    METHOD(sigmoid_, const Tensor&, (Loc))
    METHOD(detach_, const Tensor&, (Loc))
    METHOD(pow_, const Tensor&, (Scalar, Loc))
    METHOD(pow_, const Tensor&, (const Tensor&, Loc))
    METHOD(div_, const Tensor&, (const Tensor&, std::string_view, Loc))
    METHOD(div_, const Tensor&, (Scalar, std::string_view, Loc))
    METHOD(clamp_, const Tensor&, (const Tensor&, const Tensor&, Loc))
    METHOD(clamp_, const Tensor&, (std::optional<Scalar>, std::optional<Scalar>, Loc))
    METHOD(masked_fill_, const Tensor&, (const Tensor&, Scalar, Loc))
    METHOD(masked_fill_, const Tensor&, (const Tensor&, const Tensor&, Loc))
    METHOD(lerp_, const Tensor&, (const Tensor&, const Tensor&, Loc))
    METHOD(lerp_, const Tensor&, (const Tensor&, Scalar, Loc))
    METHOD(addcmul_, const Tensor&, (const Tensor&, const Tensor&, Scalar, Loc))
    METHOD(addcdiv_, const Tensor&, (const Tensor&, const Tensor&, Scalar, Loc))
    METHOD(index_put_, const Tensor&, (const std::vector<IndexItem>&, const Tensor&, bool, Loc))
    METHOD(index_add_, const Tensor&, (i64, const Tensor&, const Tensor&, Scalar, Loc))
    METHOD(index_copy_, const Tensor&, (i64, const Tensor&, const Tensor&, Loc))
    METHOD(index_fill_, const Tensor&, (i64, const Tensor&, Scalar, Loc))
    METHOD(index_fill_, const Tensor&, (i64, const Tensor&, const Tensor&, Loc))
    METHOD(scatter_, const Tensor&, (i64, const Tensor&, const Tensor&, Loc))
    METHOD(scatter_, const Tensor&, (i64, const Tensor&, Scalar, Loc))
    METHOD(scatter_add_, const Tensor&, (i64, const Tensor&, const Tensor&, Loc))
  };
}

// The names that core/tensor/methods.inc declares, one for each overload.
std::vector<std::string> declared() {
  std::ifstream in(std::string(WAYMARK_SOURCE_DIR) + "/core/tensor/methods.inc");
  std::string text(std::istreambuf_iterator<char>(in), {});
  text = std::regex_replace(text, std::regex("//[^\n]*"), "");
  std::vector<std::string> names;
  const std::regex head(R"((?:^|;)\s*(?:\[\[nodiscard\]\] )?[\w:<>&]+(?: [\w:<>&]+)? (operator\[\]|\w+)\()");
  for (std::sregex_iterator it(text.begin(), text.end(), head), end; it != end; ++it) names.push_back((*it)[1]);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("every declared method of a tensor is defined") {
  std::vector<std::string> names;
  size_t without = 0;
  for (const Method& m : methods()) {
    names.push_back(m.name);
    without += std::all_of(m.address.begin(), m.address.end(), [](std::byte b) { return b == std::byte{}; });
  }
  CHECK(without == 0);
  std::sort(names.begin(), names.end());
  CHECK(names == declared());
}

TEST_CASE("an element cannot be assigned, a variable can") {
  static_assert(!std::is_assignable_v<Tensor, const Tensor&> && !std::is_assignable_v<Tensor, Tensor>);
  static_assert(std::is_assignable_v<Tensor&, const Tensor&> && std::is_assignable_v<Tensor&, Tensor>);
  static_assert(std::is_nothrow_move_constructible_v<Tensor> && std::is_nothrow_move_assignable_v<Tensor>);
  const Tensor x = f64({{1, 2}, {3, 4}});
  x[0] += f64({10, 20});
  x[1] *= 2;
  x[0][1].copy_(f64(7));
  CHECK_VALUES(x, {11, 7, 6, 8});
  x.index_put_({1, Slice(0, 1)}, f64(-1));
  CHECK_VALUES(x, {11, 7, -1, 8});
}

TEST_CASE("operators with numbers on either side") {
  const Tensor x = leaf({1, 2, 4});
  CHECK_VALUES(1 + x, {2, 3, 5});
  CHECK_VALUES(1 - x, {0, -1, -3});
  CHECK_VALUES(2 * x, {2, 4, 8});
  CHECK_VALUES(4 / x, {4, 2, 1});
  CHECK_VALUES(2 < x, {0, 0, 1});
  CHECK_VALUES(2 <= x, {0, 1, 1});
  CHECK_VALUES(2 > x, {1, 0, 0});
  CHECK_VALUES(2 >= x, {1, 1, 0});
  CHECK_VALUES(2 == x, {0, 1, 0});
  CHECK_VALUES(2 != x, {1, 0, 1});
  const Tensor y = x * 1;
  y += 1;
  y -= 0.5;
  y *= 4;
  y /= 2;
  CHECK_VALUES(y, {3, 5, 9});
  backward_of(y);
  CHECK_VALUES(x.grad(), {2, 2, 2});
  CHECK_VALUES(x.detach() % 3, {1, 2, 1});
  CHECK_VALUES(-x.detach(), {-1, -2, -4});
  const Tensor i = tensor({6, 5});
  CHECK_VALUES(i & 3, {2, 1});
  CHECK_VALUES(i | 3, {7, 7});
  CHECK_VALUES(i ^ 3, {5, 6});
  CHECK_VALUES(~i, {-7, -6});
  CHECK_VALUES(i & tensor({4, 4}), {4, 4});
  CHECK_VALUES(i | tensor({1, 2}), {7, 7});
  CHECK_VALUES(i ^ tensor({6, 0}), {0, 5});
  CHECK_VALUES(i % tensor({4, -4}), {2, -3});
  CHECK((i & 3).dtype() == kI64);
  CHECK((tensor({true}) & tensor({false})).dtype() == kB8);
}

TEST_CASE("scalars stay scalars: no tensor is made of them, and none is saved") {
  const Tensor x = f64({1, -2, 4}), m = tensor({true, false, true});
  struct Watcher final : Observer {
    void on_op(const ForwardEvent& e) override { inputs = std::max(inputs, e.inputs.size()); }
    void before_write(const Tensor&) override {}
    void on_rule(const Node&, std::span<const Tensor>, const Grads&) override {}
    size_t inputs = 0;
  } watcher;
  const auto tensors = [&](auto f) {
    const i64 before = TensorImpl::live();
    const Tensor y = f();
    const i64 made = TensorImpl::live() - before;
    watcher.inputs = 0;
    thread_state().observer = &watcher;
    static_cast<void>(f());
    thread_state().observer = nullptr;
    return made * 10 + static_cast<i64>(watcher.inputs);
  };
  CHECK(tensors([&] { return x + 2; }) == 11);
  CHECK(tensors([&] { return 2 - x; }) == 11);
  CHECK(tensors([&] { return x * 2.5; }) == 11);
  CHECK(tensors([&] { return x / 2.5; }) == 11);
  CHECK(tensors([&] { return x % 2; }) == 11);
  CHECK(tensors([&] { return pow(x, 3); }) == 11);
  CHECK(tensors([&] { return fmod(x, 3); }) == 11);
  CHECK(tensors([&] { return div(x, 3, "floor"); }) == 11);
  CHECK(tensors([&] { return floor_divide(x, 3); }) == 11);
  CHECK(tensors([&] { return xlogy(x, 3); }) == 11);
  CHECK(tensors([&] { return x > 1; }) == 11);
  CHECK(tensors([&] { return clamp(x, -1, 1); }) == 11);
  CHECK(tensors([&] { return where(m, x, 0); }) == 12);
  CHECK(tensors([&] { return where(m, 0, 1.5); }) == 11);
  CHECK(tensors([&] { return masked_fill(x, m, -1); }) == 12);
  CHECK(tensors([&] { return x.add(2, 3); }) == 11);
}

TEST_CASE("forms with numbers equal those with tensors") {
  const Tensor x = f64({0.5, -2, 3}), two = f64(2), i = tensor({7, -7});
  CHECK_VALUES(x.add(2, 3), {6.5, 4, 9});
  CHECK_VALUES(x.sub(2, 3), {-5.5, -8, -3});
  CHECK_VALUES(x.mul(2), {1, -4, 6});
  CHECK_VALUES(x.div(2), {0.25, -1, 1.5});
  CHECK_VALUES(i.div(2, "floor"), {3, -4});
  CHECK_VALUES(i.div(2, "trunc"), {3, -3});
  CHECK(i.div(2, "trunc").dtype() == kI64);
  CHECK_ERROR(i.add(2, 0.5), "add: alpha is a float, but the result is i64");
  CHECK(equal(xlogy(x.abs(), 2), xlogy(x.abs(), two)));
  CHECK(equal(xlogy(2, x.abs()), xlogy(two, x.abs())));
  const Tensor a = leaf({0, 0.5}), b = leaf({1, 2});
  backward_of(xlogy(a, 0));
  CHECK_VALUES(a.grad(), {0, -kInf});
  backward_of(xlogy(3, b));
  CHECK_VALUES(b.grad(), {3, 1.5});
  CHECK_VALUES(where(tensor({true, false}), 1, 2.5), {1, 2.5});
  CHECK(where(tensor({true}), 1, 2).dtype() == kI64);
  CHECK(where(tensor({true}), 1, 2.5).dtype() == kF32);
  CHECK(where(tensor({true}), true, false).dtype() == kB8);
  CHECK_VALUES(x.max(f64({1, 1, 1})), {1, 1, 3});
  CHECK_VALUES(x.min(f64({1, 1, 1})), {0.5, -2, 1});
  const MinMax both = x.aminmax();
  CHECK_VALUES(both.min, {-2});
  CHECK_VALUES(both.max, {3});
  CHECK_VALUES(x.quantile(std::vector<double>{0, 1}), {-2, 3});
  CHECK_VALUES(i.unique().output, {-7, 7});
}

}  // namespace waymark::test
