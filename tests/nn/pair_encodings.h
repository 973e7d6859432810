// Encodings that a program makes of one function of a pair, so that the property tests run over them, too.
#pragma once

#include <cmath>
#include <cstdlib>

#include "nn/position/pair_encoding.h"
#include "nn/position/registry.h"

namespace waymark::test {

// test-root: b_ij = −slope_h·√|δ|.  test-factor: m_ij = 1 + gain·sin(rate_h·δ).
inline void register_pair_encodings() {
  if (nn::find_encoding("test-root")) return;
  using Values = nn::PairEncoding::Values;
  using Sums = nn::PairEncoding::Sums;
  nn::PairEncoding bias{.name = "test-root", .parameters = {{"slope", {-1}, nn::init::constant(0.5), true}}};
  bias.value = [](const nn::Pair& p, Values v) {
    return -v[0][static_cast<size_t>(p.head)] * std::sqrt(std::abs(static_cast<double>(p.key - p.query)));
  };
  bias.derivative = [](const nn::Pair& p, Values, double g, Sums sums) {
    sums[0][static_cast<size_t>(p.head)] -= g * std::sqrt(std::abs(static_cast<double>(p.key - p.query)));
  };
  bias.facts.shift_invariant = true;
  bias.facts.sees_direction = false;
  nn::register_encoding(bias);

  nn::PairEncoding factor{.name = "test-factor", .stage = Stage::multiply,
                          .parameters = {{"gain", {}, nn::init::constant(0.1)}, {"rate", {-1}, nn::init::constant(0.7)}}};
  factor.value = [](const nn::Pair& p, Values v) {
    return 1 + v[0][0] * std::sin(v[1][static_cast<size_t>(p.head)] * static_cast<double>(p.key - p.query));
  };
  factor.derivative = [](const nn::Pair& p, Values v, double g, Sums sums) {
    const double delta = static_cast<double>(p.key - p.query), angle = v[1][static_cast<size_t>(p.head)] * delta;
    sums[0][0] += g * std::sin(angle);
    sums[1][static_cast<size_t>(p.head)] += g * v[0][0] * delta * std::cos(angle);
  };
  factor.facts.shift_invariant = true;
  nn::register_encoding(factor);
}

}  // namespace waymark::test
