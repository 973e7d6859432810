#include "nn/position/pair_encoding.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace waymark::nn {

namespace {

// The shape with the number of heads in place of kHeads.
Shape shape_for(const Shape& shape, i64 heads) {
  Shape out = shape;
  for (i64& n : out)
    if (n == kHeads) n = heads;
  return out;
}

void check_parts(const PairEncoding& e) {
  if (e.stage != Stage::multiply && e.stage != Stage::table && e.stage != Stage::bias)
    fail("", "the stage of the position encoding {} must be multiply, table or bias", e.name);
  if (!e.value) fail("", "the position encoding {} has no value function", e.name);
  if (!e.derivative && !e.parameters.empty()) fail("", "the position encoding {} has parameters, but no derivative function", e.name);
  std::set<std::string> names;
  for (const ParameterSpec& p : e.parameters) {
    if (p.name.empty() || !names.insert(p.name).second)
      fail("", "the position encoding {} has {}", e.name, p.name.empty() ? "a parameter without a name" : "two parameters called " + p.name);
    for (const i64 n : p.shape)
      if (n < 0 && n != kHeads) fail("", "the parameter {} of {} has the shape {}", p.name, e.name, p.shape);
  }
}

class PairTerm final : public Encoding {
 public:
  PairTerm(const PairEncoding& e, i64 heads, std::vector<Tensor> parameters)
      : name_(e.name), stage_(e.stage), value_(e.value), derivative_(e.derivative), heads_(static_cast<int>(heads)),
        parameters_(std::move(parameters)) {}

  void prepare(const EncodingCall&, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    Custom c;
    c.inputs = parameters_;
    c.batched = false;
    c.forward = [value = value_, heads = heads_](const TileRef& tile, Custom::In in, std::span<double>, std::span<double> out) {
      each_pair(tile, heads, [&](size_t at, const Pair& pair) { out[at] = value(pair, in); });
    };
    c.backward = [derivative = derivative_, heads = heads_](const TileRef& tile, Custom::In in, std::span<double>,
                                                            std::span<const double> g, Custom::Out grads) {
      if (derivative) each_pair(tile, heads, [&](size_t at, const Pair& pair) { derivative(pair, in, g[at], grads); });
    };
    terms.push_back({name_, stage_, std::move(c)});
  }

 private:
  // f(place in the tile, pair) for all pairs with positions.
  template <class F> static void each_pair(const TileRef& tile, int heads, F f) {
    size_t at = 0;
    for (const i64 key : tile.k_pos)
      for (const i64 query : tile.q_pos) {
        if (query >= 0 && key >= 0) f(at, Pair{query, key, static_cast<int>(tile.head), heads});
        ++at;
      }
  }

  std::string name_;
  Stage stage_;
  double (*value_)(const Pair&, PairParameters);
  void (*derivative_)(const Pair&, PairParameters, double, PairGradients);
  int heads_;
  std::vector<Tensor> parameters_;
};

// Parameters near their initial values, as the functions take them.
class Trial {
 public:
  explicit Trial(const PairEncoding& e) {
    for (const ParameterSpec& p : e.parameters) {
      const Tensor t = make_empty(shape_for(p.shape, kTrialHeads), kF64);
      p.init.fill(t, "check_encoding." + p.name);
      values_.push_back(t.to_vector<double>());
      // Beside the initial value, where many parameters would be equal.
      double off = 0.05;
      for (double& v : values_.back()) {
        v = v * (1 + off) + (v == 0 ? off : 0);
        off += 0.01;
      }
      gradients_.emplace_back(values_.back().size(), 0);
    }
  }
  static constexpr int kTrialHeads = 3;
  std::vector<std::vector<double>>& values() { return values_; }

  double value(const PairEncoding& e, const Pair& pair) const {
    const std::vector<std::span<const double>> in(values_.begin(), values_.end());
    return e.value(pair, in);
  }
  const std::vector<std::vector<double>>& derivative(const PairEncoding& e, const Pair& pair, double g) {
    for (auto& v : gradients_) std::fill(v.begin(), v.end(), 0);
    const std::vector<std::span<const double>> in(values_.begin(), values_.end());
    const std::vector<std::span<double>> out(gradients_.begin(), gradients_.end());
    e.derivative(pair, in, g, out);
    return gradients_;
  }

 private:
  std::vector<std::vector<double>> values_, gradients_;
};

bool near(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)}) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

void register_encoding(PairEncoding e) {
  check_parts(e);
  EncodingFacts facts = e.facts;
  facts.site = Site::score;
  facts.value_side = facts.redefines_content = false;
  facts.needs = facts.needs | Capabilities{Capability::pair};
  facts.reads_positions = true;
  // What is added does not touch q·k; a factor does.
  facts.key_bias_is_constant = e.stage != Stage::multiply;
  if (facts.direction.empty()) facts.direction = facts.sees_direction ? "yes" : "no";
  if (facts.beyond_trained.empty()) facts.beyond_trained = "computed";
  const std::string term = e.name + "(p_i, p_j, head)";
  const std::string formula = e.stage == Stage::multiply ? "e_ij = s·" + term + "·q_i·k_j"
                              : e.stage == Stage::table  ? "e_ij = s·(q_i·k_j + " + term + ")"
                                                         : "e_ij = s·q_i·k_j + " + term;
  register_encoding(EncodingInfo{
      .options = {e.name, {}, e.doc},
      .facts = [facts](const Options&, bool, bool) { return facts; },
      .formulas = {formula + ", a function of the program"},
      .parameters =
          [list = e.parameters](const Options&, const EncodingSizes& s) {
            std::vector<ParameterSpec> specs = list;
            for (ParameterSpec& p : specs) p.shape = shape_for(p.shape, s.num_heads);
            return specs;
          },
      .make = [e](const Options&, const EncodingSizes& s, const ParameterLookup& lookup) -> std::unique_ptr<Encoding> {
        std::vector<Tensor> parameters;
        for (const ParameterSpec& p : e.parameters) parameters.push_back(lookup(p.name));
        return std::make_unique<PairTerm>(e, s.num_heads, std::move(parameters));
      }});
}

std::vector<std::string> check_encoding(const PairEncoding& e) {
  check_parts(e);
  std::vector<std::string> problems;
  bool wrong_derivative = false, moves = false, directed = false;
  for (const auto& [query, key] : {std::pair<i64, i64>{0, 0}, {5, 5}, {3, 4}, {4, 3}, {2, 9}, {9, 2}, {0, 40}, {40, 0}, {11, 13}})
    for (int head = 0; head < Trial::kTrialHeads; ++head) {
      const Pair pair{query, key, head, Trial::kTrialHeads};
      Trial trial(e);
      const double value = trial.value(e, pair);
      moves |= !near(value, trial.value(e, {query + 17, key + 17, head, Trial::kTrialHeads}), 1e-9);
      directed |= !near(value, trial.value(e, {key, query, head, Trial::kTrialHeads}), 1e-9);
      if (!e.derivative || wrong_derivative) continue;
      const auto analytic = trial.derivative(e, pair, 1.7);
      for (size_t p = 0; p < e.parameters.size() && !wrong_derivative; ++p)
        for (size_t n = 0; n < analytic[p].size() && !wrong_derivative; ++n) {
          double& x = trial.values()[p][n];
          const double at = x, h = 1e-5 * std::max(1.0, std::abs(at));
          x = at + h;
          const double up = trial.value(e, pair);
          x = at - h;
          const double numeric = 1.7 * (up - trial.value(e, pair)) / (2 * h);
          x = at;
          wrong_derivative = !near(analytic[p][n], numeric, 1e-6);
          if (wrong_derivative)
            problems.push_back(fmt::format("the derivative by {}[{}] at query {}, key {}, head {} is {:.9g} for g = 1.7, central "
                                           "differences give {:.9g}", e.parameters[p].name, n, query, key, head, analytic[p][n], numeric));
        }
    }
  if (moves && e.facts.shift_invariant) problems.emplace_back("the facts say shift_invariant, but values change when both positions move by 17");
  if (directed && !e.facts.sees_direction && e.facts.shift_invariant)
    problems.emplace_back("the facts say that it does not see direction, but values change when query and key trade places");
  if (!directed && e.facts.sees_direction) problems.emplace_back("the facts say sees_direction, but values stay when query and key trade places");
  return problems;
}

}  // namespace waymark::nn
