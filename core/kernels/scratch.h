// Scratch memory of a kernel, from the caching allocator: a training step in steady state asks the system for nothing.
#pragma once

#include "core/tensor/allocator.h"

namespace waymark::kernels {

template <class T> class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(i64 n) { allocate(n); }
  // Uninitialised, 64-byte aligned; what was allocated before is given back.
  T* allocate(i64 n) {
    block_ = Block::allocate(n * static_cast<i64>(sizeof(T)));
    return data();
  }
  T* data() const { return reinterpret_cast<T*>(block_->data()); }

 private:
  Intrusive<Block> block_;
};

}  // namespace waymark::kernels
