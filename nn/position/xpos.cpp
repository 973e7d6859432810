// xpos (Sun et al. 2022): the rotation of rope, and a decay with distance. After it is turned, channel pair t of a query
// is multiplied by ζ_t^((p−c₀)/B), of a key by ζ_t^(−(p−c₀)/B), so that their product has the factor ζ_t^((p_i−p_j)/B):
//   ζ_t = (2t + 0.4d)/(1.4d),  B = scale_base
// The centre c₀ cancels; it only keeps the factors small: per batch row, the middle between the smallest and the largest
// position of the kept keys that have one. Causal only: the factor grows without bound for keys to the right.
#include <algorithm>

#include "core/ops/elementwise.h"
#include "nn/position/rotation.h"
#include "nn/position/scale_option.h"

namespace waymark::nn::encodings {

namespace {

// Is token i of batch row b kept?
class Kept {
 public:
  explicit Kept(const Tensor& keep) : keep_(keep.defined() ? ops::contiguous_value(keep) : Tensor()) {}
  i64 rows() const { return keep_.defined() ? keep_.size(0) : 1; }
  bool operator()(i64 b, i64 i) const {
    return !keep_.defined() || keep_.data<bool>()[(keep_.size(0) == 1 ? 0 : b) * keep_.size(1) + i];
  }

 private:
  Tensor keep_;
};

class XPos final : public Encoding {
 public:
  XPos(const Options& o, const EncodingSizes& sizes)
      : halves_(o.word("layout") == "halves"), scale_base_(o.real("scale_base")), omega_(frequencies(o.real("base"), sizes.head_dim)) {
    const double d = static_cast<double>(sizes.head_dim);
    for (size_t t = 0; t < omega_.size(); ++t) log_zeta_.push_back(std::log((2 * static_cast<double>(t) + 0.4 * d) / (1.4 * d)));
  }

  std::pair<Tensor, Tensor> map_query_key(const Tensor& q, const Tensor& k, const EncodingCall& call) const override {
    const std::vector<double> centres = centres_of(call);
    return {turned(q, call.queries, Kept(call.query_keep), centres, 1), turned(k, call.keys, Kept(call.key_keep), centres, -1)};
  }

 private:
  // One for each batch row; one for all if neither positions nor kept keys differ.
  std::vector<double> centres_of(const EncodingCall& call) const {
    const Kept kept(call.key_keep);
    std::vector<double> centres;
    for (i64 b = 0; b < std::max(call.keys.rows(), kept.rows()); ++b) {
      i64 first = Positions::kLargest, last = Positions::kNone;
      for (i64 j = 0; j < call.keys.length(); ++j)
        if (const i64 p = call.keys.at(b, j); p >= 0 && kept(b, j)) {
          first = std::min(first, p);
          last = std::max(last, p);
        }
      centres.push_back(last < 0 ? 0 : (static_cast<double>(first) + static_cast<double>(last)) / 2);
    }
    return centres;
  }

  // sign 1 for queries, -1 for keys. Padded tokens stay as they are, and so do those without a position.
  Tensor turned(const Tensor& x, const Positions& positions, const Kept& kept, const std::vector<double>& centres, double sign) const {
    const i64 rows = std::max({positions.rows(), kept.rows(), static_cast<i64>(centres.size())}), length = positions.length();
    const auto position = [&](i64 b, i64 i) { return kept(b, i) ? positions.at(b, i) : Positions::kNone; };
    const auto centre = [&](i64 b) { return centres[centres.size() == 1 ? 0 : static_cast<size_t>(b)]; };
    // The largest exponent is that of pair 0; beyond these limits factors leave the range of the dtype.
    const double limit = x.dtype() == kF64 ? 700 : 80, reach = limit * scale_base_ / -log_zeta_[0];
    for (i64 b = 0; b < rows; ++b)
      for (i64 i = 0; i < length; ++i)
        if (const i64 p = position(b, i); p >= 0 && !(std::abs(static_cast<double>(p) - centre(b)) <= reach))
          fail("xpos", "position {} at [{}, {}] is {} away from the centre {} of the keys; with scale_base={} the factors fit {} up "
               "to a distance of {:.0f}; raise scale_base", p, b, i, std::abs(static_cast<double>(p) - centre(b)), centre(b),
               scale_base_, name_of(x.dtype()), std::floor(reach));
    return rotated(x, rows, length, static_cast<i64>(omega_.size()), halves_, [&](i64 b, i64 i, i64 t) -> Turn {
      const i64 at = position(b, i);
      if (at < 0) return {};
      const double p = static_cast<double>(at), exponent = sign * (p - centre(b)) / scale_base_;
      return {p * omega_[static_cast<size_t>(t)], std::exp(exponent * log_zeta_[static_cast<size_t>(t)])};
    });
  }

  bool halves_;
  double scale_base_;
  std::vector<double> omega_, log_zeta_;
};

}  // namespace

EncodingInfo xpos() {
  return {.options = {"xpos",
                      {{"scale_base", scale_option(512), "larger: slower decay with distance"},
                       {"base", scale_option(10000), "longest wavelength / 2π"},
                       {"layout", word_option("interleaved", {"interleaved", "halves"}), "which channels are a pair"}},
                      "rope with a decay with distance (Sun 2022)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::query_key;
            f.needs = {Capability::query_key, Capability::free_qk};
            f.wants = {Capability::token_qk, Capability::inner_prod};
            f.needs_causal_call = true;
            f.sees_direction = true;
            f.direction = "only in a causal call, which it needs";
            f.shift_invariant = true;
            f.beyond_trained = "computed, decays";
            f.lost = "scores no longer depend on distance alone";
            return f;
          },
          .formulas = {"q'_i = ζ^((p_i−c)/B)·R(p_i)·q_i,  k'_j = ζ^(−(p_j−c)/B)·R(p_j)·k_j,  R(p) turns channel pair t by p·ω_t",
                       "ζ_t = (2t + 0.4d)/(1.4d),  ω_t = base^(−2t/d),  B = scale_base,  c cancels"},
          // As rope: the factor is in the sines and cosines.
          .flops = [](const Options&, const EncodingSizes& s, double queries, double keys) {
            return 3 * static_cast<double>(s.head_dim * s.num_heads) * (queries + keys);
          },
          .check = [](const Options&, const EncodingSizes& s, std::vector<std::string>& problems) {
            if (s.head_dim < 2 || s.head_dim % 2 != 0)
              problems.push_back(fmt::format("needs an even head width of at least 2, not {}", s.head_dim));
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup&) { return std::make_unique<XPos>(o, s); }};
}

}  // namespace waymark::nn::encodings
