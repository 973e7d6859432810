#include "nn/position/encoding.h"

namespace waymark::nn {

Tensor Encoding::add_to_input(const Tensor& x, const Positions&) const { return x; }

std::pair<Tensor, Tensor> Encoding::map_query_key(const Tensor& q, const Tensor& k, const EncodingCall&) const {
  return {q, k};
}

void Encoding::prepare(const EncodingCall&, const Tensor&, const Tensor&, std::vector<ScoreTerm>&) const {}

}  // namespace waymark::nn
