#include "nn/position/distance_bias.h"

#include <algorithm>
#include <cmath>

#include "nn/position/differences.h"

namespace waymark::nn::encodings {

namespace {

Tensor as_tensor(const std::vector<i64>& values) {
  const Tensor t = make_empty({static_cast<i64>(values.size())}, kF64);
  std::transform(values.begin(), values.end(), t.data<double>(), [](i64 v) { return static_cast<double>(v); });
  return t;
}

}  // namespace

void push_distance_bias(const EncodingCall& call, const BiasOfDelta& f, std::vector<ScoreTerm>& terms) {
  Differences d = differences_of(call);
  terms.push_back({"bias", Stage::bias, Distance{f(as_tensor(d.values)), std::move(d.index)}});
}

EncodingFacts bias_facts(std::string beyond_trained) {
  EncodingFacts f;
  f.site = Site::score;
  f.needs = {Capability::pair};
  f.direction = "no";
  f.shift_invariant = true;
  f.beyond_trained = std::move(beyond_trained);
  f.key_bias_is_constant = true;
  f.terms_of_positions = true;
  return f;
}

double bias_flops(const Options&, const EncodingSizes& sizes, double queries, double keys) {
  return static_cast<double>(sizes.num_heads) * queries * keys;
}

void push_linear(std::vector<ParameterSpec>& list, const std::string& name, i64 in, i64 out, bool shared) {
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  const Init uniform = init::uniform(-bound, bound);
  const Init values(in == 1 ? "U(-1, 1)" : fmt::format("U(±1/√{})", in),
                    [uniform](const Tensor& t, std::string_view stream) { uniform.fill(t, stream); });
  list.push_back({name + ".weight", {out, in}, values, false, shared});
  list.push_back({name + ".bias", {out}, values, true, shared});
}

}  // namespace waymark::nn::encodings
