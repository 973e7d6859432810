#include "nn/position/distance_bias.h"

#include <algorithm>
#include <cmath>

#include "core/ops/relative.h"

namespace waymark::nn::encodings {

namespace {

// f(b, i, j, δ) for every pair with positions; b, i, j as in a tensor [rows, Lq, Lk].
template <class F> void each_difference(const EncodingCall& call, F f) {
  const i64 rows = std::max(call.queries.rows(), call.keys.rows()), lq = call.queries.length(), lk = call.keys.length();
  for (i64 b = 0; b < rows; ++b)
    for (i64 i = 0; i < lq; ++i) {
      const i64 p = call.queries.at(b, i);
      if (p < 0) continue;
      for (i64 j = 0; j < lk; ++j)
        if (const i64 q = call.keys.at(b, j); q >= 0) f((b * lq + i) * lk + j, q - p);
    }
}

// Smallest and largest difference of the call; {0, 0} if no pair has one.
std::pair<i64, i64> range_of(const EncodingCall& call) {
  const auto ends = [](const Positions& p, i64 row) {
    i64 low = Positions::kLargest + 1, high = -1;
    for (i64 i = 0; i < p.length(); ++i)
      if (const i64 v = p.at(row, i); v >= 0) {
        low = std::min(low, v);
        high = std::max(high, v);
      }
    return std::pair(low, high);
  };
  bool any = false;
  i64 lo = 0, hi = 0;
  for (i64 b = 0; b < std::max(call.queries.rows(), call.keys.rows()); ++b) {
    const auto [q_low, q_high] = ends(call.queries, b);
    const auto [k_low, k_high] = ends(call.keys, b);
    if (q_high < 0 || k_high < 0) continue;
    lo = any ? std::min(lo, k_low - q_high) : k_low - q_high;
    hi = any ? std::max(hi, k_high - q_low) : k_high - q_low;
    any = true;
  }
  return {lo, hi};
}

Tensor as_tensor(const std::vector<i64>& values) {
  const Tensor t = make_empty({static_cast<i64>(values.size())}, kF64);
  std::transform(values.begin(), values.end(), t.data<double>(), [](i64 v) { return static_cast<double>(v); });
  return t;
}

}  // namespace

void push_distance_bias(const EncodingCall& call, const BiasOfDelta& f, std::vector<ScoreTerm>& terms) {
  const i64 lq = call.queries.length(), lk = call.keys.length();
  const auto [lo, hi] = range_of(call);
  std::vector<i64> deltas;
  if (hi - lo < 4 * (lq + lk) + 16) {
    for (i64 d = lo; d <= hi; ++d) deltas.push_back(d);
    terms.push_back({"bias", Stage::bias, Distance{f(as_tensor(deltas)), PairIndex{lo, hi}}});
    return;
  }
  each_difference(call, [&](i64, i64 delta) { deltas.push_back(delta); });
  std::sort(deltas.begin(), deltas.end());
  deltas.erase(std::unique(deltas.begin(), deltas.end()), deltas.end());
  const Tensor rows = make_empty({std::max(call.queries.rows(), call.keys.rows()), 1, lq, lk}, kI64);
  std::fill_n(rows.data<i64>(), rows.numel(), -1);
  each_difference(call, [&](i64 at, i64 delta) {
    rows.data<i64>()[at] = std::lower_bound(deltas.begin(), deltas.end(), delta) - deltas.begin();
  });
  terms.push_back({"bias", Stage::bias, PairTable{pair_gather(f(as_tensor(deltas)), rows, PairSide::shared)}});
}

EncodingFacts bias_facts(std::string beyond_trained) {
  EncodingFacts f;
  f.site = Site::score;
  f.needs = {Capability::pair};
  f.direction = "no";
  f.shift_invariant = true;
  f.beyond_trained = std::move(beyond_trained);
  f.key_bias_is_constant = true;
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
