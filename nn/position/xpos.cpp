// xpos (Sun et al. 2022): rope, and channel pair t of queries times ζ_t^((p − c₀)/B), of keys times ζ_t^(−(p − c₀)/B):
//   ζ_t = (2t + 0.4d)/(1.4d), B = scale_base
// The score has the factor ζ_t^((p_i − p_j)/B), whatever the centre c₀ is; c₀ = (smallest + largest position of the kept keys of
// the row)/2 keeps both factors small. For keys to the right of the query the factor would grow without bound: causal only.
#include <algorithm>
#include <cmath>

#include "nn/position/rotated.h"

namespace waymark::nn::encodings {

namespace {

// −ln ζ_0, the largest exponent per unit of (p − c₀)/B.
const double kSteepest = std::log(1.4 / 0.4);

class Xpos final : public Encoding {
 public:
  Xpos(const Options& o, const EncodingSizes& sizes) : scale_base_(o.real("scale_base")) {
    rotation_.halves = o.word("layout") == "halves";
    const double d = static_cast<double>(sizes.head_dim);
    for (i64 t = 0; t < sizes.head_dim / 2; ++t) {
      rotation_.frequencies.push_back(std::pow(o.real("base"), -2 * static_cast<double>(t) / d));
      log_zeta_.push_back(std::log((2 * static_cast<double>(t) + 0.4 * d) / (1.4 * d)));
    }
  }

  std::pair<Tensor, Tensor> map_query_key(const Tensor& q, const Tensor& k, const EncodingCall& call) const override {
    const i64 own = std::max(call.queries.rows(), call.keys.rows()), rows = call.key_keep.defined() ? std::max(own, call.key_keep.size(0)) : own;
    const std::vector<double> centres = centres_of(call, rows);
    return {grown(q, call.queries, call.query_keep, centres, rows, 1), grown(k, call.keys, call.key_keep, centres, rows, -1)};
  }

 private:
  static bool counts(const Positions& p, const Tensor& keep, i64 row, i64 slot) {
    return p.at(row, slot) >= 0 && (!keep.defined() || keep.at<bool>({keep.size(0) == 1 ? 0 : row, slot}));
  }

  std::vector<double> centres_of(const EncodingCall& call, i64 rows) const {
    std::vector<double> centres;
    for (i64 b = 0; b < rows; ++b) {
      i64 low = Positions::kLargest, high = -1;
      for (i64 j = 0; j < call.keys.length(); ++j)
        if (counts(call.keys, call.key_keep, b, j)) {
          low = std::min(low, call.keys.at(b, j));
          high = std::max(high, call.keys.at(b, j));
        }
      centres.push_back(high < 0 ? -1 : 0.5 * static_cast<double>(low + high));  // −1: nothing to see in this row
    }
    return centres;
  }

  // direction: 1 for queries, −1 for keys. Padding and rows without keys do not matter: their factor is 1.
  Tensor grown(const Tensor& x, const Positions& positions, const Tensor& keep, const std::vector<double>& centres, i64 rows,
               double direction) const {
    const double limit = x.dtype() == kF64 ? 700 : 80;
    const i64 rows_of_keep = keep.defined() ? std::max(rows, keep.size(0)) : rows;
    const auto matters = [&](i64 b, i64 i) { return centres[static_cast<size_t>(std::min(b, rows - 1))] >= 0 && counts(positions, keep, b, i); };
    const auto steps = [&](i64 b, i64 i) {
      return (static_cast<double>(positions.at(b, i)) - centres[static_cast<size_t>(std::min(b, rows - 1))]) / scale_base_;
    };
    for (i64 b = 0; b < rows_of_keep; ++b)
      for (i64 i = 0; i < positions.length(); ++i)
        if (matters(b, i) && std::abs(steps(b, i)) * kSteepest > limit)
          fail("xpos", "position {} of row {} is {} from the centre {} of the row; in {} at most {} are possible with scale_base={}; raise scale_base",
               positions.at(b, i), b, std::abs(steps(b, i)) * scale_base_, centres[static_cast<size_t>(std::min(b, rows - 1))],
               name_of(x.dtype()), std::floor(limit * scale_base_ / kSteepest), scale_base_);
    return rotated(x, positions, rotation_, rows_of_keep, [&](i64 b, i64 i, i64 t) {
      return matters(b, i) ? std::exp(direction * steps(b, i) * log_zeta_[static_cast<size_t>(t)]) : 1;
    });
  }

  double scale_base_;
  Rotation rotation_;
  std::vector<double> log_zeta_;
};

}  // namespace

EncodingInfo xpos() {
  return {.options = {"xpos",
                      {{"scale_base", real_option(512).greater_than(0), "positions until the slowest channel pair falls by ζ"},
                       {"base", real_option(10000).greater_than(0), "longest wavelength / 2π"},
                       {"layout", word_option("interleaved", {"interleaved", "halves"}), "which channels are a pair"}},
                      "rope with scores that decay with the distance, causal only (Sun 2022)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::query_key;
            f.needs = {Capability::query_key, Capability::free_qk};
            f.wants = {Capability::token_qk, Capability::inner_prod};
            f.needs_causal_call = true;
            f.sees_direction = true;
            f.direction = "causal only";
            f.shift_invariant = true;
            f.beyond_trained = "computed, decays";
            f.lost = "scores no longer depend on distance alone";
            return f;
          },
          .formulas = {"q'_i = ζ_t^((p_i − c)/scale_base)·R(p_i)·q_i,  k'_j = ζ_t^(−(p_j − c)/scale_base)·R(p_j)·k_j,  R as of rope",
                       "ζ_t = (2t + 0.4d)/(1.4d);  c: middle of the row's positions, which no score depends on"},
          .flops = [](const Options&, const EncodingSizes& s, double queries, double keys) {
            return 3 * static_cast<double>(s.head_dim * s.num_heads) * (queries + keys);
          },
          .check = [](const Options&, const EncodingSizes& s, std::vector<std::string>& problems) {
            if (s.head_dim % 2 != 0) problems.push_back(fmt::format("needs an even head width, not {}", s.head_dim));
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup&) { return std::make_unique<Xpos>(o, s); }};
}

}  // namespace waymark::nn::encodings
