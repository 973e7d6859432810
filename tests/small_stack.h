// Runs a function on a thread with a stack of 512 KiB: recursion along a graph does not fit there.
#pragma once

#include <pthread.h>

#include <exception>
#include <functional>
#include <stdexcept>

namespace waymark::test {

inline void with_small_stack(const std::function<void()>& f) {
  struct Work {
    const std::function<void()>& f;
    std::exception_ptr error;
  } work{f, nullptr};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread;
  const auto body = [](void* w) -> void* {
    auto& mine = *static_cast<Work*>(w);
    try {
      mine.f();
    } catch (...) {
      mine.error = std::current_exception();
    }
    return nullptr;
  };
  const int made = pthread_create(&thread, &attributes, body, &work);
  pthread_attr_destroy(&attributes);
  if (made != 0) throw std::runtime_error("no thread with a stack of 512 KiB");
  pthread_join(thread, nullptr);
  if (work.error) std::rethrow_exception(work.error);
}

}  // namespace waymark::test
