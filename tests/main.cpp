// The test program. Beside doctest's own output it prints one line that tests/run.sh adds up:
//   waymark-tests: 12 passed, 0 failed
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/test_level.h"

namespace {

unsigned g_selected = 0;

struct Summary : doctest::IReporter {
  explicit Summary(const doctest::ContextOptions&) {}
  void test_run_end(const doctest::TestRunStats& s) override {
    g_selected = s.numTestCasesPassingFilters;
    fmt::print("waymark-tests: {} passed, {} failed\n", g_selected - s.numTestCasesFailed, s.numTestCasesFailed);
    std::fflush(stdout);
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
DOCTEST_REGISTER_LISTENER("summary", 1, Summary);

}  // namespace

int main(int argc, char** argv) {
  if (!waymark::test::level_is_valid()) {
    fmt::print(stderr, "WAYMARK_TEST_LEVEL must be quick, normal or full\n");
    return 2;
  }
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit()) return result;
  if (g_selected == 0) {  // a filter with a typing error must not look like success
    fmt::print(stderr, "waymark-tests: no test case passes the filters\n");
    return 2;
  }
  return result;
}
