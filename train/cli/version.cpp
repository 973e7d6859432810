#include <fmt/format.h>

#include "core/parallel/parallel.h"
#include "core/tensor/version.h"
#include "train/cli/command.h"

namespace waymark::train::cli {

std::string version_text() {
#if defined(__clang__)
  const char* compiler = "clang " __clang_version__;
#else
  const char* compiler = "g++ " __VERSION__;
#endif
  return fmt::format("waymark {}\ncompiler  {}\nthreads   {} ({})\n", version(), compiler, parallel_backend(),
                     num_threads());
}

}  // namespace waymark::train::cli
