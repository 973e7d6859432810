// sinusoid (Vaswani et al. 2017): x + PE(p), frequencies ω_t = base^(-2t/E).
//   interleaved: PE[2t] = sin(p ω_t), PE[2t+1] = cos(p ω_t); the last channel of an odd width is a sine
//   concat:      [sin | cos]
// Angles are formed and evaluated in f64, then cast: rounded integers would already be wrong.
#include <algorithm>
#include <cmath>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "nn/position/encoding.h"
#include "nn/position/scale_option.h"
#include "nn/position/sinusoid.h"

namespace waymark::nn::encodings {

std::vector<double> sinusoid_frequencies(i64 width, double base) {
  std::vector<double> omega;
  for (i64 t = 0; t < (width + 1) / 2; ++t) omega.push_back(std::pow(base, -2.0 * static_cast<double>(t) / static_cast<double>(width)));
  return omega;
}

void write_sinusoid(double p, const std::vector<double>& frequencies, bool concat, std::span<double> row) {
  const size_t half = frequencies.size();
  for (size_t t = 0; t < half; ++t) {
    const double angle = p * frequencies[t];
    const size_t sine = concat ? t : 2 * t, cosine = concat ? half + t : 2 * t + 1;
    row[sine] = std::sin(angle);
    if (cosine < row.size()) row[cosine] = std::cos(angle);
  }
}

namespace {

class Sinusoid final : public Encoding {
 public:
  Sinusoid(const Options& options, const EncodingSizes& sizes)
      : width_(sizes.embed_dim), concat_(options.word("layout") == "concat"), omega_(sinusoid_frequencies(width_, options.real("base"))) {}

  Tensor add_to_input(const Tensor& x, const Positions& positions) const override {
    Shape shape = positions.tensor().shape();
    shape.push_back(width_);
    const Tensor table = make_empty(shape, kF64);
    const i64* p = positions.tensor().data<i64>();
    for (i64 i = 0; i < positions.tensor().numel(); ++i) {
      const std::span<double> row(table.data<double>() + i * width_, static_cast<size_t>(width_));
      if (p[i] < 0) std::fill(row.begin(), row.end(), 0.0);
      else write_sinusoid(static_cast<double>(p[i]), omega_, concat_, row);
    }
    return add(x, to(table, x.dtype()));
  }

 private:
  i64 width_;
  bool concat_;
  std::vector<double> omega_;
};

}  // namespace

EncodingInfo sinusoid() {
  return {.options = {"sinusoid",
                      {{"layout", word_option("interleaved", {"interleaved", "concat"}), "order of sines and cosines"},
                       {"base", scale_option(10000), "longest wavelength / 2π"}},
                      "fixed sines and cosines added to the embeddings (Vaswani 2017)"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::input;
            f.sees_direction = true;
            f.direction = "yes";
            f.beyond_trained = "defined (computed), untrained";
            f.key_bias_is_constant = true;
            return f;
          },
          .formulas = {"x + PE(p),  PE[2t] = sin(p·ω_t),  PE[2t+1] = cos(p·ω_t),  ω_t = base^(−2t/E)"},
          .check = [](const Options& o, const EncodingSizes& s, std::vector<std::string>& problems) {
            if (o.word("layout") == "concat" && s.embed_dim % 2 != 0)
              problems.push_back(fmt::format("layout=concat needs an even width, not {}; use layout=interleaved", s.embed_dim));
          },
          .make = [](const Options& o, const EncodingSizes& s, const ParameterLookup&) { return std::make_unique<Sinusoid>(o, s); }};
}

}  // namespace waymark::nn::encodings
