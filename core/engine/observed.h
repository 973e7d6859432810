// Internal: what watches a thread besides the pointers in ThreadState and run_observer(): who is told of hooks, and what
// becomes of an observer that is set inside a scope which has none.
#pragma once

#include "core/engine/backward.h"

namespace waymark {

// A hook that ran.
struct HookEvent {
  const std::string& of;  // "softmax #131", "\"w\"" of a leaf
  const Node* node;       // null: of a leaf
  size_t number;          // 1: the first one of this tensor
  const Tensor &before, &after;
};
class HookObserver {
 public:
  virtual ~HookObserver() = default;
  // Hooks are told; the gradient that comes to them is then copied.
  virtual bool wants_hooks() const { return false; }
  virtual void on_hook(const HookEvent&) {}
};

struct ObservedState {
  HookObserver* hooks = nullptr;
  Observer* watching = nullptr;  // the observer outside of all scopes that have none
  u32 muted = 0;                 // number of those scopes
};
inline ObservedState& observed_state() {
  static constinit thread_local ObservedState state;
  return state;
}

// Ops inside are not told to the observer. One that is set inside sees them, and stays after the end of the scope.
class Unobserved {
 public:
  explicit Unobserved(bool really) : really_(really), before_(thread_state().observer) {
    if (!really) return;
    thread_state().observer = nullptr;
    ++observed_state().muted;
  }
  ~Unobserved() {
    if (!really_) return;
    ObservedState& state = observed_state();
    --state.muted;
    thread_state().observer = before_ || state.muted > 0 ? before_ : state.watching;
  }
  Unobserved(const Unobserved&) = delete;
  Unobserved& operator=(const Unobserved&) = delete;

 private:
  bool really_;
  Observer* before_;
};

}  // namespace waymark
