// Numerical checks of gradients. They return a report and never abort.
#pragma once

#include <functional>

#include "core/tensor/tensor.h"

namespace waymark {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double rtol = 1e-6;
  double atol = 1e-8;      // times the largest derivative of the checked input
  double step = 1e-3;      // h = step·max(1, |x|); four-point central difference, error about 2e-11
  i64 all_elements = 64;   // inputs up to this size: every element; larger: 8 directions and 16 elements
  u64 seed = 0;            // of the random output weights and directions
};

struct GradcheckReport {
  bool passed = true;
  i64 checked = 0;         // derivatives compared
  double max_error = 0;    // relative to the tolerance; passed means <= 1
  std::string message;     // on failure: input, element, analytic, numeric, both at half the step
  explicit operator bool() const { return passed; }
};

// f: f64 tensors in, float tensors out. Checks every input that requires grad against finite differences of
// Σ weights ⊙ outputs with random non-uniform weights.
WAYMARK_API GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
// The same for the gradient itself, as a function of the inputs and of the incoming gradient.
WAYMARK_API GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});

// Of one tensor: gradcheck(exp, x).
using UnaryFunction = std::function<Tensor(const Tensor&)>;
inline GradcheckReport gradcheck(const UnaryFunction& f, const Tensor& x, const GradcheckOptions& options = {}) {
  return gradcheck([&](const std::vector<Tensor>& v) { return std::vector<Tensor>{f(v[0])}; }, {x}, options);
}
inline GradcheckReport gradgradcheck(const UnaryFunction& f, const Tensor& x, const GradcheckOptions& options = {}) {
  return gradgradcheck([&](const std::vector<Tensor>& v) { return std::vector<Tensor>{f(v[0])}; }, {x}, options);
}

}  // namespace waymark
