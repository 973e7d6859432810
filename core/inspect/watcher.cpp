#include "core/inspect/watcher.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace waymark::inspect {

// The guards of one thread. What the thread's state points to is this, never a guard: so a pointer that somebody kept,
// or put back at the end of a scope, is good as long as the thread is, whatever became of the guards.
class WatcherChain final : public Observer, public RunObserver, public HookObserver {
 public:
  // A guard may end on another thread in the middle of an event: it waits then.
  using Lock = std::lock_guard<std::recursive_mutex>;

  // The chain of this thread, which its state and the guards share.
  static const std::shared_ptr<WatcherChain>& of_thread() {
    struct Holder {
      std::shared_ptr<WatcherChain> chain = std::make_shared<WatcherChain>();
      ~Holder() { chain->detach(); }
    };
    thread_local Holder holder;
    return holder.chain;
  }

  void enter(Watcher& w) {
    const Lock lock(mutex_);
    ObservedState& state = observed_state();
    Observer*& observer = thread_state().observer;
    w.muted_ = state.muted;
    w.other_ = observer == this ? nullptr : observer;
    w.other_run_ = run_observer() == this ? nullptr : run_observer();
    watchers_.push_back(&w);
    observer = state.watching = this;
    run_observer() = this;
    state.hooks = this;
  }
  // On any thread. On another than the chain's own, the state of that one is put right at its next event.
  void leave(Watcher& w) {
    const Lock lock(mutex_);
    const auto it = std::find(watchers_.begin(), watchers_.end(), &w);
    if (it == watchers_.end()) return;
    // Observers of another kind that were in force before it are the next one's now.
    if (it + 1 != watchers_.end()) {
      Watcher& next = **(it + 1);
      if (!next.other_) next.other_ = w.other_;
      if (!next.other_run_) next.other_run_ = w.other_run_;
    }
    watchers_.erase(it);
    if (this == of_thread().get()) put_right(w.other_, w.other_run_);
  }
  std::vector<Watcher*> watching() {
    const Lock lock(mutex_);
    return {watchers_.rbegin(), watchers_.rend()};
  }

  void on_op(const ForwardEvent& event) override {
    for_ops([&](Observer& o) { o.on_op(event); }, [&](Watcher& w) { w.see_op(event); });
  }
  void before_write(const Tensor& target) override {
    for_ops([&](Observer& o) { o.before_write(target); }, [&](Watcher& w) { w.see_write(target); });
  }
  void on_rule(const Node& node, std::span<const Tensor> g, const Grads& out) override {
    for_ops([&](Observer& o) { o.on_rule(node, g, out); }, [&](Watcher& w) { w.see_rule(node, g, out); });
  }
  void on_start(u64 run, const std::vector<Tensor>& roots) override {
    for_runs([&](RunObserver& o) { o.on_start(run, roots); }, [&](Watcher& w) { w.see_start(run, roots); });
  }
  bool wants_cards() const override {
    const Lock lock(mutex_);
    return std::any_of(watchers_.begin(), watchers_.end(), [](const Watcher* w) {
      return w->asks_for_cards() || (w->other_run_ && w->other_run_->wants_cards());
    });
  }
  void complete(NodeCard& card, const Node& node) override {
    for_runs([&](RunObserver& o) { o.complete(card, node); }, [&](Watcher& w) { w.fill_in(card, node); });
  }
  void on_card(NodeCard&& card) override {
    for_runs([&](RunObserver& o) { o.on_card(NodeCard(card)); },
             [&](Watcher& w) { w.see_card(&w == watchers_.back() ? std::move(card) : NodeCard(card)); });
  }
  void on_rewind(u64 run, i64 to) override {
    for_runs([&](RunObserver& o) { o.on_rewind(run, to); }, [&](Watcher& w) { w.see_rewind(run, to); });
  }
  bool wants_hooks() const override {
    const Lock lock(mutex_);
    return std::any_of(watchers_.begin(), watchers_.end(), [](const Watcher* w) {
      return w->asks_for_hooks();
    });
  }
  void on_hook(const HookEvent& event) override {
    for_runs([](RunObserver&) {}, [&](Watcher& w) { w.see_hook(event); });
  }
  bool pause() override {
    bool any = false;
    for_runs([&](RunObserver& o) { any |= o.pause(); }, [&](Watcher& w) { any |= w.asks_for_pause(); });
    return any;
  }

 private:
  // The end of the thread: guards that outlive it see nothing more.
  void detach() {
    const Lock lock(mutex_);
    watchers_.clear();
    put_right(nullptr, nullptr);
  }
  // What the state of this thread, the chain's own, points to once guards have gone.
  void put_right(Observer* other, RunObserver* other_run) {
    ObservedState& state = observed_state();
    Observer*& observer = thread_state().observer;
    const bool none = watchers_.empty();
    const bool seen = std::any_of(watchers_.begin(), watchers_.end(), [&](const Watcher* w) { return w->muted_ >= state.muted; });
    if (observer == this && !seen) observer = none ? other : nullptr;
    if (state.watching == this && none) state.watching = nullptr;
    if (state.hooks == this && none) state.hooks = nullptr;
    if (run_observer() == this && none) run_observer() = other_run;
  }
  // An event of an op, on the chain's own thread: for the guards that were made at this depth of what is not observed, or
  // deeper. By place, as the list may change in between.
  template <class ToOther, class See> void for_ops(ToOther to_other, See see) {
    const Lock lock(mutex_);
    const u32 muted = observed_state().muted;
    if (watchers_.empty()) return put_right(nullptr, nullptr);
    for (size_t i = 0; i < watchers_.size(); ++i) {
      Watcher& w = *watchers_[i];
      if (w.muted_ < muted) continue;
      w.muted_ = muted;
      if (w.other_) to_other(*w.other_);
      see(w);
    }
  }
  template <class ToOther, class See> void for_runs(ToOther to_other, See see) {
    const Lock lock(mutex_);
    if (watchers_.empty()) return put_right(nullptr, nullptr);
    for (size_t i = 0; i < watchers_.size(); ++i) {
      Watcher& w = *watchers_[i];
      if (w.other_run_) to_other(*w.other_run_);
      see(w);
    }
  }

  mutable std::recursive_mutex mutex_;
  std::vector<Watcher*> watchers_;  // the innermost last
};

Watcher::Watcher() : chain_(WatcherChain::of_thread()) { chain_->enter(*this); }
Watcher::~Watcher() { leave(); }

void Watcher::leave() {
  if (const std::shared_ptr<WatcherChain> chain = std::exchange(chain_, nullptr)) chain->leave(*this);
}
std::vector<Watcher*> Watcher::watching() { return WatcherChain::of_thread()->watching(); }

}  // namespace waymark::inspect
