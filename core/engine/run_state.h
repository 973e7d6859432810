// The state of a BackwardRun: the nodes in their order, one slot per output and leaf. Internal to core/engine.
#pragma once

#include "core/engine/backward.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace waymark {

// Where contributions to one gradient add up. First: borrowed. Second: a private buffer. Later ones: added in place.
struct Slot {
  Tensor value;
  bool owned = false;      // the engine holds the only handle of a dense buffer
  bool captured = false;   // an input of grad() that is no leaf
  int arrived = 0, expected = 0;
  void clear() {
    value = Tensor();
    owned = false;
    arrived = 0;
  }
};

// Rules and edges run with the grad mode of the run.
class ModeOfRun {
 public:
  explicit ModeOfRun(bool create_graph) : before_(thread_state().grad_enabled) { thread_state().grad_enabled = create_graph; }
  ~ModeOfRun() { thread_state().grad_enabled = before_; }
  ModeOfRun(const ModeOfRun&) = delete;
  ModeOfRun& operator=(const ModeOfRun&) = delete;

 private:
  bool before_;
};

struct BackwardRun::State {
  struct NodeState {
    Intrusive<Node> node;
    u32 first_slot;
    bool wanted;
  };
  struct LeafState {
    Tensor leaf;
    Slot slot;
    bool wanted;
  };
  struct Capture {
    Tensor tensor;
    u32 slot;
    Tensor grad;
  };

  State(std::vector<Tensor> roots, RunOptions options);
  void check_roots();
  void find_nodes();
  void mark_wanted();
  void start();
  bool leads_somewhere(const Edge& e);
  Slot* slot_of(const Edge& e);           // null: nothing is wanted there

  void deliver(Slot& slot, const Edge& to, Grad c, std::string_view op, size_t input);
  static Tensor to_dtype(Tensor t, DType dtype);
  void accumulate(Slot& slot, Tensor c);
  void own(Slot& slot);                   // makes the buffer private
  void add_window(Slot& slot, const Shape& shape, DType dtype, const Grad& c);

  bool run_one(NodeCard* card);           // null: no card is made
  void run_rule_of(NodeState& state, NodeCard* card);
  void run_hooks(Slot& slot, std::vector<Hook>& hooks, std::string_view where, NodeCard* card);
  [[noreturn]] static void rethrow_with_place(const Error& e, const Node& node);
  const Node* peek();
  void run_rest();
  GradMap collect();
  GradMap commit();
  void release_all();

  // core/engine/card.cpp
  static NodeCard describe_node(const Node& node);
  NodeCard::Outgoing describe_edge(const Edge& to, const Grad& g);
  static void finish_card(NodeCard& card, const Node& node);

  std::vector<Tensor> roots;
  RunOptions options;
  std::vector<Edge> root_edges;
  std::vector<NodeState> nodes;           // descending sequence numbers
  std::unordered_map<const Node*, u32> index;
  std::vector<Slot> slots;
  std::vector<LeafState> leaves;
  std::unordered_map<const TensorImpl*, u32> leaf_index;
  std::vector<Capture> captures;
  size_t at = 0, done = 0, total = 0;
  NodeCard last_card;
  bool has_card = false, replaying = false;
  u64 stopped_at = 0;
};

}  // namespace waymark
