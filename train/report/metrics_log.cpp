#include "train/report/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "core/io/files.h"
#include "core/tensor/error.h"
#include "train/report/escape.h"
#include "train/report/json.h"

namespace waymark::train {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMetricsFormat = "waymark-metrics-1";
constexpr std::array<std::string_view, 3> kKinds = {"train", "eval", "event"};
constexpr std::array<std::string_view, 3> kReserved = {"kind", "step", "nonfinite"};

void check_record(const MetricsRecord& record) {
  if (record.step < 0) fail("metrics", "step must not be negative, got {}", record.step);
  for (std::size_t i = 0; i < record.fields.size(); ++i) {
    const std::string& name = record.fields[i].first;
    if (name.empty()) fail("metrics", "a field of a {} record has no name", name_of(record.kind));
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end())
      fail("metrics", "\"{}\" cannot be a field: every record has it anyway", name);
    for (std::size_t j = 0; j < i; ++j)
      if (record.fields[j].first == name)
        fail("metrics", "field \"{}\" stands twice in one record", shorten(name, 60));
  }
}

std::string header_line(const MetricsHeader& header) {
  Json line;
  line.set("format", kMetricsFormat).set("id", header.id).set("seed", header.seed).set("start", header.start);
  return write_json(line);
}

MetricsHeader read_header(std::string_view line, const std::string& origin) {
  const Json value = parse_json(line, origin);
  JsonReader r(value, origin);
  r.check_format(kMetricsFormat);
  MetricsHeader header{r.text("id"), r.integer("seed"), r.text("start")};
  r.finish();
  return header;
}

MetricsRecord read_record(std::string_view line, const std::string& origin) {
  const Json value = parse_json(line, origin);
  JsonReader r(value, origin);
  MetricsRecord record;
  const std::string kind = r.text("kind");
  const auto found = std::find(kKinds.begin(), kKinds.end(), kind);
  if (found == kKinds.end()) r.refuse("kind", "must be train, eval or event, is " + json_string(shorten(kind, 60)));
  record.kind = static_cast<MetricsKind>(found - kKinds.begin());
  record.step = r.integer("step");
  if (record.step < 0) r.refuse("step", "must not be negative");

  std::vector<std::string> nonfinite;
  for (const Json& name : r.array("nonfinite")) {
    if (!name.is_string()) r.refuse("nonfinite", "must be a list of names");
    nonfinite.push_back(name.as_string());
  }
  for (const auto& [name, field] : value.as_object()) {
    if (std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end()) continue;
    if (field.is_null()) {
      const auto named = std::find(nonfinite.begin(), nonfinite.end(), name);
      if (named == nonfinite.end()) r.refuse(name, "is null but not listed in \"nonfinite\"");
      nonfinite.erase(named);
      record.set(name, std::numeric_limits<double>::quiet_NaN());
    } else if (field.is_bool()) {
      record.set(name, field.as_bool());
    } else if (field.is_int()) {
      record.set(name, field.as_int());
    } else if (field.is_number()) {
      record.set(name, field.as_double());
    } else if (field.is_string()) {
      record.set(name, field.as_string());
    } else {
      r.refuse(name, fmt::format("cannot be {}", field.kind()));
    }
  }
  if (!nonfinite.empty())
    r.refuse("nonfinite", fmt::format("names {}, which is not null", json_string(shorten(nonfinite[0], 60))));
  return record;
}

bool behind_cut(const MetricsRecord& record, const MetricsCut& cut) {
  if (record.step != cut.step) return record.step > cut.step;
  return record.kind == MetricsKind::eval && !cut.evaluated;
}

}  // namespace

std::string_view name_of(MetricsKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

const MetricsValue* MetricsRecord::find(std::string_view name) const {
  for (const auto& [key, value] : fields)
    if (key == name) return &value;
  return nullptr;
}

std::optional<double> MetricsRecord::number(std::string_view name) const {
  const MetricsValue* value = find(name);
  if (!value) return std::nullopt;
  if (const i64* whole = std::get_if<i64>(value)) return static_cast<double>(*whole);
  if (const double* real = std::get_if<double>(value)) return *real;
  return std::nullopt;
}

std::optional<std::string> MetricsRecord::text(std::string_view name) const {
  const MetricsValue* value = find(name);
  const std::string* word = value ? std::get_if<std::string>(value) : nullptr;
  return word ? std::optional(*word) : std::nullopt;
}

MetricsRecord train_record(const TrainMetrics& m) {
  MetricsRecord record{MetricsKind::train, m.step, {}};
  record.set("epoch", m.epoch).set("loss", m.loss).set("lr", m.lr).set("grad_norm", m.grad_norm);
  record.set("tokens", m.tokens).set("time", m.time).set("tokens_per_s", m.tokens_per_s).set("gflops", m.gflops);
  return record;
}

MetricsRecord eval_record(i64 step, std::string split, i64 n,
                          const std::vector<std::pair<std::string, double>>& metrics, double time, bool approximate) {
  MetricsRecord record{MetricsKind::eval, step, {}};
  record.set("split", std::move(split)).set("n", n);
  for (const auto& [name, value] : metrics) record.set(name, value);
  record.set("time", time);
  if (approximate) record.set("approximate", true);
  return record;
}

MetricsRecord event_record(i64 step, std::string event) {
  MetricsRecord record{MetricsKind::event, step, {}};
  record.set("event", std::move(event));
  return record;
}

std::string metrics_line(const MetricsRecord& record) {
  check_record(record);
  Json line;
  line.set("kind", name_of(record.kind)).set("step", record.step);
  Json::Array nonfinite;
  for (const auto& [name, value] : record.fields) {
    if (const double* real = std::get_if<double>(&value); real && !std::isfinite(*real)) {
      line.set(name, nullptr);
      nonfinite.push_back(name);
    } else {
      std::visit([&line, &key = name](const auto& v) { line.set(key, v); }, value);
    }
  }
  if (!nonfinite.empty()) line.set("nonfinite", std::move(nonfinite));
  return write_json(line);
}

MetricsFile read_metrics(const fs::path& path) {
  const std::string text = read_file(path);
  MetricsFile file;
  i64 number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) {
      file.cut_off = true;
      break;
    }
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const std::string origin = fmt::format("{}:{}", path.string(), ++number);
    if (number == 1) {
      file.header = read_header(line, origin);
      continue;
    }
    file.records.push_back(read_record(line, origin));
    if (file.records.size() > 1 && file.records.back().step < file.records[file.records.size() - 2].step)
      fail("", "{}: step {} after step {}", origin, file.records.back().step,
           file.records[file.records.size() - 2].step);
  }
  if (number == 0) fail("", "{}: no header line; a run writes {} there", path.string(), kMetricsFormat);
  return file;
}

MetricsLog::MetricsLog(fs::path path, i64 last_step) : path_(std::move(path)), last_step_(last_step) {
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd_ < 0) fail("", "cannot write {}: {}", path_.string(), std::generic_category().message(errno));
}

MetricsLog::MetricsLog(MetricsLog&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), last_step_(other.last_step_) {}

MetricsLog& MetricsLog::operator=(MetricsLog&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(last_step_, other.last_step_);
  return *this;
}

MetricsLog::~MetricsLog() {
  if (fd_ >= 0) ::close(fd_);
}

MetricsLog MetricsLog::create(const fs::path& path, const MetricsHeader& header) {
  write_file_atomic(path, header_line(header) + "\n");
  return MetricsLog(path, 0);
}

MetricsLog MetricsLog::resume(const fs::path& path, const MetricsHeader& header, const MetricsCut& cut) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return create(path, header);
  const MetricsFile file = read_metrics(path);
  if (file.header.id != header.id)
    fail("", "{}: belongs to run {}, not to {}", path.string(), shorten(file.header.id, 60), shorten(header.id, 60));
  std::string kept = header_line(file.header) + "\n";
  i64 last_step = 0;
  for (const MetricsRecord& record : file.records) {
    if (behind_cut(record, cut)) continue;
    kept += metrics_line(record) + "\n";
    last_step = record.step;
  }
  write_file_atomic(path, kept);
  return MetricsLog(path, last_step);
}

void MetricsLog::write(const MetricsRecord& record) {
  if (record.step < last_step_) fail("metrics", "step {} after step {}", record.step, last_step_);
  append(metrics_line(record) + "\n");
  last_step_ = record.step;
}

void MetricsLog::append(std::string_view line) {
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  while (!line.empty()) {
    const ssize_t n = ::write(fd_, line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int code = errno;
      // Half a line would spoil the next one.
      if (before < 0 || ::ftruncate(fd_, before) != 0) ::close(std::exchange(fd_, -1));
      fail("", "cannot write {}: {}", path_.string(), std::generic_category().message(code));
    }
    line.remove_prefix(static_cast<std::size_t>(n));
  }
}

MetricsSeries series(const MetricsFile& file, MetricsKind kind, std::string_view field, std::string_view split) {
  MetricsSeries curve;
  for (const MetricsRecord& record : file.records) {
    if (record.kind != kind) continue;
    if (!split.empty() && record.text("split") != split) continue;
    const std::optional<double> value = record.number(field);
    if (!value) continue;
    curve.step.push_back(static_cast<double>(record.step));
    curve.time.push_back(record.number("time").value_or(std::numeric_limits<double>::quiet_NaN()));
    curve.value.push_back(*value);
  }
  return curve;
}

}  // namespace waymark::train
