// Tensor's methods that concern gradients (declared in tensor.h), and hooks.
#include <atomic>

#include "core/engine/backward.h"

namespace waymark {
namespace {

std::atomic<u64> next_hook{1};

bool in_graph(const Tensor& t) { return edge_of(t).wanted(); }

void need_grad(std::string_view op, const Tensor& t) {
  if (!in_graph(t)) fail(op, "the tensor ({}) does not require grad", t.shape());
}

HookHandle add_hook(std::shared_ptr<HookList>& list, HookFunction f) {
  if (!list) list = std::make_shared<HookList>();
  const u64 id = next_hook.fetch_add(1, std::memory_order_relaxed);
  list->push_back({id, std::make_shared<const HookFunction>(std::move(f))});
  return {list, id};
}

}  // namespace

bool Tensor::requires_grad() const { return in_graph(*this); }
bool Tensor::is_leaf() const { return !edge_of(*this).node; }

const Tensor& Tensor::requires_grad_(bool on) const {
  if (on && !is_floating_point())
    fail("requires_grad_", "only f32 and f64 tensors have gradients, this one is {}", name_of(dtype()));
  if (!is_leaf()) {
    if (on) return *this;
    fail("requires_grad_", "this is {}, not a leaf; use detach() to get it without history", describe(*this));
  }
  if (on || meta_of(*this)) ensure_meta(*this).requires_grad = on;
  return *this;
}

Tensor Tensor::grad() const {
  const AutogradMeta* m = meta_of(*this);
  if (!m) return {};
  if (m->cell) return m->cell->grad;
  if (!is_leaf()) fail("grad()", "this is {}, not a leaf; call watch(t) before backward", describe(*this));
  return m->grad;
}

void Tensor::set_grad(const Tensor& g) const {
  if (g.defined() && (g.shape() != shape() || g.dtype() != dtype()))
    fail("set_grad", "the gradient is {} {}, the tensor {} {}; they must agree", g.shape(), name_of(g.dtype()), shape(),
         name_of(dtype()));
  if (g.is(*this) && g.defined()) fail("set_grad", "a tensor cannot be its own gradient");
  if (!is_leaf()) fail("set_grad", "this is {}, not a leaf", describe(*this));
  if (g.defined() || meta_of(*this)) ensure_meta(*this).grad = g;
}

const Tensor& Tensor::retain_grad() const {
  need_grad("retain_grad", *this);
  const Edge e = edge_of(*this);
  if (e.leaf) return *this;
  AutogradMeta& m = ensure_meta(*this);
  if (!m.cell) m.cell = Intrusive<GradCell>(new GradCell);
  e.node->hooks_of(e.slot).cell = m.cell;
  return *this;
}

const Tensor& Tensor::watch(std::string name) const {
  if (in_graph(*this)) retain_grad();
  const Edge e = edge_of(*this);
  if (e.node) e.node->hooks_of(e.slot).name = name;
  set_name(*this, std::move(name));
  return *this;
}

std::string Tensor::name() const {
  const AutogradMeta* m = meta_of(*this);
  return m ? m->name : "";
}

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> f) const {
  need_grad("register_hook", *this);
  if (!f) fail("register_hook", "the function is empty");
  const Edge e = edge_of(*this);
  if (e.node) return add_hook(e.node->hooks_of(e.slot).hooks, std::move(f));
  note_hooked(impl());
  return add_hook(ensure_meta(*this).hooks, std::move(f));
}

HookHandle Tensor::register_post_accumulate_grad_hook(std::function<void(const Tensor&)> f) const {
  need_grad("register_post_accumulate_grad_hook", *this);
  if (!f) fail("register_post_accumulate_grad_hook", "the function is empty");
  if (!is_leaf()) fail("register_post_accumulate_grad_hook", "this is {}, not a leaf", describe(*this));
  note_hooked(impl());
  return add_hook(ensure_meta(*this).post_hooks, [f = std::move(f)](const Tensor& leaf) {
    f(leaf);
    return Tensor();
  });
}

// The entry goes; a run that is at this tensor holds the function itself and calls it once more.
void HookHandle::remove() {
  if (const auto list = list_.lock()) std::erase_if(*list, [&](const Hook& h) { return h.id == id_; });
  list_.reset();
}

GradMap Tensor::backward() const { return backward(RunOptions{}); }
GradMap Tensor::backward(const RunOptions& options) const { return BackwardRun(*this, options).finish(); }
GradMap Tensor::backward(const Tensor& seed) const { return backward(RunOptions{.seeds = {seed}}); }

}  // namespace waymark
