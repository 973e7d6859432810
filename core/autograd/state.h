// What autograd keeps per thread, and the guards that change it for a scope: NoGrad, EnableGrad, ExplainMode, Scope.
// A new thread starts with the defaults (gradients on, no scope).
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark {

class Node;
class Observer;
class SaveSink;

struct ThreadState {
  bool grad_enabled = true;
  bool explain = false;           // fused kernels give way to their readable twins
  bool reuse_buffers = true;      // off: no op takes over the buffer of an rvalue input (test seam)
  u32 scope = 0;                  // interned module path; 0 = none
  Observer* observer = nullptr;   // recorder or anomaly mode (core/inspect); null costs one branch per op
  SaveSink* sink = nullptr;       // takes what Savers keep, inside checkpoint()
  Node* running = nullptr;        // node whose rule runs now; saved values are unpacked from it
};
inline ThreadState& thread_state() {
  static constinit thread_local ThreadState state;
  return state;
}

inline bool grad_enabled() { return thread_state().grad_enabled; }
inline bool explain_mode() { return thread_state().explain; }
// Inside a rule: may it use a fused kernel that is not itself differentiable?
inline bool fused_backward_allowed() { return !thread_state().grad_enabled && !thread_state().explain; }

namespace detail {
template <bool ThreadState::*Field, bool Value> class Flag {
 public:
  Flag() : before_(thread_state().*Field) { thread_state().*Field = Value; }
  ~Flag() { thread_state().*Field = before_; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool before_;
};
}  // namespace detail

// Outputs of ops inside do not require grad; nothing is recorded.
using NoGrad = detail::Flag<&ThreadState::grad_enabled, false>;
using EnableGrad = detail::Flag<&ThreadState::grad_enabled, true>;
// Every fused kernel is replaced by its composed twin.
using ExplainMode = detail::Flag<&ThreadState::explain, true>;

// Module paths are interned: ids are small, comparing them is one integer. Id 0 is the empty path.
WAYMARK_API u32 intern_scope(std::string_view path);
WAYMARK_API const std::string& scope_path(u32 id);

// Pushes a module path ("encoder.layers.0.attention": the whole path, not the last name) for the ops inside.
class WAYMARK_API Scope {
 public:
  explicit Scope(u32 id);
  explicit Scope(std::string_view path) : Scope(intern_scope(path)) {}
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  u32 before_;
  std::string_view path_before_;
};

}  // namespace waymark
