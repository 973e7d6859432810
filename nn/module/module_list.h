// ModuleList: modules of one type, called by their place. It has no forward: the owner runs through it.
//
//   nn::ModuleList<Block> layers{*this, "layers"};
//   layers.emplace_back(width);                       // Block(layers, "0", width): layers.0, layers.1, ...
//   for (Block& block : layers) x = block(x);
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/module/module.h"

namespace waymark::nn {

template <class T> class ModuleList : public ModuleBase {
 public:
  using ModuleBase::ModuleBase;

  template <class... A> T& emplace_back(A&&... a) {
    list_.push_back(std::make_unique<T>(*this, std::to_string(list_.size()), std::forward<A>(a)...));
    return *list_.back();
  }
  i64 size() const { return static_cast<i64>(list_.size()); }
  bool empty() const { return list_.empty(); }
  T& operator[](i64 i) { return *at(i); }
  const T& operator[](i64 i) const { return *at(i); }

  template <class Inner, class Value> struct Iterator {
    Inner inner;
    Value& operator*() const { return **inner; }
    Value* operator->() const { return inner->get(); }
    Iterator& operator++() {
      ++inner;
      return *this;
    }
    bool operator==(const Iterator& other) const { return inner == other.inner; }
    bool operator!=(const Iterator& other) const { return inner != other.inner; }
  };
  auto begin() { return Iterator<typename List::iterator, T>{list_.begin()}; }
  auto end() { return Iterator<typename List::iterator, T>{list_.end()}; }
  auto begin() const { return Iterator<typename List::const_iterator, const T>{list_.begin()}; }
  auto end() const { return Iterator<typename List::const_iterator, const T>{list_.end()}; }

 private:
  using List = std::vector<std::unique_ptr<T>>;
  T* at(i64 i) const {
    if (i < 0 || i >= size()) fail("module", "{} has {} entries, there is no {}", path(), size(), i);
    return list_[static_cast<size_t>(i)].get();
  }
  List list_;
};

}  // namespace waymark::nn
