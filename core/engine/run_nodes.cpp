// One node of a run: its hooks, its rule, and the edges that carry the rule's gradients on.
#include <chrono>
#include <typeinfo>

#include "core/engine/run_state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"

namespace waymark {

// ---- the edge: everything that happens between two nodes ------------------------------------------------------------

Tensor BackwardRun::State::deliver(Slot& slot, const Edge& to, Grad c, std::string_view op, size_t input, bool keep) {
  ++slot.arrived;
  slot.has_stats = false;
  if (!c.value.defined()) return {};
  const Shape& shape = to.leaf ? to.leaf->shape : to.node->outputs[to.slot].shape;
  const DType dtype = to.leaf ? to.leaf->dtype : to.node->outputs[to.slot].dtype;
  if (!is_float(c.value.dtype()))
    fail(op, "the rule returned a gradient of dtype {} for input {}; gradients are f32 or f64", name_of(c.value.dtype()), input);
  if (c.window) {
    add_window(slot, shape, dtype, c);
    return keep ? c.value : Tensor();
  }
  if (c.value.shape() != shape) {
    if (!broadcasts_to(shape, c.value.shape()))
      fail(op, "the rule returned a gradient of shape {} for input {} of shape {}", c.value.shape(), input, shape);
    c.value = sum_to_size(c.value, shape);
  }
  if (c.value.dtype() != dtype) c.value = to_dtype(std::move(c.value), dtype);
  Tensor kept = keep ? c.value : Tensor();
  accumulate(slot, std::move(c.value));
  return kept;
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
    slot.owned = false;
  } else if (slot.writable()) {  // else somebody looks at what has arrived so far
    ops::binary_into("backward", kernels::Binary::add, slot.value, slot.value, c);
  } else {
    slot.value = ops::binary_value("backward", kernels::Binary::add, slot.value, c, c.dtype());
    slot.owned = true;
  }
}

void BackwardRun::State::own(Slot& slot) {
  if (!slot.value.defined() || slot.writable()) return;
  if (options.create_graph) {
    slot.value = clone(slot.value);  // recorded
  } else {
    Tensor copy = make_empty_like(slot.value, slot.value.dtype());
    ops::copy_into(copy, slot.value);
    slot.value = std::move(copy);
  }
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

void BackwardRun::State::run_hooks(Slot& slot, const HookList& hooks, const std::string& where, const Node* node, NodeCard* card) {
  const ModeOfRun mode(options.create_graph);
  const HookList now = hooks;  // a hook may add and remove hooks: that takes effect from the next tensor
  size_t number = 0;
  for (const Hook& hook : now) {
    ++number;
    own(slot);  // a hook that edits in place must not change another edge
    const u32 version = slot.value.version();
    Tensor before;
    if (const HookObserver* o = observed_state().hooks; o && o->wants_hooks()) {
      const ops::Unrecorded values_only;
      before = clone(slot.value);
    }
    const Tensor replaced = (*hook.run)(slot.value);
    if (card) {
      ++card->hooks_run;
      card->hooks_changed |= slot.value.version() != version;
    }
    if (replaced.defined() && !replaced.is(slot.value)) {
      if (replaced.shape() != slot.value.shape() || replaced.dtype() != slot.value.dtype())
        fail("hook", "a hook of {} returned {} {} for a gradient of {} {}", where, replaced.shape(), name_of(replaced.dtype()),
             slot.value.shape(), name_of(slot.value.dtype()));
      slot.value = replaced;
      slot.owned = false;
      if (card) card->hooks_changed = true;
    }
    // The hook may have ended, or begun, the watch.
    if (HookObserver* const o = observed_state().hooks; o && before.defined()) o->on_hook({where, node, number, before, slot.value});
  }
}

// Hooks of output k, then what watches it and what asked for it.
void BackwardRun::State::run_slot_hooks(Node& node, u32 k, Slot& slot, NodeCard* card) {
  if (SlotHooks* h = node.hooks.empty() ? nullptr : node.find_hooks(k)) {
    if (const std::shared_ptr<HookList> list = h->hooks) {
      try {
        run_hooks(slot, *list, node.label(), &node, card);
      } catch (const Error& e) {
        if (typeid(e) != typeid(Error)) throw;  // one of its own kind says all there is to say
        rethrow_with_place(e, node, "in a hook of");
      }
    }
    // A hook may have added hooks: look again.
    if (h = node.find_hooks(k); h && h->cell) {
      if (options.create_graph) {  // with history it would be a cycle: node, cell, gradient, node
        const NoGrad off;
        h->cell->grad = make_empty_like(slot.value, slot.value.dtype());
        ops::copy_into(h->cell->grad, slot.value);
      } else {
        own(slot);
        h->cell->grad = slot.value;
      }
    }
  }
  if (slot.captured)
    for (Capture& c : captures)
      if (&slots[c.slot] == &slot) c.grad = slot.value;
}

bool BackwardRun::State::run_one(NodeCard* card) {
  check_alive();
  try {
    return run_next(card);
  } catch (...) {
    phase = Phase::failed;
    throw;
  }
}

bool BackwardRun::State::run_next(NodeCard* card) {
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
    for (u32 k = 0; k < outputs; ++k)
      if (first[k].value.defined() && (first[k].captured || !node.hooks.empty())) run_slot_hooks(node, k, first[k], card);
    if (!state.wanted) continue;
    if (card) {
      card->step = static_cast<i64>(done) + 1;
      card->total = static_cast<i64>(total);
    }
    run_rule_of(state, card);
    ++done;
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
    if (card) card->incoming.push_back(describe_incoming(s, outputs == 1 ? "g" : fmt::format("g{}", k), card->hooks_changed));
    s.parts.clear();
    g.emplace_back(std::move(s.value));
    s.value = Tensor();
  }
  Need need(node.edges.size());
  const u32* const to = edge_slots.data() + state.first_edge;
  for (size_t i = 0; i < node.edges.size(); ++i)
    if (to[i] != kNowhere) need.set(i);
  std::vector<Tensor> seen;
  if (thread_state().observer) [[unlikely]] seen.assign(g.begin(), g.end());
  Grads out;
  using Clock = std::chrono::steady_clock;
  try {
    const Clock::time_point begin = card ? Clock::now() : Clock::time_point();
    if (options.create_graph) {
      const EnableGrad on;
      out = run_rule(node, {g.begin(), g.size()}, need);
    } else {
      const NoGrad off;
      out = run_rule(node, {g.begin(), g.size()}, need);
    }
    if (card) card->nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
    if (out.size() != node.edges.size())
      fail(node.op->name, "the rule returned {} gradients for {} inputs", out.size(), node.edges.size());
    if (thread_state().observer) [[unlikely]] thread_state().observer->on_rule(node, seen, out);
    g.clear();
    const ModeOfRun mode(options.create_graph);
    for (size_t i = 0; i < out.size(); ++i) {
      if (to[i] == kNowhere) {
        if (node.edges[i].integral && out[i].value.defined())
          fail(node.op->name, "the rule returned a gradient for input {}, which is no float tensor and has none", i);
        continue;
      }
      Slot& slot = slots[to[i]];
      if (!card) {
        deliver(slot, node.edges[i], std::move(out[i]), node.op->name, i);
        continue;
      }
      const bool window = static_cast<bool>(out[i].window);
      NodeCard::Outgoing& o = card->outgoing.emplace_back(describe_edge(node, i, out[i], slot));
      const Tensor arrived = deliver(slot, node.edges[i], std::move(out[i]), node.op->name, i, true);
      describe_delivery(node, o, arrived, window, slot);
    }
  } catch (const Error& e) {
    if (typeid(e) != typeid(Error)) throw;  // one of its own kind says all there is to say
    rethrow_with_place(e, node, "in backward of");
  }
  if (card) finish_card(*card, node);
  if (options.retain_graph || options.rewindable) return;
  node.release();
  if (card)
    for (NodeCard::SavedItem& item : card->saved) item.freed = item.has_values;
}

void BackwardRun::State::rethrow_with_place(const Error& e, const Node& node, std::string_view what) {
  const std::string text = e.what(), label = node.label();
  const bool named = text.starts_with(label + ":") || text.starts_with(label + " (");
  const std::string where = node.where();
  throw Error(e, named ? "" : fmt::format("{} {}{}{}", what, label, where.empty() ? "" : " at ", where),
              node.scope ? scope_path(node.scope) : e.scope(), node.loc);
}

}  // namespace waymark
