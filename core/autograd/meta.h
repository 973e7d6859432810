// AutogradMeta: what a tensor knows about gradients. Made on demand; a tensor without it is a constant.
#pragma once

#include "core/autograd/bounds.h"
#include "core/autograd/node.h"

namespace waymark {

// Where a view came from. An in-place change of either side is then seen by the other.
struct ViewMeta {
  Intrusive<TensorImpl> base;      // never a view itself
  u32 base_epoch = 0;              // base's epoch with which this view's history is in step
  bool made_without_grad = false;  // under NoGrad: may not be changed with grad on
  bool one_of_many = false;        // output of split, chunk, unbind: likewise
};

struct AutogradMeta final : MetaBase {
  bool requires_grad = false;      // of a leaf
  u32 epoch = 0;                   // raised when an in-place op replaces the history
  Edge history;                    // node and slot of a non-leaf; node null: leaf
  Tensor grad;                     // of a leaf
  Intrusive<GradCell> cell;        // of a watched non-leaf
  std::shared_ptr<HookList> hooks;       // of a leaf; null: none
  std::shared_ptr<HookList> post_hooks;  // of a leaf, after the commit; what they return is ignored
  std::unique_ptr<ViewMeta> view;
  std::string name;
  std::unique_ptr<Bounds> bounds;  // of a leaf; null: none
  // Where history was cut: an op without derivative (or detach) whose input required grad. Ops pass it on, so that
  // backward from a constant can say why there is nothing to do.
  const OpInfo* cut_by = nullptr;
  Loc cut_at;
  bool hooked = false;             // listed in hooked_leaves()

  AutogradMeta() = default;
  ~AutogradMeta() override;
  static void* operator new(size_t bytes) { return small_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) { small_free(p, bytes); }
  std::string footer() const override;
};

inline AutogradMeta* meta_of(const TensorImpl* impl) { return static_cast<AutogradMeta*>(impl->meta.get()); }
inline AutogradMeta* meta_of(const Tensor& t) { return meta_of(t.impl()); }
WAYMARK_API AutogradMeta& ensure_meta(TensorImpl* impl);
inline AutogradMeta& ensure_meta(const Tensor& t) { return ensure_meta(t.impl()); }

// Edge to this tensor: its node and slot, or the leaf itself, or nothing if it needs no gradient.
WAYMARK_API Edge edge_of(const Tensor& t);
// Defined in core/ops/view_history.cpp, because they record ops: the new history of a view whose base was changed in
// place; and that of the base after `writer` changed a view: the old base with the view's value in its window.
Edge replay_view(const Tensor& view);
void rebase_view(const Intrusive<Node>& writer, const Tensor& view);
// Gives `t` the history `edge`; what watch() and retain_grad() asked for moves along.
WAYMARK_API void set_history(TensorImpl* t, Edge edge);
// Leaves that have (or had) hooks, for inspect::live_graphs().
WAYMARK_API void note_hooked(TensorImpl* leaf);
WAYMARK_API std::vector<Tensor> hooked_leaves();
// For names in messages: "output of exp #3", "encoder.fc.weight", "a leaf".
WAYMARK_API std::string describe(const Tensor& t);
WAYMARK_API void set_name(const Tensor& t, std::string name);

}  // namespace waymark
