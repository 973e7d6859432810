// Counters of the engine, and what keeps memory: graphs that are still alive, values that nodes keep.
//
// counters().bytes_saved, live_graphs() and GrowthWatch look at all graph nodes of the process: no other thread may
// record or free a graph meanwhile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::inspect {

struct Counters {
  i64 live_nodes = 0, live_tensors = 0, live_storages = 0;
  i64 bytes_live = 0, bytes_peak = 0, bytes_cached = 0;  // tensor memory: in use, its largest value, kept for later
  i64 bytes_saved = 0;       // kept by nodes for backward, each storage once
  i64 ops_recorded = 0;      // ops that ran so far, whether a node was made or not
  i64 allocations = 0;       // calls to the system for tensor memory
  i64 parallel_regions = 0, gemm_calls = 0;
};
WAYMARK_API Counters counters();
// bytes_peak starts again from bytes_live.
WAYMARK_API void reset_peak();

// A graph that nothing but handles keeps alive, by the node at its end.
struct LiveGraph {
  std::string op, scope, place;  // place: "net.cpp:41"; empty if unknown
  u64 seq = 0;
  i64 nodes = 0, bytes = 0;      // what no younger graph of the list has, and what it keeps
  i64 age = 0;                   // nodes made since its end was made
};
// A leaf whose own hook holds a handle to it: a cycle that counts cannot free. `only`: nothing else holds the leaf.
struct SelfHeldLeaf {
  std::string name;              // empty if it has none
  Shape shape;
  bool only = false;
};
struct WAYMARK_API LiveGraphs {
  std::vector<LiveGraph> graphs;     // the youngest first
  std::vector<SelfHeldLeaf> leaves;
  std::string to_string() const;
};
// Copies the functions of leaf hooks to see what they hold.
WAYMARK_API LiveGraphs live_graphs();

// Finds a loop that keeps graphs: ask it after each step.
class WAYMARK_API GrowthWatch {
 public:
  // steps: after how many steps in a row with more living nodes it speaks.
  explicit GrowthWatch(int steps = 20) : steps_(steps) {}
  // The warning, once per series: where the largest living graph was made, and what to do.
  std::optional<std::string> after_step();

 private:
  int steps_, grew_ = 0;
  i64 nodes_ = -1;
};

}  // namespace waymark::inspect
