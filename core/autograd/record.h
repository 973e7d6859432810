// record: how an op enters the graph. Public: a user's own differentiable op is written in the same way.
//
//   Tensor square(Arg x) {
//     return record(kSquare, square_value(*x), {x}, [&](Saver& s) {        // factory: runs only if a node is made
//       return [x = s.input(0)](Tensor g, Need) -> Grads { return {2 * g * *x}; };
//     });
//   }
//
// * The factory runs only if grad mode is on, the op is differentiable and an input requires grad. It asks the Saver
//   for what the rule needs and returns the rule, whose closure holds only the handles that the Saver gave.
// * The rule takes (Tensor g, Need need), or (std::span<Tensor> g, Need need) for several outputs (an undefined g:
//   nothing arrived), and returns one gradient per input. A gradient may have the input's shape, or the broadcast
//   shape of the output: the engine sums it down. It may be undefined. Gradients that `need` does not ask for must
//   not be computed.
// * An attribute lambda `[&](Attrs& a) { a("dim", dim); }` may follow; it runs only under a recorder.
#pragma once

#include <variant>

#include "core/autograd/arg.h"

namespace waymark {

using AttrValue = std::variant<bool, i64, double, std::string, std::vector<i64>>;
class WAYMARK_API Attrs {
 public:
  Attrs();
  ~Attrs();
  Attrs(const Attrs&);
  Attrs(Attrs&&) noexcept;
  Attrs& operator=(const Attrs&);
  Attrs& operator=(Attrs&&) noexcept;
  void operator()(std::string_view name, AttrValue value);
  const std::vector<std::pair<std::string, AttrValue>>& list() const { return list_; }

 private:
  std::vector<std::pair<std::string, AttrValue>> list_;
};

// Collects what a rule keeps, into the node's list. Handles of values that were not kept are empty.
class WAYMARK_API Saver {
 public:
  Saver(Node& node, const Inputs& inputs, std::span<const Tensor> outputs)
      : node_(node), inputs_(inputs), outputs_(outputs) {}
  // Does input i need a gradient?
  bool needs(size_t i) const { return node_.edges[i].wanted(); }
  SavedTensor input(size_t i, bool condition = true);
  SavedTensor output(size_t k = 0, bool condition = true);
  SavedTensor indices(const Tensor& t) { return extra(SaveKind::indices, t); }  // positions, i64
  SavedTensor bits(const Tensor& t) { return extra(SaveKind::bits, t); }        // a mask
  SavedTensor stats(const Tensor& t) { return extra(SaveKind::stats, t); }      // row statistics
  // A shape or a random key is plain data: the closure captures it, the list shows it.
  Shape shape(size_t i);
  template <class K> K key(const K& draw) {
    node_.saved.emplace_back(Saved{.kind = SaveKind::key, .bytes = sizeof(K)});
    return draw;
  }
  Node& node() { return node_; }

 private:
  SavedTensor extra(SaveKind kind, const Tensor& t);
  SavedTensor keep(SaveKind kind, size_t index, const Tensor& t);
  Node& node_;
  const Inputs& inputs_;
  std::span<const Tensor> outputs_;
};

// Sees every op while it is set on a thread: the recorder and anomaly mode of core/inspect.
struct ForwardEvent {
  const OpInfo& op;
  const Inputs& inputs;
  std::span<const Tensor> outputs;
  const Attrs& attrs;
  Node* node;  // null: no gradient flows
};
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_op(const ForwardEvent& event) = 0;
  // Before an in-place op overwrites a tensor.
  virtual void before_write(const Tensor& target) = 0;
  // After a rule ran: gradients of its outputs in, gradients of its inputs out, before the edges.
  virtual void on_rule(const Node& node, std::span<const Tensor> g, const Grads& out) = 0;
};

namespace detail {

template <class Rule> class RuleNode final : public Node {
 public:
  RuleNode(const OpInfo& info, Loc at) : Node(info, at, sizeof(RuleNode)) {}
  Grads run(std::span<Tensor> g, const Need& need) override {
    if constexpr (std::is_invocable_v<Rule&, std::span<Tensor>, Need>) return (*rule)(g, need);
    else return (*rule)(std::move(g[0]), need);
  }
  std::optional<Rule> rule;
};

WAYMARK_API bool wants_node(const OpInfo& op, std::span<const Tensor> outputs, const Inputs& inputs);
WAYMARK_API void link(Node& node, std::span<const Tensor> outputs, const Inputs& inputs);
WAYMARK_API void note_cut(const OpInfo& op, const Tensor& output, const Inputs& inputs);
WAYMARK_API void attach(const Intrusive<Node>& node, std::span<const Tensor> outputs);

template <class Factory>
Intrusive<Node> make_node(const OpInfo& op, std::span<const Tensor> outputs, const Inputs& inputs, Factory&& factory) {
  using Rule = std::decay_t<std::invoke_result_t<Factory&, Saver&>>;
  auto* node = new (tracked_allocate(sizeof(RuleNode<Rule>))) RuleNode<Rule>(op, inputs.loc());
  Intrusive<Node> owner(node);
  link(*node, outputs, inputs);
  Saver saver(*node, inputs, outputs);
  node->rule.emplace(factory(saver));
  return owner;
}

struct NoAttrs {
  void operator()(Attrs&) const {}
};
template <class AttrFn>
[[gnu::cold, gnu::noinline]] void observe(const OpInfo& op, std::span<const Tensor> outputs, const Inputs& inputs, AttrFn&& attrs, Node* node) {
  Attrs list;
  attrs(list);
  thread_state().observer->on_op({op, inputs, outputs, list, node});
}

}  // namespace detail

// One output.
template <class Factory, class AttrFn = detail::NoAttrs>
Tensor record(const OpInfo& op, Tensor value, Inputs inputs, Factory&& factory, AttrFn&& attrs = {}) {
  const std::span<const Tensor> outputs(&value, 1);
  Node* made = nullptr;  // the output owns it
  if (detail::wants_node(op, outputs, inputs)) {
    const Intrusive<Node> node = detail::make_node(op, outputs, inputs, factory);
    detail::attach(node, outputs);
    made = node.get();
  }
  if (thread_state().observer) [[unlikely]] detail::observe(op, outputs, inputs, attrs, made);
  return value;
}

// Several outputs, one node. The rule takes std::span<Tensor>.
template <class Factory, class AttrFn = detail::NoAttrs>
void record_many(const OpInfo& op, std::span<const Tensor> values, Inputs inputs, Factory&& factory, AttrFn&& attrs = {}) {
  Node* made = nullptr;
  if (detail::wants_node(op, values, inputs)) {
    const Intrusive<Node> node = detail::make_node(op, values, inputs, factory);
    detail::attach(node, values);
    made = node.get();
  }
  if (thread_state().observer) [[unlikely]] detail::observe(op, values, inputs, attrs, made);
}

// An op without derivative: observers see it, backward through it is refused with the reason in its OpInfo.
template <class AttrFn = detail::NoAttrs>
Tensor record_nondiff(const OpInfo& op, Tensor value, Inputs inputs, AttrFn&& attrs = {}) {
  detail::note_cut(op, value, inputs);
  if (thread_state().observer) [[unlikely]] detail::observe(op, {&value, 1}, inputs, attrs, nullptr);
  return value;
}

// A view: `value` shares the storage of `base`. Remembers the base, so that in-place changes are seen on both sides.
WAYMARK_API void remember_base(const Tensor& value, const Tensor& base, bool one_of_many = false);
template <class Factory, class AttrFn = detail::NoAttrs>
Tensor record_view(const OpInfo& op, Tensor value, Arg base, Factory&& factory, AttrFn&& attrs = {}) {
  remember_base(value, *base);
  return record(op, std::move(value), {base}, std::forward<Factory>(factory), std::forward<AttrFn>(attrs));
}

// In-place ops. check_inplace throws before anything is written: undefined target, elements that share memory, a leaf
// that requires grad (outside NoGrad), partial overlap with an input, and views that may not be changed.
WAYMARK_API void check_inplace(std::string_view op, const Tensor& target, Inputs inputs);
namespace detail {
WAYMARK_API void wrote(const OpInfo& op, const Tensor& target, Loc loc);
WAYMARK_API void rebase(const Intrusive<Node>& node, const Tensor& target);
}  // namespace detail
// After the kernel wrote into `target`: raises the version and makes the new node the target's history. `inputs` lists
// the target as it was before, where the rule has a gradient for it.
template <class Factory, class AttrFn = detail::NoAttrs>
void record_inplace(const OpInfo& op, const Tensor& target, Inputs inputs, Factory&& factory, AttrFn&& attrs = {}) {
  const std::span<const Tensor> outputs(&target, 1);
  detail::wrote(op, target, inputs.loc());
  Node* made = nullptr;
  if (detail::wants_node(op, outputs, inputs)) {
    const Intrusive<Node> node = detail::make_node(op, outputs, inputs, factory);
    detail::rebase(node, target);
    made = node.get();
  }
  if (thread_state().observer) [[unlikely]] detail::observe(op, outputs, inputs, attrs, made);
}

}  // namespace waymark
