#include "nn/layers/linear.h"

#include <cmath>

#include "core/ops/matmul.h"

namespace waymark::nn {

Linear::Linear(ModuleBase* parent, std::string_view name, i64 in, i64 out, bool with_bias) : Module(parent, name) {
  if (in < 1 || out < 1) fail("linear", "{} features in, {} out: both must be at least 1", in, out);
  weight = parameter("weight", {out, in}, init::kaiming_uniform(std::sqrt(5.0)));
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  if (with_bias) bias = parameter("bias", {out}, init::uniform(-bound, bound), {.no_decay = true});
}

Tensor Linear::forward(const Tensor& x) const { return linear(x, weight, bias); }

}  // namespace waymark::nn
