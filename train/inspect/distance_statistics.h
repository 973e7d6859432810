// DistanceStatistics: what an attention does at each signed distance δ = position of the key - position of the query,
// gathered call by call, 64 query rows at a time: O(64·L) memory for scores and weights, O(H·L) for the sums.
//
// Only pairs that the call allows count: not padded, not behind a causal query, not masked; for an attention with a
// pattern those that have a weight. Pairs of which one side has no position have no distance.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/io/elements.h"
#include "nn/attention/attention.h"

namespace waymark::train {

// Mean and spread of numbers that come one by one (Welford).
struct Moments {
  i64 n = 0;
  double mean = 0, m2 = 0;
  void add(double x) {
    ++n;
    const double d = x - mean;
    mean += d / static_cast<double>(n);
    m2 += d * (x - mean);
  }
  double sd() const;  // of the numbers themselves: divided by n
};

// How far "within" reaches.
inline constexpr i64 kWithinReach[] = {1, 3, 5, 8, 16};

class DistanceStatistics {
 public:
  // Query rows at a time.
  static constexpr i64 kBlock = 64;

  void add(const nn::Attention& attention, const nn::AttentionInput& in);
  bool empty() const { return heads_ == 0; }
  i64 heads() const { return heads_; }

  // Summands of the score in the order in which they came, multipliers among them; "total" last.
  const std::vector<std::string>& parts() const { return parts_; }
  bool is_multiplier(const std::string& part) const { return multipliers_.count(part) > 0; }
  bool has_weights() const { return has_weights_; }
  // What could not be looked at, in words.
  const std::vector<std::string>& notes() const { return notes_; }

  // delta [D], count [D] ([H, D] where heads differ), queries [1]: rows with an allowed key;
  // attention_mean [H, D]; within [H, 5], within_uniform [5], within_distance [5], mean_distance [H], entropy [H] (nats),
  // entropy_uniform [1]; score_<part>_mean, score_<part>_sd [H, D] in logit units, NaN where a head has no
  // allowed pair at that distance. What was not seen is absent:
  // delta has the distances of at least one allowed pair.
  NamedTensors arrays() const;

 private:
  // All numbers at one distance: weights of each head, then each part of each head.
  struct Cell {
    std::vector<Moments> moments;
  };
  struct Block;
  void add_block(const Block& block);
  size_t channel_of(const std::string& part);
  void note(const std::string& text);

  i64 heads_ = 0;
  bool has_weights_ = false;
  std::vector<std::string> parts_, notes_;
  std::set<std::string> multipliers_;
  std::map<i64, Cell> cells_;
  std::vector<i64> queries_;            // of each head
  std::vector<double> entropy_;         // sums of each head
  double entropy_uniform_ = 0;
  std::vector<double> within_uniform_ = std::vector<double>(std::size(kWithinReach));
  i64 uniform_rows_ = 0;
};

}  // namespace waymark::train
