// Node: one recorded op in the graph that backward walks.
//
// Invariants
// * Sequence numbers are process-wide and increasing, hence larger than those of all inputs. Descending sequence
//   numbers are therefore a valid order of backward.
// * Everything a rule keeps lies in `saved`; the rule's closure holds indices into it. So values can be listed,
//   counted, version-checked, replaced and released.
// * A node holds neither a handle of its own output nor the impl of an input: it keeps aliases without history; the
//   history of an input is its edge. So no in-place op can close a reference cycle.
// * Nodes whose count reaches zero go to a thread-local list that the outermost release drains in a loop: chains of
//   any length are freed without recursion.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/autograd/grads.h"
#include "core/autograd/op_info.h"
#include "core/autograd/state.h"

namespace waymark {

// Where the gradient of an input goes: to output `slot` of a node, to a leaf, or nowhere.
struct Edge {
  Intrusive<Node> node{};
  Intrusive<TensorImpl> leaf{};
  u32 slot = 0;
  bool integral = false;  // the input is i64 or b8: a rule that returns a gradient for it is wrong
  bool wanted() const { return node || leaf; }
};

enum class SaveKind : u8 { input, output, indices, bits, stats, shape, key };

// Stands for a saved value that is not kept but can be had again (checkpointing, core/engine). Dropping the last
// handle says that nobody will ask for the value.
class Placeholder : public RefCounted {
 public:
  virtual ~Placeholder() = default;
  static void destroy(Placeholder* p) { delete p; }
  // Computes the value; called once.
  virtual Intrusive<TensorImpl> fill() = 0;
};

struct Saved {
  SaveKind kind{};
  u32 index = 0;               // which input or output
  u32 version = 0;             // of the storage when it was saved
  i64 bytes = 0;
  Intrusive<TensorImpl> data{};  // alias without history; null for shape and key, after release, and while lazy
  Intrusive<Placeholder> lazy{};
  // For people, as the op's schema names it: "weight", "tensors.2", "output", "mask bits".
  std::string what(const OpInfo& op) const;
};

// Takes the values that Savers keep while it is set on a thread (checkpointing, core/engine). put() returns the
// placeholder that the node keeps in place of the data; null: the node keeps the data itself.
class SaveSink {
 public:
  virtual ~SaveSink() = default;
  virtual Intrusive<Placeholder> put(const Tensor& t) = 0;
};

struct OutputMeta {
  Shape shape;
  DType dtype{};
};

// Keeps the gradient of a non-leaf; shared by its node and its tensor, so that neither holds the other.
struct GradCell : RefCounted {
  static void destroy(GradCell* cell) { delete cell; }
  Tensor grad;
};
using HookFunction = std::function<Tensor(const Tensor&)>;
struct Hook {
  u64 id = 0;
  std::shared_ptr<const HookFunction> run;  // shared with a run that walks over the list while it changes
};
using HookList = std::vector<Hook>;  // in order of registration
struct SlotHooks {
  u32 slot = 0;
  std::shared_ptr<HookList> hooks;  // null: none. Handles refer to it weakly
  Intrusive<GradCell> cell;     // retain_grad; filled after the hooks
  std::string name;             // from watch()
};

class WAYMARK_API Node : public RefCounted {
 public:
  Node(const OpInfo& op, Loc loc, size_t bytes);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  static void destroy(Node* node);
  static i64 live();
  // All living nodes, in no order. No other thread may record or free meanwhile.
  static std::vector<Node*> all_living();
  // How many nodes were made so far; sequence numbers are at most this.
  static u64 made();

  // The rule: gradients of the outputs in, gradients of the inputs out. Called through run_rule() only.
  virtual Grads run(std::span<Tensor> g, const Need& need) = 0;

  // "mul #12"
  std::string label() const;
  // "net.cpp:41 in encoder.ffn", or as much of it as is known; empty if nothing is.
  std::string where() const;

  // "net.cpp:41, encoder.ffn"
  std::string place() const;

  SlotHooks& hooks_of(u32 slot);
  SlotHooks* find_hooks(u32 slot);
  // Takes cell and name of a slot away from this node, for a tensor that gets another history.
  void drop_watch(u32 slot);
  // The saved value i, after the version check, the "freed" check, and recomputation if it is a checkpoint's
  // placeholder. It carries history iff grad mode is on (create_graph).
  Tensor unpack(size_t i);
  // Frees saved values and hooks; a rule that asks for one later gets an Error.
  void release();

  const OpInfo* op;
  u64 seq;
  u32 scope;
  bool released = false;
  Loc loc;
  SmallVector<Edge, 3> edges;        // one per input
  SmallVector<Saved, 3> saved;
  SmallVector<OutputMeta, 1> outputs;
  std::vector<SlotHooks> hooks;      // of the outputs; empty in nearly every node

 private:
  [[noreturn]] void version_error(const Saved& s) const;
  size_t bytes_;                     // of the whole object, for the slab
};

// Runs a node's rule with thread_state().running set, so that its SavedTensor handles resolve.
WAYMARK_API Grads run_rule(Node& node, std::span<Tensor> g, const Need& need);

// A saved tensor inside a rule's closure: `*a` or `a->mT()`. Only an index; resolves in the node that runs.
class WAYMARK_API SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(int index) : index_(index) {}
  explicit operator bool() const { return index_ >= 0; }
  Tensor operator*() const;
  struct Arrow {
    Tensor tensor;
    const Tensor* operator->() const { return &tensor; }
  };
  Arrow operator->() const { return {**this}; }

 private:
  int index_ = -1;
};

}  // namespace waymark
