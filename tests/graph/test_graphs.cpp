// Random graphs of ops: the engine against a tape of scalars. A failure prints its seed and the smallest program found.
//   WAYMARK_GRAPH_SEEDS=123 waymark-tests -tc='random graphs*'   one seed; 1..5000: some
//   WAYMARK_TEST_LEVEL=full waymark-tests -tc='random graphs*'   200,000 graphs
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <set>
#include <string_view>

#include "core/ops/registry.h"
#include "tests/graph/generate.h"
#include "tests/graph/interpreter.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::test::graph;

TEST_CASE("random graphs: engine and scalar tape agree") {
  const char* given = std::getenv("WAYMARK_GRAPH_SEEDS");
  u64 first = 1, count = by_level<u64>(30, 300, 200000);
  if (given) {
    char* end = nullptr;
    first = std::strtoull(given, &end, 10);
    count = std::string_view(end).starts_with("..") ? std::strtoull(end + 2, nullptr, 10) - first + 1 : 1;
  }
  std::map<std::string, i64> used;
  u64 equal = 0, refused = 0, failures = 0, ops = 0;
  for (u64 seed = first; seed < first + count && failures < 5; ++seed) {
    const Program p = random_program(seed);
    const Comparison c = compare(p);
    for (const Instruction& in : p.code)
      if (in.op != "leaf") ++used[in.op], ++ops;
    if (c.outcome == Outcome::equal) ++equal;
    if (c.outcome == Outcome::refused) ++refused;
    if (c.outcome != Outcome::different) continue;
    ++failures;
    const Program small = shrink(p);
    FAIL_CHECK("seed " << seed << ": " << c.message << "\nshrunk: " << compare(small).message << "\n" << to_cpp(small));
  }
  MESSAGE(fmt::format("seeds {} to {}: {} graphs equal, {} refused; {} ops of {} kinds", first, first + count - 1, equal,
                      refused, ops, used.size()));
  if (given) return;
  CHECK(refused * 4 < count);
  std::set<std::string> kinds;
  for (const ScalarOp& op : scalar_ops().all()) kinds.insert(op.name);
  size_t unused = 0;
  for (const std::string& kind : kinds) unused += used.count(kind) == 0;
  CHECK(unused <= by_level<size_t>(kinds.size() / 2, 20, 0));
}

TEST_CASE("random graphs: what the interpreter knows are ops of the registry") {
  for (const ScalarOp& op : scalar_ops().all()) {
    const OpInfo* info = find_op(op.name);
    CHECK_MESSAGE((info && info->apply), op.name);
  }
}
