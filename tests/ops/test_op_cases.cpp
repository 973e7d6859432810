// Runs the case table: gradients of every op in every layout, f32 against f64, bad inputs, and completeness.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/engine/backward.h"
#include "core/engine/gradcheck.h"
#include "core/ops/convert.h"
#include "core/ops/registry.h"
#include "tests/ops/instance.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::test;

namespace {

bool differentiable(const OpInfo& op, const Instance& x) {
  if (!op.rule.differentiable()) return false;
  for (const Tensor& t : x.leaves)
    if (t.requires_grad()) return true;
  return false;
}

// The same numbers in f32, as a constant computation.
void compare_f32(const Instance& x) {
  const NoGrad off;
  const std::vector<Tensor> exact = x.run(x.leaves);
  Instance y = x;
  for (size_t i = 0; i < y.leaves.size(); ++i)
    if (y.leaves[i].dtype() == kF64) y.leaves[i] = to(y.leaves[i], kF32);
  const std::vector<Tensor> single = y.run(y.leaves);
  REQUIRE(exact.size() == single.size());
  for (size_t k = 0; k < exact.size(); ++k) {
    CHECK(exact[k].shape() == single[k].shape());
    const auto a = exact[k].to_vector<double>(), b = single[k].to_vector<double>();
    double scale = 0;
    for (double v : a)
      if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
      if (a[i] == b[i]) continue;
      CAPTURE(i);
      CHECK(std::abs(a[i] - b[i]) <= 2e-4 * std::max(scale, 1e-3));
    }
  }
}

}  // namespace

TEST_CASE("C63 op cases: gradcheck, gradgradcheck, layouts, f32") {
  const int seeds = by_level(1, 3, 8);
  i64 first_order = 0, second_order = 0;
  for (const OpCase& c : all_cases()) {
    const OpInfo* op = find_op(c.op);
    CHECK_MESSAGE((op && op->apply), c.op << " is not listed, or cannot be called by name");
    if (!op || !op->apply) continue;
    size_t number = 0;
    for (MemoryLayout layout : kLayouts) {
      if (level() == Level::quick && number++ >= 2) break;
      for (int seed = 0; seed < seeds; ++seed) {
        Instance x = instance(op, title_of(c), c.args, layout, static_cast<u64>(seed));
        const std::string where = fmt::format("{}, {}, seed {}", x.title, name_of(layout), seed);
        INFO(where);
        const TensorFunction f = [&](const std::vector<Tensor>& v) { return x.run(v); };
        try {
          if (differentiable(*op, x)) {
            const GradcheckOptions options{.rtol = c.rtol, .atol = c.atol, .seed = static_cast<u64>(seed)};
            const GradcheckReport first = gradcheck(f, x.leaves, options);
            ++first_order;
            CHECK_MESSAGE(first.passed, first.message);
            // Second order is layout-blind but for the views themselves: two layouts will do.
            if (c.second && (layout == MemoryLayout::contiguous || layout == MemoryLayout::permuted || level() == Level::full)) {
              GradcheckOptions loose = options;
              loose.rtol = std::max(options.rtol, 1e-5);
              loose.atol = std::max(options.atol, 1e-7);
              const GradcheckReport second = gradgradcheck(f, x.leaves, loose);
              ++second_order;
              CHECK_MESSAGE(second.passed, "second order: " << second.message);
            }
          } else {
            x.run(x.leaves);
          }
          if (c.f32) compare_f32(x);
        } catch (const std::exception& e) {
          FAIL_CHECK(where << ": " << std::string(e.what()));
        }
      }
    }
  }
  MESSAGE(fmt::format("{} ops listed, {} cases; {} gradchecks, {} gradgradchecks", all_ops().size(), all_cases().size(),
                      first_order, second_order));
}

TEST_CASE("op cases: bad inputs give the documented message and change nothing") {
  for (const BadInput& b : all_bad_inputs()) {
    const OpInfo* op = find_op(b.op);
    CHECK_MESSAGE((op && op->apply), b.op << " is not listed, or cannot be called by name");
    if (!op || !op->apply) continue;
    const Instance x = instance(op, b.op, b.args, MemoryLayout::contiguous, 0);
    std::string text = "no error";
    try {
      x.run(x.leaves);
    } catch (const Error& e) {
      text = e.what();
    }
    INFO(b.op);
    if (b.message.ends_with('*')) CHECK(text.substr(0, b.message.size() - 1) == b.message.substr(0, b.message.size() - 1));
    else CHECK(text == b.message);
  }
}

TEST_CASE("op cases: every op has a case, a bad input and its texts") {
  std::set<std::string_view> with_case, with_bad, names;
  for (const OpCase& c : all_cases()) with_case.insert(c.op);
  for (const BadInput& b : all_bad_inputs()) with_bad.insert(b.op);
  for (const OpInfo* op : all_ops()) {
    INFO(op->name);
    CHECK_MESSAGE(names.insert(op->name).second, "listed twice");
    CHECK(!op->family.empty());
    CHECK(!op->doc.empty());
    CHECK(!op->formula.empty());
    CHECK(op->schema.substr(0, op->schema.find('(')) == op->name);
    // Without apply: internal adjoints and in-place forms, which the cases of their partners exercise.
    if (!op->apply) continue;
    CHECK_MESSAGE(with_case.contains(op->name), "no case");
    CHECK_MESSAGE(with_bad.contains(op->name), "no bad input");
  }
}

TEST_CASE("op cases: differentiable ops are sampled with an extent of 0 and without axes") {
  // Ops that need an axis (or more) of their differentiable inputs, or elements to choose from.
  const std::set<std::string_view> needs_axes = {
      "adaptive_avg_pool1d", "avg_pool1d", "max_pool1d", "interpolate", "conv1d", "conv_transpose1d",
      "mm", "bmm", "mv", "dot", "outer", "matmul", "baddbmm", "linear", "linear_packed",
      "inv", "linalg_solve", "cdist", "pairwise_distance", "cosine_similarity", "cosine_embedding_loss",
      "cat", "chunk", "split", "tensor_split", "unbind", "narrow", "select", "slice", "unfold", "unflatten", "diff",
      "diag", "diag_embed", "diagonal", "trace", "tril", "triu", "rot90", "mT", "pad", "movedim",
      "index", "embedding", "glu", "layer_norm", "rms_norm", "group_norm", "cross_entropy", "nll_loss",
      "fft", "ifft", "rfft", "irfft", "scaled_dot_product_attention",
      "pair_gather", "pair_scatter", "three_way_product", "rotate_pairs", "softmax_kl", "symmetric_kl"};
  const std::set<std::string_view> needs_elements = {};
  std::set<std::string_view> ops, with_empty, with_none;
  for (const OpCase& c : all_cases())
    for (const CaseArg& a : c.args) {
      if (!a.sampled || a.dtype != kF64 || !a.grad) continue;
      const OpInfo* op = find_op(c.op);
      if (!op || !op->rule.differentiable()) continue;
      ops.insert(op->name);
      i64 elements = 1;
      for (const i64 n : a.shape) elements *= n;
      if (elements == 0) with_empty.insert(op->name);
      if (a.shape.size() == 0) with_none.insert(op->name);
    }
  CHECK(ops.size() > 150);
  for (const std::string_view op : ops) {
    INFO(op);
    CHECK_MESSAGE(with_empty.contains(op) != needs_elements.contains(op), "a case with an extent of 0");
    CHECK_MESSAGE(with_none.contains(op) != needs_axes.contains(op), "a case without axes");
  }
}
