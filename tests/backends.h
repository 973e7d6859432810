// Backends and thread counts for the length of a scope.
#pragma once

#include <string>
#include <vector>

#include "core/parallel/parallel.h"
#include "core/tensor/error.h"

namespace waymark::test {

struct WithThreads {
  explicit WithThreads(int n) : before(num_threads()) { set_num_threads(n); }
  ~WithThreads() { set_num_threads(before); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;
  int before;
};

struct WithBackend {
  explicit WithBackend(const char* name) : before(parallel_backend()) { testing::set_parallel_backend(name); }
  ~WithBackend() { testing::set_parallel_backend(before.c_str()); }
  WithBackend(const WithBackend&) = delete;
  WithBackend& operator=(const WithBackend&) = delete;
  std::string before;
};

// Those of this build.
inline std::vector<std::string> backends() {
  std::vector<std::string> names;
  const std::string before = parallel_backend();
  for (const char* name : {"tbb", "threads", "serial"}) {
    try {
      testing::set_parallel_backend(name);
      names.push_back(name);
    } catch (const Error&) {
    }
  }
  testing::set_parallel_backend(before.c_str());
  return names;
}

}  // namespace waymark::test
