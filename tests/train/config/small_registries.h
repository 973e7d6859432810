// Small registries for the config tests, so that they do not change when the real ones grow.
#pragma once

#include <algorithm>

#include "train/config/registries.h"

namespace waymark::test {

inline const train::Registries& small_registries() {
  using namespace nn;
  static const SpecTables tasks("task", {{"toy",
                                          {{"length", int_option(32, 1, 4096), "tokens"},
                                           {"test_lengths", int_list_option(std::vector<i64>{}, 1, 4096), "tests"}}},
                                         {"choice", {}},
                                         {"next", {}}});
  static const SpecTables encodings(
      "position encoding",
      {{"none", {}},
       {"learned", {{"max_len", int_option(512, 1).default_from("model.max_len"), "rows"}}},
       {"rope", {{"base", real_option(10000).greater_than(0), "base"}}},
       {"huang-m4",
        {{"clip", int_option(16, 0, 1 << 20), "clip"}, {"beyond", word_option("clip", {"clip", "zero"}), ""}}}});
  static const SpecTables attentions("attention",
                                     {{"dense", {}}, {"local", {{"window", int_option(required(), 1), ""}}}});
  static const SpecTables optimizers("optimizer", {{"adamw", {{"lr", real_option(1e-3).greater_than(0), ""}}},
                                                   {"sgd", {{"lr", real_option(required()).greater_than(0), ""}}}});
  static const SpecTables schedules("schedule", {{"cosine", {{"warmup", real_option(0, 0.0), ""}}}, {"constant", {}}});
  static const train::Registries all{
      &tasks,
      &encodings,
      &attentions,
      &optimizers,
      &schedules,
      nullptr,
      [](const Options& task) {
        train::TaskFacts f;
        f.kind = task.name() == "toy" ? "mlm" : task.name() == "next" ? "lm" : "classify";
        f.causal = f.kind == "lm";
        f.max_len = f.longest = 32;
        if (task.name() == "toy") {
          f.max_len = f.longest = task.integer("length");
          for (const i64 n : task.integers("test_lengths")) f.longest = std::max(f.longest, n);
          f.data_keys = {"data.max_len", "data.train_size", "data.shuffle", "data.drop_last"};
        }
        f.metric = "accuracy";
        f.metrics = {"accuracy", "loss"};
        return f;
      },
      [](const Options& schedule) { return schedule.name() == "cosine"; },
      [](const train::Config& config, train::Problems& problems) {
        for (const auto& sum : config.layers("model.attention"))
          if (sum[0].name() == "local" && config.layers("model.position")[0][0].name() == "rope")
            return problems.push_back({config.origin("model.position"), "rope cannot run on local: a test rule", true});
      },
      nullptr, nullptr};
  return all;
}

}  // namespace waymark::test
