// Init: how a parameter gets its first values. The functions are named as in torch.nn.init and have its defaults.
//
//   weight(parameter("weight", {out, in}, init::kaiming_uniform(std::sqrt(5.0))))
//
// Random ones draw from one stream, `<parameter path>.init` inside a module.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace waymark::nn {

class WAYMARK_API Init {
 public:
  // Writes every element of a float tensor; a random one takes the next draw of the stream.
  using Fill = std::function<void(const Tensor& t, std::string_view stream)>;
  // text: how the values are said in `explain` and help: "N(0, 0.02^2)".
  Init(std::string text, Fill fill) : text_(std::move(text)), fill_(std::move(fill)) {}

  void fill(const Tensor& t, std::string_view stream) const;
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  Fill fill_;
};

namespace init {

WAYMARK_API Init constant(double value);
inline Init zeros() { return constant(0); }
inline Init ones() { return constant(1); }
WAYMARK_API Init normal(double mean = 0, double std = 1);
WAYMARK_API Init uniform(double low = 0, double high = 1);

// Fan in = extent of axis 1 times the extents behind it, fan out = the same with axis 0; fewer than 2 axes: Error.
// Xavier (Glorot and Bengio 2010): bound gain·√(6/(fan_in + fan_out)), s.d. gain·√(2/(fan_in + fan_out)).
WAYMARK_API Init xavier_uniform(double gain = 1);
WAYMARK_API Init xavier_normal(double gain = 1);
// Kaiming (He et al. 2015) for leaky ReLU of slope a: gain = √(2/(1 + a²)), bound gain·√(3/fan_in), s.d. gain/√fan_in.
// a = √5 gives U(±1/√fan_in), PyTorch's default for the weight of a Linear.
WAYMARK_API Init kaiming_uniform(double a = 0);
WAYMARK_API Init kaiming_normal(double a = 0);

}  // namespace init
}  // namespace waymark::nn
