#include "core/engine/backward.h"

#include <algorithm>
#include <mutex>

#include "core/engine/run_state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"

namespace waymark {

// ---- GradMap ----------------------------------------------------------------------------------------------------------

const Tensor& GradMap::operator[](const Tensor& t) const {
  const auto it = index_.find(t.impl());
  if (it == index_.end())
    fail("grads", "no gradient arrived at {} ({}); absent is not zero", describe(t), t.shape());
  return entries_[it->second].grad;
}
bool GradMap::contains(const Tensor& t) const { return index_.contains(t.impl()); }
void GradMap::set(const Tensor& t, Tensor g) {
  const auto [it, fresh] = index_.try_emplace(t.impl(), entries_.size());
  if (fresh) entries_.push_back({t, std::move(g)});
  else entries_[it->second].grad = std::move(g);
}

// ---- the graph of one run ---------------------------------------------------------------------------------------------

BackwardRun::State::State(std::vector<Tensor> r, RunOptions o) : roots(std::move(r)), options(std::move(o)) {
  if (options.create_graph) options.retain_graph = true;
  check_roots();
  find_nodes();
  mark_wanted();
  start();
}

void BackwardRun::State::check_roots() {
  if (roots.empty()) fail("backward", "there is no root");
  if (!options.seeds.empty() && options.seeds.size() != roots.size())
    fail("backward", "{} seeds for {} roots", options.seeds.size(), roots.size());
  for (size_t i = 0; i < roots.size(); ++i) {
    const Tensor& root = roots[i];
    if (!root.defined()) fail("backward", "root {} is undefined", i);
    const Edge edge = edge_of(root);
    if (!edge.wanted()) {
      const AutogradMeta* m = meta_of(root);
      if (!m || !m->cut_by) fail("backward", "the root does not require grad: no input of its ops does");
      const std::string place = m->cut_at ? fmt::format(" ({}:{})", m->cut_at.name(), m->cut_at.line) : "";
      fail("backward", "the root does not require grad: its history ends at {}{}{}", m->cut_by->name, place,
           m->cut_by->name == "detach" ? "" : fmt::format(": {}", m->cut_by->rule.text()));
    }
    const Tensor seed = i < options.seeds.size() ? options.seeds[i] : Tensor();
    if (!seed.defined() && root.numel() != 1)
      fail("backward", "the root has shape {}; pass a seed of that shape or reduce it, for example mean()", root.shape());
    if (seed.defined() && (seed.shape() != root.shape() || seed.dtype() != root.dtype()))
      fail("backward", "the seed is {} {}, the root {} {}; they must agree", seed.shape(), name_of(seed.dtype()), root.shape(),
           name_of(root.dtype()));
    root_edges.push_back(edge);
  }
}

void BackwardRun::State::find_nodes() {
  std::vector<Node*> stack;
  const auto visit = [&](const Edge& e) {
    if (e.node && index.try_emplace(e.node.get(), 0).second) {
      nodes.push_back({e.node, 0, false});
      stack.push_back(e.node.get());
    }
    if (e.leaf && leaf_index.try_emplace(e.leaf.get(), static_cast<u32>(leaves.size())).second)
      leaves.push_back({Tensor(e.leaf), {}, true});
  };
  for (const Edge& e : root_edges) visit(e);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Edge& e : n->edges) visit(e);
  }
  // Consumers have larger numbers than what they consume, so this is the order of backward.
  std::sort(nodes.begin(), nodes.end(), [](const NodeState& a, const NodeState& b) { return a.node->seq > b.node->seq; });
  u32 slot = 0;
  for (u32 i = 0; i < nodes.size(); ++i) {
    index[nodes[i].node.get()] = i;
    nodes[i].first_slot = slot;
    slot += static_cast<u32>(nodes[i].node->outputs.size());
  }
  slots.resize(slot);
}

void BackwardRun::State::mark_wanted() {
  if (options.inputs.empty()) {
    for (NodeState& n : nodes) n.wanted = true;
  } else {
    for (LeafState& l : leaves) l.wanted = false;
    for (size_t i = 0; i < options.inputs.size(); ++i) {
      const Tensor& t = options.inputs[i];
      if (!t.defined()) fail("grad", "input {} is undefined", i);
      const Edge e = edge_of(t);
      if (!e.wanted()) fail("grad", "input {} ({}) does not require grad", i, t.shape());
      if (e.leaf) {
        if (const auto it = leaf_index.find(e.leaf.get()); it != leaf_index.end()) {
          leaves[it->second].wanted = true;
          continue;
        }
      } else if (const auto it = index.find(e.node.get()); it != index.end()) {
        captures.push_back({t, nodes[it->second].first_slot + e.slot, {}});
        slots[captures.back().slot].captured = true;
        continue;
      }
      if (!options.allow_unused)
        fail("grad", "input {} ({}, {}) was not used to compute the root; pass allow_unused = true if that is intended", i,
             describe(t), t.shape());
    }
    for (size_t i = nodes.size(); i-- > 0;)  // producers first
      for (const Edge& e : nodes[i].node->edges) nodes[i].wanted |= leads_somewhere(e);
  }
  for (const NodeState& n : nodes) {
    if (!n.wanted) continue;
    ++total;
    for (const Edge& e : n.node->edges)
      if (Slot* s = slot_of(e)) ++s->expected;
  }
  for (const Edge& e : root_edges)
    if (Slot* s = slot_of(e)) ++s->expected;
}

bool BackwardRun::State::leads_somewhere(const Edge& e) {
  if (e.leaf) return leaves[leaf_index.at(e.leaf.get())].wanted;
  if (!e.node) return false;
  const NodeState& n = nodes[index.at(e.node.get())];
  return n.wanted || slots[n.first_slot + e.slot].captured;
}

Slot* BackwardRun::State::slot_of(const Edge& e) {
  if (!e.wanted() || !leads_somewhere(e)) return nullptr;
  if (e.leaf) return &leaves[leaf_index.at(e.leaf.get())].slot;
  return &slots[nodes[index.at(e.node.get())].first_slot + e.slot];
}

// Empty slots, then the seeds.
void BackwardRun::State::start() {
  for (Slot& s : slots) s.clear();
  for (LeafState& l : leaves) l.slot.clear();
  for (Capture& c : captures) c.grad = Tensor();
  at = 0;
  done = 0;
  for (size_t i = 0; i < roots.size(); ++i) {
    Tensor seed = i < options.seeds.size() ? options.seeds[i] : Tensor();
    if (!seed.defined()) {
      seed = make_empty(roots[i].shape(), roots[i].dtype());
      visit_float(seed.dtype(), [&](auto zero) { *seed.data<decltype(zero)>() = 1; });
    }
    if (Slot* s = slot_of(root_edges[i])) deliver(*s, root_edges[i], Grad(seed), "backward", 0);
  }
}

// ---- the edge: everything that happens between two nodes ------------------------------------------------------------

void BackwardRun::State::deliver(Slot& slot, const Edge& to, Grad c, std::string_view op, size_t input) {
  ++slot.arrived;
  if (!c.value.defined()) return;
  const Shape& shape = to.leaf ? to.leaf->shape : to.node->outputs[to.slot].shape;
  const DType dtype = to.leaf ? to.leaf->dtype : to.node->outputs[to.slot].dtype;
  if (!is_float(c.value.dtype()))
    fail(op, "the rule returned a gradient of dtype {} for input {}; gradients are f32 or f64", name_of(c.value.dtype()), input);
  if (c.window) {
    add_window(slot, shape, dtype, c);
    return;
  }
  if (c.value.shape() != shape) {
    if (!broadcasts_to(shape, c.value.shape()))
      fail(op, "the rule returned a gradient of shape {} for input {} of shape {}", c.value.shape(), input, shape);
    c.value = sum_to_size(c.value, shape);
  }
  if (c.value.dtype() != dtype) c.value = to_dtype(std::move(c.value), dtype);
  accumulate(slot, std::move(c.value));
}

Tensor BackwardRun::State::to_dtype(Tensor t, DType dtype) { return waymark::to(std::move(t), dtype); }

void BackwardRun::State::accumulate(Slot& slot, Tensor c) {
  if (!slot.value.defined()) {
    // Borrow; the buffer is ours at once if nobody else holds it.
    const TensorImpl* t = c.impl();
    slot.owned = !options.create_graph && t->dense && t->use_count() == 1 && t->storage->use_count() == 1 && !t->meta;
    slot.value = std::move(c);
    return;
  }
  if (options.create_graph) {
    slot.value = add(slot.value, c);
  } else if (slot.owned) {
    ops::binary_into("backward", kernels::Binary::add, slot.value, slot.value, c);
  } else {
    slot.value = ops::binary_value("backward", kernels::Binary::add, slot.value, c, c.dtype());
    slot.owned = true;
  }
}

void BackwardRun::State::own(Slot& slot) {
  if (slot.owned || !slot.value.defined()) return;
  Tensor copy = make_empty_like(slot.value, slot.value.dtype());
  ops::copy_into(copy, slot.value);
  slot.value = std::move(copy);
  slot.owned = true;
}

void BackwardRun::State::add_window(Slot& slot, const Shape& shape, DType dtype, const Grad& c) {
  if (!slot.value.defined()) {
    slot.value = make_empty(shape, dtype);
    ops::fill_into(slot.value, 0);
    slot.owned = true;
    const Tensor hole = c.window->of(slot.value);
    if (!hole.impl()->overlaps) return ops::copy_into(hole, c.value);
  }
  own(slot);
  const Tensor hole = c.window->of(slot.value);
  if (!hole.impl()->overlaps) return ops::binary_into("backward", kernels::Binary::add, hole, hole, c.value);
  const int last = hole.dim() - 1;  // unfold: the windows overlap, one index inside the window does not
  for (i64 k = 0; k < hole.shape()[last]; ++k) {
    const Window one{.kind = Window::Kind::select, .dim = last, .start = k};
    const Tensor target = one.of(hole);
    ops::binary_into("backward", kernels::Binary::add, target, target, one.of(c.value));
  }
}

// ---- one node ---------------------------------------------------------------------------------------------------------

void BackwardRun::State::run_hooks(Slot& slot, std::vector<Hook>& hooks, std::string_view where, NodeCard* card) {
  for (size_t i = 0; i < hooks.size(); ++i) {  // by index: a hook may remove hooks
    if (!hooks[i].run) continue;
    if (!options.create_graph) own(slot);  // a hook that edits in place must not change another edge
    const HookFunction run = hooks[i].run;
    const Tensor replaced = run(slot.value);
    if (card) ++card->hooks_run;
    if (!replaced.defined() || replaced.is(slot.value)) continue;
    if (replaced.shape() != slot.value.shape() || replaced.dtype() != slot.value.dtype())
      fail("hook", "a hook of {} returned {} {} for a gradient of {} {}", where, replaced.shape(), name_of(replaced.dtype()),
           slot.value.shape(), name_of(slot.value.dtype()));
    slot.value = replaced;
    slot.owned = false;
    if (card) card->hooks_changed = true;
  }
}

bool BackwardRun::State::run_one(NodeCard* card) {
  while (at < nodes.size()) {
    NodeState& state = nodes[at++];
    Node& node = *state.node;
    const size_t outputs = node.outputs.size();
    Slot* const first = &slots[state.first_slot];
    bool any = false;
    for (size_t k = 0; k < outputs; ++k) any |= first[k].value.defined();
    if (!any) {
      if (state.wanted) --total;  // nothing arrived: nothing runs here or upstream
      continue;
    }
    if (card) *card = describe_node(node);
    for (u32 k = 0; k < outputs; ++k) {
      if (!first[k].value.defined()) continue;
      if (SlotHooks* h = node.hooks.empty() ? nullptr : node.find_hooks(k)) {
        run_hooks(first[k], h->hooks, node.label(), card);
        if (h->cell) h->cell->grad = first[k].value;
      }
      if (first[k].captured)
        for (Capture& c : captures)
          if (c.slot == state.first_slot + k) c.grad = first[k].value;
    }
    if (!state.wanted) continue;
    run_rule_of(state, card);
    ++done;
    if (card) {
      card->step = static_cast<i64>(done);
      card->total = static_cast<i64>(total);
    }
    return true;
  }
  return false;
}

void BackwardRun::State::run_rule_of(NodeState& state, NodeCard* card) {
  Node& node = *state.node;
  const size_t outputs = node.outputs.size();
  SmallVector<Tensor, 2> g;
  for (size_t k = 0; k < outputs; ++k) {
    Slot& s = slots[state.first_slot + k];
    if (card) card->incoming.push_back({outputs == 1 ? "g" : fmt::format("g{}", k), s.value});
    g.emplace_back(std::move(s.value));
    s.value = Tensor();
  }
  Need need(node.edges.size());
  for (size_t i = 0; i < node.edges.size(); ++i)
    if (node.edges[i].wanted() && leads_somewhere(node.edges[i])) need.set(i);
  std::vector<Tensor> seen;
  if (thread_state().observer) [[unlikely]] seen.assign(g.begin(), g.end());
  Grads out;
  try {
    if (options.create_graph) {
      const EnableGrad on;
      out = run_rule(node, {g.begin(), g.size()}, need);
    } else {
      const NoGrad off;
      out = run_rule(node, {g.begin(), g.size()}, need);
    }
    if (out.size() != node.edges.size())
      fail(node.op->name, "the rule returned {} gradients for {} inputs", out.size(), node.edges.size());
    if (thread_state().observer) [[unlikely]] thread_state().observer->on_rule(node, seen, out);
    const ModeOfRun mode(options.create_graph);
    for (size_t i = 0; i < out.size(); ++i) {
      if (!need[i]) continue;
      Slot& slot = *slot_of(node.edges[i]);
      if (card) card->outgoing.push_back(describe_edge(node.edges[i], out[i]));
      deliver(slot, node.edges[i], std::move(out[i]), node.op->name, i);
      if (card) {
        card->outgoing.back().arrived = slot.arrived;
        card->outgoing.back().expected = slot.expected;
      }
    }
  } catch (const Error& e) {
    rethrow_with_place(e, node);
  }
  if (card) finish_card(*card, node);
  if (!options.retain_graph && !options.rewindable) node.release();
}

void BackwardRun::State::rethrow_with_place(const Error& e, const Node& node) {
  const std::string what = e.what(), label = node.label();
  if (what.find(label) != std::string::npos) throw;  // names the node already
  const std::string place = node.where();
  throw Error("", fmt::format("{}\n  in backward of {}{}", what, label, place.empty() ? "" : " at " + place), node.loc);
}

// ---- commit -----------------------------------------------------------------------------------------------------------

namespace {
// Two runs may share leaves: the commit of one leaf is exclusive.
std::mutex& leaf_mutex(const TensorImpl* leaf) {
  static std::mutex pool[64];
  return pool[(reinterpret_cast<std::uintptr_t>(leaf) >> 6) % 64];
}
}  // namespace

GradMap BackwardRun::State::collect() {
  GradMap map;
  if (options.inputs.empty()) {
    for (LeafState& l : leaves)
      if (l.slot.value.defined()) map.set(l.leaf, l.slot.value);
    return map;
  }
  for (const Tensor& t : options.inputs) {
    const Edge e = edge_of(t);
    if (e.leaf) {
      const auto it = leaf_index.find(e.leaf.get());
      if (it != leaf_index.end() && leaves[it->second].slot.value.defined()) map.set(t, leaves[it->second].slot.value);
    } else {
      for (const Capture& c : captures)
        if (c.tensor.is(t) && c.grad.defined()) map.set(t, c.grad);
    }
  }
  return map;
}

void BackwardRun::State::run_rest() {
  while (run_one(nullptr)) {}
  for (LeafState& l : leaves) {
    if (!l.wanted || !l.slot.value.defined()) continue;
    AutogradMeta& m = *meta_of(l.leaf);
    const ModeOfRun mode(options.create_graph);
    if (!m.hooks.empty()) run_hooks(l.slot, m.hooks, describe(l.leaf), nullptr);
  }
}

GradMap BackwardRun::State::commit() {
  GradMap map = collect();
  std::vector<Tensor> committed;
  const NoGrad no_grad;
  for (LeafState& l : leaves) {
    if (!l.wanted || !l.slot.value.defined()) continue;
    AutogradMeta& m = *meta_of(l.leaf);
    Slot& s = l.slot;
    const std::lock_guard lock(leaf_mutex(l.leaf.impl()));
    if (m.grad.defined()) {
      ops::binary_into("backward", kernels::Binary::add, m.grad, m.grad, s.value);
      m.grad.impl()->storage->wrote({"backward", {}, {}});
    } else {
      // The map holds one handle, the slot another.
      const TensorImpl* t = s.value.impl();
      const bool takes = s.owned && t->use_count() == 2 && t->storage->use_count() == 1 && !t->meta && t->dense &&
                         (t->strides == l.leaf.strides() || (t->contiguous && (l.leaf.is_contiguous() || !l.leaf.impl()->dense)));
      if (takes) {
        m.grad = s.value;
      } else {
        Tensor copy = make_empty_like(l.leaf, l.leaf.dtype());
        ops::copy_into(copy, s.value);
        m.grad = copy;
      }
    }
    if (!options.create_graph && map.contains(l.leaf)) map.set(l.leaf, m.grad);
    s.value = Tensor();
    committed.push_back(l.leaf);
  }
  for (const Tensor& leaf : committed)
    for (const auto& [id, hook] : meta_of(leaf)->post_hooks)
      if (hook) hook(leaf);
  return map;
}

// ---- BackwardRun ------------------------------------------------------------------------------------------------------

BackwardRun::BackwardRun(const Tensor& root, RunOptions options) : BackwardRun(std::vector<Tensor>{root}, std::move(options)) {}
BackwardRun::BackwardRun(std::vector<Tensor> roots, RunOptions options)
    : state_(std::make_unique<State>(std::move(roots), std::move(options))) {}
BackwardRun::~BackwardRun() = default;
BackwardRun::BackwardRun(BackwardRun&&) noexcept = default;
BackwardRun& BackwardRun::operator=(BackwardRun&&) noexcept = default;

bool BackwardRun::step() {
  NodeCard card;
  if (!state_->run_one(&card)) return false;
  state_->last_card = std::move(card);
  state_->has_card = true;
  return true;
}

bool BackwardRun::until(const StopPoint& stop) {
  while (const Node* n = next()) {
    // A stop before the node that we already stand at would never move on.
    if (stop.matches_next(*n) && !(state_->stopped_at == n->seq)) {
      state_->stopped_at = n->seq;
      return true;
    }
    if (!step()) return false;
    if (stop.matches_done(state_->last_card)) return true;
  }
  return false;
}

const NodeCard& BackwardRun::current() const {
  if (!state_->has_card) fail("backward", "no node ran yet; call step() first");
  return state_->last_card;
}
const Node* BackwardRun::next() const { return state_->peek(); }
i64 BackwardRun::index() const { return static_cast<i64>(state_->done); }
i64 BackwardRun::total() const { return static_cast<i64>(state_->total); }
bool BackwardRun::replaying() const { return state_->replaying; }
GradMap BackwardRun::grads() const { return state_->collect(); }

void BackwardRun::rewind(i64 to) {
  State& s = *state_;
  if (!s.options.rewindable) fail("rewind", "the run keeps no saved values; construct it with rewindable = true");
  if (to < 0 || to > static_cast<i64>(s.done)) fail("rewind", "step {} is outside [0, {}]", to, s.done);
  s.replaying = true;
  s.has_card = false;
  s.stopped_at = 0;
  s.start();
  while (static_cast<i64>(s.done) < to) step();
  s.replaying = false;
}

GradMap BackwardRun::finish() {
  state_->run_rest();
  GradMap map = state_->commit();
  if (state_->options.rewindable && !state_->options.retain_graph) state_->release_all();
  return map;
}
GradMap BackwardRun::finish_without_commit() {
  state_->run_rest();
  return state_->collect();
}

GradMap grad(const Tensor& root, const std::vector<Tensor>& inputs, RunOptions options) {
  return grad(std::vector<Tensor>{root}, inputs, std::move(options));
}
GradMap grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs, RunOptions options) {
  if (inputs.empty()) fail("grad", "there is no input to differentiate for");
  options.inputs = inputs;
  return BackwardRun(roots, std::move(options)).finish_without_commit();
}

}  // namespace waymark
