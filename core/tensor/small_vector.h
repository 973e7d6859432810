// SmallVector: a vector whose first N elements lie in the object itself.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>

#include "core/tensor/types.h"

namespace waymark {

template <class T, u32 N> class SmallVector {
 public:
  SmallVector() = default;
  explicit SmallVector(size_t n) { for (size_t i = 0; i < n; ++i) emplace_back(); }
  SmallVector(std::initializer_list<T> v) { for (const T& x : v) emplace_back(x); }
  SmallVector(const SmallVector& o) { for (const T& x : o) emplace_back(x); }
  SmallVector(SmallVector&& o) noexcept { steal(o); }
  SmallVector& operator=(SmallVector o) noexcept {
    clear_and_free();
    steal(o);
    return *this;
  }
  ~SmallVector() { clear_and_free(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  template <class... A> T& emplace_back(A&&... a) {
    if (size_ == capacity_) grow();
    T* p = new (data_ + size_) T(std::forward<A>(a)...);
    ++size_;
    return *p;
  }
  void push_back(T v) { emplace_back(std::move(v)); }
  void clear() {
    std::destroy(begin(), end());
    size_ = 0;
  }

 private:
  void grow() {
    const u32 capacity = capacity_ * 2;
    T* more = static_cast<T*>(::operator new(sizeof(T) * capacity, std::align_val_t(alignof(T))));
    std::uninitialized_move(begin(), end(), more);
    std::destroy(begin(), end());
    free_heap();
    data_ = more;
    capacity_ = capacity;
  }
  void free_heap() {
    if (data_ != local()) ::operator delete(data_, std::align_val_t(alignof(T)));
  }
  void clear_and_free() {
    clear();
    free_heap();
    data_ = local();
    capacity_ = N;
  }
  void steal(SmallVector& o) noexcept {
    if (o.data_ != o.local()) {
      data_ = std::exchange(o.data_, o.local());
      capacity_ = std::exchange(o.capacity_, N);
      size_ = std::exchange(o.size_, 0);
    } else {
      std::uninitialized_move(o.begin(), o.end(), local());
      size_ = o.size_;
      o.clear();
    }
  }
  T* local() { return reinterpret_cast<T*>(local_); }

  u32 size_ = 0, capacity_ = N;
  T* data_ = local();
  alignas(T) std::byte local_[sizeof(T) * N];
};

}  // namespace waymark
