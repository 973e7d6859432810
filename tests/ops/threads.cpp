// Bits do not depend on the number of threads: every op of the case table, values and gradients, on inputs that are
// large enough for several chunks.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "core/engine/backward.h"
#include "core/ops/registry.h"
#include "core/parallel/parallel.h"
#include "tests/ops/instance.h"
#include "tests/tensors.h"
#include "tests/test_level.h"

namespace waymark::test {
namespace {

struct Threads {
  int before = num_threads();
  ~Threads() { set_num_threads(before); }
};

// The case with all extents above 1 times k, so that equal extents stay equal. (Arguments that name extents do not
// grow with them; such a case is then refused by the op, and stays small.)
std::vector<CaseArg> grown(const OpCase& c, i64 k) {
  std::vector<CaseArg> args = c.args;
  for (CaseArg& a : args)
    for (i64& e : a.shape)
      if (e > 1) e *= k;
  return args;
}
i64 largest(const std::vector<CaseArg>& args) {
  i64 most = 0;
  for (const CaseArg& a : args)
    if (a.sampled) most = std::max(most, checked_numel("grown", a.shape));
  return most;
}

// The op's results and gradients.
std::vector<Tensor> results_and_gradients(const Instance& x) {
  std::vector<Tensor> out = x.run(x.leaves), roots, inputs;
  RunOptions options{.allow_unused = true};
  for (const Tensor& t : out) {
    if (!t.requires_grad()) continue;
    const Tensor g = make_empty(t.shape(), t.dtype());
    for (i64 i = 0; i < g.numel(); ++i) g.data<double>()[i] = static_cast<double>((i * 7919) % 1009) / 1009 - 0.4;
    roots.push_back(t);
    options.seeds.push_back(g);
  }
  for (const Tensor& t : x.leaves)
    if (t.requires_grad()) inputs.push_back(t);
  if (!roots.empty() && !inputs.empty()) {
    const GradMap map = grad(roots, inputs, options);
    for (const Tensor& t : inputs) out.push_back(map.contains(t) ? map[t] : Tensor());
  }
  return out;
}

}  // namespace

TEST_CASE("every op gives the same bits at 1, 2, 3 and 4 threads") {
  const Threads restore;
  const std::vector<int> counts = by_level(std::vector<int>{3}, {2, 3, 4}, {2, 3, 4, 7});
  const int cases_of_an_op = by_level(1, 2, 100);
  // Not parallel, and slow: small matrices are enough.
  const std::set<std::string_view> cubic = {"linalg", "einsum", "similarity", "attention", "relative"};
  std::map<std::string, int> tried;
  std::set<std::string_view> large, parallel, all;
  for (const OpCase& c : all_cases()) {
    const OpInfo* op = find_op(c.op);
    if (!op || !op->apply || op->name == "empty") continue;  // empty: its values are what was in the memory
    all.insert(op->name);
    if (tried[c.op]++ >= cases_of_an_op) continue;
    // kron: its result has as many elements as both inputs multiplied.
    const i64 goal = op->name == "kron" ? 300 : cubic.contains(op->family) ? 4000 : 70000;
    i64 k = 1;
    while (k < 40000 && largest(grown(c, k)) < goal && largest(grown(c, k + 1)) > largest(grown(c, k))) ++k;
    Instance x;
    std::vector<Tensor> one;
    set_num_threads(1);
    for (;; k = 1) {
      x = instance(op, title_of(c), grown(c, k), MemoryLayout::contiguous, 5);
      try {
        one = results_and_gradients(x);
        break;
      } catch (const Error&) {
        if (k == 1) break;  // an error at its own size is for the test of the cases
      }
    }
    if (k > 1) large.insert(op->name);
    INFO(x.title << " times " << k);
    for (const int threads : counts) {
      set_num_threads(threads);
      const i64 regions = parallel_regions();
      CAPTURE(threads);
      CHECK(difference_of(results_and_gradients(x), one) == "");
      if (parallel_regions() > regions) parallel.insert(op->name);
    }
  }
  MESSAGE(fmt::format("{} ops, {} of them on large inputs, {} of these in parallel", all.size(), large.size(), parallel.size()));
  CHECK(large.size() * 4 > all.size() * 3);
  if (std::string_view(parallel_backend()) != "serial") CHECK(parallel.size() * 2 > all.size());
}

}  // namespace waymark::test
