#include "nn/position/pair_encoding.h"

#include <memory>

#include "core/ops/projection.h"
#include "nn/position/registry.h"

namespace waymark::nn {

namespace {

Shape with_heads(const Shape& shape, i64 heads) {
  Shape out = shape;
  for (int d = 0; d < out.size(); ++d)
    if (out[d] == -1) out[d] = heads;
  return out;
}

void check_pair_encoding(const PairEncoding& e) {
  const auto wrong = [&](const std::string& what) { fail("", "the position encoding {} {}", e.name, what); };
  if (!e.value) wrong("has no value function");
  if (!e.derivative && !e.parameters.empty()) wrong("has parameters, and no derivative function");
  if (e.stage != Stage::multiply && e.stage != Stage::table && e.stage != Stage::bias)
    wrong("has another stage than multiply, table and bias");
  for (const ParameterSpec& p : e.parameters)
    for (int d = 0; d < p.shape.size(); ++d)
      if (p.shape[d] < -1) wrong(fmt::format("has a parameter {} of shape {}; extents are 0 or greater, or -1 for the heads", p.name, p.shape));
  if (!e.facts.needs.has(Capability::pair)) wrong("does not need a pair by its facts; change default_facts() instead of making new ones");
}

class OfPairs final : public Encoding {
 public:
  OfPairs(std::shared_ptr<const PairEncoding> e, i64 heads, const ParameterLookup& p) : encoding_(std::move(e)), heads_(heads) {
    for (const ParameterSpec& spec : encoding_->parameters) parameters_.push_back(p(spec.name));
  }

  void prepare(const EncodingCall&, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    Custom custom;
    for (const Tensor& p : parameters_) custom.inputs.push_back(projected(p));
    custom.reads_batch = false;
    custom.forward = [e = encoding_, heads = heads_](const TileRef& tile, Custom::In inputs, std::span<double>, std::span<double> value) {
      each_pair(tile, heads, [&](const Pair& pair, size_t at) { value[at] = e->value(pair, inputs); });
    };
    custom.backward = [e = encoding_, heads = heads_](const TileRef& tile, Custom::In inputs, std::span<double>, std::span<const double> g,
                                                      Custom::Out gradients) {
      each_pair(tile, heads, [&](const Pair& pair, size_t at) {
        if (g[at] != 0) e->derivative(pair, inputs, g[at], gradients);
      });
    };
    const Stage stage = encoding_->stage;
    terms.push_back({stage == Stage::multiply ? "multiplier" : stage == Stage::table ? "table" : "bias", stage, std::move(custom)});
  }

 private:
  // f(pair, its place in [keys × queries]), for pairs with positions.
  template <class F> static void each_pair(const TileRef& tile, i64 heads, F f) {
    const size_t queries = tile.q_pos.size();
    for (size_t j = 0; j < tile.k_pos.size(); ++j)
      for (size_t i = 0; i < queries; ++i)
        if (tile.q_pos[i] >= 0 && tile.k_pos[j] >= 0)
          f(Pair{tile.q_pos[i], tile.k_pos[j], static_cast<int>(tile.head), static_cast<int>(heads)}, j * queries + i);
  }

  std::shared_ptr<const PairEncoding> encoding_;
  i64 heads_;
  std::vector<Tensor> parameters_;
};

}  // namespace

EncodingFacts PairEncoding::default_facts() {
  EncodingFacts f;
  f.needs = {Capability::pair};
  f.sees_direction = true;
  f.beyond_trained = "as its function says";
  return f;
}

void register_encoding(PairEncoding encoding) {
  check_pair_encoding(encoding);
  const auto e = std::make_shared<const PairEncoding>(std::move(encoding));
  register_encoding(EncodingInfo{
      .options = {e->name, {}, e->doc},
      .facts =
          [e](const Options&, bool, bool) {
            EncodingFacts f = e->facts;
            f.site = Site::score;
            if (f.direction.empty()) f.direction = f.sees_direction ? "yes" : "no";
            f.key_bias_is_constant = e->stage != Stage::multiply;
            f.terms_of_positions = true;
            f.twice_differentiable = false;
            return f;
          },
      .formulas = {e->stage == Stage::multiply ? "q_i·k_j·f(p_i, p_j, h)" : e->stage == Stage::table ? "q_i·k_j + f(p_i, p_j, h), before the scale"
                                                                                                  : "b_ij = f(p_i, p_j, h)"},
      .flops = [](const Options&, const EncodingSizes& s, double queries, double keys) { return static_cast<double>(s.num_heads) * queries * keys; },
      .parameters =
          [e](const Options&, const EncodingSizes& s) {
            std::vector<ParameterSpec> list = e->parameters;
            for (ParameterSpec& p : list) p.shape = with_heads(p.shape, s.num_heads);
            return list;
          },
      .make = [e](const Options&, const EncodingSizes& s, const ParameterLookup& p) { return std::make_unique<OfPairs>(e, s.num_heads, p); }});
}

}  // namespace waymark::nn
