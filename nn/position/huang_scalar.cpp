#include "nn/position/huang_scalar.h"

#include "nn/position/clipped_table.h"

namespace waymark::nn::encodings {

namespace {

class HuangScalar final : public Encoding {
 public:
  HuangScalar(PairIndex index, Tensor scale) : index_(std::move(index)), scale_(std::move(scale)) {}

  void prepare(const EncodingCall&, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    terms.push_back({"multiplier", Stage::multiply, Distance{scale_, index_}});
  }

 private:
  PairIndex index_;
  Tensor scale_;
};

}  // namespace

EncodingInfo huang_scalar(std::string name, std::string doc, std::string formula, bool sees_direction, i64 (*rows)(i64 clip),
                          PairIndex (*index)(i64 clip)) {
  return {.options = {std::move(name), {clip_option(), share_layers_option()}, std::move(doc)},
          .facts = [sees_direction](const Options&, bool, bool) {
            EncodingFacts f = clipped_facts();
            f.needs = {Capability::pair};
            f.sees_direction = sees_direction;
            f.direction = sees_direction ? "yes" : "no";
            f.beyond_trained = "saturates";
            return f;
          },
          .formulas = {std::move(formula)},
          .flops = [](const Options&, const EncodingSizes& s, double queries, double keys) {
            return static_cast<double>(s.num_heads) * queries * keys;
          },
          // They start at 1: from 0 every score would be 0, and queries and keys would get no gradient.
          .parameters = [rows](const Options& o, const EncodingSizes& s) -> std::vector<ParameterSpec> {
            return {{"scale", {s.num_heads, rows(o.integer("clip"))}, init::ones(), true, o.boolean("share_layers")}};
          },
          .make = [index](const Options& o, const EncodingSizes&, const ParameterLookup& p) {
            return std::make_unique<HuangScalar>(index(o.integer("clip")), p("scale"));
          }};
}

}  // namespace waymark::nn::encodings
