// Internal: what biases share that depend on the difference of positions δ = p_j − p_i alone: t5, alibi, kerple,
// sandwich, and fire while its normaliser is constant. They are added in units of logits, after the scale.
#pragma once

#include <functional>

#include "nn/position/encoding.h"

namespace waymark::nn::encodings {

// [1|H, R] in the dtype of the scores, of the differences [R] (f64, whole numbers).
using BiasOfDelta = std::function<Tensor(const Tensor& delta)>;

// Appends the bias f(δ). f is called once, for the differences lo … hi of the call; where they span far more than the
// call has tokens, only for those that occur. Pairs of which one side has no position get 0.
void push_distance_bias(const EncodingCall& call, const BiasOfDelta& f, std::vector<ScoreTerm>& terms);

// A bias needs a logit per pair, and nothing else. It sees no direction unless the encoding says so.
EncodingFacts bias_facts(std::string beyond_trained);

// Flops of adding it to every pair, all heads.
double bias_flops(const Options& options, const EncodingSizes& sizes, double queries, double keys);

// The parameters of a Linear in -> out, as PyTorch starts it: "<name>.weight" [out, in], "<name>.bias" [out].
void push_linear(std::vector<ParameterSpec>& list, const std::string& name, i64 in, i64 out, bool shared);

}  // namespace waymark::nn::encodings
