// What a run tells while it runs, and how the console shows it. The trainer prints nothing itself: it
// calls a RunSink, if one is set.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/report/metrics_log.h"
#include "train/report/result.h"

namespace waymark::train {

struct RunStart {
  std::string id = {}, name = {}, folder = {};  // folder empty: nothing is written
  i64 steps = 0;                 // planned; 0 = until another budget is used up
  i64 first_step = 0;            // > 0: a resumed run
  i64 parameters = 0;
  std::string attention = {};    // every attention with all its options, and the pairs that it sees: whole lines
};

struct StepReport {
  i64 step = 0, steps = 0;  // completed, planned (0 = unknown)
  double epoch = 0;
  double loss = 0;          // of this step
  double mean_loss = 0;     // exponential mean (0.98), bias-corrected
  double lr = 0, grad_norm = 0;
  bool updated = true;      // false: the update was skipped
  i64 tokens = 0;           // seen since the run began
  double time = 0;          // training clock, seconds
  double tokens_per_s = 0, gflops = 0;
  double seconds_left = 0;  // estimate with the evaluations to come; < 0: unknown
  const MetricsRecord* record = nullptr;  // the line of metrics.jsonl, on the steps that have one
};

struct EvalProgress {
  i64 step = 0;
  std::string_view split = {};
  i64 done = 0, total = 0;  // batches
};

struct EvalReport {
  i64 step = 0;
  std::string split = {};
  SplitResult result = {};
  bool improved = false;               // the best validation so far
  std::string_view select_metric = {};      // what is compared; empty: nothing is selected
  std::optional<double> best = {};          // of that metric
  i64 best_step = 0;
  const MetricsRecord* record = nullptr;
};

class WAYMARK_API RunSink {
 public:
  virtual ~RunSink() = default;
  virtual void on_start(const RunStart&) {}
  virtual void on_step(const StepReport&) {}
  virtual void on_eval_progress(const EvalProgress&) {}
  virtual void on_eval(const EvalReport&) {}
  virtual void on_event(const MetricsRecord&) {}
  virtual void on_warning(std::string_view) {}
  virtual void on_end(const RunResult&) {}
};

// "step 1200/2000  loss 1.4823  lr 6.1e-04  |g| 0.83  12.4k tok/s  31 GF/s  1:52<1:14", "eval 1200  val  accuracy 61.2".
WAYMARK_API std::string plain_step_line(const StepReport& report);
WAYMARK_API std::string plain_eval_line(const EvalReport& report);
// The block at the end: times, a table of splits for last and best, baselines, the folder.
WAYMARK_API std::string end_block(const RunResult& result, const std::string& folder);
// 3:06, 1:02:03; "-:--" if negative or not finite.
WAYMARK_API std::string duration_text(double seconds);
// 950, 12.4k, 3.1M
WAYMARK_API std::string short_count(double n);

enum class ProgressMode : u8 { automatic, bar, plain, json, none };
// "auto", "bar", "plain", "json", "none"; Error with these names for another word.
WAYMARK_API ProgressMode progress_mode(std::string_view word);

struct ConsoleOptions {
  ProgressMode mode = ProgressMode::automatic;  // automatic: bar on a terminal, plain lines otherwise
  int out = 2, results = 1;                     // file descriptors: progress, and the block at the end
  std::optional<bool> terminal = {};            // is `out` one? asked of the system if not set
  std::optional<int> width = {};                // columns; asked of the terminal if not set
  bool quiet = false;                           // only warnings
  bool* results_failed = nullptr;               // set if the block at the end could not be written (a full disk)
};
// The console: one line that is rewritten at most ten times a second and never wraps, or one line per metrics line, at
// most one a second, without control characters. Restores the line when it is destroyed.
WAYMARK_API std::unique_ptr<RunSink> make_console(const ConsoleOptions& options);

// All warnings and plain lines, appended to a file.
WAYMARK_API std::unique_ptr<RunSink> make_log_file(const std::filesystem::path& path);

}  // namespace waymark::train
