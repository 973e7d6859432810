#include "train/inspect/distance_statistics.h"

#include <algorithm>
#include <cmath>

#include "core/ops/convert.h"
#include "core/ops/shape.h"
#include "nn/attention/registry.h"

namespace waymark::train {

double Moments::sd() const { return n > 0 ? std::sqrt(std::max(0.0, m2 / static_cast<double>(n))) : 0; }

// Some query rows of one call.
struct DistanceStatistics::Block {
  i64 first = 0, rows = 0, keys = 0, batch = 0;
  Tensor weights = {};                                   // f64 [B, H, rows, M]; undefined: none
  std::vector<std::pair<size_t, Tensor>> parts = {};     // channel, f64 [B, H, rows, M]
  Tensor allowed = {};                                   // b8 [B, H, rows, M], strides may be 0
  bool by_weight = false;                                // a pair without weight does not count
  const nn::Positions *queries = nullptr, *key_positions = nullptr;
};

namespace {

Tensor f64_rows(const Tensor& t, i64 batch, i64 heads, i64 first, i64 rows, i64 keys) {
  const Tensor part = t.size(2) == rows ? t : narrow(t, 2, first, rows);
  return contiguous(to(part.expand({batch, heads, rows, keys}), kF64));
}

bool is_allowed(const Tensor& allowed, i64 b, i64 h, i64 i, i64 j) {
  if (!allowed.defined()) return true;
  const auto& s = allowed.strides();
  return allowed.data<bool>()[b * s[0] + h * s[1] + i * s[2] + j * s[3]];
}

Tensor array_of(const std::vector<double>& values, const Shape& shape) {
  const Tensor t = make_empty(shape, kF64);
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}
Tensor array_of(const std::vector<i64>& values, const Shape& shape) {
  const Tensor t = make_empty(shape, kI64);
  std::copy(values.begin(), values.end(), t.data<i64>());
  return t;
}

}  // namespace

void DistanceStatistics::note(const std::string& text) {
  if (std::find(notes_.begin(), notes_.end(), text) == notes_.end()) notes_.push_back(text);
}

size_t DistanceStatistics::channel_of(const std::string& part) {
  const auto found = std::find(parts_.begin(), parts_.end(), part);
  if (found == parts_.end()) parts_.push_back(part);
  return static_cast<size_t>(std::find(parts_.begin(), parts_.end(), part) - parts_.begin()) + 1;
}

void DistanceStatistics::add(const nn::Attention& attention, const nn::AttentionInput& input) {
  const bool causal = attention.setup().causal || input.causal || input.mask.implies_causal();
  const nn::AttentionFacts facts = nn::facts_of_attention(attention.options(), causal, attention.setup().cross);
  nn::AttentionInput in = input;
  const i64 length = in.x.size(1), keys = in.context.defined() ? in.context.size(1) : length;
  const nn::Positions own = in.positions.defined() ? in.positions : nn::Positions::range(length);
  const nn::Positions& queries = own;
  const nn::Positions key_positions =
      !in.context.defined() ? own : in.context_positions.defined() ? in.context_positions : nn::Positions::range(keys);
  if (!facts.forms_weights) note(attention.options().short_form() + " has no weight for a pair");
  if (!facts.gives.has(nn::Capability::pair)) note(attention.options().short_form() + " forms no score for a single pair");
  if (!facts.forms_weights && !facts.gives.has(nn::Capability::pair)) return;
  const i64 batch = in.x.size(0);
  const Tensor allowed = attention.allowed_pairs(in);
  for (i64 first = 0; first < length;) {
    Block block;
    block.batch = batch;
    block.keys = keys;
    block.queries = &queries;
    block.key_positions = &key_positions;
    // One that sees whole rows of logits has no pattern; elsewhere the weights say which pairs there are.
    block.by_weight = !facts.gives.has(nn::Capability::row) && facts.forms_weights;
    in.rows = {first, std::min(kBlock, length - first)};
    Tensor weights;
    std::vector<ScorePart> parts;
    if (facts.forms_weights) weights = attention.implied_weights(in);
    if (facts.gives.has(nn::Capability::pair)) parts = attention.score_parts(in);
    const Tensor& any = weights.defined() ? weights : parts.empty() ? weights : parts.front().value;
    if (!any.defined()) return;
    if (any.dim() != 4 || any.size(3) != keys || (any.size(2) != in.rows.count && any.size(2) != length)) {
      note(fmt::format("{} has weights {} for {} queries and {} keys", attention.options().short_form(), any.shape(), length, keys));
      return;
    }
    // An attention that gave all rows has done all there is to do.
    if (any.size(2) == length) in.rows = {0, length};
    block.first = in.rows.first;
    block.rows = in.rows.count;
    const i64 heads = any.size(1);
    if (heads_ == 0) {
      heads_ = heads;
      queries_.assign(static_cast<size_t>(heads), 0);
      entropy_.assign(static_cast<size_t>(heads), 0);
    }
    if (heads != heads_) fail("inspect", "{} heads after {}", heads, heads_);
    const auto rows_of = [&](const Tensor& t) { return f64_rows(t, batch, heads, block.first, block.rows, keys); };
    if (weights.defined()) block.weights = rows_of(weights);
    has_weights_ |= weights.defined();
    for (const ScorePart& p : parts) {
      if (p.multiplier) multipliers_.insert(p.name);
      block.parts.emplace_back(channel_of(p.name), rows_of(p.value));
    }
    if (allowed.defined()) block.allowed = narrow(allowed.expand({batch, heads, length, keys}), 2, block.first, block.rows);
    add_block(block);
    first = block.first + block.rows;
  }
}

void DistanceStatistics::add_block(const Block& block) {
  const size_t channels = (parts_.size() + 1) * static_cast<size_t>(heads_);
  // The cell of each pair, found once for all heads and parts.
  std::vector<Cell*> cells(static_cast<size_t>(block.rows * block.keys));
  std::vector<i64> far(cells.size());
  for (i64 b = 0; b < block.batch; ++b) {
    if (b == 0 || block.queries->rows() > 1 || block.key_positions->rows() > 1) {
      for (i64 i = 0; i < block.rows; ++i) {
        const i64 p = block.queries->at(block.queries->rows() > 1 ? b : 0, block.first + i);
        for (i64 j = 0; j < block.keys; ++j) {
          const i64 q = block.key_positions->at(block.key_positions->rows() > 1 ? b : 0, j);
          const size_t at = static_cast<size_t>(i * block.keys + j);
          cells[at] = p < 0 || q < 0 ? nullptr : &cells_[q - p];
          far[at] = std::abs(q - p);
          if (cells[at] && cells[at]->moments.size() < channels) cells[at]->moments.resize(channels);
        }
      }
    }
    for (i64 h = 0; h < heads_; ++h) {
      const i64 plane = (b * heads_ + h) * block.rows * block.keys;
      const double* weight = block.weights.defined() ? block.weights.data<double>() + plane : nullptr;
      for (i64 i = 0; i < block.rows; ++i) {
        i64 pairs = 0;
        double entropy = 0;
        i64 within[std::size(kWithinReach)] = {};
        for (i64 j = 0; j < block.keys; ++j) {
          const i64 at = i * block.keys + j;
          if (!is_allowed(block.allowed, b, h, i, j) || (block.by_weight && weight && weight[at] == 0)) continue;
          ++pairs;
          if (weight && weight[at] > 0) entropy -= weight[at] * std::log(weight[at]);
          Cell* cell = cells[static_cast<size_t>(at)];
          if (!cell) continue;
          for (size_t k = 0; k < std::size(kWithinReach); ++k) within[k] += far[static_cast<size_t>(at)] <= kWithinReach[k];
          Moments* moments = cell->moments.data() + h;
          moments[0].add(weight ? weight[at] : 0);
          for (const auto& [channel, values] : block.parts)
            moments[static_cast<i64>(channel) * heads_].add(values.data<double>()[plane + at]);
        }
        if (pairs == 0) continue;
        ++queries_[static_cast<size_t>(h)];
        entropy_[static_cast<size_t>(h)] += entropy;
        ++uniform_rows_;
        entropy_uniform_ += std::log(static_cast<double>(pairs));
        for (size_t k = 0; k < std::size(kWithinReach); ++k)
          within_uniform_[k] += static_cast<double>(within[k]) / static_cast<double>(pairs);
      }
    }
  }
}

NamedTensors DistanceStatistics::arrays() const {
  NamedTensors out;
  const size_t heads = static_cast<size_t>(heads_);
  // Distances of positions that no call allowed stay out.
  std::map<i64, Cell> cells;
  for (const auto& [d, cell] : cells_)
    if (std::any_of(cell.moments.begin(), cell.moments.begin() + static_cast<std::ptrdiff_t>(std::min(heads, cell.moments.size())),
                    [](const Moments& m) { return m.n > 0; }))
      cells.emplace(d, cell);
  if (empty() || cells.empty()) return out;
  const i64 distances = static_cast<i64>(cells.size());
  std::vector<i64> delta, counts;  // counts: [H, D]
  for (const auto& [d, cell] : cells) delta.push_back(d);
  const auto moments_of = [&](const Cell& cell, size_t channel, size_t h) {
    const size_t at = channel * heads + h;
    return at < cell.moments.size() ? cell.moments[at] : Moments();
  };
  bool same = true;
  for (size_t h = 0; h < heads; ++h)
    for (const auto& [d, cell] : cells) {
      counts.push_back(moments_of(cell, 0, h).n);
      same &= moments_of(cell, 0, h).n == moments_of(cell, 0, 0).n;
    }
  out.emplace_back("delta", array_of(delta, {distances}));
  if (same) counts.resize(delta.size());
  out.emplace_back("count", array_of(counts, same ? Shape{distances} : Shape{heads_, distances}));
  const i64 most = *std::max_element(queries_.begin(), queries_.end());
  out.emplace_back("queries", array_of(std::vector<i64>{most}, {1}));

  const auto table = [&](size_t channel, double (*value)(const Moments&)) {
    std::vector<double> values;
    for (size_t h = 0; h < heads; ++h)
      for (const auto& [d, cell] : cells) values.push_back(value(moments_of(cell, channel, h)));
    return array_of(values, {heads_, distances});
  };
  const auto mean_of = [](const Moments& m) { return m.mean; };
  // No pair of this head: there is no score, while of attention there is none, 0.
  const auto score_of = [](const Moments& m) { return m.n > 0 ? m.mean : std::nan(""); };
  const auto sd_of = [](const Moments& m) { return m.n > 0 ? m.sd() : std::nan(""); };
  if (has_weights_) {
    out.emplace_back("attention_mean", table(0, mean_of));
    std::vector<double> within, distance, entropy;
    for (size_t h = 0; h < heads; ++h) {
      const double n = static_cast<double>(std::max<i64>(1, queries_[h]));
      double sum = 0;
      std::vector<double> shares(std::size(kWithinReach));
      for (const auto& [d, cell] : cells) {
        const Moments m = moments_of(cell, 0, h);
        const double mass = m.mean * static_cast<double>(m.n) / n;
        sum += mass * static_cast<double>(std::abs(d));
        for (size_t k = 0; k < shares.size(); ++k)
          if (std::abs(d) <= kWithinReach[k]) shares[k] += mass;
      }
      within.insert(within.end(), shares.begin(), shares.end());
      distance.push_back(sum);
      entropy.push_back(entropy_[h] / n);
    }
    const i64 reaches = static_cast<i64>(std::size(kWithinReach));
    const double rows = static_cast<double>(std::max<i64>(1, uniform_rows_));
    std::vector<double> uniform = within_uniform_;
    for (double& v : uniform) v /= rows;
    out.emplace_back("within", array_of(within, {heads_, reaches}));
    out.emplace_back("within_uniform", array_of(uniform, {reaches}));
    out.emplace_back("within_distance", array_of(std::vector<i64>(std::begin(kWithinReach), std::end(kWithinReach)), {reaches}));
    out.emplace_back("mean_distance", array_of(distance, {heads_}));
    out.emplace_back("entropy", array_of(entropy, {heads_}));
    out.emplace_back("entropy_uniform", array_of(std::vector<double>{entropy_uniform_ / rows}, {1}));
  }
  for (size_t p = 0; p < parts_.size(); ++p) {
    out.emplace_back("score_" + parts_[p] + "_mean", table(p + 1, score_of));
    out.emplace_back("score_" + parts_[p] + "_sd", table(p + 1, sd_of));
  }
  return out;
}

}  // namespace waymark::train
