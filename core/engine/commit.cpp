// The end of a run: hooks of the leaves, what is returned, and the commit to .grad.
#include <mutex>
#include <typeinfo>

#include "core/engine/run_state.h"

namespace waymark {

namespace {
// Two runs may share leaves: the commit of one leaf is exclusive.
std::mutex& leaf_mutex(const TensorImpl* leaf) {
  static std::mutex pool[64];
  return pool[(reinterpret_cast<std::uintptr_t>(leaf) >> 6) % 64];
}
}  // namespace

GradMap BackwardRun::State::collect() const {
  GradMap map;
  if (options.inputs.empty()) {
    for (const LeafState& l : leaves)
      if (const Tensor& g = slots[l.slot].value; g.defined()) map.set(l.leaf, g);
    return map;
  }
  for (const Asked& a : asked) {
    const Tensor g = a.leaf != kNowhere ? slots[leaves[a.leaf].slot].value
                     : a.capture != kNowhere ? captures[a.capture].grad
                                             : Tensor();
    if (g.defined()) map.set(a.tensor, g);
  }
  return map;
}

void BackwardRun::State::check_all_arrived() const {
  if (options.allow_unused) return;
  const GradMap map = collect();
  for (size_t i = 0; i < asked.size(); ++i)
    if (const Tensor& t = asked[i].tensor; !map.contains(t))
      fail("grad", "no gradient arrived at input {} ({}, {}): the rules on the way returned none; pass allow_unused = true if that is intended",
           i, describe(t), t.shape());
}

// The nodes that are left, then the hooks of the leaves.
void BackwardRun::State::run_rest() {
  check_alive();
  if (phase == Phase::ended) fail("backward", "this run is finished; make a new one");
  for (bool more = true; more;) {
    RunObserver* const observer = run_observer();
    NodeCard card;
    const bool wanted = observer && observer->wants_cards();
    more = run_one(wanted ? &card : nullptr);
    if (more && wanted) observer->on_card(std::move(card));
  }
  try {
    for (const LeafState& l : leaves) {
      Slot& slot = slots[l.slot];
      if (!l.wanted || !slot.value.defined()) continue;
      const AutogradMeta& m = *meta_of(l.leaf);
      if (!m.hooks || m.hooks->empty()) continue;
      try {
        run_hooks(slot, *std::shared_ptr<HookList>(m.hooks), describe(l.leaf), nullptr, nullptr);
      } catch (const Error& e) {
        if (typeid(e) != typeid(Error)) throw;  // one of its own kind says all there is to say
        throw Error(e, "in a hook of " + describe(l.leaf), e.scope(), e.loc());
      }
    }
  } catch (...) {
    phase = Phase::failed;
    throw;
  }
  phase = Phase::ended;
}

// Two steps, so that an error changes no .grad: whatever can fail (memory), then the writing.
GradMap BackwardRun::State::commit() {
  GradMap map = collect();
  const NoGrad no_grad;
  enum class How : u8 { add, take, sum };
  struct Commit {
    const LeafState* leaf;
    How how;
    Tensor buffer;  // take: the new .grad; sum: memory for it
  };
  std::vector<Commit> commits;
  for (const LeafState& l : leaves) {
    const Slot& s = slots[l.slot];
    if (!l.wanted || !s.value.defined()) continue;
    const std::lock_guard lock(leaf_mutex(l.leaf.impl()));
    const AutogradMeta& m = *meta_of(l.leaf);
    if (m.grad.defined()) {
      const bool in_place = !m.grad.impl()->overlaps && overlap_of(m.grad, s.value) == Overlap::none;
      commits.push_back({&l, in_place ? How::add : How::sum, in_place ? Tensor() : make_empty_like(l.leaf, l.leaf.dtype())});
      continue;
    }
    // The map holds one handle, the slot another.
    const TensorImpl* t = s.value.impl();
    const bool takes = s.owned && !options.create_graph && t->use_count() == 2 && t->storage->use_count() == 1 && !t->meta &&
                       t->dense && (t->strides == l.leaf.strides() ||
                                    (t->contiguous && (l.leaf.is_contiguous() || !l.leaf.impl()->dense)));
    commits.push_back({&l, How::take, s.value});
    if (takes) continue;
    commits.back().buffer = make_empty_like(l.leaf, l.leaf.dtype());
    ops::copy_into(commits.back().buffer, s.value);
  }
  for (Commit& c : commits) {
    const Tensor& leaf = c.leaf->leaf;
    Slot& s = slots[c.leaf->slot];
    AutogradMeta& m = *meta_of(leaf);
    const std::lock_guard lock(leaf_mutex(leaf.impl()));
    if (c.how == How::take && !m.grad.defined()) {
      m.grad = c.buffer;
      if (!options.create_graph && map.contains(leaf)) map.set(leaf, m.grad);
    } else if (c.how == How::sum) {
      ops::binary_into("backward", kernels::Binary::add, c.buffer, m.grad, s.value);
      m.grad = c.buffer;
    } else {
      ops::binary_into("backward", kernels::Binary::add, m.grad, m.grad, s.value);
      m.grad.impl()->storage->wrote({"backward", {}, {}});
    }
    s.value = Tensor();
  }
  for (const Commit& c : commits) {
    const std::shared_ptr<HookList> list = meta_of(c.leaf->leaf)->post_hooks;
    if (!list) continue;
    const HookList now = *list;  // a hook may remove itself
    for (const Hook& hook : now) (*hook.run)(c.leaf->leaf);
  }
  return map;
}

}  // namespace waymark
