// The messages of the errors that users meet most, whole.
#include <doctest/doctest.h>

#include <regex>

#include "core/autograd/state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/convolution.h"
#include "core/ops/einsum.h"
#include "core/ops/embedding.h"
#include "core/ops/functions.h"
#include "core/ops/inplace.h"
#include "core/ops/loss.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"
#include "core/tensor/allocator.h"
#include "tests/ops/expect.h"

namespace waymark::test {
namespace {

// The text of the error, with node numbers as #N and lines as :L.
template <class F> std::string plain(F f) {
  std::string text = error_text(f);
  text = std::regex_replace(text, std::regex("#[0-9]+"), "#N");
  return std::regex_replace(text, std::regex("\\.cpp:[0-9]+"), ".cpp:L");
}

}  // namespace

TEST_CASE("C43 messages: shapes, dtypes, places") {
  CHECK_ERROR(matmul(zeros({8, 64}), zeros({32, 8})), "matmul: inner sizes differ: [8, 64] x [32, 8] (64 != 32)");
  CHECK_ERROR(zeros({2, 3}) + zeros({4, 5}), "add: shapes do not broadcast: [2, 3] + [4, 5] (axis -1: 3 vs 5)");
  CHECK_ERROR(zeros({2, 3}) * zeros({4, 3}), "mul: shapes do not broadcast: [2, 3] + [4, 3] (axis -2: 2 vs 4)");
  CHECK_ERROR(embedding(tensor({5}), zeros({3, 2})),
              "embedding: index 5 at position [0] is outside the table of 3 rows");
  CHECK_ERROR(cross_entropy(zeros({1, 3}), tensor({3})),
              "cross_entropy: class 3 at position [0] is outside [0, 3) and is not ignore_index (-100)");
  CHECK_ERROR(zeros({2, 3}).t().view({6}),
              "view: [3, 2] with strides [1, 3] cannot become [6] without a copy (axes 0 and 1 are not adjacent in "
              "memory); use reshape");
  CHECK_ERROR(zeros({1, 1}).expand({4, 5}).add_(1),
              "add_: the target [4, 5] with strides [0, 0] has elements that share memory; clone() it first");
  CHECK_ERROR(matmul(zeros({2, 2}), zeros({2, 2}, kF64)),
              "matmul: dtypes differ: f32 x f64; convert one with to(...)");
  CHECK_ERROR(zeros({i64{1} << 31, i64{1} << 32}), "zeros: [2147483648, 4294967296] has more than 2^63-1 bytes");
}

TEST_CASE("V41_V45_V50_shapes_that_do_not_fit") {
  const auto refused = [](const char* op, const std::string& text) {
    INFO(text);
    CHECK(text.starts_with(std::string(op) + ": "));
  };
#define REFUSED(OP, ...) refused(OP, error_text([&] { static_cast<void>(__VA_ARGS__); }))
  REFUSED("matmul", matmul(zeros({2, 3, 4}), zeros({5, 4, 2})));
  REFUSED("matmul", matmul(zeros({}), zeros({3})));
  REFUSED("mm", mm(zeros({3}), zeros({3, 2})));
  REFUSED("bmm", bmm(zeros({2, 3, 4}), zeros({3, 4, 2})));
  REFUSED("einsum", einsum("ij,ij->ij", {zeros({2, 3}), zeros({4, 3})}));
  REFUSED("einsum", einsum("ij->ii", {zeros({2, 2})}));
  REFUSED("einsum", einsum("ij->ik", {zeros({2, 2})}));
  REFUSED("einsum", einsum("ij,jk->ik", {zeros({2, 2})}));
  REFUSED("einsum", einsum("ij->i", {zeros({2, 2, 2})}));
  REFUSED("conv1d", conv1d(zeros({1, 1, 2}), zeros({1, 1, 3})));
  REFUSED("conv1d", conv1d(zeros({1, 2, 5}), zeros({3, 4, 3})));
#undef REFUSED
}

TEST_CASE("C43 messages: versions and graphs that are gone") {
  const Tensor x = leaf({1, 2, 3});
  {
    const Scope scope("encoder.ffn");
    const Tensor y = exp(x), z = y * y;
    {
      const NoGrad off;
      y.add_(1);
    }
    CHECK(plain([&] { z.sum().backward(); }) ==
          "mul: backward needs input 1 (output of exp #N, [3] f64) as it was at version 0, but add_ wrote to it "
          "(version 1)\n"
          "  exp at messages.cpp:L in encoder.ffn; add_ at messages.cpp:L in encoder.ffn\n"
          "  write y = y + 1, or clone() before the change\n"
          "  in backward of mul #N at messages.cpp:L in encoder.ffn");
    const Tensor w = (x * x).sum();
    w.backward();
    CHECK(plain([&] { w.backward(); }) ==
          "mul #N (messages.cpp:L, encoder.ffn): its saved values were freed by the first backward; pass retain_graph "
          "= true there");
  }
  // Without a scope, and the op's own output.
  const Tensor y = exp(x);
  {
    const NoGrad off;
    y.mul_(2);
  }
  CHECK(plain([&] { y.sum().backward(); }) ==
        "exp: backward needs its output 0 ([3] f64) as it was at version 0, but mul_ wrote to it (version 1)\n"
        "  exp at messages.cpp:L; mul_ at messages.cpp:L\n"
        "  write y = y + 1, or clone() before the change\n"
        "  in backward of exp #N at messages.cpp:L");
}

TEST_CASE("C43 messages: roots, inputs and gradients that are not there") {
  const Tensor x = leaf({1, 2});
  CHECK_ERROR((x.view({2, 1}) * zeros({1, 5}, kF64)).backward(),
              "backward: the root has shape [2, 5]; pass a seed of that shape or reduce it, for example mean()");
  CHECK(plain([&] { (x.detach() * 2).sum().backward(); }) ==
        "backward: the root does not require grad: its history ends at detach (messages.cpp:L)");
  const Tensor table = zeros({33, 16}, {.dtype = kF64, .requires_grad = true});
  set_name(table, "position.table");
  CHECK_ERROR(grad(x.sum(), {x, table}),
              "grad: input 1 (\"position.table\", [33, 16]) was not used to compute the root; pass allow_unused = true "
              "if that is intended");
  Tensor y;
  {
    const Scope scope("encoder.layers.0.attention");
    y = softmax(x, 0);
  }
  CHECK(plain([&] { static_cast<void>(y.grad()); }) ==
        "grad(): this is the output of softmax #N (encoder.layers.0.attention), not a leaf; call watch(t) before "
        "backward");
}

TEST_CASE("C43 messages: memory") {
  testing::fail_after(0);
  CHECK_ERROR(zeros({8, 12, 16, 16}), "empty: cannot get 96.0 KiB for [8, 12, 16, 16] f32 (failing allocator of a test)");
  // The next one works, and so does what was there before.
  CHECK(zeros({8, 12, 16, 16}).numel() == 24576);
  const Tensor turned = zeros({3, 2}).t();
  testing::fail_after(0);
  CHECK_ERROR(zeros_like(turned), "empty: cannot get 24 B for [2, 3] f32 (failing allocator of a test)");
}

}  // namespace waymark::test
