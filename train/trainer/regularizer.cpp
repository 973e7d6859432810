#include "train/trainer/regularizer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/autograd/state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/index.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "nn/attention/registry.h"
#include "nn/loss/loss.h"

namespace waymark::train {

namespace {

// The draw numbers of training are below 2^22, those of evaluation and of patterns far below this.
constexpr u64 kRedraws = u64{1} << 31;

std::vector<nn::OptionDef> divergence_options() {
  return {{"alpha", nn::real_option(1.0, 0), "weight of the divergence; 0: cross-entropy of both passes alone"},
          {"kl", nn::word_option("symmetric", {"symmetric", "forward", "reverse"}), "direction of the divergence, from the usual pass to the other"},
          {"ce", nn::word_option("both", {"both", "first"}), "passes that carry cross-entropy"},
          {"detach", nn::word_option("none", {"none", "first"}), "first: no gradient reaches the usual pass through the divergence"}};
}

nn::OptionTable sar_table() {
  nn::OptionTable t{"sar", divergence_options(), "agreement with a pass whose sparse attentions are laid out differently (Liu 2022)"};
  const std::vector<nn::OptionDef> own = {
      {"shift", nn::word_option("boundary", {"boundary", "roll", "redraw"}),
       "what differs: borders of blocks; places of the tokens; random blocks and hashes"},
      {"offset", nn::int_list_option(std::vector<i64>{1}, 1, 1 << 30, 1).or_one().or_word({"random"}),
       "tokens to shift by; a list: one after the other, step by step; random: 1 to block - 1, drawn for each step"},
      {"dropout", nn::word_option("independent", {"independent", "shared"}), "masks of the second pass: new ones, or those of the first"}};
  t.options.insert(t.options.begin() + 1, own.begin(), own.end());
  t.check = [](const nn::Options& o, std::vector<std::string>& problems) {
    if (o.is_word("shift", "redraw") && o.given("offset")) problems.emplace_back("offset has no effect with shift=redraw");
  };
  return t;
}

// What the attentions of a model say about shifts.
struct Topology {
  std::vector<i64> blocks = {};  // of those that move with a shift
  bool random = false;
};
Topology topology_of(const Config& config) {
  Topology t;
  for (const auto& layer : config.layers("model.attention")) {
    const nn::AttentionFacts f = nn::facts_of_attention(layer.front(), config.boolean("model.causal"));
    if (f.topology_sensitive && std::find(t.blocks.begin(), t.blocks.end(), f.block) == t.blocks.end()) t.blocks.push_back(f.block);
    t.random |= f.random_topology;
  }
  return t;
}

std::optional<nn::Options> named(const Config& config, std::string_view name) {
  for (const nn::Options& o : config.sum("train.regularizer"))
    if (o.name() == name) return o;
  return std::nullopt;
}

nn::loss::KlOptions kl_options(const nn::Options& o) {
  return {.kl = nn::loss::kl_of(o.word("kl")), .detach = nn::loss::detach_of(o.word("detach"))};
}
bool carries_ce(const nn::Options& o) { return o.is_word("ce", "both"); }

// Token-level outputs in the order in which the tokens stood before they were rolled.
Tensor rolled_back(const Tensor& output, const Tensor& places) {
  if (output.dim() < 3) return output;
  return take_along_dim(output, places.unsqueeze(-1).expand({places.size(0), places.size(1), output.size(2)}), 1);
}

}  // namespace

const nn::SpecTables& regularizer_tables() {
  static const nn::SpecTables tables("regularizer", {nn::OptionTable{"none", {}, "the loss of the task alone"}, sar_table(),
                                                     nn::OptionTable{"r-drop", divergence_options(),
                                                                     "agreement with a pass under other dropout masks (Liang 2021)"}});
  return tables;
}

void check_regularizer(const Config& config, Problems& problems) {
  const auto add = [&](const std::string& text) {
    problems.push_back({config.origin("train.regularizer"), "train.regularizer: " + text});
  };
  if (config.sum("train.regularizer").size() > 1 && named(config, "none")) add("none stands alone");
  const auto sar = named(config, "sar");
  if (!sar) return;
  const Topology topology = topology_of(config);
  const std::string& shift = sar->word("shift");
  if (shift == "redraw") {
    if (!topology.random)
      add(fmt::format("sar(shift=redraw) has nothing to draw again: no attention of {} has random blocks or hashes",
                      config.short_form("model.attention")));
    return;
  }
  if (shift == "boundary" && topology.blocks.empty()) {
    std::vector<std::string> works;
    for (const nn::AttentionInfo* info : nn::all_attentions())
      if (info->name() != "local" && nn::facts_of_attention(info->options.resolve({info->name(), {}})).topology_sensitive)
        works.push_back(info->name());
    add(fmt::format("sar(shift=boundary) has nothing to shift: {} has no blocks; attentions with blocks: local(block=64), {}",
                    config.short_form("model.attention"), fmt::join(works, ", ")));
    return;
  }
  const i64 largest = topology.blocks.empty() ? 0 : *std::max_element(topology.blocks.begin(), topology.blocks.end());
  if (sar->is_word("offset", "random")) {
    if (largest < 2)
      add(fmt::format("sar(offset=random) draws from 1 to block - 1, but {}",
                      largest == 0 ? "no attention of this model has blocks; give a number" : "the blocks have one token"));
    return;
  }
  for (const i64 offset : sar->integers("offset"))
    if (!topology.blocks.empty() && shift == "boundary" &&
        std::all_of(topology.blocks.begin(), topology.blocks.end(), [&](i64 b) { return offset % b == 0; }))
      add(fmt::format("sar(offset={}) moves no border: it is a multiple of the block of {}", offset, fmt::join(topology.blocks, ", ")));
}

std::string idle_regularizer(const Config& config) {
  const bool dropout = config.real("model.dropout") > 0 || config.real("model.attention_dropout") > 0 ||
                       config.real("model.embedding_dropout") > 0;
  if (!named(config, "r-drop") || dropout) return "";
  return "train.regularizer = r-drop has no effect: the model has no dropout, so that both passes are equal";
}

RolledBatch roll_tokens(const Batch& batch, i64 offset) {
  const NoGrad off;
  const i64 rows = batch.tokens.size(0), length = batch.tokens.size(1);
  RolledBatch out{batch, make_empty({rows, length}, kI64)};
  const std::vector<i64> tokens = batch.tokens.to_vector<i64>();
  const std::vector<bool> keep = batch.keep.defined() ? batch.keep.to_vector<bool>() : std::vector<bool>(tokens.size(), true);
  std::vector<i64> positions(tokens.size(), 0);
  if (batch.positions.defined()) positions = contiguous(batch.positions.expand({rows, length})).to_vector<i64>();
  out.batch.tokens = contiguous(batch.tokens).clone();
  const std::vector<i64> segments = batch.segments.defined() ? batch.segments.to_vector<i64>() : std::vector<i64>();
  if (!segments.empty()) out.batch.segments = contiguous(batch.segments).clone();
  for (i64 row = 0; row < rows; ++row) {
    std::vector<i64> moving;
    i64* places = out.places.data<i64>() + row * length;
    for (i64 i = 0; i < length; ++i) {
      const size_t at = static_cast<size_t>(row * length + i);
      places[i] = i;
      if (keep[at] && positions[at] >= 0) moving.push_back(i);
    }
    const i64 n = static_cast<i64>(moving.size());
    for (i64 i = 0; i < n; ++i) {
      const i64 from = moving[static_cast<size_t>(i)], to = moving[static_cast<size_t>((i + offset) % n)];
      places[from] = to;
      out.batch.tokens.data<i64>()[row * length + to] = tokens[static_cast<size_t>(row * length + from)];
      if (!segments.empty()) out.batch.segments.data<i64>()[row * length + to] = segments[static_cast<size_t>(row * length + from)];
    }
  }
  return out;
}

Regularizer::Regularizer(const Config& config) : sar_(named(config, "sar")), r_drop_(named(config, "r-drop")) {
  const Topology topology = topology_of(config);
  if (!topology.blocks.empty()) block_ = *std::max_element(topology.blocks.begin(), topology.blocks.end());
}

i64 Regularizer::offset(i64 step) const {
  if (!sar_ || sar_->is_word("shift", "redraw")) return 0;
  if (sar_->is_word("offset", "random"))
    return randint_at(fixed_draw("sar.offset", static_cast<u64>(step)), 1, block_, 0, 0, 0);
  const std::vector<i64> list = sar_->integers("offset");
  return list[static_cast<size_t>(step) % list.size()];
}

Tensor Regularizer::second_output(TaskModel& model, const Batch& part, i64 step, i64 first) const {
  // A scope of its own begins the counts of dropout streams again: the masks of the first pass.
  std::optional<DrawScope> same_masks;
  if (sar_->is_word("dropout", "shared")) same_masks.emplace(static_cast<u64>(step), static_cast<u64>(first));
  const std::string& shift = sar_->word("shift");
  if (shift == "roll") {
    const RolledBatch rolled = roll_tokens(part, offset(step));
    return rolled_back(model.output(rolled.batch), rolled.places);
  }
  Batch other = part;
  if (shift == "redraw") other.redraw = kRedraws + static_cast<u64>(step);
  else other.shift += offset(step);
  return model.output(other);
}

Regularizer::Losses Regularizer::losses(TaskModel& model, const Task& task, const Batch& part, const Tensor& u, i64 step, i64 first) const {
  Losses out;
  Tensor ce = task.loss_sum(u, part), divergences;
  i64 carrying = 1;
  const auto compare = [&](const nn::Options& o, const Tensor& other, std::optional<double>& value) {
    if (carries_ce(o)) {
      ce = add(ce, task.loss_sum(other, part));
      ++carrying;
    }
    const double alpha = o.real("alpha");
    value = 0;
    if (alpha == 0) return;
    const Tensor term = mul(task.divergence_sum(u, other, part, kl_options(o)), alpha);
    value = term.item<double>();
    divergences = divergences.defined() ? add(divergences, term) : term;
  };
  if (sar_) compare(*sar_, second_output(model, part, step, first), out.sar);
  if (r_drop_) compare(*r_drop_, model.output(part), out.r_drop);
  if (carrying > 1) ce = div(ce, static_cast<double>(carrying));
  out.ce = ce.item<double>();
  out.sum = divergences.defined() ? add(ce, divergences) : ce;
  return out;
}

}  // namespace waymark::train
