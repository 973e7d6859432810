#include "core/engine/card.h"

#include <atomic>

#include "core/engine/notes.h"
#include "core/engine/run_state.h"

namespace waymark {
namespace {

std::string axes_text(const Shape& from, const Shape& to) {
  std::vector<int> axes;
  const int lead = from.size() - to.size();
  for (int d = 0; d < from.size(); ++d)
    if (d < lead || from[d] != to[d - lead]) axes.push_back(d);
  return fmt::format("summed over ax{} {}", axes.size() == 1 ? "is" : "es", fmt::join(axes, ", "));
}

}  // namespace

RunObserver*& run_observer() {
  static thread_local RunObserver* observer = nullptr;
  return observer;
}

void CardTensor::set(const Tensor& t, const TensorStats& known_stats) {
  if (!t.defined()) return;
  known = computed = true;
  dtype = t.dtype();
  shape = t.shape();
  strides = t.strides();
  stats = known_stats;
  value = t;
}
void CardTensor::set(const Tensor& t) {
  if (t.defined()) set(t, stats_of(t));
}

double NodeCard::incoming_norm() const {
  double squares = 0;
  for (const Incoming& i : incoming)
    if (i.gradient.computed) squares += i.gradient.stats.norm * i.gradient.stats.norm;
  return std::sqrt(squares);
}

std::string name_of_target(const Edge& e) {
  if (e.leaf) {
    const AutogradMeta* m = meta_of(e.leaf.get());
    return m && !m->name.empty() ? m->name : fmt::format("leaf {}", e.leaf->shape);
  }
  if (!e.node) return "";
  if (SlotHooks* h = e.node->find_hooks(e.slot); h && !h->name.empty()) return h->name;
  const std::string label = e.node->label();
  return e.node->outputs.size() > 1 ? fmt::format("{}.{}", label, e.slot) : label;
}

// ---- what is known before the rule runs -------------------------------------------------------------------------------

void BackwardRun::State::find_savers() {
  if (savers_known) return;
  savers_known = true;
  for (const NodeState& n : nodes)
    for (const Saved& s : n.node->saved) {
      if (!s.data) continue;
      std::vector<const Node*>& list = savers[s.data->storage.get()];
      if (list.empty()) saved_bytes += s.data->storage->bytes();
      if (list.empty() || list.back() != n.node.get()) list.push_back(n.node.get());
    }
}

NodeCard BackwardRun::State::describe_node(const Node& node) {
  find_savers();
  NodeCard c;
  c.run = run_number;
  c.info = node.op;
  c.op = node.op->name;
  c.label = node.label();
  c.seq = node.seq;
  c.formula = node.op->formula;
  c.rule = node.op->rule.text();
  c.scope = scope_path(node.scope);
  if (node.loc) {
    c.place = fmt::format("{}:{}", node.loc.name(), node.loc.line);
    c.file = node.loc.file;
    c.line = node.loc.line;
  }
  if (!node.op->twin.empty()) c.form = "fused";
  c.inputs.reserve(node.edges.size());
  c.outputs.reserve(node.outputs.size());
  c.incoming.reserve(node.outputs.size());
  c.outgoing.reserve(node.edges.size());
  c.saved.reserve(node.saved.size());
  for (const Edge& e : node.edges) c.inputs.emplace_back().name = name_of_target(e);
  for (u32 k = 0; k < node.outputs.size(); ++k) {
    CardTensor& out = c.outputs.emplace_back();
    out.name = name_of_target(Edge{Intrusive<Node>(const_cast<Node*>(&node)), nullptr, k});
    out.known = true;
    out.dtype = node.outputs[k].dtype;
    out.shape = node.outputs[k].shape;
    out.strides = contiguous_strides(out.shape);
  }
  i64 own_storages = 0;
  for (size_t i = 0; i < node.saved.size(); ++i) {
    const Saved& s = node.saved[i];
    NodeCard::SavedItem item;
    item.what = s.what(*node.op);
    item.bytes = s.bytes;
    item.version_saved = item.version_now = s.version;
    item.recomputed = static_cast<bool>(s.lazy);
    c.saved_bytes += s.bytes;
    if (s.data) {
      item.has_values = true;
      item.shape = s.data->shape;
      item.dtype = s.data->dtype;
      item.version_now = s.data->storage->version();
      bool repeated = false;
      for (size_t j = 0; j < i; ++j) repeated |= node.saved[j].data && node.saved[j].data->storage == s.data->storage;
      if (!repeated) own_storages += s.data->storage->bytes();
      if (const auto it = savers.find(s.data->storage.get()); it != savers.end())
        for (const Node* other : it->second)
          if (other != &node) item.shared_with.push_back(other->label());
      CardTensor* of = s.kind == SaveKind::input && s.index < c.inputs.size()     ? &c.inputs[s.index]
                       : s.kind == SaveKind::output && s.index < c.outputs.size() ? &c.outputs[s.index]
                                                                                  : nullptr;
      // As it was when it was saved, or not at all.
      if (of && s.data->storage->version() == s.version) {
        of->known = true;
        of->dtype = s.data->dtype;
        of->shape = s.data->shape;
        of->strides = s.data->strides;
        of->value = Tensor(s.data);
      }
    }
    c.saved.push_back(std::move(item));
  }
  if (saved_bytes > 0) c.saved_share = static_cast<double>(own_storages) / static_cast<double>(saved_bytes);
  return c;
}

// ---- what arrived, what leaves ----------------------------------------------------------------------------------------

NodeCard::Incoming BackwardRun::State::describe_incoming(Slot& slot, std::string name, bool changed) {
  NodeCard::Incoming in;
  in.gradient.name = std::move(name);
  in.contributions = std::move(slot.parts);
  slot.parts.clear();
  if (!slot.value.defined()) return in;
  for (Contribution& c : in.contributions)
    if (!c.gradient.computed) c.gradient.set(c.gradient.value);
  if (in.contributions.size() == 1 && !changed) in.gradient.set(slot.value, in.contributions[0].gradient.stats);
  else in.gradient.set(slot.value);
  share_out(in.contributions, slot.value);
  return in;
}

NodeCard::Outgoing BackwardRun::State::describe_edge(const Node& node, size_t input, const Grad& g, const Slot& slot) {
  const Edge& to = node.edges[input];
  NodeCard::Outgoing out;
  out.to = name_of_target(to);
  out.input = static_cast<int>(input);
  if (to.leaf) out.leaf = Tensor(to.leaf);
  if (to.node) {
    out.seq = to.node->seq;
    out.slot = to.slot;
  }
  out.before.name = out.after.name = out.to + "<-" + node.label();
  out.slot_before.name = out.slot_after.name = "grad(" + out.to + ")";
  if (slot.value.defined()) out.slot_before.set(slot.value, slot.has_stats ? slot.stats : stats_of(slot.value));
  if (g.value.defined()) {
    out.before.known = true;
    out.before.dtype = g.value.dtype();
    out.before.shape = g.value.shape();
    out.before.strides = g.value.strides();
    out.before.value = g.value;
    out.window = g.window;
  }
  return out;
}

// After the edge: c is what it delivered, undefined if nothing arrived; the slot has taken it.
void BackwardRun::State::describe_delivery(const Node& node, NodeCard::Outgoing& out, const Tensor& c, bool window, Slot& slot) {
  out.arrived = slot.arrived;
  out.expected = slot.expected;
  if (!c.defined()) return;
  out.after.set(c);
  if (out.before.value.is(c)) out.before.set(c, out.after.stats);
  else out.before.set(out.before.value);
  if (window) out.edge = "added into a window of zeros";
  else if (out.before.shape != c.shape()) out.edge = axes_text(out.before.shape, c.shape());
  if (out.before.dtype != c.dtype())
    out.edge += fmt::format("{}cast to {}", out.edge.empty() ? "" : ", ", name_of(c.dtype()));
  slot.stats = !out.slot_before.computed && !window ? out.after.stats : stats_of(slot.value);
  slot.has_stats = true;
  out.slot_after.set(slot.value, slot.stats);
  Contribution part;
  part.from = node.label();
  part.seq = node.seq;
  part.input = out.input;
  part.gradient = out.after;
  slot.parts.push_back(std::move(part));
}

void BackwardRun::State::finish_card(NodeCard& card, const Node& node) {
  const double in = card.incoming_norm();
  for (NodeCard::Outgoing& o : card.outgoing)
    if (o.after.computed) o.gain = in > 0 ? o.after.stats.norm / in : NAN;
  if (RunObserver* observer = run_observer()) observer->complete(card, node);
  // Values that a checkpoint recomputed are known by now.
  for (const Saved& s : node.saved) {
    if (!s.data || s.kind != SaveKind::input || s.index >= card.inputs.size() || card.inputs[s.index].known) continue;
    card.inputs[s.index].known = true;
    card.inputs[s.index].dtype = s.data->dtype;
    card.inputs[s.index].shape = s.data->shape;
    card.inputs[s.index].strides = s.data->strides;
    card.inputs[s.index].value = Tensor(s.data);
  }
  for (auto* list : {&card.inputs, &card.outputs})
    for (CardTensor& t : *list)
      if (t.value.defined() && !t.computed) t.set(t.value);
  card.notes = notes_of(card, *node.op);
}

void share_out(std::vector<Contribution>& parts, const Tensor& sum) {
  if (parts.size() == 1 && parts[0].gradient.value.defined() && parts[0].gradient.value.is(sum)) {
    const double norm = parts[0].gradient.stats.norm;
    parts[0].share = parts[0].cosine = norm > 0 && std::isfinite(norm) ? 1 : NAN;
    return;
  }
  double squares = NAN;
  for (Contribution& part : parts) {
    if (!part.gradient.value.defined() || part.gradient.shape != sum.shape()) continue;
    const Alignment a = alignment_of(part.gradient.value, sum);
    squares = a.squares;
    part.share = squares > 0 ? a.dot / squares : NAN;
    part.cosine = a.cosine;
  }
}

const Node* BackwardRun::State::peek() {
  for (size_t i = at; i < nodes.size(); ++i) {
    if (!nodes[i].wanted) continue;
    for (size_t k = 0; k < nodes[i].node->outputs.size(); ++k)
      if (slots[nodes[i].first_slot + k].value.defined()) return nodes[i].node.get();
  }
  return nullptr;
}

void BackwardRun::State::release_all() {
  for (NodeState& n : nodes)
    if (n.wanted) n.node->release();
}

u64 BackwardRun::State::next_number() {
  static std::atomic<u64> next{1};
  return next.fetch_add(1);
}

}  // namespace waymark
