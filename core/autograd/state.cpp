#include "core/autograd/state.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "core/tensor/error.h"

namespace waymark {
namespace {

struct Interned {
  std::mutex mutex;
  std::deque<std::string> paths{""};  // deque: the strings never move
  std::unordered_map<std::string_view, u32> ids{{"", 0}};
};
Interned& interned() {
  static Interned* const immortal = new Interned;
  return *immortal;
}

}  // namespace

u32 intern_scope(std::string_view path) {
  Interned& t = interned();
  std::lock_guard lock(t.mutex);
  if (auto it = t.ids.find(path); it != t.ids.end()) return it->second;
  t.paths.emplace_back(path);
  const u32 id = static_cast<u32>(t.paths.size() - 1);
  t.ids.emplace(t.paths.back(), id);
  return id;
}

const std::string& scope_path(u32 id) {
  Interned& t = interned();
  std::lock_guard lock(t.mutex);
  return t.paths.at(id);
}

Scope::Scope(u32 id) : before_(thread_state().scope), path_before_(current_scope_path()) {
  current_scope_path() = scope_path(id);
  thread_state().scope = id;
}
Scope::~Scope() {
  thread_state().scope = before_;
  current_scope_path() = path_before_;
}

}  // namespace waymark
