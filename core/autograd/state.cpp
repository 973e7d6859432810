#include "core/autograd/state.h"

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "core/tensor/error.h"

namespace waymark {
namespace {

// The paths lie in blocks of 64, 128, 256, ... strings that never move, so that reading one takes no lock: whoever has
// an id has it from intern_scope(), which had written the path before.
struct Interned {
  static constexpr u32 kFirst = 64;
  std::mutex mutex;  // of what follows; `blocks` and `count` may be read without it
  std::unordered_map<std::string_view, u32> ids;
  std::array<std::atomic<std::string*>, 26> blocks{};
  std::atomic<u32> count{0};

  Interned() { add(""); }
  static u32 block_of(u32 id) { return static_cast<u32>(std::bit_width(id / kFirst + 1)) - 1; }
  std::string& at(u32 id) const {
    const u32 block = block_of(id);
    return blocks[block].load(std::memory_order_acquire)[id - kFirst * ((1U << block) - 1)];
  }
  u32 add(std::string_view path) {
    const u32 id = count.load(std::memory_order_relaxed), block = block_of(id);
    if (block >= blocks.size()) fail("scope", "there are {} module paths already", id);
    if (!blocks[block]) blocks[block].store(new std::string[size_t{kFirst} << block], std::memory_order_release);
    at(id) = path;
    ids.emplace(at(id), id);
    count.store(id + 1, std::memory_order_release);
    return id;
  }
};
Interned& interned() {
  static Interned* const immortal = new Interned;
  return *immortal;
}

}  // namespace

u32 intern_scope(std::string_view path) {
  Interned& t = interned();
  const std::lock_guard lock(t.mutex);
  const auto it = t.ids.find(path);
  return it != t.ids.end() ? it->second : t.add(path);
}

const std::string& scope_path(u32 id) {
  const Interned& t = interned();
  if (id >= t.count.load(std::memory_order_acquire)) fail("scope", "there is no module path of number {}", id);
  return t.at(id);
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
