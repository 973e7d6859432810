// learned: x + W[p], one trained row per position (Devlin et al. 2019). There is nothing beyond the table.
#include "core/ops/arithmetic.h"
#include "core/ops/embedding.h"
#include "core/ops/pointwise.h"
#include "core/ops/shape.h"
#include "core/tensor/strided.h"
#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

namespace {

class Learned final : public Encoding {
 public:
  Learned(i64 max_len, Tensor weight) : max_len_(max_len), weight_(std::move(weight)) {}

  Tensor add_to_input(const Tensor& x, const Positions& positions) const override {
    const Tensor& p = positions.tensor();
    check_in_table("learned", positions, max_len_);
    if (!positions.any_positionless()) return add(x, embedding(p, weight_));
    // A token without position gets row 0 times nothing.
    return add(x, masked_fill(embedding(clamp(p, 0, {}), weight_), unsqueeze(lt(p, 0), -1), 0));
  }

 private:
  i64 max_len_;
  Tensor weight_;
};

}  // namespace

EncodingInfo learned() {
  return {.options = {"learned",
                      {{"max_len", int_option(512, 1, i64{1} << 31).default_from("model.max_len"), "rows of the table"}},
                      "a trained vector per position added to the embeddings"},
          .facts = [](const Options&, bool, bool) {
            EncodingFacts f;
            f.site = Site::input;
            f.sees_direction = true;
            f.direction = "yes";
            f.beyond_trained = "error at p >= max_len";
            f.key_bias_is_constant = true;
            return f;
          },
          .formulas = {"x + weight[p]"},
          .parameters = [](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"weight", {o.integer("max_len"), s.embed_dim}, init::normal(0, 0.02)}};
          },
          .make = [](const Options& o, const EncodingSizes&, const ParameterLookup& p) {
            return std::make_unique<Learned>(o.integer("max_len"), p("weight"));
          }};
}

}  // namespace waymark::nn::encodings
