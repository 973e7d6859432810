#include "train/config/checks.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "nn/spec/suggest.h"

namespace waymark::train {

namespace {

// The key at fault is the one that was written; of two, the later in the message.
std::string_view written_of(const Config& config, std::string_view first, std::string_view second) {
  return config.is_default(first) && !config.is_default(second) ? second : first;
}

void check_widths(CheckContext& c) {
  const Config& f = c.config;
  if (c.fine("model.embed_dim", "model.num_heads", "model.head_dim") && f.origin("model.head_dim") == "default") {
    const i64 width = f.integer("model.embed_dim"), heads = f.integer("model.num_heads");
    if (width % heads != 0)
      c.add(written_of(f, "model.embed_dim", "model.num_heads"),
            fmt::format("model.embed_dim = {} is not divisible by model.num_heads = {}", width, heads));
  }
  if (c.fine("model.num_heads", "model.num_kv_heads")) {
    const i64 heads = f.integer("model.num_heads"), kv = f.integer("model.num_kv_heads");
    if (heads % kv != 0)
      c.add("model.num_kv_heads",
            fmt::format("model.num_heads = {} is not divisible by model.num_kv_heads = {}", heads, kv));
  }
}

void check_batches(CheckContext& c) {
  const Config& f = c.config;
  if (!c.fine("train.batch_size", "optim.accumulate", "train.micro_batch")) return;
  const i64 batch = f.integer("train.batch_size"), accumulate = f.integer("optim.accumulate"),
            micro = f.integer("train.micro_batch");
  if (accumulate > 1 && micro > 0)
    c.add("train.micro_batch", fmt::format("train.micro_batch = {} and optim.accumulate = {} say the same thing in two "
                                           "ways: set at most one",
                                           micro, accumulate));
  if (batch % accumulate != 0)
    c.add(written_of(f, "optim.accumulate", "train.batch_size"),
          fmt::format("train.batch_size = {} is not divisible by optim.accumulate = {}", batch, accumulate));
  if (micro > batch)
    c.add("train.micro_batch", fmt::format("train.micro_batch = {} exceeds train.batch_size = {}", micro, batch));
}

// Minutes end a run at no known step; epochs and tokens give a number as soon as the data is known.
void check_schedule(CheckContext& c) {
  const Config& f = c.config;
  if (!c.fine("optim.schedule", "train.minutes") || !f.has("train.minutes") || !c.registries.schedule_needs_total)
    return;
  const nn::Options& schedule = f.spec("optim.schedule");
  if (c.registries.schedule_needs_total(schedule))
    c.add("train.minutes",
          fmt::format("optim.schedule = {} must know the number of updates, but train.minutes = {} does not "
                      "say it: write {}(total=N), or constant",
                      f.short_form("optim.schedule"), f.short_form("train.minutes"), schedule.name()));
}

void check_select(CheckContext& c) {
  const Config& f = c.config;
  if (!c.fine("train.select", "task")) return;
  const std::string& select = f.text("train.select");
  if (select == "last") {
    if (c.fine("train.patience") && f.integer("train.patience") > 0)
      c.add("train.patience", "train.patience needs a validation metric, but train.select = last");
    return;
  }
  if (select.rfind("val.", 0) != 0) {
    c.add("train.select",
          fmt::format("train.select = {}: must be last or val.<metric>; a checkpoint is never chosen by "
                      "a test value",
                      nn::printable(select)));
    return;
  }
  if (!c.facts.has_validation) {
    c.add("train.select", fmt::format("train.select = {}, but the task has no validation set", nn::printable(select)));
    return;
  }
  const auto& metrics = c.facts.metrics;
  if (!metrics.empty() && std::find(metrics.begin(), metrics.end(), select.substr(4)) == metrics.end())
    c.add("train.select", fmt::format("train.select = {}: the task measures {}.{}", nn::printable(select),
                                      fmt::join(metrics, ", "), nn::did_you_mean(select.substr(4), metrics)));
}

void check_causality(CheckContext& c) {
  if (!c.fine("task", "model.kind", "model.causal")) return;
  if (c.config.text("model.kind") == "decoder" && !c.config.boolean("model.causal"))
    c.add(written_of(c.config, "model.causal", "model.kind"), "model.kind = decoder needs model.causal = true");
  if (c.facts.causal && !c.config.boolean("model.causal"))
    c.add("model.causal", "model.causal = false: the task predicts the next token, which the model would see");
}

void check_data(CheckContext& c) {
  const Config& f = c.config;
  if (!c.fine("task")) return;
  if (c.fine("data.split")) {
    const std::string& split = f.text("data.split");
    const bool file = split.rfind("file:", 0) == 0 && split.size() > 5 && c.facts.split_files;
    const auto& splits = c.facts.splits;
    if (!file && std::find(splits.begin(), splits.end(), split) == splits.end())
      c.add("data.split", fmt::format("data.split = {}: the task has {}{}", nn::printable(split),
                                      fmt::join(splits, ", "), c.facts.split_files ? " and file:PATH" : ""));
  }
  if (c.fine("data.max_len", "data.pad_to") && f.integer("data.pad_to") > 0 &&
      f.integer("data.pad_to") < f.integer("data.max_len"))
    c.add("data.pad_to", fmt::format("data.pad_to = {} is shorter than data.max_len = {}", f.integer("data.pad_to"),
                                     f.integer("data.max_len")));
}

// A table of positions must have a row for every position that training and the test sets use.
void check_table_lengths(CheckContext& c) {
  if (!c.fine("task", "model.position", "data.max_len")) return;
  const i64 cls = c.config.text("model.pooling") == "cls" && c.config.text("model.cls_position") == "first" ? 1 : 0;
  const i64 longest = std::max(c.facts.longest, c.config.integer("data.max_len")) + cls;
  std::set<std::string> said;
  for (const auto& sum : c.config.layers("model.position")) {
    for (const nn::Options& encoding : sum) {
      std::string text;
      if (encoding.has("max_len") && encoding.integer("max_len") < longest)
        text = fmt::format("{} has {} rows, but the task needs {} positions: write {}(max_len={})", encoding.name(),
                           encoding.integer("max_len"), longest, encoding.name(), longest);
      else if (encoding.has("beyond") && encoding.is_word("beyond", "error") && encoding.integer("clip") < longest - 1)
        text = fmt::format("{} refuses pairs farther apart than clip = {}, but the task has pairs {} apart: write clip={}, "
                           "or beyond=clip or zero",
                           encoding.name(), encoding.integer("clip"), longest - 1, longest - 1);
      if (!text.empty() && said.insert(text).second) c.add("model.position", text);
    }
  }
}

}  // namespace

void check_config(CheckContext& c) {
  const size_t before = c.problems.size();
  check_widths(c);
  check_batches(c);
  check_schedule(c);
  check_select(c);
  check_causality(c);
  check_data(c);
  check_table_lengths(c);
  check_limits(c);
  if (c.registries.judge && c.fine("task", "model.position", "model.attention", "model.cross_position", "model.causal", "model.mask",
                                   "model.embed_dim", "model.num_heads", "model.head_dim", "model.num_layers"))
    c.registries.judge(c.config, c.problems);
  if (c.registries.regularizer && c.fine("train.regularizer", "model.attention", "model.causal", "model.num_layers"))
    c.registries.regularizer(c.config, c.problems);
  if (c.registries.parameters && c.bad.empty() && c.problems.size() == before) c.registries.parameters(c.config, c.problems);
}

}  // namespace waymark::train
