// Kinks, ties, infinities: one convention for each situation, row by row (K1 to K66). The values are PyTorch's in f64,
// but for the rows of the README's table of differences.
#include <limits>

#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/dropout.h"
#include "core/ops/extremes.h"
#include "core/ops/functions.h"
#include "core/ops/index.h"
#include "core/ops/loss.h"
#include "core/ops/moments.h"
#include "core/ops/norm.h"
#include "core/ops/normalisation.h"
#include "core/ops/order.h"
#include "core/ops/pointwise.h"
#include "core/ops/pooling.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"
#include "core/ops/shape.h"
#include "core/ops/similarity.h"
#include "core/ops/softmax.h"
#include "tests/ops/rows.h"

namespace waymark::test {
namespace {

const double kPi = std::acos(-1.0), kSigma = 1 / (1 + std::exp(-1.0));  // σ(1) = 0.731059
const auto power = [](const Tensor& a, const Tensor& b) { return pow(a, b); };
const auto max_0 = [](const Tensor& x) { return max(x, 0).values; };
const auto min_0 = [](const Tensor& x) { return min(x, 0).values; };
const auto amax_0 = [](const Tensor& x) { return amax(x, 0); };
const auto amin_0 = [](const Tensor& x) { return amin(x, 0); };
const auto softmax_0 = [](const Tensor& x) { return softmax(x, 0); };

}  // namespace

TEST_CASE("K01_one_sided_kinks") {
  row({0}, F1(relu), {0}, {0});
  row({0}, F1(abs), {0}, {0});
  row({0}, F1(leaky_relu), {0}, {0.01});
  row_of_two({0}, {0.25}, F2(prelu), {0}, {0.25}, {0});
}
TEST_CASE("K02_bounds_of_hard_functions") {
  row({-1, 1}, F1(hardtanh), {-1, 1}, {0, 0});
  row({0, 6}, F1(relu6), {0, 6}, {0, 0});
  row({-3, 3}, F1(hardsigmoid), {0, 1}, {0, 0});
}
TEST_CASE("K03_hardswish") { row({-3, 0, 3}, F1(hardswish), {0, 0, 3}, {0, 0.5, 1}); }
TEST_CASE("K04_activations_at_0") {
  row({0}, F1(elu), {0}, {1});
  row({0}, F1(celu), {0}, {1});
  row({0}, F1(selu), {0}, {1.7580993});
  row({0}, F1(gelu), {0}, {0.5});
  row({0}, [](const Tensor& x) { return gelu(x, "tanh"); }, {0}, {0.5});
  row({0}, F1(silu), {0}, {0.5});
  row({0}, F1(mish), {0}, {0.6});
  row({0}, F1(softplus), {std::log(2.0)}, {0.5});
}
TEST_CASE("K05_clamp") {
  row({0, 1, -1, 2, kNan}, [](const Tensor& x) { return clamp(x, 0, 1); }, {0, 1, 0, 1, kNan}, {1, 1, 0, 0, 0});
}
TEST_CASE("K06_clamp_with_min_above_max") {
  row({0, 1.5, 3}, [](const Tensor& x) { return clamp(x, 2, 1); }, {1, 1, 1}, {0, 0, 0});
  for (const double x0 : {0., 1.5, 3.}) {
    const Tensor x = leaf({x0}), lo = leaf({2}), hi = leaf({1});
    const Tensor y = clamp(x, lo, hi);
    CHECK_VALUES(y, {1});
    backward_of(y);
    CHECK_VALUES(x.grad(), {0});
    CHECK_VALUES(lo.grad(), {0});
    CHECK_VALUES(hi.grad(), {1});
  }
}
TEST_CASE("K07_maximum") {
  row_of_two({0, kNan, 1}, {0, 1, 2}, F2(maximum), {0, kNan, 2}, {0.5, 1, 0}, {0.5, 1, 1});
}
TEST_CASE("K08_minimum") {
  row_of_two({0, kNan, 1}, {0, 1, 2}, F2(minimum), {0, kNan, 1}, {0.5, 1, 1}, {0.5, 1, 0});
}
TEST_CASE("K09_fmax") {
  row_of_two({0, kNan}, {0, 1}, F2(fmax), {0, 1}, {1, 0}, {0, 1});
  row_of_two({0, kNan}, {0, 1}, F2(fmin), {0, 1}, {1, 0}, {0, 1});
}
TEST_CASE("K10_ties_of_max") {
  row({1, 1, 0}, F1(max), {1}, {0.5, 0.5, 0});
  row({1, 1, 0}, max_0, {1}, {1, 0, 0});
  row({1, 1, 0}, amax_0, {1}, {0.5, 0.5, 0});
}
TEST_CASE("K11_ties_of_min") {
  row({0, 0, 1}, F1(min), {0}, {0.5, 0.5, 0});
  row({0, 0, 1}, min_0, {0}, {1, 0, 0});
  row({0, 0, 1}, amin_0, {0}, {0.5, 0.5, 0});
}
TEST_CASE("K12_NaN_in_extremes") {
  row({1, kNan, kNan}, F1(max), {kNan}, {0, 0.5, 0.5});
  row({1, kNan, kNan}, max_0, {kNan}, {0, 1, 0});
  row({1, kNan, kNan}, amax_0, {kNan}, {0, 0.5, 0.5});
  row({1, kNan, kNan}, amin_0, {kNan}, {0, 0.5, 0.5});
}
TEST_CASE("K13_choices_at_ties") {
  row({1, 1, 0}, [](const Tensor& x) { return topk(x, 1).values; }, {1}, {1, 0, 0});
  row({1, 3, 3}, [](const Tensor& x) { return topk(x, 2).values; }, {3, 3}, {0, 1, 1});
  row({1, 1, 1}, [](const Tensor& x) { return kthvalue(x, 2).values; }, {1}, {0, 1, 0});
}
TEST_CASE("K14_argmax") {
  CHECK(argmax(f64({1, 1})).item<i64>() == 0);
  CHECK(argmax(f64({1, kNan, kNan})).item<i64>() == 1);
  CHECK(argmin(f64({1, kNan})).item<i64>() == 1);
}
TEST_CASE("K15_order_of_NaN") {
  const Tensor x = f64({kNan, 1, 2});
  CHECK_VALUES(sort(x).values, {1, 2, kNan});
  CHECK_VALUES(sort(x, -1, true).values, {kNan, 2, 1});
  CHECK_VALUES(topk(x, 1).values, {kNan});
  CHECK_VALUES(topk(x, 2, -1, false).values, {1, 2});
}
TEST_CASE("K16_medians") {
  const auto full = [](const Tensor& x) { return median(x); };
  const double third = 1. / 3;
  row({1, 1, 1}, full, {1}, {third, third, third});
  row({1, 2, 3, 4}, full, {2}, {0, 1, 0, 0});
  row({3, 1, 2, 4}, [](const Tensor& x) { return median(x, 0).values; }, {2}, {0, 0, 1, 0});
  row({1, kNan}, full, {kNan}, {0, 1});
  row({1, kNan, 3}, [](const Tensor& x) { return nanmedian(x); }, {1}, {1, 0, 0});
}
TEST_CASE("K17_cummax_cummin") {
  row({1, 1, 0, 2}, [](const Tensor& x) { return cummax(x, 0).values; }, {1, 1, 1, 2}, {1, 2, 0, 1});
  row({1, 1, 0, 2}, [](const Tensor& x) { return cummin(x, 0).values; }, {1, 1, 0, 0}, {1, 1, 2, 0});
}
TEST_CASE("K18_max_pool1d") {
  row({{1, 1, 0}}, [](const Tensor& x) { return max_pool1d(x, 2, 1); }, {1, 1}, {1, 1, 0});
}
TEST_CASE("K19_norm_at_0") {
  const auto f = [](const Tensor& x) { return norm(x); };
  row({0, 0}, f, {0}, {0, 0});
  CHECK_VALUES(second_of({0, 0}, f), {0, 0});
}
TEST_CASE("K20_norms_of_other_orders") {
  const auto order = [](double p) { return [p](const Tensor& x) { return norm(x, p); }; };
  row({0, -2}, order(1), {2}, {0, -1});
  row({2, -2, 1}, order(kInf), {2}, {0.5, -0.5, 0});
  row({0, 0}, order(kInf), {0}, {0, 0});
  row({0, -2}, order(3), {2}, {0, -1});
  row({0, 4}, order(0.5), {4}, {0, 1});
  row({2, -2, 3}, order(-kInf), {2}, {0.5, -0.5, 0});
}
TEST_CASE("K21_norm_of_infinity") { row({kInf, 1}, [](const Tensor& x) { return norm(x); }, {kInf}, {kNan, 0}); }
TEST_CASE("K22_a_norm_composed_by_hand") {
  row({0, 0}, [](const Tensor& x) { return (x * x).sum().sqrt(); }, {0}, {kNan, kNan});
}
TEST_CASE("K23_directions_of_the_zero_vector") {
  row({0, 0}, [](const Tensor& x) { return normalize(x, 2, 0); }, {0, 0}, {1e12, 1e12});
  const Tensor b = f64({1, 0});
  row({0, 0}, [&](const Tensor& a) { return cosine_similarity(a, b, 0); }, {0}, {1e8, 0});
}
TEST_CASE("K24_distances_of_equal_points") {
  const Tensor p = f64({{1, 2}});
  row({{1, 2}}, [&](const Tensor& a) { return cdist(a, p); }, {0}, {0, 0});
  const double d = std::sqrt(2.0);
  row({{1, 2}}, [&](const Tensor& a) { return pairwise_distance(a, p); }, {1e-6 * d}, {d / 2, d / 2});
}
TEST_CASE("K25_spread") {
  row({1, 1}, [](const Tensor& x) { return std(x); }, {0}, {0, 0});
  row({1, 3}, [](const Tensor& x) { return var(x); }, {2}, {-2, 2});
  const double r = std::sqrt(2.0);
  row({1, 3}, [](const Tensor& x) { return std(x); }, {r}, {-r / 2, r / 2});
}
TEST_CASE("K26_spread_of_one") {
  row({1}, [](const Tensor& x) { return std(x); }, {kNan}, {0});
  row({1}, [](const Tensor& x) { return var(x); }, {kNan}, {0});
  row({1}, [](const Tensor& x) { return std(x, {}, 0); }, {0}, {0});
  row({1, 3}, [](const Tensor& x) { return var(x, {}, 2); }, {kInf}, {0, 0});
}
TEST_CASE("K27_roots") {
  row({0, -1}, F1(sqrt), {0, kNan}, {kInf, kNan});
  row({0}, F1(rsqrt), {kInf}, {-kInf});
  row({0}, [](const Tensor& x) { return pow(x, 0.5); }, {0}, {kInf});
}
TEST_CASE("K28_logarithms") {
  row({0, -1}, F1(log), {-kInf, kNan}, {kInf, -1});
  row({-1}, F1(log1p), {-kInf}, {kInf});
  row({0, 1}, F1(logit), {-kInf, kInf}, {kInf, kInf});
}
TEST_CASE("K29_division_by_0") {
  row({0}, F1(reciprocal), {kInf}, {-kInf});
  row_of_two({1, 0, -1}, {0, 0, 0}, F2(div), {kInf, kNan, -kInf}, {kInf, kInf, kInf}, {-kInf, kNan, kInf});
}
TEST_CASE("K30_ends_of_domains") {
  row({1}, F1(asin), {kPi / 2}, {kInf});
  row({1}, F1(acos), {0}, {-kInf});
  row({1}, F1(acosh), {0}, {kInf});
  row({1}, F1(atanh), {kInf}, {kInf});
  row({1}, F1(erfinv), {kInf}, {kInf});
}
TEST_CASE("K31_powers_of_0") { row_of_two({0, 0, 0}, {0, 1, 2}, power, {1, 0, 0}, {0, 1, 0}, {0, 0, 0}); }
TEST_CASE("K32_powers_of_negative_numbers") {
  row_of_two({-2, -2, 0, -8}, {2, 3, -1, 1. / 3}, power, {4, -8, kInf, kNan}, {-4, 12, -kInf, kNan},
             {kNan, kNan, -kInf, kNan});
}
TEST_CASE("K33_powers_of_infinite_exponent") {
  row_of_two({2, 0, 1}, {-kInf, kInf, kInf}, power, {0, 0, 1}, {kNan, kNan, kInf}, {0, 0, 0});
  row({0, 1, -1}, [](const Tensor& e) { return pow(Scalar(0.0), e); }, {1, 0, kInf}, {0, 0, -kInf});
}
TEST_CASE("K34_powers_by_scalars") {
  row({0, kNan}, [](const Tensor& x) { return pow(x, 0); }, {1, 1}, {0, 0});
  row({0}, [](const Tensor& x) { return pow(x, 1); }, {0}, {1});
  row({0}, [](const Tensor& x) { return pow(x, -1); }, {kInf}, {-kInf});
}
TEST_CASE("K35_atan2_hypot") {
  row_of_two({0, 0}, {0, -1}, F2(atan2), {0, kPi}, {0, -1}, {0, 0});
  row_of_two({0}, {0}, F2(hypot), {0}, {0}, {0});
}
TEST_CASE("K36_xlogy") {
  row_of_two({0, 0, 1}, {0, 2, 0}, F2(xlogy), {0, 0, -kInf}, {0, std::log(2.0), -kInf}, {kNan, 0, kInf});
  row({0}, [](const Tensor& p) { return p * log(p); }, {kNan}, {kNan});
  row({0}, [](const Tensor& p) { return xlogy(p, p); }, {0}, {kNan});
}
TEST_CASE("K37_remainders") {
  row_of_two({1}, {0}, F2(remainder), {kNan}, {1}, {-kInf});
  row_of_two({-5}, {3}, [](const Tensor& a, const Tensor& b) { return div(a, b, "floor"); }, {-2}, {0}, {0});
}
TEST_CASE("K38_limits") {
  row({1000, -1000}, F1(exp), {kInf, 0}, {kInf, 0});
  row({1000, -1000, kInf, -kInf}, F1(sigmoid), {1, 0, 1, 0}, {0, 0, 0, 0});
  row({1000}, F1(tanh), {1}, {0});
  row({kInf}, F1(erf), {1}, {0});
}
TEST_CASE("K39_logsigmoid_softplus_far_out") {
  row({-1000, 1000, -kInf}, F1(logsigmoid), {-1000, 0, -kInf}, {1, 0, 1});
  row({1000, -1000, kInf, -kInf}, F1(softplus), {1000, 0, kInf, 0}, {1, 0, 1, 0});
}
TEST_CASE("K40_smooth_activations_at_infinity") {
  row({-kInf, kInf}, F1(gelu), {kNan, kInf}, {kNan, kNan});
  row({-kInf, kInf}, [](const Tensor& x) { return gelu(x, "tanh"); }, {kNan, kInf}, {kNan, kNan});
  row({-kInf, kInf}, F1(silu), {kNan, kInf}, {kNan, kNan});
  row({-kInf}, F1(mish), {kNan}, {kNan});
}
TEST_CASE("K41_softmax_without_an_answer") {
  for (const double first : {-kInf, kInf, kNan}) {
    const double second = std::isnan(first) ? 1 : first > 0 ? 0 : -kInf;
    row({first, second}, softmax_0, {kNan, kNan}, {kNan, kNan});
  }
}
TEST_CASE("K42_an_empty_row_spoils_only_itself") {
  const auto corner = [](const Tensor& y) { return y.select(0, 0).select(0, 0); };
  const double p = 1 - kSigma, d = p * kSigma;
  row({{0, 1}, {-kInf, -kInf}}, [&](const Tensor& x) { return corner(softmax(x, 1)); }, {p}, {d, -d, kNan, kNan});
  const Tensor keep = tensor({{true, true}, {false, false}});
  row({{0, 1}, {-kInf, -kInf}}, [&](const Tensor& x) { return corner(masked_softmax(x, keep, 1)); }, {p}, {d, -d, 0, 0});
}
TEST_CASE("K43_softmax_with_missing_and_huge_entries") {
  row({0, -kInf, 1}, [](const Tensor& x) { return log_softmax(x, 0).select(0, 0); }, {-1.3132617}, {kSigma, 0, -kSigma});
  row({-kInf, 0, 0}, [](const Tensor& x) { return softmax(x, 0).select(0, 1); }, {0.5}, {0, 0.25, -0.25});
  row({1e300, -1e300}, softmax_0, {1, 0}, {0, 0});
}
TEST_CASE("K44_logsumexp") {
  const auto f = [](const Tensor& x) { return logsumexp(x, 0); };
  row({-kInf, -kInf}, f, {-kInf}, {0, 0});
  row({-kInf, 0}, f, {0}, {0, 1});
  row({kInf, 1}, f, {kInf}, {1, 0});
  row({kInf, kInf}, f, {kInf}, {0.5, 0.5});
}
TEST_CASE("K45_logaddexp") {
  row_of_two({-kInf, kInf, kInf, 0}, {-kInf, kInf, 1, -kInf}, F2(logaddexp), {-kInf, kInf, kInf, 0}, {0, 0.5, 1, 1},
             {0, 0.5, 0, 0});
}
TEST_CASE("K46_logcumsumexp") {
  const auto f = [](const Tensor& x) { return logcumsumexp(x, 0); };
  row({-kInf, 0, 1}, f, {-kInf, 0, 1.3132617}, {0, 2 - kSigma, kSigma});
  row({-kInf, -kInf}, f, {-kInf, -kInf}, {0, 0});
  row({kInf, 0}, f, {kInf, kInf}, {2, 0});
}
TEST_CASE("K47_prod") {
  const auto f = [](const Tensor& x) { return prod(x); };
  row({2, 0, 4}, f, {0}, {0, 8, 0});
  row({2, 0, 0}, f, {0}, {0, 0, 0});
  row({2, 3, 4}, f, {24}, {12, 8, 6});
}
TEST_CASE("K48_cumprod") {
  const auto f = [](const Tensor& x) { return cumprod(x, 0); };
  row({2, 0, 3, 4}, f, {2, 0, 0, 0}, {1, 32, 0, 0});
  row({2, 0, 0, 3}, f, {2, 0, 0, 0}, {1, 2, 0, 0});
  row({-1, 2, -3}, f, {-1, -2, 6}, {-3, 2, -2});
}
TEST_CASE("K49_the_branch_that_is_not_taken") {
  row({-1, 4}, [](const Tensor& x) { return where(x > 0, sqrt(x), x); }, {-1, 2}, {kNan, 0.25});
  row({0, kInf}, [](const Tensor& x) { return where(x < 1, cos(x), 0); }, {1, 0}, {0, kNan});
}
TEST_CASE("K50_the_element_that_is_not_picked") {
  row({0, 1}, [](const Tensor& x) { return (x / f64({0, 1})).select(0, 1); }, {1}, {kNan, 1});
  row({-1, 0.5}, [](const Tensor& x) { return log1p(x).index({x.detach() > -1}); }, {std::log(1.5)}, {kNan, 2. / 3});
}
TEST_CASE("K51_masking_by_minus_infinity") {
  const Tensor m = tensor({true, false});
  row({3, 1}, [&](const Tensor& x) { return exp(masked_fill(x, m, -kInf)); }, {0, std::exp(1.0)}, {0, std::exp(1.0)});
  CHECK_VALUES(m.logical_not() * kInf, {kNan, kInf});
}
TEST_CASE("K52_a_denominator_of_0") {
  row({0, 0}, [](const Tensor& q) { return q / q.sum(); }, {kNan, kNan}, {kNan, kNan});
}
TEST_CASE("K53_sums_without_NaN") {
  row({1, kNan}, [](const Tensor& x) { return nansum(x); }, {1}, {1, 0});
  row({1, kNan, 3}, [](const Tensor& x) { return nanmean(x); }, {2}, {0.5, 0, 0.5});
  const double most = std::numeric_limits<double>::max();
  row({kNan, kInf, -kInf, 2}, F1(nan_to_num), {0, most, -most, 2}, {0, 0, 0, 1});
  row({kNan, kInf, -kInf, 2}, [](const Tensor& x) { return nan_to_num(x, 7, 8, 9); }, {7, 8, 9, 2}, {0, 0, 0, 1});
}
TEST_CASE("K54_rounding_and_sign") {
  row({0.5, 1.5, 2.5, -0.5}, F1(round), {0, 2, 2, 0}, {0, 0, 0, 0});
  CHECK(std::signbit(round(f64(-0.5)).item<double>()));
  row({-2, 0, kNan}, F1(sign), {-1, 0, 0}, {0, 0, 0});
  row({-1.5}, F1(frac), {-0.5}, {1});
}
TEST_CASE("K55_losses_at_their_kinks") {
  const auto against_0 = [](auto loss) { return [loss](const Tensor& x) { return loss(x, zeros_like(x)); }; };
  row({0}, against_0([](Arg x, Arg t) { return l1_loss(x, t, "sum"); }), {0}, {0});
  row({0, 0.5, 1, -2}, against_0([](Arg x, Arg t) { return smooth_l1_loss(x, t, "sum"); }), {2.125}, {0, 0.5, 1, -1});
  row({0}, against_0([](Arg x, Arg t) { return smooth_l1_loss(x, t, "sum", 0); }), {0}, {0});
  row({1, 2, -4}, against_0([](Arg x, Arg t) { return huber_loss(x, t, "sum", 2); }), {8.5}, {1, 2, -2});
}
TEST_CASE("K56_cross_entropy_of_impossible_classes") {
  const Tensor first = tensor(0), second = tensor(1);
  row({0, -kInf}, [&](const Tensor& x) { return cross_entropy(x, second); }, {kInf}, {1, -1});
  row({0, -kInf}, [&](const Tensor& x) { return cross_entropy(x, first); }, {0}, {0, 0});
  row({0, -kInf}, [&](const Tensor& x) { return cross_entropy(x, first, {.label_smoothing = 0.1}); }, {kInf},
      {0.05, -0.05});
}
TEST_CASE("K57_a_mean_over_nothing") {
  const Tensor ignored = tensor({-100}), none = empty({0}, kI64);
  CHECK(error_text([&] { static_cast<void>(cross_entropy(f64({{1, 2}}), ignored)); }).starts_with("cross_entropy: "));
  CHECK(error_text([&] { static_cast<void>(cross_entropy(zeros({0, 2}, kF64), none)); }).starts_with("cross_entropy: "));
  row({{1, 2}}, [&](const Tensor& x) { return cross_entropy(x, ignored, {.empty = "zero"}); }, {0}, {0, 0});
  row({{1, 2}}, [&](const Tensor& x) { return nll_loss(x, ignored, {.empty = "zero"}); }, {0}, {0, 0});
  CHECK_VALUES(cross_entropy(zeros({0, 2}, kF64), none, {.empty = "zero"}), {0});
}
TEST_CASE("K58_binary_cross_entropy_at_0") {
  const Tensor one = f64({1});
  row({0}, [&](const Tensor& p) { return binary_cross_entropy(p, one); }, {100}, {-1e12}, 1e-7);
}
TEST_CASE("K59_kl_div_with_terms_of_0") {
  const Tensor t = f64({0, 0.5, 0.5});
  row({-1, -1, -2}, [&](const Tensor& q) { return kl_div(q, t, "sum"); }, {1.5 - std::log(2.0)}, {0, -0.5, -0.5});
  const Tensor logs = f64({-kInf, 0});
  row({-1, -1}, [&](const Tensor& q) { return kl_div(q, logs, "sum", true); }, {1}, {0, -1});
}
TEST_CASE("K60_layer_norm_of_constants") {
  row({{3, 3, 3}}, [](const Tensor& x) { return layer_norm(x, {3}); }, {0, 0, 0}, {0, 0, 0});
  row({{3}}, [](const Tensor& x) { return layer_norm(x, {1}); }, {0}, {0});
}
TEST_CASE("K61_dropout_of_all_and_of_nothing") {
  row({1, 2}, [](const Tensor& x) { return dropout(x, 1); }, {0, 0}, {0, 0});
  row({1, 2}, [](const Tensor& x) { return dropout(x, 0); }, {1, 2}, {1, 1});
  const Tensor x = leaf({1, 2});
  CHECK(dropout(x, 0).is(x));
  CHECK(dropout(x, 0.5, false).is(x));
}
TEST_CASE("K62_thresholds") {
  row({1, 1.1}, [](const Tensor& x) { return threshold(x, 1, 9); }, {9, 1.1}, {0, 1});
  row({20, 21}, F1(softplus), {20.00000000206, 21}, {1 / (1 + std::exp(-20.0)), 1}, 1e-12);
}
TEST_CASE("K63_scatter_of_duplicates") {
  const Tensor at = tensor({0, 0});
  row({1, 2}, [&](const Tensor& s) { return scatter(zeros({2}, kF64), 0, at, s); }, {2, 0}, {0, 1});
}
TEST_CASE("K64_index_put_of_duplicates") {
  const Tensor at = tensor({0, 0});
  row_of_two({1, 2}, {5, 6}, [&](const Tensor& x, const Tensor& s) { return index_put(x, {at}, s); }, {6, 2}, {0, 1},
             {0, 1});
}
TEST_CASE("K65_second_order") {
  CHECK_VALUES(second_of({0}, F1(gelu)), {0.7978845608});
  CHECK_VALUES(second_of({0}, F1(silu)), {0.5});
  CHECK_VALUES(second_of({0}, F1(square)), {2});
  CHECK_VALUES(second_of({0}, [](const Tensor& x) { return square(clamp(x, 0, std::nullopt)); }), {2});
  CHECK_VALUES(second_of({1}, F1(relu)), {0});
  const auto f = [](const Tensor& x) { return cumprod(x, 0); };
  row({0, 3}, f, {0, 0}, {4, 0});
  CHECK_VALUES(second_of({0, 3}, f), {1, 1});
  CHECK_VALUES(second_of({3, 4}, [](const Tensor& x) { return norm(x); }), {0.032, -0.024});
}
TEST_CASE("K66_NaN_inputs") {
  row({kNan}, F1(relu), {kNan}, {1});
  row({kNan}, F1(relu6), {kNan}, {1});
  row({kNan}, F1(hardtanh), {kNan}, {1});
  row({kNan}, F1(elu), {kNan}, {1});
  row({kNan}, [](const Tensor& x) { return threshold(x, 1, 9); }, {kNan}, {1});
  row({kNan}, F1(hardswish), {kNan}, {1});
  row({kNan}, F1(leaky_relu), {kNan}, {0.01});
  row({kNan}, [](const Tensor& x) { return clamp(x, 0, 1); }, {kNan}, {0});
  row({kNan}, F1(abs), {kNan}, {0});
  row({kNan}, F1(hardsigmoid), {kNan}, {0});
}

}  // namespace waymark::test
