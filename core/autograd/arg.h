// Arg: how a public op takes a tensor. It is made by the implicit conversion at the call, so it knows the caller's
// line, for functions and operators alike, and whether the caller gave the tensor away (an rvalue).
#pragma once

#include "core/autograd/meta.h"

namespace waymark {

// Only ever a parameter: it refers to the caller's tensor and must not outlive the call.
class Arg {
 public:
  Arg(const Tensor& t, Loc loc = Loc::here()) : tensor_(&t), loc_(loc), rvalue_(false) {}  // NOLINT: implicit
  Arg(Tensor&& t, Loc loc = Loc::here()) : tensor_(&t), loc_(loc), rvalue_(true) {}        // NOLINT: implicit
  const Tensor& tensor() const { return *tensor_; }
  const Tensor& operator*() const { return *tensor_; }
  const Tensor* operator->() const { return tensor_; }
  Loc loc() const { return loc_; }

  // True if an op may write its result into this tensor's memory: the caller gave it away, nobody else holds the impl
  // or the storage, and it has no history, name, hook or view. A named variable is never reused.
  bool reusable() const {
    if (!rvalue_ || !thread_state().reuse_buffers) return false;
    const TensorImpl* t = tensor_->impl();
    return t && t->use_count() == 1 && !t->meta && t->dense && t->storage->use_count() == 1 && t->storage->alone() &&
           thread_state().observer == nullptr;
  }

 private:
  const Tensor* tensor_;
  Loc loc_;
  bool rvalue_;
};

// A list of tensors as an argument: cat({a, b}), stack(list). Only ever a parameter, like Arg.
class TensorList {
 public:
  TensorList(std::initializer_list<Tensor> list, Loc loc = Loc::here()) : list_(list.begin(), list.size()), loc_(loc) {}  // NOLINT
  TensorList(const std::vector<Tensor>& list, Loc loc = Loc::here()) : list_(list), loc_(loc) {}                          // NOLINT
  TensorList(std::span<const Tensor> list, Loc loc = Loc::here()) : list_(list), loc_(loc) {}                             // NOLINT
  size_t size() const { return list_.size(); }
  const Tensor& operator[](size_t i) const { return list_[i]; }
  const Tensor* begin() const { return list_.data(); }
  const Tensor* end() const { return list_.data() + list_.size(); }
  std::span<const Tensor> span() const { return list_; }
  Loc loc() const { return loc_; }

 private:
  std::span<const Tensor> list_;
  Loc loc_;
};

// The tensor inputs of one recorded op, in the order of its edges.
class Inputs {
 public:
  Inputs(std::initializer_list<Arg> args) : args_(args), count_(args.size()) {  // NOLINT: implicit
    if (count_) loc_ = args.begin()->loc();
  }
  Inputs(std::span<const Tensor> list, Loc loc) : list_(list.data()), count_(list.size()), loc_(loc) {}
  size_t size() const { return count_; }
  const Tensor& operator[](size_t i) const { return list_ ? list_[i] : args_.begin()[i].tensor(); }
  Loc loc() const { return loc_; }

 private:
  std::initializer_list<Arg> args_;  // of the call's full expression, which an Inputs never outlives
  const Tensor* list_ = nullptr;
  size_t count_ = 0;
  Loc loc_;
};

}  // namespace waymark
