// Need, Grad and Grads: what a rule is asked for, and what it returns.
#pragma once

#include <memory>
#include <vector>

#include "core/tensor/small_vector.h"
#include "core/tensor/tensor.h"

namespace waymark {

// Which inputs want a gradient. Computing one that is not wanted is a fault (tests count it).
class Need {
 public:
  explicit Need(size_t inputs) : more_(inputs > 64 ? inputs - 64 : 0) {}
  bool operator[](size_t i) const { return i < 64 ? (bits_ >> i & 1) != 0 : bool{more_[i - 64]}; }
  void set(size_t i) {
    if (i < 64) bits_ |= u64{1} << i;
    else more_[i - 64] = true;
  }

 private:
  u64 bits_ = 0;
  std::vector<bool> more_;
};

// A window of a tensor as the view ops make it. The gradient of such a view lies in that window of zeros.
struct Window {
  enum class Kind : u8 { slice, select, diagonal, unfold } kind = Kind::slice;
  int dim = 0, dim2 = 0;          // dim2: diagonal
  i64 start = 0;                  // slice, select: first index; diagonal: offset
  i64 length = 0, step = 1;       // slice: number of elements; unfold: window size
  // The window of t as a view without history.
  Tensor of(const Tensor& t) const;
};

// One gradient. Undefined: nothing flows to that input, which is not the same as zero.
struct Grad {
  Tensor value;
  // Set: `value` is the gradient of this window of the input, the rest of the input gets zero. The receiving slot
  // makes one zero buffer and adds into it, so T selects of a [T, ...] tensor cost O(T·row), not O(T²·row).
  std::shared_ptr<const Window> window;

  Grad() = default;
  Grad(Tensor t) : value(std::move(t)) {}  // NOLINT: implicit on purpose
  Grad(Tensor t, const Window& w) : value(std::move(t)), window(std::make_shared<const Window>(w)) {}
};
using Grads = SmallVector<Grad, 4>;

}  // namespace waymark
