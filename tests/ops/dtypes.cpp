// Dtypes: conversions, promotion, and what each group of ops gives and refuses.
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/counts.h"
#include "core/ops/dropout.h"
#include "core/ops/embedding.h"
#include "core/ops/extremes.h"
#include "core/ops/functions.h"
#include "core/ops/index.h"
#include "core/ops/inplace.h"
#include "core/ops/join.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/moments.h"
#include "core/ops/norm.h"
#include "core/ops/order.h"
#include "core/ops/pointwise.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"
#include "core/ops/softmax.h"
#include "core/parallel/parallel.h"
#include "tests/ops/rows.h"

namespace waymark::test {
namespace {

const Tensor kBits = tensor({true, false, true}), kInts = tensor({1, 2, 3}), kSingles = tensor({1.5, 2.5, 3.5}, kF32),
             kDoubles = tensor({1.5, 2.5, 3.5}, kF64);


}  // namespace

TEST_CASE("conversions between dtypes") {
  CHECK(f64({2.9, -2.9, -0.5}).to(kI64).to_vector<i64>() == std::vector<i64>{2, -2, 0});
  const std::vector<i64> least(5, INT64_MIN);
  CHECK(f64({kNan, kInf, -kInf, 9.3e18, -9.3e18}).to(kI64).to_vector<i64>() == least);
  CHECK(tensor({kNan, kInf, -kInf, 9.3e18, -9.3e18}, kF32).to(kI64).to_vector<i64>() == least);
  CHECK_VALUES(f64({kNan, -0.0, 1e-320, 0, 2}).to(kB8), {1, 0, 1, 0, 1});
  CHECK_VALUES(tensor({1e-40, -1e-40}, kF32).to(kB8), {1, 1});
  CHECK_VALUES(kBits.to(kF32), {1, 0, 1});
  CHECK_VALUES(kBits.to(kI64), {1, 0, 1});
  CHECK_VALUES(f64({1e300, -1e300}).to(kF32), {kInf, -kInf});
  // To nearest even: halfway between 1 and its neighbour goes to 1.
  CHECK(f64(1 + 0x1p-24).to(kF32).item<float>() == 1.0F);
  CHECK(f64(1 + 3 * 0x1p-24).to(kF32).item<float>() == 1.0F + 0x1p-22F);
  // Also while denormals count as zero.
  const Tensor tiny = tensor({1e-40, -1e-40}, kF32), tinier = f64(1e-310);
  {
    const DenormalGuard guard(true);
    CHECK_VALUES(tiny.to(kB8), {1, 1});
    CHECK_VALUES(tinier.to(kB8), {1});
  }
  // b8 holds 0 and 1, nothing else.
  for (const Tensor& t : {f64({3, kNan}).to(kB8), kInts.to(kB8), kInts > 0, logical_not(kInts)})
    for (i64 i = 0; i < t.numel(); ++i) CHECK(static_cast<int>(t.raw()[i]) <= 1);
}

TEST_CASE("promotion of two operands") {
  const Tensor i0 = tensor(2), s0 = tensor(2.5), d0 = tensor(2.5, kF64);
  const std::vector<Tensor> rows = {kBits, kInts, kSingles, kDoubles};
  const std::vector<Tensor> columns = {kBits, kInts, kSingles, kDoubles, i0, s0, d0};
  const DType want[4][9] = {{kB8, kI64, kF32, kF64, kI64, kF32, kF64, kI64, kF32},
                            {kI64, kI64, kF32, kF64, kI64, kF32, kF64, kI64, kF32},
                            {kF32, kF32, kF32, kF64, kF32, kF32, kF32, kF32, kF32},
                            {kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64, kF64}};
  for (size_t r = 0; r < 4; ++r) {
    CAPTURE(r);
    for (size_t c = 0; c < columns.size(); ++c) {
      CAPTURE(c);
      CHECK((rows[r] * columns[c]).dtype() == want[r][c]);
      CHECK((columns[c] * rows[r]).dtype() == want[r][c]);
      CHECK(where(kBits, rows[r], columns[c]).dtype() == want[r][c]);
      CHECK((rows[r] == columns[c]).dtype() == kB8);
    }
    CHECK((rows[r] * 2).dtype() == want[r][7]);
    CHECK((rows[r] * 2.5).dtype() == want[r][8]);
  }
  CHECK(cat({kInts, kSingles}).dtype() == kF32);
  CHECK(cat({kSingles, kDoubles}).dtype() == kF64);
  CHECK(cat({kBits, kInts}).dtype() == kI64);
  // A float scalar takes the default float.
  set_default_dtype(kF64);
  CHECK((kInts * 2.5).dtype() == kF64);
  CHECK((kSingles * 2.5).dtype() == kF32);
  CHECK((kInts / 2).dtype() == kF64);
  set_default_dtype(kF32);
  // 2^53 + 1 equals 2^53 as f64.
  CHECK_VALUES(eq(tensor({(i64{1} << 53) + 1}), f64({0x1p53})), {1});
}

TEST_CASE("dtypes of results by group") {
  const std::vector<One> floats = {F1(exp),     F1(log),  F1(sqrt),       F1(sin),  F1(sigmoid), F1(reciprocal), F1(tanh),
                                   F1(erf),     F1(atan), F1(log1p),      F1(exp2), F1(rsqrt),
                                   [](const Tensor& x) { return x / x; }, [](const Tensor& x) { return x / 2; },
                                   [](const Tensor& x) { return logsumexp(x, 0); }};
  for (size_t i = 0; i < floats.size(); ++i) {
    CAPTURE(i);
    CHECK(floats[i](kBits).dtype() == kF32);
    CHECK(floats[i](kInts).dtype() == kF32);
    CHECK(floats[i](kSingles).dtype() == kF32);
    CHECK(floats[i](kDoubles).dtype() == kF64);
  }
  const std::vector<One> wide = {[](const Tensor& x) { return sum(x); }, [](const Tensor& x) { return prod(x); },
                                 [](const Tensor& x) { return cumsum(x, 0); }, [](const Tensor& x) { return cumprod(x, 0); },
                                 [](const Tensor& x) { return count_nonzero(x); }, [](const Tensor& x) { return square(x); }};
  for (size_t i = 0; i < wide.size(); ++i) {
    CAPTURE(i);
    CHECK(wide[i](kBits).dtype() == kI64);
    CHECK(wide[i](kInts).dtype() == kI64);
    CHECK(wide[i](kDoubles).dtype() == (i == 4 ? kI64 : kF64));
  }
  const std::vector<std::pair<const char*, One>> float_only = {
      {"mean", [](const Tensor& x) { return mean(x); }},
      {"var", [](const Tensor& x) { return var(x); }},
      {"std", [](const Tensor& x) { return std(x); }},
      {"norm", [](const Tensor& x) { return norm(x); }},
      {"softmax", [](const Tensor& x) { return softmax(x, 0); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x, 0); }},
      {"gelu", F1(gelu)},
      {"silu", F1(silu)},
      {"dropout", [](const Tensor& x) { return dropout(x); }},
      {"mse_loss", [](const Tensor& x) { return mse_loss(x, x); }},
      {"lerp", [](const Tensor& x) { return lerp(x, x, 0.5); }}};
  for (const auto& item : float_only)
    for (const Tensor& x : {kBits, kInts}) {
      const std::string op = item.first, text = error_text([&] { static_cast<void>(item.second(x)); });
      INFO(text);
      CHECK(text.starts_with(op + ": "));
      CHECK(has(text, name_of(x.dtype()).data()));
      CHECK(has(text, "to(kF32)"));
    }
  const std::vector<One> no_bits = {
      F1(abs), F1(neg), F1(relu), F1(floor), [](const Tensor& x) { return pow(x, x); },
      [](const Tensor& x) { return remainder(x, x); }, [](const Tensor& x) { return floor_divide(x, x); },
      [](const Tensor& x) { return argmax(x); }, [](const Tensor& x) { return x - x; },
      [](const Tensor& x) { return x - kInts; }, [](const Tensor& x) { return kInts - x; }};
  for (size_t i = 0; i < no_bits.size(); ++i) {
    CAPTURE(i);
    CHECK(error_text([&] { static_cast<void>(no_bits[i](kBits)); }) != "(no error)");
  }
  CHECK_ERROR(kBits - kBits, "sub: b8 has no difference; use logical_xor or logical_not");
  // The input's dtype.
  for (const Tensor& x : {kBits, kInts, kSingles, kDoubles}) {
    CHECK(max(x).dtype() == x.dtype());
    CHECK(amax(x).dtype() == x.dtype());
    CHECK(sort(x).values.dtype() == x.dtype());
    CHECK(sort(x).indices.dtype() == kI64);
    CHECK(triu(x.unsqueeze(0)).dtype() == x.dtype());
    CHECK(gather(x, 0, tensor({0})).dtype() == x.dtype());
    CHECK(any(x).dtype() == kB8);
    CHECK(isnan(x).dtype() == kB8);
    CHECK(logical_and(x, x).dtype() == kB8);
    CHECK(clone(x).dtype() == x.dtype());
  }
  CHECK(clamp(kInts, 0, 0.5).dtype() == kF32);
  CHECK(clamp(kInts, 0, 1).dtype() == kI64);
  CHECK(one_hot(kInts).dtype() == kI64);
  CHECK(bucketize(kDoubles, kDoubles).dtype() == kI64);
  CHECK(argmax(kInts).dtype() == kI64);
}

TEST_CASE("products and losses take one dtype only") {
  const Tensor a = zeros({2, 2}), b = zeros({2, 2}, kF64);
  for (const auto& f : std::vector<std::function<Tensor()>>{
           [&] { return matmul(a, b); }, [&] { return mm(a, b); }, [&] { return addmm(a, a, b); },
           [&] { return linear(a, b); }, [&] { return mse_loss(a, b); }, [&] { return l1_loss(b, a); },
           [&] { return outer(a[0], b[0]); }, [&] { return mv(a, b[0]); }, [&] { return dot(a[0], b[0]); }}) {
    const std::string text = error_text([&] { static_cast<void>(f()); });
    INFO(text);
    CHECK(has(text, "f32"));
    CHECK(has(text, "f64"));
  }
}

TEST_CASE("in place the target keeps its dtype") {
  const Tensor i = tensor({1, 2, 3});
  for (const auto& f : std::vector<std::function<void()>>{
           [&] { i.add_(kSingles); }, [&] { i.div_(2); }, [&] { i.mul_(1.5); }, [&] { kBits.add_(1); },
           [&] { i.pow_(kSingles); }, [&] { i += 0.5; }, [&] { i.sqrt_(); }, [&] { i.clamp_(0, 0.5); }})
    CHECK(error_text(f) != "(no error)");
  CHECK_VALUES(i, {1, 2, 3});
  const Tensor s = tensor({1, 2, 3}, kF32);
  s += kDoubles;
  CHECK(s.dtype() == kF32);
  CHECK_VALUES(s, {2.5, 4.5, 6.5});
  s *= kInts;
  CHECK_VALUES(s, {2.5, 9, 19.5});
  i += kBits;
  CHECK_VALUES(i, {2, 2, 4});
  i.copy_(kDoubles);  // any dtype converts
  CHECK_VALUES(i, {1, 2, 3});
  i.div_(2, "floor");
  CHECK_VALUES(i, {0, 1, 1});
}

TEST_CASE("integers wrap, and division by 0 names the position") {
  CHECK_VALUES(tensor({INT64_MAX}) + 1, {static_cast<double>(INT64_MIN)});
  CHECK((tensor({INT64_MAX}) * 2).item<i64>() == -2);
  CHECK(abs(tensor({INT64_MIN})).item<i64>() == INT64_MIN);
  CHECK(sum(tensor({INT64_MAX, i64{1}})).item<i64>() == INT64_MIN);
  CHECK(floor_divide(tensor({INT64_MIN}), -1).item<i64>() == INT64_MIN);
  CHECK(remainder(tensor({INT64_MIN}), -1).item<i64>() == 0);
  CHECK(fmod(tensor({INT64_MIN}), tensor({-1})).item<i64>() == 0);
  CHECK_ERROR(remainder(kInts, tensor({1, 0, 1})), "remainder: integer division by 0 at position [1] of the divisor");
  CHECK_ERROR(fmod(kInts, 0), "fmod: integer division by 0");
  CHECK_ERROR(kInts % 0, "remainder: integer division by 0");
}

}  // namespace waymark::test
