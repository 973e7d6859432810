// How many cores this process may use.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "core/parallel/backend.h"

namespace waymark::parallel {
namespace {

// Two threads of one core share its arithmetic units; they count once.
int physical_cores() {
  const int logical = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return logical;
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    std::string siblings;  // "0,4", the same text for every thread of a core
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
    if (!std::getline(file, siblings)) siblings = "cpu " + std::to_string(cpu);
    cores.insert(siblings);
  }
  return cores.empty() ? logical : static_cast<int>(cores.size());
}

double limit_of(const std::string& folder) {
  double quota = 0, period = 0;
  std::ifstream two(folder + "/cpu.max");  // "max 100000" or "150000 100000"
  if (two >> quota >> period && quota > 0 && period > 0) return quota / period;
  std::ifstream q(folder + "/cpu.cfs_quota_us"), p(folder + "/cpu.cfs_period_us");  // version 1; -1: none
  if (q >> quota && p >> period && quota > 0 && period > 0) return quota / period;
  return INFINITY;
}

// The smallest limit of the process's control group and those above it.
double cgroup_cores() {
  double least = std::min(limit_of("/sys/fs/cgroup"), limit_of("/sys/fs/cgroup/cpu"));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t colon = line.rfind(':');
    if (colon == std::string::npos || line.find("..") != std::string::npos) continue;
    const bool two = line.starts_with("0::"), cpu = line.find("cpu") < colon;
    if (!two && !cpu) continue;
    for (std::string path = line.substr(colon + 1); path.size() > 1; path.resize(path.rfind('/')))
      least = std::min(least, limit_of((two ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu") + path));
  }
  return least;
}

}  // namespace

int usable_cores() {
  const double quota = std::ceil(cgroup_cores());
  const int cores = physical_cores();
  return quota < cores ? std::max(1, static_cast<int>(quota)) : cores;
}

}  // namespace waymark::parallel
