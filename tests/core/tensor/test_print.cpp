// Tensor::to_string against the text that PyTorch 2.13 prints for the same tensors (its dtypes by our names).
#include <doctest/doctest.h>

#include <limits>

#include "core/tensor/tensor.h"
#include "tests/tensors.h"

using namespace waymark;
using waymark::test::kInf;
using waymark::test::kNan;
using waymark::test::make;

namespace {

// start * scale, (start + 1) * scale, ...
template <class T> Tensor range(const Shape& shape, int start = 0, double scale = 1) {
  const Tensor t = make_empty(shape, dtype_of<T>);
  for (i64 i = 0; i < t.numel(); ++i) t.data<T>()[i] = static_cast<T>(start + i) * static_cast<T>(scale);
  return t;
}
// 1, 2, 3, then a thousand fractions, then 4, 5, 6.
Tensor hidden() {
  const Tensor t = make_empty({1006}, kF32);
  for (i64 i = 0; i < 1006; ++i) t.data<float>()[i] = i < 3 ? float(i + 1) : i > 1002 ? float(i - 999) : 0.123456f;
  return t;
}

struct Case {
  const char* name;
  Tensor tensor;
  const char* text;
};
std::vector<Case> cases() {
  return {
    {"1-d", make<float>({3}, {1.5, -2.25, 3.0}), "tensor([ 1.5000, -2.2500,  3.0000])"},
    {"whole numbers", make<float>({3}, {1.0, -2.0, 300.0}), "tensor([  1.,  -2., 300.])"},
    {"2-d", make<float>({2, 3}, {0.5, 1.0, -100.25, 2.0, 3.0, 4.0}),
     R"(tensor([[   0.5000,    1.0000, -100.2500],
        [   2.0000,    3.0000,    4.0000]]))"},
    {"3-d", range<float>({2, 2, 3}, 0, 0.125),
     R"(tensor([[[0.0000, 0.1250, 0.2500],
         [0.3750, 0.5000, 0.6250]],

        [[0.7500, 0.8750, 1.0000],
         [1.1250, 1.2500, 1.3750]]]))"},
    {"4-d", range<i64>({2, 2, 1, 2}),
     R"(tensor([[[[0, 1]],

         [[2, 3]]],


        [[[4, 5]],

         [[6, 7]]]]))"},
    {"5-d", make<float>({1, 1, 1, 1, 1}, {1.0}), "tensor([[[[[1.]]]]])"},
    {"i64", make<i64>({3}, {1, -20, 300}), "tensor([  1, -20, 300])"},
    {"i64 limits", make<i64>({2}, {INT64_MIN, INT64_MAX}),
     "tensor([-9223372036854775808,  9223372036854775807])"},
    {"b8", make<bool>({2, 2}, {true, false, false, true}),
     R"(tensor([[ True, False],
        [False,  True]]))"},
    {"b8 without False", make<bool>({1}, {true}), "tensor([True])"},
    {"0-d fraction", make<float>({}, {3.1415927410125732}), "tensor(3.1416)"},
    {"0-d whole", make<float>({}, {3.0}), "tensor(3.)"},
    {"0-d i64", make<i64>({}, {7}), "tensor(7)"},
    {"0-d b8", make<bool>({}, {false}), "tensor(False)"},
    {"0-d f64", make<double>({}, {2.5}), "tensor(2.5000, dtype=f64)"},
    {"0-d NaN", make<float>({}, {kNan}), "tensor(nan)"},
    {"empty", make<float>({0}, {}), "tensor([])"},
    {"empty 3-d", make<float>({2, 0, 3}, {}), "tensor([], size=(2, 0, 3))"},
    {"empty i64", make<i64>({0}, {}), "tensor([], dtype=i64)"},
    {"empty b8", make<bool>({0, 4}, {}), "tensor([], size=(0, 4), dtype=b8)"},
    {"empty f64", make<double>({3, 0}, {}), "tensor([], size=(3, 0), dtype=f64)"},
    {"NaN and infinities", make<float>({4}, {1.5, kNan, kInf, -kInf}),
     "tensor([1.5000,    nan,    inf,   -inf])"},
    {"NaN among whole numbers", make<float>({3}, {1.0, kNan, -kInf}), "tensor([1., nan, -inf])"},
    {"nothing finite but 0", make<float>({3}, {kNan, -kInf, 0.0}), "tensor([nan, -inf, 0.])"},
    {"-0 among whole numbers", make<float>({3}, {-0.0, 0.0, 1.0}), "tensor([-0., 0., 1.])"},
    {"-0 among fractions", make<float>({2}, {-0.0, 0.5}), "tensor([-0.0000, 0.5000])"},
    {"-0 alone", make<float>({1}, {-0.0}), "tensor([-0.])"},
    {"ratio 1001", make<float>({2}, {1.0, 1001.0}), "tensor([1.0000e+00, 1.0010e+03])"},
    {"ratio 1000", make<float>({2}, {1.0, 1000.0}), "tensor([   1., 1000.])"},
    {"below 1e-4", make<double>({1}, {9.9e-05}), "tensor([9.9000e-05], dtype=f64)"},
    {"1e-4", make<double>({1}, {0.0001}), "tensor([0.0001], dtype=f64)"},
    {"1e-4 in f32 is less", make<float>({1}, {1e-4}), "tensor([1.0000e-04])"},
    {"above 1e8", make<float>({2}, {110000000.0, 200000000.0}), "tensor([1.1000e+08, 2.0000e+08])"},
    {"1e8", make<float>({1}, {100000000.0}), "tensor([100000000.])"},
    {"scientific with all kinds", make<double>({5}, {1e-10, kNan, -10000000000.0, 0.0, -0.0}),
     R"(tensor([ 1.0000e-10,         nan, -1.0000e+10,  0.0000e+00, -0.0000e+00],
       dtype=f64))"},
    {"three digits of exponent", make<double>({2}, {1e+300, -1e-300}),
     "tensor([ 1.0000e+300, -1.0000e-300], dtype=f64)"},
    {"wrapped lines", range<i64>({30}),
     R"(tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,
        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29]))"},
    {"wrapped fractions", range<float>({25}, 0, 0.25),
     R"(tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000,
        2.2500, 2.5000, 2.7500, 3.0000, 3.2500, 3.5000, 3.7500, 4.0000, 4.2500,
        4.5000, 4.7500, 5.0000, 5.2500, 5.5000, 5.7500, 6.0000]))"},
    {"summarised 1-d", range<i64>({1001}), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"},
    {"summarised 2-d", range<float>({150, 7}, 0, 0.5),
     R"(tensor([[0.0000e+00, 5.0000e-01, 1.0000e+00,  ..., 2.0000e+00, 2.5000e+00,
         3.0000e+00],
        [3.5000e+00, 4.0000e+00, 4.5000e+00,  ..., 5.5000e+00, 6.0000e+00,
         6.5000e+00],
        [7.0000e+00, 7.5000e+00, 8.0000e+00,  ..., 9.0000e+00, 9.5000e+00,
         1.0000e+01],
        ...,
        [5.1450e+02, 5.1500e+02, 5.1550e+02,  ..., 5.1650e+02, 5.1700e+02,
         5.1750e+02],
        [5.1800e+02, 5.1850e+02, 5.1900e+02,  ..., 5.2000e+02, 5.2050e+02,
         5.2100e+02],
        [5.2150e+02, 5.2200e+02, 5.2250e+02,  ..., 5.2350e+02, 5.2400e+02,
         5.2450e+02]]))"},
    {"summarised 3-d", range<i64>({2, 20, 30}),
     R"(tensor([[[   0,    1,    2,  ...,   27,   28,   29],
         [  30,   31,   32,  ...,   57,   58,   59],
         [  60,   61,   62,  ...,   87,   88,   89],
         ...,
         [ 510,  511,  512,  ...,  537,  538,  539],
         [ 540,  541,  542,  ...,  567,  568,  569],
         [ 570,  571,  572,  ...,  597,  598,  599]],

        [[ 600,  601,  602,  ...,  627,  628,  629],
         [ 630,  631,  632,  ...,  657,  658,  659],
         [ 660,  661,  662,  ...,  687,  688,  689],
         ...,
         [1110, 1111, 1112,  ..., 1137, 1138, 1139],
         [1140, 1141, 1142,  ..., 1167, 1168, 1169],
         [1170, 1171, 1172,  ..., 1197, 1198, 1199]]]))"},
    {"summarised, last axis short", range<i64>({200, 6}),
     R"(tensor([[   0,    1,    2,    3,    4,    5],
        [   6,    7,    8,    9,   10,   11],
        [  12,   13,   14,   15,   16,   17],
        ...,
        [1182, 1183, 1184, 1185, 1186, 1187],
        [1188, 1189, 1190, 1191, 1192, 1193],
        [1194, 1195, 1196, 1197, 1198, 1199]]))"},
    {"hidden elements do not choose the form", hidden(), "tensor([1., 2., 3.,  ..., 4., 5., 6.])"},
    {"transposed view", alias(range<float>({2, 3}), {3, 2}, {1, 3}, 0),
     R"(tensor([[0., 3.],
        [1., 4.],
        [2., 5.]]))"},
    {"view with a step and an offset", alias(range<i64>({10}), {3}, {3}, 1), "tensor([1, 4, 7])"},
    {"reversed view", alias(range<i64>({4}), {4}, {-1}, 3), "tensor([3, 2, 1, 0])"},
    {"expanded view", alias(make<float>({1}, {1.25}), {2, 3}, {0, 0}, 0),
     R"(tensor([[1.2500, 1.2500, 1.2500],
        [1.2500, 1.2500, 1.2500]]))"},
    {"exact ties go to even", make<float>({2}, {0.03125, 0.09375}), "tensor([0.0312, 0.0938])"},
    {"f64 footer on the line", range<double>({10}, 1, 0.25),
     R"(tensor([0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000, 2.2500,
        2.5000], dtype=f64))"},
    {"f64 footer on its own line", range<double>({8}, 1, 0.25),
     R"(tensor([0.2500, 0.5000, 0.7500, 1.0000, 1.2500, 1.5000, 1.7500, 2.0000],
       dtype=f64))"},
    {"wide numbers", make<double>({2, 2}, {1e-05, 1.0, 123456.789, -1.0}),
     R"(tensor([[ 1.0000e-05,  1.0000e+00],
        [ 1.2346e+05, -1.0000e+00]], dtype=f64))"},
    {"wide integers", range<i64>({10}, 0, 1e17),
     R"(tensor([                 0, 100000000000000000, 200000000000000000,
        300000000000000000, 400000000000000000, 500000000000000000,
        600000000000000000, 700000000000000000, 800000000000000000,
        900000000000000000]))"},
  };
}

}  // namespace

TEST_CASE("tensors print as PyTorch prints them") {
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const u32 version = c.tensor.version();
    CHECK(c.tensor.to_string() == std::string(c.text));
    CHECK(c.tensor.version() == version);
    CHECK(fmt::format("{}", c.tensor) == std::string(c.text));
  }
}

TEST_CASE("the footer follows the default dtype") {
  struct Restore {
    ~Restore() { set_default_dtype(kF32); }
  } restore;
  set_default_dtype(kF64);
  CHECK(make<float>({1}, {1.5}).to_string() == "tensor([1.5000], dtype=f32)");
  CHECK(make<double>({1}, {1.5}).to_string() == "tensor([1.5000])");
  CHECK(make<float>({0}, {}).to_string() == "tensor([], dtype=f32)");
}

TEST_CASE("an undefined tensor prints, and so does one that is far too large to show") {
  CHECK(Tensor().to_string() == "tensor(undefined)");
  const Tensor huge = alias(make<float>({1}, {2}), {i64{1} << 40, 1}, {0, 0}, 0);
  CHECK(huge.to_string() == "tensor([[2.],\n        [2.],\n        [2.],\n        ...,\n        [2.],\n"
                            "        [2.],\n        [2.]])");
}
