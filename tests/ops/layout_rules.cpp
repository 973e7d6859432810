// What is a view and what a copy, overlap, zero size, tensors without axes, limits, and access from the host.
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/counts.h"
#include "core/ops/extremes.h"
#include "core/ops/functions.h"
#include "core/ops/index.h"
#include "core/ops/inplace.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/moments.h"
#include "core/ops/normalisation.h"
#include "core/ops/order.h"
#include "core/ops/pointwise.h"
#include "core/ops/rearrange.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/tensor/allocator.h"
#include "tests/ops/rows.h"

namespace waymark::test {
namespace {

struct Named {
  const char* name;
  One f;
};
bool shares(const Tensor& a, const Tensor& b) { return a.impl()->storage == b.impl()->storage; }

}  // namespace

TEST_CASE("views share memory, copies do not") {
  const Tensor x = arange(24).view({2, 3, 4}), turned = x.transpose(0, 2);
  const std::vector<Named> views = {
      {"slice", [](const Tensor& t) { return t.slice(1, 0, 2); }},
      {"slice backwards", [](const Tensor& t) { return t.slice(2, kNoBound, kNoBound, -1); }},
      {"select", [](const Tensor& t) { return t.select(0, 1); }},
      {"narrow", [](const Tensor& t) { return t.narrow(1, 1, 2); }},
      {"expand", [](const Tensor& t) { return t.unsqueeze(0).expand({5, -1, -1, -1}); }},
      {"broadcast_to", [](const Tensor& t) { return t.broadcast_to({2, 2, 3, 4}); }},
      {"transpose", [](const Tensor& t) { return t.transpose(0, 1); }},
      {"t", [](const Tensor& t) { return t.select(0, 0).t(); }},
      {"mT", [](const Tensor& t) { return t.mT(); }},
      {"permute", [](const Tensor& t) { return t.permute({2, 0, 1}); }},
      {"movedim", [](const Tensor& t) { return t.movedim(0, 2); }},
      {"squeeze", [](const Tensor& t) { return t.unsqueeze(1).squeeze(1); }},
      {"unsqueeze", [](const Tensor& t) { return t.unsqueeze(-1); }},
      {"split", [](const Tensor& t) { return t.split(2, 2)[1]; }},
      {"chunk", [](const Tensor& t) { return t.chunk(2, 1)[0]; }},
      {"tensor_split", [](const Tensor& t) { return t.tensor_split(2, 2)[0]; }},
      {"unbind", [](const Tensor& t) { return t.unbind(1)[2]; }},
      {"diagonal", [](const Tensor& t) { return t.diagonal(); }},
      {"unfold", [](const Tensor& t) { return t.unfold(2, 2, 1); }},
      {"view", [](const Tensor& t) { return t.view({6, 4}); }},
      {"as_strided", [](const Tensor& t) { return t.as_strided({2, 2}, {1, 1}); }},
      {"detach", [](const Tensor& t) { return t.detach(); }},
      {"reshape", [](const Tensor& t) { return t.reshape({4, 6}); }},
      {"flatten", [](const Tensor& t) { return t.flatten(); }},
      {"unflatten", [](const Tensor& t) { return t.unflatten(2, {2, 2}); }},
      {"contiguous", [](const Tensor& t) { return t.contiguous(); }},
      {"to", [](const Tensor& t) { return t.to(kI64); }},
      {"index of slices", [](const Tensor& t) { return t.index({0, Slice(0, 2), None, Ellipsis}); }},
  };
  for (const Named& v : views) {
    CAPTURE(v.name);
    CHECK(shares(v.f(x), x));
  }
  const std::vector<Named> copies = {
      {"clone", F1(clone)},
      {"cat", [](const Tensor& t) { return cat({t}); }},
      {"stack", [](const Tensor& t) { return stack({t}); }},
      {"repeat", [](const Tensor& t) { return t.repeat({1, 1, 1}); }},
      {"tile", [](const Tensor& t) { return t.tile({1}); }},
      {"roll", [](const Tensor& t) { return t.roll({0}); }},
      {"flip", [](const Tensor& t) { return t.flip({}); }},
      {"pad", [](const Tensor& t) { return pad(t, {0, 0}); }},
      {"index", [](const Tensor& t) { return t.index({tensor({0, 1})}); }},
      {"gather", [](const Tensor& t) { return t.gather(0, zeros({1, 3, 4}, kI64)); }},
      {"tril", [](const Tensor& t) { return t.tril(100); }},
      {"masked_select", [](const Tensor& t) { return t.masked_select(t >= 0); }},
      {"to another dtype", [](const Tensor& t) { return t.to(kF64); }},
  };
  for (const Named& c : copies) {
    CAPTURE(c.name);
    CHECK(!shares(c.f(x), x));
  }
  // A copy where the strides leave no other way.
  for (const One& f : {One([](const Tensor& t) { return t.reshape({24}); }), One([](const Tensor& t) { return t.flatten(); }),
                       One([](const Tensor& t) { return t.contiguous(); })})
    CHECK(!shares(f(turned), x));
  CHECK(shares(turned.unflatten(0, {2, 2}), x));
  CHECK(turned.reshape({4, 3, 2}).is_contiguous() == false);
}

TEST_CASE("corners of views") {
  const Tensor x = arange(6).view({2, 3});
  CHECK(x.squeeze(1).shape() == Shape{2, 3});
  CHECK(x.unsqueeze(0).squeeze().shape() == Shape{2, 3});
  CHECK_VALUES(x.slice(1, -100, 100), {0, 1, 2, 3, 4, 5});
  CHECK(x.slice(1, 5, 2).shape() == Shape{2, 0});
  CHECK_VALUES(x.slice(1, -1, -4, -1), {2, 1, 0, 5, 4, 3});
  CHECK_ERROR(x.slice(1, 0, 3, 0), "slice: step 0 is not allowed");
  CHECK(error_text([&] { static_cast<void>(x.select(1, 3)); }).starts_with("select: "));
  CHECK(error_text([&] { static_cast<void>(x.index({0, 3})); }) != "(no error)");
  CHECK(x.narrow(1, 3, 0).shape() == Shape{2, 0});
  CHECK(ones({1, 3}).expand({0, 3}).shape() == Shape{0, 3});
  CHECK(ones({1, 3}).expand({2, -1}).shape() == Shape{2, 3});
  CHECK(error_text([&] { static_cast<void>(ones({3}).expand({-1, 3})); }) != "(no error)");
  CHECK(error_text([&] { static_cast<void>(x.as_strided({3, 3}, {3, 1})); }).starts_with("as_strided: "));
  CHECK(error_text([&] { static_cast<void>(x.as_strided({2}, {-1})); }) != "(no error)");
  CHECK(error_text([&] { static_cast<void>(x.transpose(0, 2)); }) ==
        "transpose: dim 2 is outside [-2, 1] of a tensor with 2 axes");
}

TEST_CASE("overlap: the same view, parts that meet, parts that do not") {
  const Tensor x = f64({{1, 2, 3, 4}, {5, 6, 7, 8}});
  // Interleaved columns are disjoint.
  x.slice(1, 0, kNoBound, 2) += x.slice(1, 1, kNoBound, 2);
  CHECK_VALUES(x, {3, 2, 7, 4, 11, 6, 15, 8});
  x += x;
  CHECK_VALUES(x, {6, 4, 14, 8, 22, 12, 30, 16});
  const i64 version = x.version();
  const std::string rule = "share part of their memory; clone() the input first";
  CHECK(has(error_text([&] { x.slice(1, 1) /= x.slice(1, 0, -1); }), rule));
  CHECK(has(error_text([&] { x.slice(1, 1).copy_(x.slice(1, 0, 3)); }), rule));
  CHECK(has(error_text([&] { x.slice(1, 0, 2).add_(x.slice(1, 0, 2).t()); }), rule));
  CHECK(has(error_text([&] { x[0].copy_(x[0].flip({0}).slice(0, 0) + 0); }), "(no error)"));
  CHECK(has(error_text([&] { x[0].copy_(x[0].slice(0, kNoBound, kNoBound, -1)); }), rule));
  CHECK(x.version() == static_cast<u32>(version) + 1);
  CHECK(has(error_text([] { static_cast<void>(zeros({3}).unfold(0, 2, 1).add_(1)); }), "has elements that share memory"));
  CHECK(has(error_text([] { static_cast<void>(zeros({3}).as_strided({2, 2}, {1, 1}).zero_()); }),
            "has elements that share memory"));
}

TEST_CASE("tensors of size 0") {
  const auto nothing = [] { return leaf(NestedList(std::initializer_list<NestedList>{})); };
  const std::vector<std::pair<One, double>> full = {
      {[](const Tensor& x) { return sum(x); }, 0},
      {[](const Tensor& x) { return prod(x); }, 1},
      {[](const Tensor& x) { return mean(x); }, kNan},
      {[](const Tensor& x) { return logsumexp(x, 0); }, -kInf},
      {[](const Tensor& x) { return median(x); }, kNan},
      {[](const Tensor& x) { return var(x); }, kNan},
      {[](const Tensor& x) { return nansum(x); }, 0},
      {[](const Tensor& x) { return std(x); }, kNan}};
  for (size_t i = 0; i < full.size(); ++i) {
    CAPTURE(i);
    const Tensor x = nothing();
    const Tensor y = full[i].first(x);
    CHECK(y.shape() == Shape{});
    CHECK(mismatch(y, {full[i].second}) == "");
    y.backward();
    CHECK(x.grad().shape() == Shape{0});
  }
  CHECK(all(zeros({0})).item<bool>());
  CHECK(!any(zeros({0})).item<bool>());
  for (const auto& f : std::vector<std::pair<const char*, One>>{
           {"max", [](const Tensor& x) { return max(x, 1).values; }},
           {"min", [](const Tensor& x) { return min(x, 1).values; }},
           {"amax", [](const Tensor& x) { return amax(x, 1); }},
           {"argmax", [](const Tensor& x) { return argmax(x, 1); }}}) {
    const std::string op = f.first;
    CHECK_ERROR(f.second(zeros({2, 0})), op + ": axis 1 of [2, 0] is empty, so there is nothing to choose from");
    CHECK(f.second(zeros({0, 2})).shape() == Shape{0});
  }
  for (const One& f : std::vector<One>{[](const Tensor& x) { return softmax(x, 1); },
                                       [](const Tensor& x) { return log_softmax(x, 1); },
                                       [](const Tensor& x) { return cumsum(x, 1); },
                                       [](const Tensor& x) { return sort(x, 1).values; },
                                       [](const Tensor& x) { return layer_norm(x, {x.size(1)}); },
                                       [](const Tensor& x) { return relu(x); }})
    for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}}) {
      const Tensor x = zeros(shape, {.dtype = kF64, .requires_grad = true});
      const Tensor y = f(x);
      CHECK(y.shape() == shape);
      y.sum().backward();
      CHECK(x.grad().shape() == shape);
    }
  // Broadcast of nothing: the gradient of what was repeated no times is 0.
  const Tensor a = zeros({4, 0}, {.dtype = kF64, .requires_grad = true}), b = ones({4, 1}, {.dtype = kF64, .requires_grad = true});
  (a + b).sum().backward();
  CHECK_VALUES(b.grad(), {0, 0, 0, 0});
  CHECK(b.grad().shape() == Shape{4, 1});
  CHECK((zeros({0}) + zeros({1})).shape() == Shape{0});
  CHECK_ERROR(zeros({0}) + zeros({2}), "add: shapes do not broadcast: [0] + [2] (axis -1: 0 vs 2)");
  const Tensor m = zeros({2, 0}, {.dtype = kF64, .requires_grad = true}), n = zeros({0, 3}, {.dtype = kF64, .requires_grad = true});
  const Tensor p = matmul(m, n);
  CHECK_VALUES(p, {0, 0, 0, 0, 0, 0});
  p.sum().backward();
  CHECK(m.grad().shape() == Shape{2, 0});
  CHECK(n.grad().shape() == Shape{0, 3});
  CHECK(topk(zeros({3}), 0).values.shape() == Shape{0});
  CHECK(error_text([] { static_cast<void>(topk(zeros({3}), 4)); }).starts_with("topk: "));
  CHECK(cat({zeros({0}), zeros({2, 3}), zeros({0})}).shape() == Shape{2, 3});
  CHECK_ERROR(zeros({0, 3}).reshape({-1, 0}), "reshape: the -1 in [-1, 0] is ambiguous for a tensor of shape [0, 3]");
}

TEST_CASE("tensors without axes") {
  const Tensor x = f64(2.5);
  for (const i64 dim : {0, -1}) {
    CHECK_VALUES(x.sum(dim), {2.5});
    CHECK_VALUES(x.cumsum(dim), {2.5});
    CHECK_VALUES(x.transpose(0, dim), {2.5});
    CHECK_VALUES(x.topk(1, dim).values, {2.5});
    CHECK_VALUES(x.max(dim).values, {2.5});
    CHECK_VALUES(softmax(x, dim), {1});
    CHECK_VALUES(sort(x, dim).indices, {0});
  }
  CHECK(error_text([&] { static_cast<void>(x.sum(1)); }) != "(no error)");
  CHECK_VALUES(f64({{1, 2}, {3, 4}}).sum(std::vector<i64>{}), {10});
  CHECK_ERROR(f64({{1, 2}}).sum({0, 0}), "sum: a dim appears twice in [0, 0]");
}

TEST_CASE("extents and strides that overflow are errors, and nothing is allocated") {
  const i64 live = memory_counters().bytes_live;
  CHECK_ERROR(zeros({1}).expand({INT64_MAX, INT64_MAX}),
              "expand: [9223372036854775807, 9223372036854775807] has more than 2^63-1 bytes");
  CHECK_ERROR(zeros({1}).expand({INT64_MAX}), "expand: [9223372036854775807] has more than 2^63-1 bytes");
  CHECK(error_text([] { static_cast<void>(zeros({1}).as_strided({INT64_MAX, 2}, {0, 0})); }) != "(no error)");
  CHECK(error_text([] { static_cast<void>(zeros({4}).as_strided({2}, {INT64_MAX})); }) != "(no error)");
  CHECK(error_text([] { static_cast<void>(zeros({4}).as_strided({INT64_MAX, 2}, {1, INT64_MAX})); }) != "(no error)");
  CHECK(error_text([] { static_cast<void>(zeros({2}).repeat({INT64_MAX})); }) != "(no error)");
  CHECK(error_text([] { static_cast<void>(pad(zeros({2}), {INT64_MAX, 1})); }) != "(no error)");
  CHECK(error_text([] { static_cast<void>(zeros({2}).view({INT64_MAX, -1})); }) != "(no error)");
  CHECK(error_text([] { static_cast<void>(empty({-3})); }) == "empty: negative extent in [-3]");
  CHECK(error_text([] { static_cast<void>(zeros(Shape(65))); }) != "(no error)");
  CHECK(memory_counters().bytes_live == live);
}

TEST_CASE("access from the host: item, at, accessor, conditions") {
  const Tensor x = f64({{1, 2, 3}, {4, 5, 6}}), turned = x.t();
  CHECK(turned.at<double>({2, 1}) == 6);
  CHECK(turned.at<double>({-1, -2}) == 3);
  turned.at<double>({0, 1}) = 40;
  CHECK(x.at<double>({1, 0}) == 40);
  CHECK(error_text([&] { static_cast<void>(x.at<double>({2, 0})); }) != "(no error)");
  CHECK(error_text([&] { static_cast<void>(x.at<double>({0})); }) != "(no error)");
  CHECK(error_text([&] { static_cast<void>(x.at<float>({0, 0})); }) != "(no error)");
  const auto a = turned.accessor<double, 2>();
  double total = 0;
  for (i64 i = 0; i < a.size(); ++i)
    for (i64 j = 0; j < a[i].size(); ++j) total += a[i][j] * static_cast<double>(10 * i + j);
  CHECK(total == 40 * 1 + 2 * 10 + 5 * 11 + 3 * 20 + 6 * 21.);
  a[2][1] = -6;
  CHECK(x.at<double>({1, 2}) == -6);
  CHECK_ERROR((x.accessor<double, 3>()), "accessor: the tensor has 2 axes ([2, 3]), the accessor 3");
  CHECK(error_text([&] { static_cast<void>(x.accessor<float, 2>()); }) != "(no error)");
  CHECK(f64({{7}}).item<i64>() == 7);
  CHECK(error_text([&] { static_cast<void>(x.item<double>()); }) != "(no error)");
  CHECK(error_text([&] { static_cast<void>(x.data<float>()); }) != "(no error)");
  CHECK(x.t().to_vector<i64>() == std::vector<i64>{1, 40, 2, 5, 3, -6});
  CHECK(static_cast<bool>(f64(3)));
  CHECK(!static_cast<bool>(tensor({false})));
  CHECK_ERROR(static_cast<bool>(x),
              "bool: a tensor with 6 elements is ambiguous as a condition: use any() or all()");
}

}  // namespace waymark::test
