// Every fused op against its twin, over the case table: values and gradients in f64 (rtol 1e-12) and f32 (rtol 1e-5).
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/registry.h"
#include "tests/ops/instance.h"
#include "tests/ops/values.h"

namespace waymark::test {
namespace {

// The ops that run.
struct Names final : Observer {
  void on_op(const ForwardEvent& e) override { names.insert(std::string(e.op.name)); }
  void before_write(const Tensor&) override {}
  void on_rule(const Node&, std::span<const Tensor>, const Grads&) override {}
  std::set<std::string> names;
};

struct Results {
  std::vector<Tensor> values, grads;  // an undefined gradient: none arrived
};

// The op on the leaves, and the gradients of Σ outputs ⊙ weights.
Results results(const Instance& x, const std::vector<Tensor>& leaves) {
  Results r{.values = x.run(leaves), .grads = {}};
  std::vector<Tensor> roots, wanted;
  RunOptions options{.allow_unused = true};
  double phase = 0.3;
  for (const Tensor& v : r.values) {
    if (!v.requires_grad()) continue;
    roots.push_back(v);
    const Tensor g = make_empty(v.shape(), kF64);
    for (i64 i = 0; i < g.numel(); ++i) g.data<double>()[i] = std::cos(phase += 1.7);
    options.seeds.push_back(to(g, v.dtype()));
  }
  for (const Tensor& t : leaves)
    if (t.requires_grad()) wanted.push_back(t);
  if (roots.empty() || wanted.empty()) return r;
  const GradMap map = grad(roots, wanted, options);
  for (const Tensor& t : wanted) r.grads.push_back(map.contains(t) ? map[t] : Tensor());
  return r;
}


}  // namespace

TEST_CASE("fused ops equal their twins") {
  int compared = 0;
  for (const OpCase& c : all_cases()) {
    const OpInfo* op = find_op(c.op);
    if (!op || !op->apply || op->twin.empty()) continue;
    for (const MemoryLayout layout : {MemoryLayout::contiguous, MemoryLayout::permuted})
      for (const DType dtype : {kF64, kF32}) {
        const Instance x = instance(op, title_of(c), c.args, layout, 3);
        INFO(x.title << ", " << name_of(layout) << ", " << name_of(dtype));
        std::vector<Tensor> leaves;
        for (const Tensor& t : x.leaves) {
          leaves.push_back(is_float(t.dtype()) ? to(t.detach(), dtype) : t);
          if (t.requires_grad()) leaves.back().requires_grad_();
        }
        const Results fused = results(x, leaves);
        const ExplainMode explain;
        Names inside;
        thread_state().observer = &inside;
        static_cast<void>(x.run(leaves));
        thread_state().observer = nullptr;
        // A case may have nothing to do (p = 0), but the fused op itself must not run.
        CHECK(!inside.names.contains(c.op));
        const Results twin = results(x, leaves);
        REQUIRE(fused.values.size() == twin.values.size());
        REQUIRE(fused.grads.size() == twin.grads.size());
        const double limit = dtype == kF64 ? 1e-12 : 1e-5;
        for (size_t i = 0; i < fused.values.size(); ++i) CHECK(distance(fused.values[i], twin.values[i]) <= limit);
        for (size_t i = 0; i < fused.grads.size(); ++i) CHECK(distance(fused.grads[i], twin.grads[i]) <= limit);
        ++compared;
      }
  }
  CHECK(compared > 0);
  for (const char* op : {"softmax", "log_softmax", "masked_softmax", "layer_norm", "rms_norm", "cross_entropy", "gelu",
                         "silu", "dropout"})
    CHECK(!find_op(op)->twin.empty());
}

}  // namespace waymark::test
