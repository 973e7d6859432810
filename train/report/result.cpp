#include "train/report/result.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/io/files.h"
#include "core/tensor/error.h"
#include "train/report/escape.h"
#include "train/report/json.h"
#include "train/report/statistics.h"

namespace waymark::train {

namespace {

constexpr std::string_view kResultFormat = "waymark-result-1";
constexpr std::array<std::string_view, 4> kStatus = {"finished", "failed", "interrupted", "nonfinite"};

std::string_view last_part(std::string_view metric) { return metric.substr(metric.find_last_of("./") + 1); }

template <std::size_t N> bool among(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// ---- Writing. Empty texts and unset values are absent.

void set_text(Json& to, std::string_view name, const std::string& value) {
  if (!value.empty()) to.set(name, value);
}
template <class T> void set_maybe(Json& to, std::string_view name, const std::optional<T>& value) {
  if (value) to.set(name, *value);
}
Json sizes_json(const std::map<std::string, i64>& sizes) {
  Json object{Json::Object()};
  for (const auto& [name, size] : sizes) object.set(name, size);
  return object;
}

Json metric_json(const MetricValue& metric) {
  Json object;
  if (std::isfinite(metric.value)) {
    object.set("value", metric.value);
  } else {
    // JSON has none of the three; absent would mean "not computed".
    object.set("nonfinite", std::isnan(metric.value) ? "nan" : metric.value > 0 ? "inf" : "-inf");
  }
  object.set("n", metric.n);
  set_maybe(object, "error", metric.error);
  if (metric.approximate) object.set("approximate", true);
  return object;
}

}  // namespace

Json evaluation_json(const Evaluation& evaluation) {
  Json object;
  object.set("step", evaluation.step);
  for (const auto& [name, split] : evaluation.splits) {
    if (name == "step" || object.find(name)) fail("result", "\"{}\" cannot be the name of a split here", name);
    Json entry{Json::Object()};
    if (split.length > 0) entry.set("length", split.length);
    if (split.untrained) entry.set("untrained", true);
    for (const auto& [metric, value] : split.metrics) {
      if (metric == "length" || metric == "untrained" || entry.find(metric))
        fail("result", "\"{}\" cannot be the name of a metric here", metric);
      entry.set(metric, metric_json(value));
    }
    object.set(name, std::move(entry));
  }
  return object;
}

namespace {

Json data_json(const DataFacts& data) {
  Json object;
  object.set("fingerprints", texts_json(data.fingerprints)).set("sizes", sizes_json(data.sizes));
  set_text(object, "split_file_hash", data.split_file_hash);
  set_maybe(object, "overlap", data.overlap);
  set_text(object, "masking", data.masking);
  return object;
}

// ---- Reading.

MetricValue read_metric(const Json& value, const std::string& origin, const std::string& path) {
  JsonReader r(value, origin, path);
  MetricValue metric;
  if (const auto word = r.maybe_text("nonfinite")) {
    if (r.get("value")) r.refuse("nonfinite", "stands beside a value");
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (*word == "nan") {
      metric.value = std::numeric_limits<double>::quiet_NaN();
    } else if (*word == "inf" || *word == "-inf") {
      metric.value = *word == "inf" ? kInf : -kInf;
    } else {
      r.refuse("nonfinite", "must be nan, inf or -inf");
    }
  } else {
    metric.value = r.number("value");
  }
  metric.n = r.integer("n");
  metric.error = r.maybe_number("error");
  metric.approximate = r.maybe_flag("approximate").value_or(false);
  r.finish();
  return metric;
}

SplitResult read_split(const Json& value, const std::string& origin, const std::string& path) {
  JsonReader r(value, origin, path);
  SplitResult split;
  split.length = r.maybe_integer("length").value_or(0);
  split.untrained = r.maybe_flag("untrained").value_or(false);
  for (const auto& [name, metric] : value.as_object())
    if (name != "length" && name != "untrained")
      split.metrics.emplace_back(name, read_metric(metric, origin, r.path_of(name)));
  return split;
}

std::optional<Evaluation> read_evaluation(JsonReader& result, std::string_view name) {
  const Json* value = result.get(name);
  if (!value) return std::nullopt;
  JsonReader r(*value, result.origin(), std::string(name));
  Evaluation evaluation;
  evaluation.step = r.integer("step");
  for (const auto& [split, entry] : value->as_object())
    if (split != "step") evaluation.splits.emplace_back(split, read_split(entry, r.origin(), r.path_of(split)));
  return evaluation;
}

DataFacts read_data(const Json& value, const std::string& origin) {
  JsonReader r(value, origin, "data");
  DataFacts data;
  data.fingerprints = r.texts("fingerprints");
  for (const auto& [split, size] : r.object("sizes")) {
    if (!size.is_int()) r.refuse("sizes", fmt::format("{} is {}, not an integer", shorten(split, 60), size.kind()));
    data.sizes[split] = size.as_int();
  }
  data.split_file_hash = r.maybe_text("split_file_hash").value_or("");
  data.overlap = r.maybe_integer("overlap");
  data.masking = r.maybe_text("masking").value_or("");
  r.finish();
  return data;
}

CpuFacts read_cpu(const Json& value, const std::string& origin) {
  JsonReader r(value, origin, "cpu");
  CpuFacts cpu;
  cpu.model = r.maybe_text("model").value_or("");
  cpu.cores = r.maybe_integer("cores").value_or(0);
  cpu.peak_flops = r.maybe_number("peak_flops").value_or(0);
  cpu.blas_core = r.maybe_text("blas_core").value_or("");
  r.finish();
  return cpu;
}

Baseline read_baseline(const Json& value, const std::string& origin) {
  JsonReader r(value, origin, "baselines");
  Baseline baseline{r.text("name"), r.text("split"), r.text("metric"), r.number("value")};
  r.finish();
  return baseline;
}

}  // namespace

std::string_view name_of(RunStatus status) { return kStatus[static_cast<std::size_t>(status)]; }

bool lower_is_better(std::string_view metric) {
  constexpr std::array<std::string_view, 16> kNames = {
      "loss", "nats",   "nll", "bits", "bpb", "bpc",  "perplexity", "ppl",
      "mse",  "mae", "rmse", "error", "error_rate", "cross_entropy", "seconds", "time"};
  const std::string_view name = last_part(metric);
  return among(name, kNames) || name.substr(0, 9) == "bits_per_";
}

bool is_share(std::string_view metric) {
  constexpr std::array<std::string_view, 8> kNames = {"accuracy", "f1",        "macro_f1", "micro_f1",
                                                      "em",       "precision", "recall",   "error_rate"};
  const std::string_view name = last_part(metric);
  return among(name, kNames) || (name.size() > 9 && name.substr(name.size() - 9) == "_accuracy");
}

MetricValue metric_value(std::string_view metric, double value, i64 n) {
  MetricValue result;
  result.value = value;
  result.n = n;
  if (is_share(metric) && n >= 1 && value >= 0 && value <= 1) result.error = proportion_error(value, n);
  return result;
}

const MetricValue* SplitResult::find(std::string_view metric) const {
  for (const auto& [name, value] : metrics)
    if (name == metric) return &value;
  return nullptr;
}

const SplitResult* Evaluation::find(std::string_view split) const {
  for (const auto& [name, value] : splits)
    if (name == split) return &value;
  return nullptr;
}

std::optional<std::string> RunResult::shown(std::string_view key) const {
  const std::string wanted(key);
  if (const auto found = config_short.find(wanted); found != config_short.end()) return found->second;
  if (const auto found = config.find(wanted); found != config.end()) return found->second;
  return std::nullopt;
}

std::optional<double> RunResult::tokens_per_second() const {
  if (!seconds || !(*seconds > 0)) return std::nullopt;
  return static_cast<double>(tokens) / *seconds;
}

std::string result_to_json(const RunResult& r) {
  Json out;
  out.set("format", kResultFormat).set("id", r.id).set("name", r.name).set("status", name_of(r.status));
  set_text(out, "error", r.error);
  out.set("seed", r.seed).set("config", texts_json(r.config));
  if (!r.config_short.empty()) out.set("config_short", texts_json(r.config_short));
  out.set("data", data_json(r.data));
  if (r.trained_length > 0) out.set("trained_length", r.trained_length);
  out.set("steps", r.steps).set("tokens", r.tokens);
  set_text(out, "stopped_by", r.stopped_by);
  set_maybe(out, "parameters", r.parameters);
  set_maybe(out, "flops_per_step", r.flops_per_step);
  set_maybe(out, "seconds", r.seconds);
  set_maybe(out, "cpu_seconds", r.cpu_seconds);
  set_maybe(out, "peak_memory", r.peak_memory);
  set_maybe(out, "denormal_guard", r.denormal_guard);
  Json cpu{Json::Object()};
  set_text(cpu, "model", r.cpu.model);
  if (r.cpu.cores > 0) cpu.set("cores", r.cpu.cores);
  if (r.cpu.peak_flops > 0) cpu.set("peak_flops", r.cpu.peak_flops);
  set_text(cpu, "blas_core", r.cpu.blas_core);
  out.set("cpu", std::move(cpu)).set("version", r.version);
  set_text(out, "main_metric", r.main_metric);
  Json::Array baselines;
  for (const Baseline& b : r.baselines) {
    Json entry;
    entry.set("name", b.name).set("split", b.split).set("metric", b.metric).set("value", b.value);
    baselines.push_back(std::move(entry));
  }
  if (!baselines.empty()) out.set("baselines", std::move(baselines));
  set_text(out, "selection", r.selection);
  if (r.last) out.set("last", evaluation_json(*r.last));
  if (r.best) out.set("best", evaluation_json(*r.best));
  out.set("warnings", Json::Array(r.warnings.begin(), r.warnings.end()));
  out.set("nonfinite_skipped", r.nonfinite_skipped).set("resumes", r.resumes);
  set_text(out, "continued_from", r.continued_from);
  return write_json(out, 2) + "\n";
}

RunResult result_from_json(std::string_view text, std::string_view origin) {
  const Json value = parse_json(text, origin);
  JsonReader r(value, std::string(origin));
  r.check_format(kResultFormat);
  RunResult result;
  result.id = r.text("id");
  result.name = r.text("name");
  const std::string status = r.text("status");
  const auto found = std::find(kStatus.begin(), kStatus.end(), status);
  if (found == kStatus.end())
    r.refuse("status", "must be finished, failed, interrupted or nonfinite, is " + json_string(shorten(status, 60)));
  result.status = static_cast<RunStatus>(found - kStatus.begin());
  result.error = r.maybe_text("error").value_or("");
  result.seed = r.integer("seed");
  r.need("config");
  result.config = r.texts("config");
  result.config_short = r.texts("config_short");
  result.data = read_data(r.need("data"), r.origin());
  result.trained_length = r.maybe_integer("trained_length").value_or(0);
  result.steps = r.integer("steps");
  result.tokens = r.integer("tokens");
  result.stopped_by = r.maybe_text("stopped_by").value_or("");
  result.parameters = r.maybe_integer("parameters");
  result.flops_per_step = r.maybe_number("flops_per_step");
  result.seconds = r.maybe_number("seconds");
  result.cpu_seconds = r.maybe_number("cpu_seconds");
  result.peak_memory = r.maybe_integer("peak_memory");
  result.denormal_guard = r.maybe_flag("denormal_guard");
  result.cpu = read_cpu(r.need("cpu"), r.origin());
  result.version = r.text("version");
  result.main_metric = r.maybe_text("main_metric").value_or("");
  for (const Json& entry : r.array("baselines")) result.baselines.push_back(read_baseline(entry, r.origin()));
  result.selection = r.maybe_text("selection").value_or("");
  result.last = read_evaluation(r, "last");
  result.best = read_evaluation(r, "best");
  for (const Json& warning : r.array("warnings")) {
    if (!warning.is_string()) r.refuse("warnings", "must be a list of texts");
    result.warnings.push_back(warning.as_string());
  }
  result.nonfinite_skipped = r.maybe_integer("nonfinite_skipped").value_or(0);
  result.resumes = r.maybe_integer("resumes").value_or(0);
  result.continued_from = r.maybe_text("continued_from").value_or("");
  r.finish();
  return result;
}

void save_result(const std::filesystem::path& folder, const RunResult& result) {
  write_file_atomic(folder / "result.json", result_to_json(result));
}

RunResult load_result(const std::filesystem::path& file) {
  return result_from_json(read_file(file, i64{1} << 26), file.string());
}

}  // namespace waymark::train
