// rope (Su et al. 2021): queries and keys turned by angles p·ω_t, so that their product depends on differences alone.
//   ω_t = β^(−2t/ρ), ρ = fraction·d, β = base·ntk^(ρ/(ρ−2)), φ_t = p/interpolation·ω_t
//   pair t: channels (2t, 2t+1) if interleaved (RoFormer), (t, t+ρ/2) if halves (LLaMA, GPT-NeoX); channels >= ρ stay
// ntk = s divides the lowest frequency by s and leaves the highest. Angles are formed and evaluated in f64, then cast.
#include <cmath>

#include "nn/position/rotation.h"
#include "nn/position/scale_option.h"

namespace waymark::nn::encodings {

namespace {

// Channels that turn, or -1 if fraction·d is no even number of at least 2.
i64 turning(const Options& o, i64 head_dim) {
  const double exact = o.real("fraction") * static_cast<double>(head_dim), near = std::round(exact);
  const i64 channels = static_cast<i64>(near);
  return std::abs(exact - near) < 1e-9 && channels >= 2 && channels % 2 == 0 ? channels : -1;
}

class Rope final : public Encoding {
 public:
  Rope(const Options& o, const EncodingSizes& sizes) : halves_(o.word("layout") == "halves"), interpolation_(o.real("interpolation")) {
    const i64 channels = turning(o, sizes.head_dim);
    const double rho = static_cast<double>(channels), ntk = o.real("ntk");
    omega_ = frequencies(ntk == 1 ? o.real("base") : o.real("base") * std::pow(ntk, rho / (rho - 2)), channels);
  }

  std::pair<Tensor, Tensor> map_query_key(const Tensor& q, const Tensor& k, const EncodingCall& call) const override {
    return {turned(q, call.queries), turned(k, call.keys)};
  }

 private:
  Tensor turned(const Tensor& x, const Positions& positions) const {
    return rotated(x, positions.rows(), positions.length(), static_cast<i64>(omega_.size()), halves_, [&](i64 b, i64 i, i64 t) {
      // A token without position stays as it is: angle 0.
      const double p = static_cast<double>(std::max<i64>(0, positions.at(b, i))) / interpolation_;
      return Turn{p * omega_[static_cast<size_t>(t)]};
    });
  }

  bool halves_;
  double interpolation_;
  std::vector<double> omega_;
};

}  // namespace

EncodingInfo rope() {
  return {
      .options = {"rope",
                  {{"base", scale_option(10000), "longest wavelength / 2π"},
                   {"layout", word_option("interleaved", {"interleaved", "halves"}), "which channels are a pair"},
                   {"fraction", real_option(1, 0.0, 1.0).greater_than(0), "share of the channels that turn"},
                   {"interpolation", scale_option(1), "positions are divided by this"},
                   {"ntk", scale_option(1), "the lowest frequency is divided by this, the highest stays"},
                   {"apply", word_option("input", {"input", "features"}), "before the feature map of a linear attention, or after"}},
                  "queries and keys turned by their positions (Su 2021)"},
      .facts =
          [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::query_key;
            f.needs = {Capability::query_key};
            f.wants = {Capability::token_qk, Capability::inner_prod};
            f.sees_direction = true;
            f.direction = "yes";
            f.shift_invariant = true;
            f.beyond_trained = "computed, untrained angles";
            f.lost = "scores no longer depend on distance alone";
            return f;
          },
      .formulas = {"q'_i = R(p_i)·q_i,  k'_j = R(p_j)·k_j,  R(p) turns channel pair t by p/interpolation·ω_t",
                   "ω_t = β^(−2t/ρ),  ρ = fraction·d,  β = base·ntk^(ρ/(ρ−2))"},
      // A pair of channels turns with four products and two sums.
      .flops =
          [](const Options& o, const EncodingSizes& s, double queries, double keys) {
            return 3 * static_cast<double>(turning(o, s.head_dim) * s.num_heads) * (queries + keys);
          },
      .check =
          [](const Options& o, const EncodingSizes& s, std::vector<std::string>& problems) {
            const i64 channels = turning(o, s.head_dim);
            if (channels < 0)
              problems.push_back(fmt::format("fraction={} of a head width of {} is {} channels; needs an even number of at least 2",
                                             o.real("fraction"), s.head_dim, o.real("fraction") * static_cast<double>(s.head_dim)));
            else if (channels == 2 && o.real("ntk") != 1)
              problems.push_back(fmt::format("ntk={} needs more than 2 turning channels: one frequency cannot be both lowest and "
                                             "highest", o.real("ntk")));
          },
      .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup&) { return std::make_unique<Rope>(o, s); }};
}

}  // namespace waymark::nn::encodings
