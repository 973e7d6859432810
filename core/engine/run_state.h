// Internal: the state of a BackwardRun: the nodes in their order, one slot per output and leaf.
#pragma once

#include "core/engine/backward.h"
#include "core/engine/pointer_index.h"
#include "core/engine/observed.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace waymark {

// Where contributions to one gradient add up. First: borrowed. Second: a private buffer. Later ones: added in place.
struct Slot {
  Tensor value;
  bool owned = false;      // the engine holds the only handle of a dense buffer
  bool captured = false;   // an input of grad() that is no leaf
  int arrived = 0, expected = 0;
  // Only where cards are made:
  std::vector<Contribution> parts;
  TensorStats stats;       // of value, if has_stats
  bool has_stats = false;
  void clear() {
    value = Tensor();
    owned = false;
    arrived = 0;
    parts.clear();
  }
  // May the buffer be written? A card or a recorder may have taken a handle since.
  bool writable() const { return owned && value.impl()->use_count() == 1 && value.impl()->storage->use_count() == 1; }
};

// Shares and cosines of the parts of a sum.
void share_out(std::vector<Contribution>& parts, const Tensor& sum);

// Edges and hooks of leaves run with the grad mode of the run.
class ModeOfRun {
 public:
  // What an edge does is told by the card, not as an op.
  explicit ModeOfRun(bool create_graph) : before_(thread_state().grad_enabled), unobserved_(!create_graph) {
    thread_state().grad_enabled = create_graph;
  }
  ~ModeOfRun() { thread_state().grad_enabled = before_; }
  ModeOfRun(const ModeOfRun&) = delete;
  ModeOfRun& operator=(const ModeOfRun&) = delete;

 private:
  bool before_;
  Unobserved unobserved_;
};

struct BackwardRun::State {
  struct NodeState {
    Intrusive<Node> node;
    u32 first_slot, first_edge;  // its outputs' slots; its entries in edge_slots
    bool wanted;
  };
  struct LeafState {
    Tensor leaf;
    u32 slot;
    bool wanted;
  };
  struct Capture {          // an input of grad() that is no leaf
    Tensor tensor;
    u32 slot;
    Tensor grad;
  };
  struct Asked {            // an input that was asked for: where its gradient will be
    Tensor tensor;
    u32 leaf, capture;      // one of them, or neither: not reached
  };
  enum class Phase : u8 { running, ended, failed };
  static constexpr u32 kNowhere = 0xFFFFFFFF;

  State(std::vector<Tensor> roots, RunOptions options);
  void check_roots();
  void find_nodes();
  void find_inputs();
  void mark_wanted();
  void start();
  void check_alive() const;               // Error if the run failed
  u32 slot_of(const Edge& e) const;       // kNowhere: not in this graph

  // Returns what was added to the slot, for a card; undefined if nothing was.
  Tensor deliver(Slot& slot, const Edge& to, Grad c, std::string_view op, size_t input, bool keep = false);
  static Tensor to_dtype(Tensor t, DType dtype);
  void accumulate(Slot& slot, Tensor c);
  void own(Slot& slot);                   // makes the buffer private
  void add_window(Slot& slot, const Shape& shape, DType dtype, const Grad& c);

  bool run_one(NodeCard* card);           // null: no card is made
  bool run_next(NodeCard* card);
  void run_rule_of(NodeState& state, NodeCard* card);
  void run_slot_hooks(Node& node, u32 k, Slot& slot, NodeCard* card);
  void run_hooks(Slot& slot, const HookList& hooks, const std::string& where, const Node* node, NodeCard* card);
  [[noreturn]] static void rethrow_with_place(const Error& e, const Node& node, std::string_view what);
  const Node* peek();
  void run_rest();
  void check_all_arrived() const;
  GradMap collect() const;
  GradMap commit();
  void release_all();

  // core/engine/card.cpp
  void find_savers();
  NodeCard describe_node(const Node& node);
  static NodeCard::Incoming describe_incoming(Slot& slot, std::string name, bool changed);
  static NodeCard::Outgoing describe_edge(const Node& node, size_t input, const Grad& g, const Slot& slot);
  static void describe_delivery(const Node& node, NodeCard::Outgoing& out, const Tensor& c, bool window, Slot& slot);
  static void finish_card(NodeCard& card, const Node& node);
  static u64 next_number();

  std::vector<Tensor> roots;
  RunOptions options;
  std::vector<Edge> root_edges;
  std::vector<NodeState> nodes;           // descending sequence numbers
  PointerIndex node_index, leaf_index;    // of the walk: node numbers are places in `place`
  std::vector<u32> place;                 // where a node stands in `nodes`
  std::vector<u32> edge_slots;            // per edge of each node: the slot that it leads to, or kNowhere: not wanted
  std::vector<Slot> slots;                // of the nodes' outputs, then of the leaves
  std::vector<LeafState> leaves;
  std::vector<Capture> captures;
  std::vector<Asked> asked;
  size_t at = 0, done = 0, total = 0;
  NodeCard last_card;
  bool has_card = false, replaying = false;
  Phase phase = Phase::running;
  u64 stopped_at = 0;
  u64 run_number = next_number();             // of this run in the process
  // Which nodes keep a storage, and the bytes of all of them; made for the first card.
  std::unordered_map<const Storage*, std::vector<const Node*>> savers;
  i64 saved_bytes = 0;
  bool savers_known = false;
};

}  // namespace waymark
