#include "train/sweep/sweep.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "core/io/files.h"
#include "core/parallel/parallel.h"
#include "nn/spec/suggest.h"
#include "train/report/progress.h"
#include "train/report/result.h"
#include "train/sweep/child.h"
#include "train/trainer/cost.h"
#include "train/trainer/run_folder.h"

namespace waymark::train {
namespace fs = std::filesystem;
namespace {

enum class Action : u8 { skip, start, resume, leave, refuse, elsewhere };

struct Work {
  const SweepCell* cell;
  fs::path folder;
  Action action = Action::start;
  bool again = false;  // --force: what is there goes away
};

// What a folder holds for this id.
Action look(const fs::path& folder, const std::string& id, Rerun rerun, bool* again) {
  *again = false;
  if (!fs::exists(folder)) return Action::start;
  if (is_locked(folder)) return Action::elsewhere;
  std::optional<RunResult> result;
  try {
    if (fs::exists(folder / "result.json")) result = load_result(folder / "result.json");
  } catch (const Error&) {
    result.reset();  // damaged: the run is done again from its checkpoints
  }
  if (result && result->id != id) throw ConfigError(Problems{{"--out", fmt::format("{} holds another run ({}, not {}); move it away, or give another folder",
                                                      nn::printable(folder.string(), 200), result->id, id)}});
  const bool done = result && result->status == RunStatus::finished;
  const bool failed = result && (result->status == RunStatus::failed || result->status == RunStatus::nonfinite);
  if (rerun == Rerun::all || (rerun == Rerun::failed && failed)) {
    *again = true;
    return Action::start;
  }
  if (done) return Action::skip;
  if (failed) return Action::leave;
  if (fs::exists(folder / "checkpoints" / "index.json")) return Action::resume;
  *again = !fs::is_empty(folder);  // nothing saved yet
  return Action::start;
}

std::vector<Work> plan_work(const SweepCells& cells, const SweepOptions& o, SweepPlan& plan) {
  std::vector<Work> out;
  std::map<std::string, int> names;
  for (const SweepCell& cell : cells.cells) ++names[cell.config.name()];
  for (const SweepCell& cell : cells.cells) {
    // A name that was written in the config is that of every cell: then the id tells the folders apart.
    const std::string name = cell.config.name();
    const std::string folder = names[name] > 1 ? name + "-" + cell.config.id() : name;
    Work w{.cell = &cell, .folder = o.out / folder};
    PlannedRun run;
    run.id = cell.config.id();
    run.name = name;
    run.seed = cell.config.integer("seed");
    for (const auto& [key, value] : cell.config.id_lines()) {
      run.config[key] = value;
      const std::string& shown = cell.config.short_form(key);
      if (shown != value) run.config_short[key] = shown;
    }
    if (!cell.refused.empty()) {
      w.action = Action::refuse;
      run.state = "refused";
      run.reason = cell.refused;
    } else {
      run.folder = folder;
      w.action = look(w.folder, run.id, o.rerun, &w.again);
      run.state = w.action == Action::skip ? "finished" : w.action == Action::leave ? "failed"
                  : w.action == Action::elsewhere ? "running" : "planned";
      if (w.action == Action::elsewhere) run.reason = "another process works on it";
      if (w.action == Action::leave) {
        const RunResult r = load_result(w.folder / "result.json");
        run.reason = r.error.empty() ? std::string(name_of(r.status)) : r.error;
      }
    }
    plan.runs.push_back(std::move(run));
    out.push_back(std::move(w));
  }
  return out;
}

// The step of the last line of metrics.jsonl, or nothing.
std::string last_step(const fs::path& metrics) {
  std::ifstream in(metrics, std::ios::binary);
  if (!in) return {};
  in.seekg(0, std::ios::end);
  const auto size = static_cast<i64>(in.tellg());
  in.seekg(std::max<i64>(0, size - 4096));
  std::string tail((std::istreambuf_iterator<char>(in)), {});
  const size_t at = tail.rfind("\"step\":");
  if (at == std::string::npos) return {};
  const size_t end = tail.find_first_not_of("0123456789", at + 7);
  return tail.substr(at + 7, end == std::string::npos ? end : end - at - 7);
}

struct Running {
  size_t index;
  Child child;
  std::chrono::steady_clock::time_point since;
};

}  // namespace

std::string SweepPreview::counts() const {
  i64 refused = 0, done = 0;
  for (const std::string& action : actions) {
    refused += action.starts_with("refused");
    done += action == "finished";
  }
  std::string out = fmt::format("{} run{} planned, {} done, {} to do", plan.runs.size(), plan.runs.size() == 1 ? "" : "s",
                                done, to_do);
  if (refused > 0) out += fmt::format(", {} refused", refused);
  if (flops && to_do > 0) out += fmt::format(", about {}flop of training", flops_text(*flops));
  return out;
}

std::string SweepPreview::to_string() const {
  std::string out = counts() + "\n";
  size_t width = 0;
  for (const PlannedRun& r : plan.runs) width = std::max(width, r.name.size());
  for (size_t i = 0; i < plan.runs.size(); ++i)
    out += fmt::format("  {:<{}}  {}\n", plan.runs[i].name, width, actions[i]);
  return out;
}

SweepPreview preview_sweep(const SweepCells& cells, const SweepOptions& options) {
  SweepPreview p;
  p.flops = 0;
  for (const Work& w : plan_work(cells, options, p.plan)) {
    const PlannedRun& r = p.plan.runs[p.actions.size()];
    // A run that is to be resumed counts whole: how far it is stands in its checkpoint.
    if (w.action == Action::resume || w.action == Action::start) {
      const auto own = training_flops(w.cell->config);
      p.flops = p.flops && own ? std::optional(*p.flops + *own) : std::nullopt;
    }
    switch (w.action) {
      case Action::skip: p.actions.emplace_back("finished"); break;
      case Action::leave: p.actions.push_back("failed before (--rerun failed does it again): " + r.reason); break;
      case Action::refuse: p.actions.push_back("refused: " + r.reason); break;
      case Action::elsewhere: p.actions.push_back("running: " + r.reason); break;
      case Action::resume: p.actions.emplace_back("to resume"); ++p.to_do; break;
      case Action::start: p.actions.emplace_back("to start"); ++p.to_do; break;
    }
  }
  return p;
}

SweepOutcome run_sweep(const SweepCells& cells, const SweepOptions& o) {
  SweepOutcome outcome;
  const auto say = [&](const std::string& text) { if (o.line) o.line(text); };
  for (const char* part : {"logs", "configs"}) {
    std::error_code error;
    fs::create_directories(o.out / part, error);
    if (error) fail("", "cannot make {}: {}", (o.out / part).string(), error.message());
  }
  std::vector<Work> work = plan_work(cells, o, outcome.plan);
  std::vector<PlannedRun>& runs = outcome.plan.runs;
  outcome.planned = static_cast<i64>(runs.size());
  save_plan(o.out, outcome.plan);

  const fs::path program = o.program.empty() ? fs::read_symlink("/proc/self/exe") : o.program;
  const i64 threads = std::max<i64>(1, num_threads() / o.jobs);
  i64 to_do = 0, started = 0;
  for (const Work& w : work) to_do += w.action == Action::start || w.action == Action::resume;

  const auto start = [&](size_t i) {
    const Work& w = work[i];
    const fs::path config = o.out / "configs" / (runs[i].folder + ".toml");
    write_file_atomic(config, w.cell->config.to_toml());
    std::vector<std::string> argv = {program.string(), "train",      config.string(), "--out",
                                     w.folder.string(), "--threads", fmt::to_string(threads), "--progress", "plain"};
    if (w.action == Action::resume) argv.emplace_back("--resume");
    if (w.again) argv.emplace_back("--force");
    ++started;
    say(fmt::format("[{}/{}] {} {}", started, to_do, w.action == Action::resume ? "resume" : "start ", runs[i].name));
    runs[i].state = "running";
    save_plan(o.out, outcome.plan);
    return Running{i, Child(argv, o.out / "logs" / (runs[i].folder + ".log")), std::chrono::steady_clock::now()};
  };
  const auto end = [&](const Running& r, int code) {
    PlannedRun& run = runs[r.index];
    run.state = code == 0 ? "finished" : code == 130 || code == 143 ? "interrupted" : "failed";
    run.reason.clear();
    if (run.state == "failed") {
      run.reason = fmt::format("exit code {}, see logs/{}.log", code, run.folder);
      try {
        const RunResult result = load_result(work[r.index].folder / "result.json");
        if (!result.error.empty()) run.reason = result.error;
      } catch (const Error&) {  // it failed before it had a result: the log says why
      }
    }
    save_plan(o.out, outcome.plan);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - r.since).count();
    say(fmt::format("  {} {} in {}{}", run.state, run.name, duration_text(seconds), run.reason.empty() ? "" : ": " + run.reason));
  };

  std::vector<Running> running;
  // Runs that another process works on: waited for, and done here if it leaves them.
  std::vector<size_t> elsewhere;
  for (size_t i = 0; i < work.size(); ++i)
    if (work[i].action == Action::elsewhere) elsewhere.push_back(i);
  const auto take_over = [&](size_t i) {
    Work& w = work[i];
    w.action = look(w.folder, runs[i].id, Rerun::none, &w.again);
    if (w.action == Action::elsewhere) return false;
    runs[i].reason.clear();
    if (w.action == Action::start || w.action == Action::resume) {
      ++to_do;
      running.push_back(start(i));
      return true;
    }
    runs[i].state = w.action == Action::skip ? "finished" : "failed";
    if (w.action == Action::leave) runs[i].reason = load_result(w.folder / "result.json").error;
    save_plan(o.out, outcome.plan);
    say(fmt::format("  {} {} by another process", runs[i].state, runs[i].name));
    return true;
  };
  size_t next = 0;
  int passed_on = 0;
  bool halt = false;
  for (;;) {
    const int stop = o.stop ? o.stop->load() : 0;
    if (stop && !passed_on) {
      halt = outcome.stopped = true;
      passed_on = stop;
      say(fmt::format("stopping: {} run{} at work save their state", running.size(), running.size() == 1 ? "" : "s"));
      for (const Running& r : running) r.child.signal(stop);
    }
    while (!halt && static_cast<i64>(running.size()) < o.jobs && next < work.size()) {
      const Action a = work[next].action;
      if (a == Action::start || a == Action::resume) running.push_back(start(next));
      ++next;
    }
    for (size_t i = 0; !halt && next == work.size() && static_cast<i64>(running.size()) < o.jobs && i < elsewhere.size();) {
      if (take_over(elsewhere[i])) elsewhere.erase(elsewhere.begin() + static_cast<std::ptrdiff_t>(i));
      else ++i;
    }
    if (running.empty() && (halt || elsewhere.empty())) break;
    for (size_t i = 0; i < running.size();) {
      if (const auto code = running[i].child.poll()) {
        end(running[i], *code);
        if (*code != 0 && o.fail_fast) halt = true;
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    if (o.status && !running.empty()) {
      std::string text = fmt::format("{}/{} done", started - static_cast<i64>(running.size()), to_do);
      for (const Running& r : running) {
        const std::string step = last_step(work[r.index].folder / "metrics.jsonl");
        text += fmt::format("  |  {}{}", runs[r.index].config_short.contains("model.position")
                                             ? runs[r.index].config_short.at("model.position") : runs[r.index].name,
                            step.empty() ? "" : " step " + step);
      }
      o.status(text);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }

  for (size_t i = 0; i < runs.size(); ++i) {
    outcome.finished += runs[i].state == "finished";
    outcome.failed += runs[i].state == "failed";
    outcome.refused += runs[i].state == "refused";
    outcome.interrupted += runs[i].state == "interrupted" || runs[i].state == "planned" || runs[i].state == "running";
    outcome.skipped += work[i].action == Action::skip;
    if (runs[i].state == "planned") runs[i].reason = "not started";
  }
  save_plan(o.out, outcome.plan);
  return outcome;
}

}  // namespace waymark::train
