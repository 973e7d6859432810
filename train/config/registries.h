// What the config asks the rest of the house: the names and options that specs may use, facts of a task, the judge.
// registries.cpp joins them; it is the only file of train/config that includes other parts of nn and train.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/spec/options.h"
#include "train/config/config.h"

namespace waymark::train {

// Facts of a task that defaults and checks need. They depend on its spec alone; no data is read for them.
struct TaskFacts {
  std::string kind = {};  // classify, pair-classify, tag, lm, mlm, span, regress
  bool causal = false;
  i64 max_len = 0;                                  // trained length in tokens; 0 = known only after the data is read
  i64 longest = 0;                                  // of all test sets; 0 = max_len
  i64 train_size = 0, val_size = 0, test_size = 0;  // 0 = all, or unlimited
  std::string metric = {};                               // the main one: accuracy
  std::vector<std::string> metrics = {};  // all that train.select may name as val.<metric>; empty: not checked
  bool has_validation = true;
  std::vector<std::string> splits = {"own"};  // values of data.split, beside file:PATH where `files` is set
  bool split_files = false;
  // The data.* keys that have an effect for this task, without seed and dir. Setting another one is a problem.
  std::vector<std::string> data_keys = {};
};

struct Registries {
  const nn::SpecTables* tasks = nullptr;
  const nn::SpecTables* encodings = nullptr;
  const nn::SpecTables* attentions = nullptr;
  const nn::SpecTables* optimizers = nullptr;
  const nn::SpecTables* schedules = nullptr;
  const nn::SpecTables* regularizers = nullptr;
  std::function<TaskFacts(const nn::Options& task)> task_facts = {};
  // Must this schedule know the number of updates beforehand?
  std::function<bool(const nn::Options& schedule)> schedule_needs_total = {};
  // The judge, asked once for the whole config: adds a problem per refusal (Problem::refusal set), with the origin of
  // the key at fault.
  std::function<void(const Config&, Problems&)> judge = {};
  // Does train.regularizer fit the model? Adds a problem for each that does not.
  std::function<void(const Config&, Problems&)> regularizer = {};
  // Asked last, when nothing else is wrong: what the config says about single parameters.
  std::function<void(const Config&, Problems&)> parameters = {};
};

WAYMARK_API const Registries& registries();

}  // namespace waymark::train
