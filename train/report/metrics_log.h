// metrics.jsonl: what a run measured, one JSON object per line. The first line is the header
//   {"format":"waymark-metrics-1","id":"3f9a1c07d2e4","seed":0,"start":"2025-01-31T12:00:00Z"}
// then records {"kind":"train"|"eval"|"event","step":1200,...} in the order they happened. step = completed updates,
// time = seconds of the training clock, carried over resumes. JSON has no NaN: such a number is null, and its name
// stands in "nonfinite".
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

enum class MetricsKind { train, eval, event };
WAYMARK_API std::string_view name_of(MetricsKind kind);

// A value of a record: whole number, number, word, or yes/no.
using MetricsValue = std::variant<i64, double, std::string, bool>;

// One line. Fields keep their order; "kind", "step" and "nonfinite" are no field names.
struct WAYMARK_API MetricsRecord {
  MetricsKind kind = MetricsKind::train;
  i64 step = 0;
  std::vector<std::pair<std::string, MetricsValue>> fields = {};

  MetricsRecord& set(std::string name, MetricsValue value) {
    fields.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  const MetricsValue* find(std::string_view name) const;
  // Numbers (i64 or f64, NaN where the line has null); empty if there is no such field or it is no number.
  std::optional<double> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
};

// The usual records; more fields (regularisers, auxiliary losses) are added with set().
struct TrainMetrics {
  i64 step = 0;
  double epoch = 0, loss = 0, lr = 0, grad_norm = 0;
  i64 tokens = 0;
  double time = 0, tokens_per_s = 0, gflops = 0;
};
WAYMARK_API MetricsRecord train_record(const TrainMetrics& metrics);
// n items (or positions) were evaluated; `metrics` as the task names them. approximate: only `eval_batches` of them.
WAYMARK_API MetricsRecord eval_record(i64 step, std::string split, i64 n,
                                      const std::vector<std::pair<std::string, double>>& metrics, double time,
                                      bool approximate = false);
WAYMARK_API MetricsRecord event_record(i64 step, std::string event);

// The line of a record, without line break.
WAYMARK_API std::string metrics_line(const MetricsRecord& record);

struct MetricsHeader {
  std::string id = {};
  i64 seed = 0;
  std::string start = {};  // UTC, 2025-01-31T12:00:00Z
};

struct MetricsFile {
  MetricsHeader header = {};
  std::vector<MetricsRecord> records = {};
  // The last line has no line break: its writer was killed in the middle. It is in no record.
  bool cut_off = false;
};

// Strict: every line but a cut-off last one must be right, steps never decrease. Error names the file and the line.
WAYMARK_API MetricsFile read_metrics(const std::filesystem::path& path);

// Where a resumed run goes on. Train lines of `step` itself were written before its checkpoint; an evaluation of that
// step may have come after it, and is then made again.
struct MetricsCut {
  i64 step = 0;
  bool evaluated = true;  // the checkpoint was saved after the evaluation of its step, or there was none
};

// Writes the file, line by line, each in one write to the end of the file, so a kill loses at most the line at work.
// Not for several threads.
class WAYMARK_API MetricsLog {
 public:
  // Starts a new file; an old one of that name is replaced.
  static MetricsLog create(const std::filesystem::path& path, const MetricsHeader& header);
  // Takes everything after the cut away, then appends. Error if the file is of another id. If there is no file (it
  // was removed by hand) a new one is begun.
  static MetricsLog resume(const std::filesystem::path& path, const MetricsHeader& header, const MetricsCut& cut);

  MetricsLog(MetricsLog&& other) noexcept;
  MetricsLog& operator=(MetricsLog&& other) noexcept;
  ~MetricsLog();

  // Error if the step is smaller than the last one, a field name is taken or used twice, or the disk is full.
  void write(const MetricsRecord& record);

 private:
  MetricsLog(std::filesystem::path path, i64 last_step);
  void append(std::string_view line);

  std::filesystem::path path_;
  int fd_ = -1;
  i64 last_step_ = 0;
};

// A curve: the values of one field of the records of one kind (and, for evaluations, one split) against the step.
// Non-finite values are left as NaN, so a plot shows the gap.
struct MetricsSeries {
  std::vector<double> step = {}, time = {}, value = {};
};
WAYMARK_API MetricsSeries series(const MetricsFile& file, MetricsKind kind, std::string_view field,
                                 std::string_view split = {});

}  // namespace waymark::train
