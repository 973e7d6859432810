// NodeCard: everything that is known of one node of a backward run, as the stepper prints it.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/autograd/node.h"

namespace waymark {

// Facts about the values of a tensor. A tensor that was not computed has no statistics at all.
struct TensorStats {
  i64 count = 0, nan = 0, positive_inf = 0, negative_inf = 0, zeros = 0;
  double min = NAN, max = NAN, mean = NAN, sd = NAN, norm = 0;
};
WAYMARK_API TensorStats stats_of(const Tensor& t);

struct WAYMARK_API NodeCard {
  struct Value {
    std::string name;      // "g", "x", a parameter's path, or "softmax #131"
    Tensor tensor;         // undefined: not computed
  };
  struct SavedItem {
    std::string what;
    Shape shape;
    std::string dtype;
    i64 bytes = 0;
    u32 version_saved = 0, version_now = 0;
    bool freed = false;
  };
  struct Outgoing {
    std::string to;        // name of the input that receives it
    Tensor before, after;  // the rule's gradient, and what the edge made of it (summed, cast)
    double gain = NAN;     // ‖after‖ / ‖incoming‖
    int arrived = 0, expected = 0;
    bool is_leaf = false;
  };
  i64 step = 0, total = 0;
  std::string op, label, formula, rule, scope, place;
  u64 seq = 0;
  std::vector<Value> incoming;
  std::vector<SavedItem> saved;
  std::vector<Outgoing> outgoing;
  int hooks_run = 0;
  bool hooks_changed = false;
  std::vector<std::string> notes;

  // The card as text, one field a line.
  std::string to_string() const;
};

}  // namespace waymark

template <> struct fmt::formatter<waymark::NodeCard> : fmt::formatter<std::string> {
  template <class Context> auto format(const waymark::NodeCard& c, Context& ctx) const {
    return fmt::formatter<std::string>::format(c.to_string(), ctx);
  }
};
