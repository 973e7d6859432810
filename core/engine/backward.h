// BackwardRun: backward as an object that can be stepped, stopped, looked at and rewound.
//
//   GradMap m = loss.backward();                 // construct + finish()
//   GradMap n = grad(loss, {w1, w2});            // never writes .grad
//   BackwardRun run(loss); while (run.step()) fmt::print("{}\n", run.current()); run.finish();
//
// * The run lives on the caller's thread; rules and hooks are called there. It holds no lock between steps.
// * Nodes run in descending order of their sequence numbers: each once, after all its consumers.
// * Only finish() commits to .grad. A run that throws, or is dropped unfinished, changes no .grad. A run that threw, or
//   is finished, does nothing more.
#pragma once

#include <memory>
#include <unordered_map>

#include "core/autograd/record.h"
#include "core/engine/card.h"

namespace waymark {

// Gradients by tensor, in the order in which they were asked for (or of the walk over the graph).
class WAYMARK_API GradMap {
 public:
  // The gradient of t; Error if there is none: absent is not zero.
  const Tensor& operator[](const Tensor& t) const;
  bool contains(const Tensor& t) const;
  size_t size() const { return entries_.size(); }
  struct Entry {
    Tensor tensor, grad;
  };
  const Entry* begin() const { return entries_.data(); }
  const Entry* end() const { return entries_.data() + entries_.size(); }
  void set(const Tensor& t, Tensor grad);

 private:
  std::vector<Entry> entries_;
  std::unordered_map<const TensorImpl*, size_t> index_;
};

struct RunOptions {
  std::vector<Tensor> seeds{};       // one per root, of its shape and dtype; may be empty if every root has one element
  std::vector<Tensor> inputs{};      // empty: all leaves. Otherwise only paths to these are walked, only these committed
  bool retain_graph = false;         // keep saved values for another backward
  bool create_graph = false;         // record the backward itself; implies retain_graph
  bool allow_unused = false;         // inputs that are not reached are absent from the map instead of an Error
  bool rewindable = false;           // keep saved values until the run ends, so that rewind() works
};

// Where until() stops. Names stop before the node: an op ("softmax"), a scope with all below it or a glob
// ("encoder.layers.0", "encoder.layers.*.attention"), "#131", a source line ("net.cpp:41"). Values stop after it:
// "norm>10", "gain>100", "nonfinite", "zero", "kink".
// The name of a tensor stops after its last contribution; "leaf": any leaf.
class WAYMARK_API StopPoint {
 public:
  StopPoint(std::string text);                                    // NOLINT: implicit on purpose
  StopPoint(const char* text) : StopPoint(std::string(text)) {}   // NOLINT
  const std::string& text() const { return text_; }
  // An op, a scope or a tensor: something that a typing error may miss for good.
  bool is_name() const { return kind_ == Kind::name; }
  bool matches_next(const Node& node) const;
  bool matches_done(const NodeCard& card) const;

 private:
  enum class Kind : u8 { name, seq, line, norm, gain, nonfinite, zero, leaf, kink };
  std::string text_;
  Kind kind_ = Kind::name;
  double limit_ = 0;
  u64 seq_ = 0;
};

class WAYMARK_API BackwardRun {
 public:
  explicit BackwardRun(const Tensor& root, RunOptions options = {});
  explicit BackwardRun(std::vector<Tensor> roots, RunOptions options = {});
  ~BackwardRun();
  BackwardRun(BackwardRun&&) noexcept;
  BackwardRun& operator=(BackwardRun&&) noexcept;

  // Runs one node; false when none is left (nothing is committed yet).
  bool step();
  // Runs until the stop point; false if no node is left.
  bool until(const StopPoint& stop);
  // Card of the node that ran last; Error before the first step. Keeps values only while the run is stepped.
  const NodeCard& current() const;
  // The node that step() would run next; null at the end.
  const Node* next() const;
  i64 index() const;                 // nodes that ran
  i64 total() const;                 // nodes that will run in all
  u64 number() const;                // of this run in the process: NodeCard::run
  const std::vector<Tensor>& roots() const;
  // The nodes that can run, in the order of the run, those that are not wanted left out.
  std::vector<const Node*> nodes() const;
  // Leaves that want a gradient, in the order of the walk over the graph.
  std::vector<Tensor> leaves() const;
  // Back to the state after `to` nodes, by exact replay from the start; needs rewindable. Hooks run again.
  void rewind(i64 to = 0);
  bool replaying() const;            // inside such a replay (hooks may ask)
  // Gradients of leaves and inputs so far, uncommitted.
  GradMap grads() const;
  // The rest, then the commit to .grad. The map holds what this run computed: where .grad was undefined, .grad itself;
  // where it was added to, the summand. With create_graph the map's gradients have history, .grad has none.
  GradMap finish();
  // The rest without a commit: what grad() returns.
  GradMap finish_without_commit();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Gradients of a root with respect to some tensors (leaves or not); .grad is not touched.
WAYMARK_API GradMap grad(const Tensor& root, const std::vector<Tensor>& inputs, RunOptions options = {});
WAYMARK_API GradMap grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs, RunOptions options = {});

// Removes the hook that register_hook made. A removal during a run takes effect from the next tensor. The handle keeps
// neither the tensor nor its graph alive.
class WAYMARK_API HookHandle {
 public:
  HookHandle() = default;
  HookHandle(std::weak_ptr<HookList> list, u64 id) : list_(std::move(list)), id_(id) {}
  void remove();

 private:
  std::weak_ptr<HookList> list_;
  u64 id_ = 0;
};

// Keeps value and gradient of t, under a name that cards and errors show.
inline const Tensor& watch(const Tensor& t, std::string name) { return t.watch(std::move(name)); }

}  // namespace waymark
