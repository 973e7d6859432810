// NodeCard: everything that is known of one node of a backward run, as the stepper, a trace and a page show it.
//
// "Not computed" is a state of its own everywhere: such a tensor has computed = false, no statistics and no value, and
// is printed as a dash. 0 is printed only for a computed zero.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/autograd/record.h"
#include "core/engine/stats.h"

namespace waymark {

// A tensor as a card shows it.
struct WAYMARK_API CardTensor {
  std::string name;      // a parameter's path, what watch() said, or "softmax #131"; gradients of outputs: "g", "g0", ...
  bool known = false;    // dtype, shape and strides are known
  bool computed = false; // statistics are known
  DType dtype{};
  Shape shape, strides;
  TensorStats stats;
  Tensor value;          // undefined: not computed, or only its statistics were kept

  // Takes layout, value and statistics of t; nothing if t is undefined.
  void set(const Tensor& t);
  void set(const Tensor& t, const TensorStats& known_stats);
};

// One of the gradients that a node received, and from whom.
struct Contribution {
  std::string from;      // "matmul #132", the consumer whose rule returned it; "seed" at a root
  u64 seq = 0;           // of the consumer; 0: the seed
  int input = 0;         // which input of the consumer
  CardTensor gradient;   // after the edge
  // ⟨contribution, sum⟩ / ⟨sum, sum⟩: shares add up to 1; a negative one works against the sum. NaN if the sum is 0.
  double share = NAN;
  double cosine = NAN;   // to the sum
};

// What a finite-difference check of one node found (core/inspect/check.h).
struct NodeCheck {
  bool possible = false, passed = false;
  std::string reason;        // why it was not possible
  i64 compared = 0;          // derivatives
  i64 near_kinks = 0;        // of them, within 10 steps of a kink: not judged
  double max_error = 0;      // relative to the largest entry of the gradient
  double tolerance = 0;
  std::string where;         // place of the largest error: "input 0 [2, 3]"
  double analytic = 0, numeric = 0;
};

struct WAYMARK_API NodeCard {
  struct SavedItem {
    std::string what;
    bool has_values = false;               // false: a shape or a random key
    Shape shape;
    DType dtype{};
    i64 bytes = 0;
    u32 version_saved = 0, version_now = 0;
    bool freed = false;                    // after use
    bool recomputed = false;               // a checkpoint's placeholder: holds nothing until its rule runs
    std::vector<std::string> shared_with;  // other nodes that keep the same storage
  };
  struct Incoming {
    CardTensor gradient;
    std::vector<Contribution> contributions;
  };
  struct Outgoing {
    std::string to;                 // name of the tensor that receives it
    u64 seq = 0;                    // of the node that made that tensor; 0: a leaf
    u32 slot = 0;                   // which output of it
    Tensor leaf;
    int input = 0;                  // which input of this node
    CardTensor before, after;       // what the rule returned, and what the edge made of it
    std::string edge;               // "summed over axes 0, 1", "cast to f32", "added into a window"; empty: unchanged
    std::shared_ptr<const Window> window;  // set: `after` is the gradient of this window of the tensor only
    CardTensor slot_before, slot_after;  // the receiver's sum
    double gain = NAN;              // ‖after‖ / ‖incoming‖
    int arrived = 0, expected = 0;
    bool is_leaf() const { return leaf.defined(); }
  };
  const OpInfo* info = nullptr;
  bool recorded = false;            // a Recorder saw the forward op: attributes and all inputs are known
  // head
  u64 run = 0;                      // number of the backward run in this process
  i64 step = 0, total = 0;
  std::string op, label, scope, place, file;
  int line = 0;
  u64 seq = 0;
  std::string form;                 // "fused": there is a composed twin; empty otherwise
  int order = 1;                    // 2: the op was recorded by a rule, inside create_graph
  // formula
  std::string formula, rule;
  std::vector<std::pair<std::string, AttrValue>> attributes;  // known under a Recorder
  // forward values: all under a Recorder, else those that the node keeps
  std::vector<CardTensor> inputs, outputs;
  std::vector<SavedItem> saved;
  i64 saved_bytes = 0;              // of this node
  double saved_share = NAN;         // of the bytes that the nodes of the run keep; each storage counts once
  std::vector<Incoming> incoming;   // one per output
  std::vector<Outgoing> outgoing;   // one per input that wants a gradient
  int hooks_run = 0;
  bool hooks_changed = false;
  std::optional<NodeCheck> check;   // empty: not run
  std::vector<std::string> notes;
  i64 nanoseconds = 0;              // of the rule

  double incoming_norm() const;
  // The card as text, one field a line, lines of at most `width` columns where a field allows it.
  std::string to_string(int width = 100) const;
  // Parts of it, as the stepper prints them.
  std::string head_text(int width = 100) const;
  std::string incoming_text(int width = 100) const;
  std::string outgoing_text(int width = 100) const;
  std::string saved_text(int width = 100) const;
  std::string hooks_text() const;
  std::string check_text(int width = 100) const;
};

// "dim=-1, keepdim=false"
WAYMARK_API std::string attributes_text(const std::vector<std::pair<std::string, AttrValue>>& attributes);
// "512 B", "8.0 KiB", "1.5 MiB"
WAYMARK_API std::string bytes_text(i64 bytes);
// Name of the tensor behind an edge: the leaf's, what watch() said, or "softmax #131".
WAYMARK_API std::string name_of_target(const Edge& e);

// Sees the backward runs of a thread while it is set there: the recorder and anomaly mode of core/inspect.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // A run is constructed. May throw.
  virtual void on_start(u64 /*run*/, const std::vector<Tensor>& /*roots*/) {}
  // Cards are made for every node, also where the run is not stepped.
  virtual bool wants_cards() const { return false; }
  // Fills in what the engine does not know: forward values and attributes.
  virtual void complete(NodeCard& /*card*/, const Node& /*node*/) {}
  // After the node ran. The card is the observer's to keep.
  virtual void on_card(NodeCard&& /*card*/) {}
  virtual void on_rewind(u64 /*run*/, i64 /*to*/) {}
  // True once after something was found at which until() should stop.
  virtual bool pause() { return false; }
};
WAYMARK_API RunObserver*& run_observer();  // of this thread; null without

}  // namespace waymark

template <> struct WAYMARK_API fmt::formatter<waymark::NodeCard> : waymark::PlainText {
  fmt::appender format(const waymark::NodeCard& value, fmt::format_context& c) const;
};
