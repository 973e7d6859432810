// The lines of progress, as text.
#include <fmt/format.h>

#include <cmath>

#include "core/tensor/error.h"
#include "nn/module/summary.h"
#include "nn/spec/suggest.h"
#include "train/report/progress.h"

namespace waymark::train {

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "-:--";
  const i64 s = static_cast<i64>(std::llround(seconds));
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60) : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string short_count(double n) {
  if (!(std::fabs(n) < 1e18)) return "-";
  if (n < 999.5) return fmt::format("{:.0f}", n);
  if (n < 999.5e3) return fmt::format("{:.{}f}k", n / 1e3, n < 99.95e3 ? 1 : 0);
  return fmt::format("{:.{}f}M", n / 1e6, n < 99.95e6 ? 1 : 0);
}

ProgressMode progress_mode(std::string_view word) {
  constexpr std::string_view kWords[] = {"auto", "bar", "plain", "json", "none"};
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (word == kWords[i]) return static_cast<ProgressMode>(i);
  fail("progress", "{} is no way to show progress; there are auto, bar, plain, json and none", nn::printable(word));
}

std::string plain_step_line(const StepReport& r) {
  std::string line = fmt::format("step {}", r.step);
  if (r.steps > 0) line += fmt::format("/{}", r.steps);
  line += fmt::format("  loss {:.4f}  lr {:.1e}  |g| {:.2f}  {} tok/s", r.mean_loss, r.lr, r.grad_norm,
                      short_count(r.tokens_per_s));
  if (r.gflops > 0) line += fmt::format("  {:.{}f} GF/s", r.gflops, r.gflops < 9.95 ? 1 : 0);
  line += "  " + duration_text(r.time);
  if (r.seconds_left >= 0) line += "<" + duration_text(r.seconds_left);
  return line;
}

namespace {

// Shares in per cent, with the sampling error where it is known.
std::string metric_text(const std::string& name, const MetricValue& value, bool with_error) {
  const bool share = is_share(name);
  const double factor = share ? 100 : 1;
  std::string text = fmt::format("{}{:.{}f}", value.approximate ? "~" : "", factor * value.value, share ? 1 : 4);
  if (with_error && value.error) text += fmt::format(" ± {:.1f}", factor * *value.error);
  return share ? text + " %" : text;
}

}  // namespace

std::string plain_eval_line(const EvalReport& r) {
  std::string line = fmt::format("eval {}  {}", r.step, r.split);
  for (const auto& [name, value] : r.result.metrics) line += fmt::format("  {} {}", name, metric_text(name, value, true));
  if (!r.result.metrics.empty()) line += "  n " + nn::with_commas(r.result.metrics[0].second.n);
  if (r.improved) line += "  best so far";
  if (r.result.untrained) line += "  (rows of the table beyond the trained length are untrained)";
  return line;
}

std::string end_block(const RunResult& r, const std::string& folder) {
  std::string out = r.status == RunStatus::finished ? "done" : std::string(name_of(r.status));
  out += fmt::format(" in {} ({} steps, {} tokens", duration_text(r.seconds.value_or(-1)), nn::with_commas(r.steps),
                     nn::with_commas(r.tokens));
  if (const auto speed = r.tokens_per_second()) out += fmt::format(", {} tok/s", short_count(*speed));
  if (r.flops_per_step && r.seconds && *r.seconds > 0) {
    const double speed = *r.flops_per_step * static_cast<double>(r.steps) / *r.seconds;
    out += fmt::format(", {:.{}f} GF/s", speed / 1e9, speed < 9.95e9 ? 1 : 0);
    if (r.cpu.peak_flops > 0) out += fmt::format(" = {:.0f} % of peak", 100 * speed / r.cpu.peak_flops);
  }
  if (r.peak_memory) {
    const double mib = static_cast<double>(*r.peak_memory) / 1048576;
    out += fmt::format(", peak memory {:.{}f} MiB", mib, mib < 9.95 ? 1 : 0);
  }
  out += ")\n";
  for (const auto& [label, evaluation] : {std::pair("last", &r.last), std::pair("best", &r.best)}) {
    if (!*evaluation) continue;
    out += fmt::format("{}  @{}", label, (*evaluation)->step);
    if (std::string_view(label) == "best") out += fmt::format("  selected on {}", r.selection);
    out += '\n';
    for (const auto& [split, result] : (*evaluation)->splits) {
      out += fmt::format("  {:<12}", split);
      for (const auto& [name, value] : result.metrics) out += fmt::format("  {} {:<14}", name, metric_text(name, value, true));
      if (!result.metrics.empty()) out += "  n = " + nn::with_commas(result.metrics[0].second.n);
      if (result.untrained) out += "  untrained rows";
      out += '\n';
    }
  }
  std::string baselines;
  for (const Baseline& b : r.baselines) {
    if (b.split != "test") continue;
    MetricValue value;
    value.value = b.value;
    baselines += fmt::format("   {} {} {}", b.name, b.metric, metric_text(b.metric, value, false));
  }
  if (!baselines.empty()) out += "baselines on test" + baselines + "\n";
  for (const std::string& warning : r.warnings) out += "warning: " + warning + "\n";
  if (!folder.empty()) out += folder + "/  result.json\n";
  return out;
}

}  // namespace waymark::train
