// Intrusive reference counting. The count lives in the object, so a handle is one pointer.
#pragma once

#include <atomic>
#include <utility>

#include "core/tensor/types.h"

namespace waymark {

// Base of counted objects. `T::destroy(T*)` runs when the count reaches zero; it decides how the memory goes back.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void ref() const { count_.fetch_add(1, std::memory_order_relaxed); }
  // True for the last one.
  bool unref() const {
    if (count_.load(std::memory_order_acquire) == 1) return true;  // nobody else can raise it: no locked instruction
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  u32 use_count() const { return count_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<u32> count_{0};
};

template <class T> class Intrusive {
 public:
  Intrusive() = default;
  Intrusive(std::nullptr_t) {}                                   // NOLINT: implicit on purpose
  explicit Intrusive(T* p) : p_(p) { if (p_) p_->ref(); }
  Intrusive(const Intrusive& other) : Intrusive(other.p_) {}
  Intrusive(Intrusive&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  Intrusive& operator=(Intrusive other) noexcept { std::swap(p_, other.p_); return *this; }
  ~Intrusive() { if (p_ && p_->unref()) T::destroy(p_); }

  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  bool operator==(const Intrusive& other) const { return p_ == other.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace waymark
