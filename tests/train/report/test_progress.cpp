#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "core/io/files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "train/report/escape.h"
#include "train/report/progress.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

StepReport some_step(i64 step = 1200) {
  StepReport r;
  r.step = step;
  r.steps = 2000;
  r.mean_loss = 1.48234;
  r.lr = 6.1e-4;
  r.grad_norm = 0.831;
  r.tokens_per_s = 12412;
  r.gflops = 31.2;
  r.time = 112.4;
  r.seconds_left = 74;
  return r;
}

RunResult some_result() {
  RunResult r;
  r.status = RunStatus::finished;
  r.seconds = 186;
  r.steps = 2000;
  r.tokens = 4096000;
  r.flops_per_step = 5.4e9;
  r.cpu.peak_flops = 1.42e11;
  r.peak_memory = 71 << 20;
  r.selection = "val.accuracy";
  SplitResult split;
  split.metrics = {{"accuracy", metric_value("accuracy", 0.609, 2000)}, {"loss", metric_value("loss", 1.2345, 2000)}};
  r.last = Evaluation{2000, {{"test", split}}};
  r.best = Evaluation{1800, {{"test", split}}};
  r.baselines = {{"majority symbol", "test", "accuracy", 0.106}, {"unigram", "val", "loss", 3.1}};
  r.warnings = {"something was lost"};
  return r;
}

// What a console writes to its two streams.
struct Written {
  std::string progress, results;
};
template <class F> Written written(ConsoleOptions options, F f) {
  const TemporaryFolder folder;
  options.out = ::open((folder / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  options.results = ::open((folder / "results").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  {
    const auto console = make_console(options);
    f(*console);
  }
  ::close(options.out);
  ::close(options.results);
  return {read_file(folder / "out"), read_file(folder / "results")};
}
bool plain(const std::string& text) {
  for (const char c : text)
    if ((c < ' ' && c != '\n') || c == '\x7F') return false;
  return true;
}

}  // namespace

TEST_CASE("lines of progress") {
  CHECK(plain_step_line(some_step()) ==
        "step 1200/2000  loss 1.4823  lr 6.1e-04  |g| 0.83  12.4k tok/s  31 GF/s  1:52<1:14");
  StepReport open_end = some_step();
  open_end.steps = 0;
  open_end.seconds_left = -1;
  open_end.gflops = 0;
  CHECK(plain_step_line(open_end) == "step 1200  loss 1.4823  lr 6.1e-04  |g| 0.83  12.4k tok/s  1:52");
  EvalReport e{.step = 1200, .split = "val", .result = some_result().last->splits[0].second, .improved = true,
               .select_metric = "accuracy", .best = {}, .best_step = 0};
  CHECK(plain_eval_line(e) == "eval 1200  val  accuracy 60.9 ± 1.1 %  loss 1.2345  n 2,000  best so far");
  CHECK(duration_text(59.6) == "1:00");
  CHECK(duration_text(3723) == "1:02:03");
  CHECK(duration_text(-1) == "-:--");
  CHECK(duration_text(std::nan("")) == "-:--");  // R40
  CHECK(short_count(950) == "950");
  CHECK(short_count(999.9) == "1.0k");
  CHECK(short_count(3.1e6) == "3.1M");
  CHECK(progress_mode("json") == ProgressMode::json);
  CHECK(has(error_text([] { (void)progress_mode("loud"); }), "auto, bar, plain, json and none"));
}

TEST_CASE("the block at the end") {
  const std::string block = end_block(some_result(), "runs/a");
  CAPTURE(block);
  CHECK(has(block, "done in 3:06 (2,000 steps, 4,096,000 tokens, 22.0k tok/s, 58 GF/s = 41 % of peak, peak memory 71 MiB)"));
  CHECK(has(block, "n = 2,000"));
  CHECK(has(block, "best  @1800  selected on val.accuracy"));
  CHECK(has(block, "accuracy 60.9 ± 1.1 %"));
  CHECK(has(block, "baselines on test   majority symbol accuracy 10.6 %\n"));
  CHECK(has(block, "warning: something was lost"));
  CHECK(has(block, "runs/a/  result.json"));
}

// R32
TEST_CASE("the line of a terminal fits its width and leaves nothing behind") {
  for (const int width : {20, 80, 200}) {
    const Written w = written({.mode = ProgressMode::bar, .terminal = true, .width = width}, [&](RunSink& sink) {
      sink.on_step(some_step());
      std::this_thread::sleep_for(std::chrono::milliseconds(120));
      sink.on_eval_progress({1200, "test@128", 3, 10});
      std::this_thread::sleep_for(std::chrono::milliseconds(120));
      sink.on_step(some_step(1300));
    });
    CAPTURE(width);
    CAPTURE(w.progress);
    CHECK(w.progress.find('\n') == std::string::npos);
    // Each line: "\r" text "\033[K"; the last one wipes.
    size_t lines = 0;
    for (size_t at = 0; at < w.progress.size();) {
      REQUIRE(w.progress[at] == '\r');
      const size_t end = w.progress.find("\033[K", at);
      REQUIRE(end != std::string::npos);
      CHECK(display_width(w.progress.substr(at + 1, end - at - 1)) < width);
      at = end + 3;
      ++lines;
    }
    CHECK(lines == 4);
    CHECK(w.progress.substr(w.progress.size() - 4) == "\r\033[K");
  }
}

TEST_CASE("at most ten lines a second on a terminal, one otherwise") {
  const Written bar = written({.mode = ProgressMode::bar, .terminal = true, .width = 80}, [](RunSink& sink) {
    for (int i = 0; i < 1000; ++i) sink.on_step(some_step(i));
  });
  size_t lines = 0;
  for (const char c : bar.progress) lines += c == '\r';
  CHECK(lines < 20);
  const MetricsRecord record = event_record(1, "x");
  const Written piped = written({.mode = ProgressMode::automatic, .terminal = false}, [&](RunSink& sink) {
    for (int i = 0; i < 1000; ++i) {
      StepReport r = some_step(i);
      r.record = &record;
      sink.on_step(r);
    }
  });
  CHECK(std::count(piped.progress.begin(), piped.progress.end(), '\n') <= 2);
  CHECK(plain(piped.progress));
}

TEST_CASE("json, none and quiet") {
  const MetricsRecord record = eval_record(5, "val", 10, {{"loss", 1.5}}, 2);
  const auto play = [&](RunSink& sink) {
    sink.on_start({"0123456789ab", "a", "runs/a", 10, 0, 100});
    EvalReport r{.step = 5, .split = "val", .result = {}, .improved = false, .select_metric = "", .best = {}, .best_step = 0};
    r.record = &record;
    sink.on_eval(r);
    sink.on_warning("look out");
    sink.on_end(some_result());
  };
  Written w = written({.mode = ProgressMode::json}, play);
  CHECK(w.progress == metrics_line(record) + "\nwarning: look out\n");
  CHECK(w.results.empty());
  w = written({.mode = ProgressMode::none}, play);
  CHECK(w.progress == "warning: look out\n");
  CHECK(has(w.results, "done in 3:06"));
  w = written({.mode = ProgressMode::bar, .terminal = true, .quiet = true}, play);
  CHECK(w.progress == "warning: look out\n");
  CHECK(w.results.empty());
}

TEST_CASE("the log file keeps plain lines and warnings") {
  const TemporaryFolder folder;
  for (int part = 0; part < 2; ++part) {
    const auto log = make_log_file(folder / "log.txt");
    const MetricsRecord record = event_record(1, "x");
    StepReport r = some_step(part);
    r.record = &record;
    log->on_step(r);
    log->on_warning("look out");
  }
  const std::string text = read_file(folder / "log.txt");
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  CHECK(has(text, "step 1/2000"));
  CHECK(has(text, "warning: look out"));
}
