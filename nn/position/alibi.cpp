// alibi (Press et al. 2022): b_ij = −m_h·|δ|. Slopes m_h = 2^(−8h/H), h = 1 … H, for a power of two; else those of the
// power of two P below H, then every second one (the 1st, 3rd, …) of 2P: the jump between them is by design.
// The shortcut +m_h·j of some codes is only right under a causal mask, and is not used.
#include <algorithm>
#include <bit>
#include <cmath>

#include "core/ops/convert.h"
#include "nn/position/distance_bias.h"

namespace waymark::nn::encodings {

namespace {

std::vector<double> alibi_slopes(i64 heads) {
  std::vector<double> slopes;
  if (heads < 1) return slopes;
  const i64 power = static_cast<i64>(std::bit_floor(static_cast<u64>(heads)));
  const auto slope = [](i64 h, i64 of) { return std::exp2(-8 * static_cast<double>(h) / static_cast<double>(of)); };
  for (i64 h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  for (i64 h = 1; static_cast<i64>(slopes.size()) < heads; h += 2) slopes.push_back(slope(h, 2 * power));
  return slopes;
}

class Alibi final : public Encoding {
 public:
  Alibi(const Options& o, const EncodingSizes& sizes)
      : slopes_(alibi_slopes(o.is_word("heads", "all") ? sizes.num_heads : o.integer("heads"))),
        symmetric_(o.boolean("symmetric")) {
    slopes_.resize(static_cast<size_t>(sizes.num_heads), 0.0);
  }

  void prepare(const EncodingCall& call, const Tensor& q, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    push_distance_bias(call, [&](const Tensor& delta) {
      const i64 heads = static_cast<i64>(slopes_.size()), count = delta.numel();
      const Tensor beta = make_empty({heads, count}, kF64);
      for (i64 h = 0; h < heads; ++h)
        for (i64 r = 0; r < count; ++r) {
          const double d = delta.data<double>()[r], far = symmetric_ ? std::abs(d) : std::max(-d, 0.0);
          beta.data<double>()[h * count + r] = far == 0 ? 0 : -slopes_[static_cast<size_t>(h)] * far;
        }
      return to(beta, q.dtype());
    }, terms);
  }

 private:
  std::vector<double> slopes_;  // per head
  bool symmetric_;
};

}  // namespace

EncodingInfo alibi() {
  return {.options = {"alibi",
                      {{"heads", int_option("all", 0, 1 << 20).or_word({"all"}), "the first so many get the slopes of a model with so many heads, the others 0"},
                       {"symmetric", bool_option(true), "false: keys to the right of the query are free"}},
                      "bias that falls with the distance, a fixed slope per head (Press 2022)"},
          .facts = [](const Options& o, bool, bool) {
            EncodingFacts f = bias_facts("defined, monotone");
            f.sees_direction = !o.boolean("symmetric");
            f.direction = f.sees_direction ? "yes" : "no";
            return f;
          },
          .formulas = {"b_ij = −m_h·|p_j − p_i|,  m_h = 2^(−8h/H) for H = 2^n", "symmetric=false: b_ij = −m_h·max(p_i − p_j, 0)"},
          .flops = bias_flops,
          .check = [](const Options& o, const EncodingSizes& s, std::vector<std::string>& problems) {
            if (!o.is_word("heads", "all") && o.integer("heads") > s.num_heads)
              problems.push_back(fmt::format("heads={} of a model with {} heads; needs 0 to {}, or all", o.integer("heads"),
                                             s.num_heads, s.num_heads));
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup&) { return std::make_unique<Alibi>(o, s); }};
}

}  // namespace waymark::nn::encodings
