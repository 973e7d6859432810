// The start of a run: checks, the walk over the graph, what is wanted, the seeds.
#include <algorithm>
#include <numeric>

#include "core/engine/run_state.h"

namespace waymark {

BackwardRun::State::State(std::vector<Tensor> r, RunOptions o) : roots(std::move(r)), options(std::move(o)) {
  if (options.create_graph) options.retain_graph = true;
  check_roots();
  find_nodes();
  find_inputs();
  mark_wanted();
  if (RunObserver* observer = run_observer()) observer->on_start(run_number, roots);
  start();
}

void BackwardRun::State::check_alive() const {
  if (phase == Phase::failed)
    fail("backward", "this run failed earlier, and its gradients are incomplete; make a new one");
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
      const std::string line = m->cut_at ? fmt::format(" ({}:{})", m->cut_at.name(), m->cut_at.line) : "";
      fail("backward", "the root does not require grad: its history ends at {}{}{}", m->cut_by->name, line,
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

// Walks from the roots: every node and edge once, without recursion.
void BackwardRun::State::find_nodes() {
  constexpr u32 kLeaf = 0x80000000;
  std::vector<NodeState> found;           // in the order of the walk
  std::vector<u32> targets, stack;        // per edge: number of a node, of a leaf with kLeaf, or kNowhere
  const auto visit = [&](const Edge& e) -> u32 {
    if (e.node) {
      const auto [number, fresh] = node_index.add(e.node.get());
      if (fresh) {
        found.push_back({e.node, 0, 0, false});
        stack.push_back(number);
      }
      return number;
    }
    if (!e.leaf) return kNowhere;
    const auto [number, fresh] = leaf_index.add(e.leaf.get());
    if (fresh) leaves.push_back({Tensor(e.leaf), 0, true});
    return number | kLeaf;
  };
  for (const Edge& e : root_edges) visit(e);
  while (!stack.empty()) {
    const u32 number = stack.back();
    stack.pop_back();
    found[number].first_edge = static_cast<u32>(targets.size());
    const Node& n = *found[number].node;
    // Leaves in the order of the inputs; then the first input's part of the graph before the second's.
    const size_t first = targets.size(), count = n.edges.size();
    targets.resize(first + count, kNowhere);
    for (size_t i = 0; i < count; ++i)
      if (n.edges[i].leaf && !n.edges[i].node) targets[first + i] = visit(n.edges[i]);
    for (size_t i = count; i-- > 0;)
      if (n.edges[i].node) targets[first + i] = visit(n.edges[i]);
  }
  // Consumers have larger numbers than what they consume, so this is the order of backward.
  std::vector<u32> order(found.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](u32 a, u32 b) { return found[a].node->seq > found[b].node->seq; });
  place.resize(found.size());
  nodes.reserve(found.size());
  u32 slot = 0;
  for (const u32 number : order) {
    place[number] = static_cast<u32>(nodes.size());
    nodes.push_back(std::move(found[number]));
    nodes.back().first_slot = slot;
    slot += static_cast<u32>(nodes.back().node->outputs.size());
  }
  for (LeafState& l : leaves) l.slot = slot++;
  slots.resize(slot);
  edge_slots.resize(targets.size());
  for (const NodeState& n : nodes)
    for (size_t i = 0; i < n.node->edges.size(); ++i) {
      const u32 to = targets[n.first_edge + i];
      if (to != kNowhere && !(to & kLeaf) && nodes[place[to]].node->seq >= n.node->seq)
        fail("backward", "{} is older than its input {}", n.node->label(), nodes[place[to]].node->label());
      edge_slots[n.first_edge + i] = to == kNowhere ? kNowhere
                                     : to & kLeaf   ? leaves[to & ~kLeaf].slot
                                                    : nodes[place[to]].first_slot + n.node->edges[i].slot;
    }
}

u32 BackwardRun::State::slot_of(const Edge& e) const {
  if (e.node) {
    const u32 number = node_index.find(e.node.get());
    return number == PointerIndex::kNone ? kNowhere : nodes[place[number]].first_slot + e.slot;
  }
  const u32 number = e.leaf ? leaf_index.find(e.leaf.get()) : PointerIndex::kNone;
  return number == PointerIndex::kNone ? kNowhere : leaves[number].slot;
}

void BackwardRun::State::find_inputs() {
  if (options.inputs.empty()) return;
  for (LeafState& l : leaves) l.wanted = false;
  for (size_t i = 0; i < options.inputs.size(); ++i) {
    const Tensor& t = options.inputs[i];
    if (!t.defined()) fail("grad", "input {} is undefined", i);
    const Edge e = edge_of(t);
    if (!e.wanted()) fail("grad", "input {} ({}) does not require grad", i, t.shape());
    const u32 slot = slot_of(e);
    if (slot == kNowhere) {
      if (!options.allow_unused)
        fail("grad", "input {} ({}, {}) was not used to compute the root; pass allow_unused = true if that is intended", i,
             describe(t), t.shape());
      asked.push_back({t, kNowhere, kNowhere});
    } else if (e.leaf) {
      const u32 leaf = leaf_index.find(e.leaf.get());
      leaves[leaf].wanted = true;
      asked.push_back({t, leaf, kNowhere});
    } else {
      asked.push_back({t, kNowhere, static_cast<u32>(captures.size())});
      captures.push_back({t, slot, {}});
      slots[slot].captured = true;
    }
  }
}

// Which nodes lie on a path to what is wanted; edges that lead elsewhere are cut.
void BackwardRun::State::mark_wanted() {
  std::vector<bool> wanted_slot(slots.size());
  for (const LeafState& l : leaves) wanted_slot[l.slot] = l.wanted;
  for (const Capture& c : captures) wanted_slot[c.slot] = true;
  const bool all = options.inputs.empty();
  for (size_t i = nodes.size(); i-- > 0;) {  // producers first
    NodeState& n = nodes[i];
    n.wanted = all;
    for (size_t k = 0; k < n.node->edges.size(); ++k) {
      u32& to = edge_slots[n.first_edge + k];
      if (to == kNowhere) continue;
      if (!wanted_slot[to]) to = kNowhere;
      else n.wanted = true;
    }
    if (!n.wanted) continue;
    ++total;
    for (size_t k = 0; k < n.node->outputs.size(); ++k) wanted_slot[n.first_slot + k] = true;
    for (size_t k = 0; k < n.node->edges.size(); ++k)
      if (const u32 to = edge_slots[n.first_edge + k]; to != kNowhere) ++slots[to].expected;
  }
  for (const Edge& e : root_edges) ++slots[slot_of(e)].expected;
}

// Empty slots, then the seeds.
void BackwardRun::State::start() {
  for (Slot& s : slots) s.clear();
  for (Capture& c : captures) c.grad = Tensor();
  at = 0;
  done = 0;
  for (size_t i = 0; i < roots.size(); ++i) {
    Tensor seed = i < options.seeds.size() ? options.seeds[i] : Tensor();
    if (!seed.defined()) {
      seed = make_empty(roots[i].shape(), roots[i].dtype());
      visit_float(seed.dtype(), [&](auto zero) { *seed.data<decltype(zero)>() = 1; });
    }
    Slot& slot = slots[slot_of(root_edges[i])];
    Contribution part;
    part.from = "seed";
    part.gradient.value = deliver(slot, root_edges[i], Grad(std::move(seed)), "backward", 0, true);
    slot.parts.push_back(std::move(part));  // its statistics are for the card that shows it
  }
}

}  // namespace waymark
