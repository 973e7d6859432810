#include "core/autograd/record.h"

#include <mutex>
#include <unordered_map>

namespace waymark {
namespace {

// Leaves with hooks, by their metadata, whose destructor takes them out.
struct HookedLeaves {
  std::mutex mutex;
  std::unordered_map<const AutogradMeta*, TensorImpl*> leaves;
};
HookedLeaves& hooked() {
  static auto* const immortal = new HookedLeaves;
  return *immortal;
}

// A view whose base was changed in place since its history was made.
bool is_stale(const AutogradMeta& m) {
  if (!m.view) return false;
  const AutogradMeta* base = meta_of(m.view->base.get());
  return base && base->epoch != m.view->base_epoch;
}

bool needs_grad(const Tensor& t) {
  const AutogradMeta* m = t.defined() ? meta_of(t) : nullptr;
  return m && (m->requires_grad || m->history.node || is_stale(*m));
}

std::string leaf_name(const AutogradMeta& m) { return m.name.empty() ? "" : fmt::format("\"{}\", ", m.name); }

i64 bytes_of(const TensorImpl& t) { return t.numel * size_of(t.dtype); }

}  // namespace

AutogradMeta& ensure_meta(TensorImpl* impl) {
  if (!impl->meta) impl->meta = std::make_unique<AutogradMeta>();
  return *meta_of(impl);
}

AutogradMeta::~AutogradMeta() {
  if (!hooked) return;
  HookedLeaves& h = waymark::hooked();
  const std::lock_guard lock(h.mutex);
  h.leaves.erase(this);
}

void note_hooked(TensorImpl* leaf) {
  AutogradMeta& m = ensure_meta(leaf);
  if (m.hooked) return;
  m.hooked = true;
  HookedLeaves& h = hooked();
  const std::lock_guard lock(h.mutex);
  h.leaves.emplace(&m, leaf);
}

std::vector<Tensor> hooked_leaves() {
  HookedLeaves& h = hooked();
  const std::lock_guard lock(h.mutex);
  std::vector<Tensor> all;
  for (const auto& [meta, leaf] : h.leaves) all.emplace_back(Intrusive<TensorImpl>(leaf));
  return all;
}

void set_history(TensorImpl* t, Edge edge) {
  AutogradMeta& m = ensure_meta(t);
  if (m.cell && edge.node) {
    std::string name = m.name;
    if (m.history.node) m.history.node->drop_watch(m.history.slot);
    SlotHooks& now = edge.node->hooks_of(edge.slot);
    now.cell = m.cell;
    now.name = std::move(name);
  }
  m.history = std::move(edge);
}

Edge edge_of(const Tensor& t) {
  AutogradMeta* m = meta_of(t);
  if (!m) return {};
  if (is_stale(*m)) return replay_view(t);
  if (m->history.node) return m->history;
  if (m->requires_grad) return {nullptr, Intrusive<TensorImpl>(t.impl()), 0};
  return {};
}

std::string describe(const Tensor& t) {
  const AutogradMeta* m = meta_of(t);
  if (m && !m->name.empty()) return fmt::format("\"{}\"", m->name);
  if (m && m->history.node) {
    const Node& n = *m->history.node;
    return fmt::format("the output of {}{}", n.label(), n.scope ? " (" + scope_path(n.scope) + ")" : "");
  }
  return "a leaf";
}

std::string AutogradMeta::footer() const {
  // A view whose base was changed in place gets its new history when an op next asks; printing does not make it.
  const AutogradMeta* base = view ? meta_of(view->base.get()) : nullptr;
  if (base && base->epoch != view->base_epoch && base->history.node)
    return fmt::format("grad_fn=<view of {}>", base->history.node->label());
  if (history.node) return fmt::format("grad_fn=<{}>", history.node->label());
  return requires_grad ? "requires_grad=True" : "";
}

void set_name(const Tensor& t, std::string name) { ensure_meta(t).name = std::move(name); }

void set_bounds(const Tensor& t, Bounds bounds) {
  if (!t.defined() || !is_float(t.dtype()) || !t.is_leaf())
    fail("set_bounds", "bounds belong to a leaf of a float dtype, not to {}", t.defined() ? describe(t) : "an undefined tensor");
  if (!(bounds.low <= bounds.high)) fail("set_bounds", "[{}, {}] is no interval", bounds.low, bounds.high);
  ensure_meta(t).bounds = std::make_unique<Bounds>(bounds);
}

std::optional<Bounds> bounds_of(const Tensor& t) {
  const AutogradMeta* meta = t.defined() ? meta_of(t) : nullptr;
  return meta && meta->bounds ? std::optional<Bounds>(*meta->bounds) : std::nullopt;
}

// Not inline: g++ 12 takes the moved variant for uninitialised where it sees through the call.
Attrs::Attrs() = default;
Attrs::~Attrs() = default;
Attrs::Attrs(const Attrs&) = default;
Attrs::Attrs(Attrs&&) noexcept = default;
Attrs& Attrs::operator=(const Attrs&) = default;
Attrs& Attrs::operator=(Attrs&&) noexcept = default;
void Attrs::operator()(std::string_view name, AttrValue value) { list_.emplace_back(name, std::move(value)); }

SavedTensor Saver::keep(SaveKind kind, size_t index, const Tensor& t) {
  Saved& saved = node_.saved.emplace_back(Saved{.kind = kind, .index = static_cast<u32>(index), .version = t.version(),
                                                .bytes = bytes_of(*t.impl())});
  if (SaveSink* sink = thread_state().sink) [[unlikely]] saved.lazy = sink->put(t);
  // Whatever has a history, or gains one when it is changed in place (a constant does: c.add_(x * c)), is kept as an
  // alias: its history could lead back to this node. Integers and what the op made for itself cannot.
  const bool may_lead_back = t.impl()->meta || kind == SaveKind::output || (kind == SaveKind::input && is_float(t.dtype()));
  if (!saved.lazy) saved.data = Intrusive<TensorImpl>((may_lead_back ? alias(t) : t).impl());
  return SavedTensor(static_cast<int>(node_.saved.size() - 1));
}

SavedTensor Saver::extra(SaveKind kind, const Tensor& t) { return t.defined() ? keep(kind, 0, t) : SavedTensor(); }

SavedTensor Saver::input(size_t i, bool condition) {
  return condition && inputs_[i].defined() ? keep(SaveKind::input, i, inputs_[i]) : SavedTensor();
}

SavedTensor Saver::output(size_t k, bool condition) {
  return condition ? keep(SaveKind::output, k, outputs_[k]) : SavedTensor();
}

Shape Saver::shape(size_t i) {
  node_.saved.emplace_back(Saved{.kind = SaveKind::shape, .index = static_cast<u32>(i),
                                 .bytes = inputs_[i].dim() * i64{8}});
  return inputs_[i].shape();
}

namespace detail {

bool wants_node(const OpInfo& op, std::span<const Tensor> outputs, const Inputs& inputs) {
  count(Count::ops);
  if (!grad_enabled() || !op.rule.differentiable()) return false;
  bool any = false, cut = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const AutogradMeta* m = inputs[i].defined() ? meta_of(inputs[i]) : nullptr;
    if (!m) continue;
    // A stale view gets its new history now, before the node takes its number: backward runs the nodes by descending
    // numbers, and each must come after all that use it.
    if (is_stale(*m)) [[unlikely]] static_cast<void>(edge_of(inputs[i]));
    any |= m->requires_grad || m->history.node;
    cut |= m->cut_by != nullptr;
  }
  if (!any) {
    if (cut) [[unlikely]]
      for (const Tensor& t : outputs) note_cut(op, t, inputs);
    return false;
  }
  bool wanted = false;
  for (const Tensor& t : outputs) wanted |= is_float(t.dtype());
  return wanted;
}

void note_cut(const OpInfo& op, const Tensor& output, const Inputs& inputs) {
  if (!op.rule.differentiable()) count(Count::ops);
  if (!grad_enabled()) return;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined() || !meta_of(inputs[i])) continue;
    const AutogradMeta& m = *meta_of(inputs[i]);
    if (!op.rule.differentiable() && needs_grad(inputs[i])) {
      AutogradMeta& out = ensure_meta(output);
      out.cut_by = &op;
      out.cut_at = inputs.loc();
      return;
    }
    if (m.cut_by) {
      AutogradMeta& out = ensure_meta(output);
      out.cut_by = m.cut_by;
      out.cut_at = m.cut_at;
      return;
    }
  }
}

void link(Node& node, std::span<const Tensor> outputs, const Inputs& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) {
      node.edges.emplace_back();
      continue;
    }
    Edge& edge = node.edges.emplace_back(edge_of(inputs[i]));
    edge.integral = !is_float(inputs[i].dtype());
  }
  for (const Tensor& t : outputs) node.outputs.emplace_back(OutputMeta{t.shape(), t.dtype()});
}

void attach(const Intrusive<Node>& node, std::span<const Tensor> outputs) {
  for (u32 slot = 0; slot < outputs.size(); ++slot)
    if (is_float(outputs[slot].dtype())) ensure_meta(outputs[slot]).history = Edge{node, nullptr, slot};
}

void wrote(const OpInfo& op, const Tensor& target, Loc loc) {
  const u32 scope = thread_state().scope;
  target.impl()->storage->wrote({op.name.data(), scope ? std::string_view(scope_path(scope)) : std::string_view(), loc});
}

void rebase(const Intrusive<Node>& node, const Tensor& target) {
  AutogradMeta& m = ensure_meta(target);
  // The base first: its old history is an input of its new one. Its other views notice by the epoch.
  if (m.view) {
    rebase_view(node, target);
    m.view->base_epoch = ensure_meta(m.view->base.get()).epoch;
  }
  set_history(target.impl(), Edge{node, nullptr, 0});
  ++m.epoch;
}

}  // namespace detail

void remember_base(const Tensor& value, const Tensor& base, bool one_of_many) {
  const AutogradMeta* b = meta_of(base);
  auto view = std::make_unique<ViewMeta>();
  if (b && b->view) {
    view->base = b->view->base;
    view->one_of_many = b->view->one_of_many;
  } else {
    view->base = Intrusive<TensorImpl>(base.impl());
  }
  const AutogradMeta* root = meta_of(view->base.get());
  view->base_epoch = root ? root->epoch : 0;
  view->made_without_grad = !grad_enabled();
  view->one_of_many |= one_of_many;
  ensure_meta(value).view = std::move(view);
}

void check_inplace(std::string_view op, const Tensor& target, Inputs inputs) {
  if (!target.defined()) fail_at(inputs.loc(), op, "the target is undefined");
  if (target.impl()->overlaps)
    fail_at(inputs.loc(), op, "the target {} with strides {} has elements that share memory; clone() it first",
            target.shape(), target.strides());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].defined() && overlap_of(target, inputs[i]) == Overlap::partial)
      fail_at(inputs.loc(), op, "the target {} and the input {} share part of their memory; clone() the input first",
              target.shape(), inputs[i].shape());
  if (thread_state().observer) [[unlikely]] thread_state().observer->before_write(target);
  if (!grad_enabled()) return;
  const AutogradMeta* m = meta_of(target);
  if (!m) return;
  const AutogradMeta* base = m->view ? meta_of(m->view->base.get()) : nullptr;
  if (m->requires_grad || (base && base->requires_grad))
    fail_at(inputs.loc(), op, "the target is {} leaf that requires grad ({}{}); change it inside NoGrad",
            m->requires_grad ? "a" : "a view of a", leaf_name(m->requires_grad ? *m : *base), target.shape());
  bool differentiable = needs_grad(target) || (base && base->history.node);
  for (size_t i = 0; i < inputs.size(); ++i) differentiable |= needs_grad(inputs[i]);
  if (!m->view || !differentiable) return;
  if (m->view->made_without_grad)
    fail_at(inputs.loc(), op, "the target is a view that was made under NoGrad, and grad mode is on now; make the view again or change it inside NoGrad");
  if (m->view->one_of_many)
    fail_at(inputs.loc(), op, "the target is one of several views that one op returned; use clone() or narrow()");
}

}  // namespace waymark
