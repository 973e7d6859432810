// Rules compute what they are asked for, and nothing else.
#include <doctest/doctest.h>

#include "core/engine/backward.h"
#include "core/ops/create.h"
#include "core/ops/registry.h"
#include "tests/ops/instance.h"

namespace waymark::test {

// For each input alone: the rule gives its gradient, and for the others at most what costs nothing, the incoming g.
TEST_CASE("a rule computes no gradient that is not wanted") {
  int rules = 0;
  for (const OpCase& c : all_cases()) {
    const OpInfo* op = find_op(c.op);
    if (!op || !op->apply || !op->rule.differentiable()) continue;
    const Instance x = instance(op, title_of(c), c.args, MemoryLayout::contiguous, 0);
    const std::vector<Tensor> outputs = x.run(x.leaves);
    for (const Tensor& y : outputs) {
      const Intrusive<Node> node = edge_of(y).node;
      if (!node) continue;
      const size_t inputs = node->edges.size();
      for (size_t wanted = 0; wanted < inputs; ++wanted) {
        if (!node->edges[wanted].wanted()) continue;
        std::vector<Tensor> g;
        for (const OutputMeta& m : node->outputs) g.push_back(is_float(m.dtype) ? ones(m.shape, m.dtype) : Tensor());
        const std::vector<Tensor> incoming = g;
        Need need(inputs);
        need.set(wanted);
        const NoGrad off;
        const Grads out = run_rule(*node, g, need);
        ++rules;
        REQUIRE(out.size() == inputs);
        for (size_t i = 0; i < inputs; ++i) {
          if (i == wanted || !out[i].value.defined()) continue;
          bool free = false;
          for (const Tensor& t : incoming) free |= t.defined() && overlap_of(t, out[i].value) != Overlap::none;
          CHECK_MESSAGE((free || out[i].value.numel() == 0), x.title << ": input " << i << " was not wanted, only " << wanted);
        }
      }
      break;
    }
  }
  CHECK(rules > 300);
}

}  // namespace waymark::test
