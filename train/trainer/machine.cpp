#include "train/trainer/machine.h"

#include <sys/resource.h>

#include <chrono>
#include <ctime>
#include <fstream>

#include "core/kernels/blas.h"
#include "core/kernels/peak.h"
#include "core/parallel/parallel.h"

namespace waymark::train {

CpuFacts cpu_facts() {
  CpuFacts facts;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) facts.model = line.substr(colon + 2);
    break;
  }
  facts.cores = num_threads();
  facts.peak_flops = kernels::fma_peak() * static_cast<double>(facts.cores);
  facts.blas_core = kernels::blas_core_name();
  return facts;
}

double process_cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace waymark::train
