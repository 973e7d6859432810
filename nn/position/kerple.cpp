#include "nn/position/kerple.h"

#include <limits>

#include "core/ops/convert.h"
#include "core/ops/pointwise.h"
#include "core/ops/projection.h"
#include "core/ops/shape.h"
#include "nn/position/clipped_table.h"
#include "nn/position/distance_bias.h"

namespace waymark::nn::encodings {

namespace {

// Below, a bias would vanish or rise with the distance.
constexpr double kLeast = 0.01;

using KerpleBias = Tensor (*)(const Tensor& distance, const Tensor& p, const Tensor& a);

class Kerple final : public Encoding {
 public:
  Kerple(KerpleBias bias, Tensor p, Tensor a) : bias_(bias), p_(std::move(p)), a_(std::move(a)) {}

  void prepare(const EncodingCall& call, const Tensor& q, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    push_distance_bias(call, [&](const Tensor& delta) {
      return bias_(to(abs(delta), q.dtype()), projected(p_).unsqueeze(1), projected(a_).unsqueeze(1));
    }, terms);
  }

 private:
  KerpleBias bias_;
  Tensor p_, a_;
};

}  // namespace

EncodingInfo kerple(std::string name, std::string doc, std::string formula, double largest_p, KerpleBias bias) {
  return {.options = {std::move(name), {share_layers_option()}, std::move(doc)},
          .facts = [](const Options&, bool, bool) { return bias_facts("defined, monotone"); },
          .formulas = {std::move(formula)},
          .flops = bias_flops,
          .parameters = [largest_p](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            const bool shared = o.boolean("share_layers");
            return {{"p", {s.num_heads}, init::uniform(0, 2), true, shared, Bounds{kLeast, largest_p}},
                    {"a", {s.num_heads}, init::uniform(0, 1), true, shared, Bounds{kLeast, std::numeric_limits<double>::infinity()}}};
          },
          .make = [bias](const Options&, const EncodingSizes&, const ParameterLookup& p) {
            return std::make_unique<Kerple>(bias, p("p"), p("a"));
          }};
}

}  // namespace waymark::nn::encodings
