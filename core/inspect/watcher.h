// Internal: a guard that sees the ops and the backward runs of the thread that made it, while it lives. Guards nest: each
// passes on what it sees to those that were there before.
//
// They may end in any order, on any thread, also inside a hook or a rule: the thread holds a chain that lives as long as
// it does, and a guard that ends takes itself out of it. One that is made inside a hook or a rule sees what comes from
// then on. A trace or reports are read on the thread of their guard, or while that thread does not work.
#pragma once

#include <memory>

#include "core/autograd/record.h"
#include "core/engine/observed.h"

namespace waymark::inspect {

class WatcherChain;

class WAYMARK_API Watcher {
 public:
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 protected:
  Watcher();
  virtual ~Watcher();
  // Ends the watch; nothing is called after it. The destructor of every derived guard begins with it, while its members
  // are still there.
  void leave();
  // The guards of this thread, the innermost first.
  static std::vector<Watcher*> watching();

  // What a derived guard does; the chain is this class's work.
  virtual void see_op(const ForwardEvent&) {}
  virtual void see_write(const Tensor& /*target*/) {}
  virtual void see_rule(const Node&, std::span<const Tensor> /*g*/, const Grads& /*out*/) {}
  virtual void see_start(u64 /*run*/, const std::vector<Tensor>& /*roots*/) {}
  virtual bool asks_for_cards() const { return false; }
  virtual void fill_in(NodeCard&, const Node&) {}
  virtual void see_card(NodeCard&&) {}
  virtual void see_rewind(u64 /*run*/, i64 /*to*/) {}
  virtual bool asks_for_hooks() const { return false; }
  virtual void see_hook(const HookEvent&) {}
  virtual bool asks_for_pause() { return false; }

 private:
  friend class WatcherChain;
  std::shared_ptr<WatcherChain> chain_;  // of the thread that made it; null after leave()
  u32 muted_ = 0;                        // ObservedState::muted where it was made
  // Observers of another kind that were in force before; null: none.
  Observer* other_ = nullptr;
  RunObserver* other_run_ = nullptr;
};

}  // namespace waymark::inspect
