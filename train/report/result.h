// result.json: what a run did and reached (format waymark-result-1). A value that was not computed is absent, never 0.
// The number most people look for is .last.test.accuracy.value, beside .n and .error.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/types.h"
#include "train/report/json.h"

namespace waymark::train {

enum class RunStatus { finished, failed, interrupted, nonfinite };
WAYMARK_API std::string_view name_of(RunStatus status);

// Loss-like metrics, of which less is better: loss, nats, bits_per_*, perplexity, mse, ...; by the part of the name
// after the last dot or slash. Every other metric (accuracy, f1, em, ...) is better when it is higher.
WAYMARK_API bool lower_is_better(std::string_view metric);
// Shares in [0, 1] that tables and plots show in per cent: accuracy, f1, em, ...
WAYMARK_API bool is_share(std::string_view metric);

// One measured number.
struct MetricValue {
  double value = 0;             // not finite if the evaluation gave that; kept through the file
  i64 n = 0;                    // items, or positions, it was measured on
  std::optional<double> error = {};  // standard error; of a share sqrt(p (1 - p) / n)
  bool approximate = false;     // only part of the split ("~")
};
// The value with its error where the metric is a share in [0, 1] and n >= 1.
WAYMARK_API MetricValue metric_value(std::string_view metric, double value, i64 n);

// One split at one checkpoint: "val", "test", or an extra test set "test@128".
struct SplitResult {
  i64 length = 0;          // items of this length; 0 if lengths vary or are those of training
  bool untrained = false;  // positions beyond the trained length go through rows of a table that no step has changed
  std::vector<std::pair<std::string, MetricValue>> metrics = {};  // in the task's order, the main one first

  const MetricValue* find(std::string_view metric) const;
};

// What one checkpoint reached.
struct Evaluation {
  i64 step = 0;
  std::vector<std::pair<std::string, SplitResult>> splits = {};

  const SplitResult* find(std::string_view split) const;
};

// A shortcut of the task (chance, majority class, ...), computed on the split that is reported.
struct Baseline {
  std::string name = {}, split = {}, metric = {};
  double value = 0;
};

struct DataFacts {
  std::map<std::string, std::string> fingerprints = {};  // split -> XXH3-128 of its items
  std::map<std::string, i64> sizes = {};                 // split -> items
  std::string split_file_hash = {};                      // of `data.split = file:...`, else empty
  std::optional<i64> overlap = {};                       // test items that are also in train
  std::string masking = {};                              // what is masked, in words: "15 % of the positions, always [MASK]"
};

struct CpuFacts {
  std::string model = {};
  i64 cores = 0;  // used by this run
  double peak_flops = 0;  // multiply-adds a second of these cores in the run's precision, as 2; 0 = not measured
  std::string blas_core = {};
};

struct RunResult {
  std::string id = {}, name = {};
  RunStatus status = RunStatus::finished;
  std::string error = {};  // why it did not finish

  // Every key of the resolved config with its canonical value, and the short form (options that differ from the
  // default) where that is another text. "seed" and "task" are among the keys.
  std::map<std::string, std::string> config = {}, config_short = {};
  i64 seed = 0;

  DataFacts data = {};
  i64 trained_length = 0;  // tokens of a training item; 0 if lengths vary
  i64 steps = 0;           // updates done
  i64 tokens = 0;          // seen in training
  std::string stopped_by = {};  // "steps", "epochs", "tokens", "minutes", "patience"; empty if it did not finish
  std::optional<i64> parameters = {};
  std::optional<double> flops_per_step = {};
  std::optional<double> seconds = {};      // training clock: without evaluation and saving, over all resumes
  std::optional<double> cpu_seconds = {};  // of the process, everything included
  std::optional<i64> peak_memory = {};     // bytes
  std::optional<bool> denormal_guard = {};
  CpuFacts cpu = {};
  std::string version = {};

  std::string main_metric = {};  // of the task: "accuracy"
  std::vector<Baseline> baselines = {};
  std::optional<Evaluation> last = {}, best = {};
  std::string selection = {};  // "val.accuracy" or "last"
  std::vector<std::string> warnings = {};
  i64 nonfinite_skipped = 0;
  i64 resumes = 0;
  std::string continued_from = {};  // id of the run that this one extends, else empty

  // Short form if there is one, else the canonical value; empty if there is no such key.
  std::optional<std::string> shown(std::string_view key) const;
  std::optional<double> tokens_per_second() const;
};

// The text of result.json and back. Reading is strict: another format, an unknown member, a member of the wrong type
// or a null is an Error that names it. `origin` begins the messages.
WAYMARK_API std::string result_to_json(const RunResult& result);
WAYMARK_API RunResult result_from_json(std::string_view text, std::string_view origin);

// One evaluation as result.json has it under "last" and "best".
WAYMARK_API Json evaluation_json(const Evaluation& evaluation);

// <folder>/result.json, whole or not at all.
WAYMARK_API void save_result(const std::filesystem::path& folder, const RunResult& result);
WAYMARK_API RunResult load_result(const std::filesystem::path& file);

}  // namespace waymark::train
