// What the config asks the rest of the house: the names and options that specs may use, facts of a task, the judge.
// registries.cpp joins them; it is the only file of train/config that includes other parts of nn and train.
#pragma once

#include <functional>
#include <string>

#include "nn/spec/options.h"
#include "train/config/config.h"

namespace waymark::train {

// Facts of a task that defaults and checks need. They depend on the spec alone; no data is read for them.
struct TaskFacts {
  std::string kind;            // classify, pair-classify, tag, lm, mlm, span, regress
  bool causal = false;
  i64 max_len = 0;             // trained length in tokens; 0 = known only after reading the data
  i64 train_size = 0, val_size = 0, test_size = 0;  // 0 = all, or unlimited
  std::string metric;          // the main one: accuracy
  bool has_validation = true;
};

struct Registries {
  const nn::SpecTables* tasks = nullptr;
  const nn::SpecTables* encodings = nullptr;
  const nn::SpecTables* attentions = nullptr;
  const nn::SpecTables* optimizers = nullptr;
  const nn::SpecTables* schedules = nullptr;
  std::function<TaskFacts(const nn::Options& task)> task_facts;
  // The judge, asked for every layer: one text per refusal.
  std::function<void(const Config&, Problems&)> judge;
};

WAYMARK_API const Registries& registries();

}  // namespace waymark::train
