// Internal: what runs the chunks of a region.
#pragma once

#include "core/parallel/parallel.h"

namespace waymark::parallel {

struct Backend {
  const char* name;
  // Runs body(0) ... body(chunks - 1) on the caller and at most num_threads() - 1 others; rethrows what a chunk throws.
  void (*dispatch)(i64 chunks, const detail::ChunkBody& body, bool even);
  void (*resize)(int threads);
};
extern const Backend kThreads, kSerial;
#if defined(WAYMARK_BACKEND_TBB)
extern const Backend kTbb;
#endif

// SSE control word: rounding, denormals. Chunks run under that of the caller.
u32 read_mxcsr();
void write_mxcsr(u32 v);

// Set while this thread runs chunks: regions inside run inline.
class InRegion {
 public:
  explicit InRegion(u32 mxcsr);
  ~InRegion();
  InRegion(const InRegion&) = delete;
  InRegion& operator=(const InRegion&) = delete;
  static bool here();

 private:
  bool before_;
  u32 mxcsr_;
};

// Physical cores in the affinity mask, at most the quota of the cgroup.
int usable_cores();

}  // namespace waymark::parallel
