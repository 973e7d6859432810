// The test program. Beside doctest's own output it prints one line that tests/run.sh adds up:
//   waymark-tests: 12 passed, 0 failed
// A test case that leaves graph nodes or storages behind has failed, too.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/autograd/node.h"
#include "core/inspect/counters.h"
#include "tests/ops/op_case.h"
#include "tests/test_level.h"

namespace {

unsigned g_selected = 0, g_leaks = 0;

// What a test case must leave as it was.
struct Living {
  waymark::i64 nodes, storages;
  static Living now() { return {waymark::Node::live(), waymark::Storage::live()}; }
  bool operator==(const Living&) const = default;
};

struct Summary : doctest::IReporter {
  explicit Summary(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& s) override {
    g_selected = s.numTestCasesPassingFilters;
    const unsigned failed = std::min(s.numTestCasesFailed + g_leaks, g_selected);
    fmt::print("waymark-tests: {} passed, {} failed\n", g_selected - failed, failed);
    std::fflush(stdout);
  }
  void test_case_start(const doctest::TestCaseData& test) override {
    name_ = test.m_name;
    before_ = Living::now();
  }
  void test_case_end(const doctest::CurrentTestCaseStats& s) override {
    const Living after = Living::now();
    if (after == before_ || s.failure_flags) return;
    ++g_leaks;
    fmt::print(stderr, "LEAK in \"{}\": {:+} nodes, {:+} storages\n{}", name_, after.nodes - before_.nodes,
               after.storages - before_.storages, waymark::inspect::live_graphs().to_string());
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override { waymark::test::all_cases(); }  // tensors that tests share are made before counting
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  std::string name_;
  Living before_{};
};
DOCTEST_REGISTER_LISTENER("summary", 1, Summary);

}  // namespace

int main(int argc, char** argv) {
  if (!waymark::test::level_is_valid()) {
    fmt::print(stderr, "WAYMARK_TEST_LEVEL must be quick, normal or full\n");
    return 2;
  }
  static_cast<void>(waymark::test::all_cases());  // the table holds tensors for good: no leak of the test that asks first
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit()) return result;
  if (g_selected == 0) {  // a filter with a typing error must not look like success
    fmt::print(stderr, "waymark-tests: no test case passes the filters\n");
    return 2;
  }
  return result ? result : g_leaks > 0;
}
