// A new optimizer is one class and one line: here a plug-in of a program, by name in a spec.
#include <doctest/doctest.h>

#include "core/autograd/state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "tests/tensors.h"
#include "train/optim/registry.h"

using namespace waymark;
using namespace waymark::train;

namespace {

// θ −= lr·sign(g)
class SignDescent final : public Optimizer {
 public:
  SignDescent(std::vector<ParamGroup> groups, double lr)
      : Optimizer("SignDescent", {}, std::move(groups), {.lr = lr, .weight_decay = 0}) {}

 protected:
  // The sign does not depend on the scale of the gradient.
  void update(std::span<const Item> items, double) override {
    for (const Item& i : items) i.param.sub_(sign(i.grad) * i.group->lr);
  }
};

}  // namespace

TEST_CASE("an optimizer of a program's own, by name") {
  register_optimizer({.table = {"test-sign-descent", {{"lr", nn::real_option(0.5), "step"}}, "moves by the sign of the gradient"},
                      .make = [](std::vector<ParamGroup> groups, const nn::Options& o) {
                        return std::make_unique<SignDescent>(std::move(groups), o.real("lr"));
                      }});
  const Tensor w = test::make<double>({2}, {1, -1}).requires_grad_();
  const auto optimizer = make_optimizer({{.params = {w}}}, optimizer_tables().resolve(nn::parse_spec("test-sign-descent(lr=0.25)")));
  w.set_grad(test::make<double>({2}, {3, -0.1}));
  optimizer->step();
  CHECK(w.to_vector<double>() == std::vector<double>{0.75, -0.75});
}
