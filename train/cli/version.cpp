#include <fmt/format.h>

#include "core/kernels/blas.h"
#include "core/kernels/clones.h"
#include "core/parallel/parallel.h"
#include "core/tensor/version.h"
#include "train/cli/command.h"

namespace waymark::train::cli {

namespace {

// The level that this processor runs of kernels with clones; a build without clones has one level.
const char* simd_level() {
#if defined(WAYMARK_NATIVE)
  return "native";
#elif WAYMARK_HAS_CLONES
  if (__builtin_cpu_supports("x86-64-v4")) return "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  return "baseline";
#else
  return "baseline";
#endif
}

}  // namespace

std::string version_text() {
#if defined(__clang__)
  const char* compiler = "clang " __clang_version__;
#else
  const char* compiler = "g++ " __VERSION__;
#endif
  return fmt::format("waymark {}\ncompiler  {}\nblas      {}, core {}\nsimd      {}\nthreads   {} ({})\n", version(),
                     compiler, kernels::blas_config(), kernels::blas_core_name(), simd_level(), parallel_backend(),
                     num_threads());
}

}  // namespace waymark::train::cli
