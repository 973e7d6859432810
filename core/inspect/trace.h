// Trace: what happened in a forward pass and in one backward run, as data. Recorders make it; the stepper, pages and
// tests read it.
//
//   inspect::Recorder recorder({.keep = inspect::Keep::values});
//   Tensor loss = cross_entropy(net(x), target);
//   const inspect::Trace trace = inspect::record(loss);             // runs backward; .grad stays as it is
//   trace.node("softmax", "encoder.layers.0.attention").incoming().norm();
//   for (const Contribution& c : trace.tensor("position.table").contributions()) fmt::print("{} {}\n", c.from, c.share);
//   trace.expect_order({"cross_entropy", "linear", "layer_norm"});
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/backward.h"

namespace waymark::inspect {

// Means of blocks of a large matrix (leading axes folded into rows), at most 64 x 64.
struct Picture {
  i64 rows = 0, columns = 0;
  std::vector<double> means;  // row by row
};

inline constexpr u32 kNoTensor = 0xFFFFFFFF;

// One tensor at one moment: an in-place change makes a new record.
struct TensorRecord : CardTensor {
  u32 id = 0;
  u32 event = kNoTensor;        // number of the op that made it; kNoTensor: it was there before
  u64 seq = 0;                  // of the node that made it; 0: none
  u32 slot = 0;                 // which output of it
  u32 view_of = kNoTensor;      // the tensor whose memory it shares
  bool requires_grad = false;
  Picture picture;              // of values that are too many to be kept
};

struct SavedRecord {
  std::string what;             // "weight", "output", "statistics", ...
  u32 tensor = kNoTensor;
  Shape shape;
  i64 bytes = 0;
  u32 version = 0;
};

// One op of the forward pass.
struct ForwardRecord {
  u32 number = 0;               // position in Trace::forward()
  u64 seq = 0;                  // of its node; 0: no gradient flows, so there is no node
  const OpInfo* op = nullptr;
  int order = 1;                // 2: recorded by a rule inside create_graph
  std::vector<std::pair<std::string, AttrValue>> attributes;
  u32 scope_id = 0;
  Loc loc;
  std::vector<u32> inputs, outputs;  // ids of tensors; kNoTensor: an argument that was not given
  std::vector<SavedRecord> saved;
  bool in_place = false;
  i64 nanoseconds = 0;          // since the previous op ended, so the caller's own work before it counts, too
  double flops = 0, bytes = 0;  // bytes: of inputs and outputs
  const std::string& scope() const { return scope_path(scope_id); }
  std::string label() const;    // "softmax #131"; without a node "log @12", by its number
};

class TraceNode;
class TraceTensor;

class WAYMARK_API Trace {
 public:
  // In the order in which the ops ran.
  const std::vector<ForwardRecord>& forward() const { return forward_; }
  const std::vector<TensorRecord>& tensors() const { return tensors_; }
  // One card a node, in the order of the run.
  const std::vector<NodeCard>& backward() const { return backward_; }

  // The node that ran first among those whose op is `op` ("softmax", or "#131", or "softmax #131") and whose scope is
  // `scope`, lies below it, or matches it as a glob; empty: any. `which` asks for a later one. Error if there is none.
  TraceNode node(std::string_view op, std::string_view scope = {}, size_t which = 0) const;
  // By name: a parameter's path, what watch() said, or "softmax #131". Error that suggests others.
  TraceTensor tensor(std::string_view name) const;
  // Names of all tensors that have gradients or records.
  std::vector<std::string> names() const;
  // The ops ran backward in this order, with others between them. Error that says where the order breaks.
  void expect_order(const std::vector<std::string>& ops) const;

  const ForwardRecord* find_forward(u64 seq) const;
  const TensorRecord* find_tensor(u64 seq, u32 slot) const;
  // The latest record of this name.
  const TensorRecord* find_tensor(std::string_view name) const;
  // Drops the cards of other backward runs.
  void keep_run(u64 run);

 private:
  friend class Recorder;
  std::vector<ForwardRecord> forward_;
  std::vector<TensorRecord> tensors_;
  std::vector<NodeCard> backward_;
  std::map<std::pair<u64, u32>, u32> made_;  // (seq, slot) -> tensor
  std::map<u64, u32> of_node_;               // seq -> forward record
};

// One node of a trace. Refers to the trace, which must outlive it.
class WAYMARK_API TraceNode {
 public:
  explicit TraceNode(const NodeCard& card) : card_(&card) {}
  const NodeCard& card() const { return *card_; }
  // Gradient of an output; Error if it was not computed or its values were not kept.
  Tensor incoming(size_t output = 0) const;
  // What the node contributes to the gradient of input i (as numbered in its schema), after the edge.
  Tensor outgoing(int input = 0) const;
  // Forward values, likewise.
  Tensor input(size_t i = 0) const;
  Tensor output(size_t k = 0) const;

 private:
  Tensor value_of(const CardTensor& t, std::string_view what) const;
  const NodeCard* card_;
};

class WAYMARK_API TraceTensor {
 public:
  TraceTensor(const Trace& trace, std::string name) : trace_(&trace), name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  // The forward value; Error if it was not kept.
  Tensor value() const;
  // What arrived, largest norm first. Empty: nothing arrived.
  std::vector<Contribution> contributions() const;
  // Their sum; undefined if nothing arrived.
  CardTensor gradient() const;

 private:
  const Trace* trace_;
  std::string name_;
};

}  // namespace waymark::inspect
