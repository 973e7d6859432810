#include "train/report/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "core/tensor/error.h"
#include "nn/module/summary.h"
#include "train/report/escape.h"

namespace waymark::train {

namespace {

using Clock = std::chrono::steady_clock;  // a jump of the wall clock moves nothing

// As much as goes; progress that cannot be shown is no error of the run. False if something is missing, unless nobody
// reads any more.
bool put(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 && errno == EPIPE;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    const std::string_view text(value);
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos || text.find("UTF8") != text.npos;
  }
  return false;
}

class Console final : public RunSink {
 public:
  explicit Console(const ConsoleOptions& options) : o_(options) {
    const bool terminal = o_.terminal.value_or(::isatty(o_.out) == 1);
    if (o_.mode == ProgressMode::automatic) o_.mode = terminal ? ProgressMode::bar : ProgressMode::plain;
    if (o_.mode == ProgressMode::bar && !terminal) o_.mode = ProgressMode::plain;  // no control characters in a file
    if (o_.quiet) o_.mode = ProgressMode::none;
    full_ = utf8_locale() ? "█" : "#";
  }
  ~Console() override { clear(); }

  void on_start(const RunStart& start) override {
    folder_ = start.folder;
    if (o_.mode != ProgressMode::bar && o_.mode != ProgressMode::plain) return;
    std::string text = fmt::format("run {}", start.id);
    if (!start.folder.empty()) text += "  ->  " + start.folder;
    text += fmt::format("  ({} parameters)", nn::with_commas(start.parameters));
    if (start.first_step > 0) text += fmt::format("  resumed at step {}", start.first_step);
    line(text);
    if (!start.attention.empty()) line(start.attention.substr(0, start.attention.size() - 1));
  }

  void on_step(const StepReport& r) override {
    if (o_.mode == ProgressMode::json && r.record) put(o_.out, metrics_line(*r.record) + "\n");
    if (o_.mode == ProgressMode::plain && r.record && due(1.0)) line(plain_step_line(r));
    if (o_.mode == ProgressMode::bar && due(0.1)) bar(r);
  }
  void on_eval_progress(const EvalProgress& p) override {
    if (o_.mode != ProgressMode::bar || p.total <= 0 || !due(0.1)) return;
    show(fmt::format("eval {} @{} ", p.split, p.step), static_cast<double>(p.done) / static_cast<double>(p.total),
         {fmt::format(" {}/{}", p.done, p.total)});
  }
  void on_eval(const EvalReport& r) override {
    if (o_.mode == ProgressMode::json && r.record) put(o_.out, metrics_line(*r.record) + "\n");
    if (o_.mode == ProgressMode::plain) line(plain_eval_line(r));
    if (!r.select_metric.empty() && r.split == "val") {
      const double factor = is_share(r.select_metric) ? 100 : 1;
      const MetricValue* now = r.result.find(r.select_metric);
      if (!now) return;
      const int decimals = is_share(r.select_metric) ? 1 : 4;
      validation_ = fmt::format("  val {:.{}f}", factor * now->value, decimals);
      if (r.best) validation_ += fmt::format(" (best {:.{}f} @{})", factor * *r.best, decimals, r.best_step);
    }
  }
  void on_event(const MetricsRecord& record) override {
    if (o_.mode == ProgressMode::json) put(o_.out, metrics_line(record) + "\n");
  }
  void on_warning(std::string_view text) override { line(fmt::format("warning: {}", text)); }
  void on_end(const RunResult& result) override {
    clear();
    if (o_.quiet || o_.mode == ProgressMode::json) return;
    if (!put(o_.results, end_block(result, folder_)) && o_.results_failed) *o_.results_failed = true;
  }

 private:
  // A line that stays; on a terminal in place of the one that is rewritten.
  void line(const std::string& text) {
    clear();
    put(o_.out, text + "\n");
  }
  bool due(double seconds) {
    const auto now = Clock::now();
    if (shown_once_ && std::chrono::duration<double>(now - last_).count() < seconds) return false;
    shown_once_ = true;
    last_ = now;
    return true;
  }
  void clear() {
    if (!dirty_) return;
    put(o_.out, "\r\033[K");
    dirty_ = false;
  }
  int width() const {
    if (o_.width) return *o_.width;
    winsize size{};
    return ::ioctl(o_.out, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  }

  void bar(const StepReport& r) {
    std::vector<std::string> parts = {fmt::format(" loss {:.4f}", r.mean_loss), fmt::format("  lr {:.1e}", r.lr),
                                      fmt::format("  |g| {:.2f}", r.grad_norm),
                                      fmt::format("  {} tok/s", short_count(r.tokens_per_s))};
    if (r.gflops > 0) parts.push_back(fmt::format("  {:.0f} GF/s", r.gflops));
    parts.push_back("  " + duration_text(r.time) + (r.seconds_left >= 0 ? "<" + duration_text(r.seconds_left) : ""));
    if (!validation_.empty()) parts.push_back(validation_);
    const std::string head = r.steps > 0 ? fmt::format("step {}/{} ", r.step, r.steps) : fmt::format("step {} ", r.step);
    show(head, r.steps > 0 ? static_cast<double>(r.step) / static_cast<double>(r.steps) : -1, parts);
  }
  // The line, fitted to the width: parts fall away from the right, then the bar, then the head is cut. One column stays
  // free, so that no terminal wraps. share < 0: no bar.
  void show(const std::string& head, double share, const std::vector<std::string>& parts) {
    const i64 room = std::max(1, width() - 1);
    constexpr i64 kBar = 16;  // with its ends
    i64 used = display_width(head);
    if (used > room) return write_line(head.substr(0, static_cast<size_t>(room)));
    std::string text = head;
    if (share >= 0 && used + kBar <= room) {
      const i64 cells = kBar - 2, done = std::min(cells, static_cast<i64>(share * static_cast<double>(cells)));
      text += "|";
      for (i64 i = 0; i < cells; ++i) text += i < done ? full_ : "-";
      text += "|";
      used += kBar;
    }
    for (const std::string& part : parts) {
      used += display_width(part);
      if (used > room) break;
      text += part;
    }
    write_line(text);
  }
  void write_line(const std::string& text) {
    put(o_.out, "\r" + text + "\033[K");
    dirty_ = true;
  }

  ConsoleOptions o_;
  std::string folder_, validation_, full_;
  bool dirty_ = false, shown_once_ = false;
  Clock::time_point last_{};
};

class LogFile final : public RunSink {
 public:
  explicit LogFile(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_ < 0) fail("", "cannot write {}: {}", path.string(), std::generic_category().message(errno));
  }
  ~LogFile() override { ::close(fd_); }
  void on_start(const RunStart& s) override {
    put(fd_, fmt::format("run {}{}\n", s.id, s.first_step > 0 ? fmt::format(" resumed at step {}", s.first_step) : "") + s.attention);
  }
  void on_step(const StepReport& r) override {
    if (r.record) put(fd_, plain_step_line(r) + "\n");
  }
  void on_eval(const EvalReport& r) override { put(fd_, plain_eval_line(r) + "\n"); }
  void on_warning(std::string_view text) override { put(fd_, fmt::format("warning: {}\n", text)); }
  void on_end(const RunResult& r) override {
    put(fd_, std::string(name_of(r.status)) + (r.error.empty() ? "" : ": " + r.error) + "\n");
  }

 private:
  int fd_;
};

}  // namespace

std::unique_ptr<RunSink> make_console(const ConsoleOptions& options) { return std::make_unique<Console>(options); }
std::unique_ptr<RunSink> make_log_file(const std::filesystem::path& path) { return std::make_unique<LogFile>(path); }

}  // namespace waymark::train
