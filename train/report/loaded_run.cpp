#include "train/report/loaded_run.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/io/files.h"
#include "core/tensor/error.h"
#include "train/report/escape.h"
#include "train/report/sweep_plan.h"

namespace waymark::train {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 7> kStates = {"finished", "failed",  "interrupted", "nonfinite",
                                                     "running",  "missing", "refused"};

RunState state_of(RunStatus status) { return static_cast<RunState>(static_cast<int>(status)); }
static_assert(static_cast<int>(RunStatus::nonfinite) == static_cast<int>(RunState::nonfinite));
static_assert(static_cast<int>(RunStatus::interrupted) == static_cast<int>(RunState::interrupted));

struct Found {
  std::vector<fs::path> results, plans, locks, configs;  // locks, configs: the folders they stand in
};

void collect(const fs::path& folder, Found& found) {
  std::error_code error;
  std::vector<fs::path> files;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
  if (error) fail("", "cannot read the folder {}: {}", folder.string(), error.message());
  for (; it != end; it.increment(error)) {
    if (error) fail("", "cannot read the folder {}: {}", folder.string(), error.message());
    const std::string name = it->path().filename().string();
    if (name.rfind(kTemporaryPrefix, 0) == 0 || name == "checkpoints") {
      it.disable_recursion_pending();
    } else {
      files.push_back(it->path());
    }
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (name == "result.json") found.results.push_back(file);
    if (name == "sweep.json") found.plans.push_back(file);
    if (name == "run.lock") found.locks.push_back(file.parent_path());
    if (name == "config.toml") found.configs.push_back(file.parent_path());
  }
}

LoadedRun from_plan(const PlannedRun& planned, const fs::path& sweep_folder, const std::set<fs::path>& locked) {
  LoadedRun run;
  if (!planned.folder.empty()) run.folder = (sweep_folder / planned.folder).lexically_normal();
  run.reason = planned.reason;
  run.result.id = planned.id;
  run.result.name = planned.name;
  run.result.seed = planned.seed;
  run.result.config = planned.config;
  run.result.config_short = planned.config_short;
  // A run without a result is what is seen now; the plan's word may be old.
  run.state = RunState::missing;
  if (planned.state == "refused") run.state = RunState::refused;
  if (planned.state == "failed") run.state = RunState::failed;
  if (planned.state == "interrupted") run.state = RunState::interrupted;
  if (run.state != RunState::refused && locked.count(run.folder)) run.state = RunState::running;
  return run;
}

}  // namespace

std::string_view name_of(RunState state) { return kStates[static_cast<std::size_t>(state)]; }

RunSet load_runs(const std::vector<fs::path>& folders) {
  Found found;
  for (const fs::path& folder : folders) {
    std::error_code error;
    if (!fs::is_directory(folder, error))
      fail("", "{}: no such folder; give folders of runs or of a sweep", clean_line(folder.string()));
    collect(folder.lexically_normal(), found);
  }
  RunSet set;
  std::map<std::string, std::size_t> by_id;
  const std::set<fs::path> locked(found.locks.begin(), found.locks.end());
  std::set<fs::path> known;
  const auto add = [&](LoadedRun run) {
    if (!run.folder.empty()) known.insert(run.folder);
    const auto [place, fresh] = by_id.emplace(run.result.id, set.runs.size());
    if (fresh) {
      set.runs.push_back(std::move(run));
      return;
    }
    LoadedRun& old = set.runs[place->second];
    if (run.state == RunState::finished && old.state == RunState::finished && run.folder != old.folder &&
        result_to_json(run.result) != result_to_json(old.result))
      set.warnings.push_back(fmt::format("run {} finished twice with different results: {} is used, {} is not",
                                         shorten(run.result.id, 40), old.folder.string(), run.folder.string()));
    const bool better = run.state == RunState::finished ? old.state != RunState::finished
                                                        : run.state < old.state && old.state != RunState::finished;
    if (better) old = std::move(run);
  };
  for (const fs::path& file : found.plans) {
    try {
      for (const PlannedRun& planned : load_plan(file).runs) add(from_plan(planned, file.parent_path(), locked));
    } catch (const Error& e) {
      set.warnings.emplace_back(e.what());
    }
  }
  for (const fs::path& file : found.results) {
    try {
      LoadedRun run;
      run.result = load_result(file);
      run.state = state_of(run.result.status);
      run.reason = run.result.error;
      run.folder = file.parent_path();
      add(std::move(run));
    } catch (const Error& e) {
      set.warnings.emplace_back(e.what());
      known.insert(file.parent_path());
    }
  }
  for (const fs::path& folder : found.configs)
    if (!known.count(folder))
      set.warnings.push_back(fmt::format("{}: {}", folder.string(),
                                         locked.count(folder) ? "the run is still going on" : "no result.json"));
  return set;
}

}  // namespace waymark::train
