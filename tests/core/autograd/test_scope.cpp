// Module paths as numbers: the same path the same number, from any thread, while others are being added.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/autograd/state.h"
#include "core/tensor/error.h"
#include "tests/error_text.h"

using namespace waymark;

TEST_CASE("scopes: one number a path, which never moves, from several threads") {
  CHECK(intern_scope("") == 0);
  CHECK(scope_path(0).empty());
  const std::string* const first = &scope_path(intern_scope("scopes.0"));
  constexpr int kPaths = 500;  // several blocks
  std::vector<std::vector<u32>> ids(3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (auto& mine : ids)
    threads.emplace_back([&] {
      for (int i = 0; i < kPaths; ++i) {
        const std::string path = "scopes." + std::to_string(i);
        mine.push_back(intern_scope(path));
        const Scope scope(mine.back());
        if (scope_path(thread_state().scope) != path) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(ids[0] == ids[1]);
  CHECK(ids[0] == ids[2]);
  for (int i = 0; i < kPaths; ++i) CHECK(scope_path(ids[0][static_cast<size_t>(i)]) == "scopes." + std::to_string(i));
  CHECK(&scope_path(intern_scope("scopes.0")) == first);
  CHECK(test::has(test::error_text([] { (void)scope_path(0x7FFFFFFF); }), "scope: there is no module path of number 2147483647"));
}
