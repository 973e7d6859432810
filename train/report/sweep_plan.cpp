#include "train/report/sweep_plan.h"

#include <algorithm>
#include <array>

#include "core/io/files.h"
#include "core/tensor/error.h"
#include "train/report/escape.h"
#include "train/report/json.h"

namespace waymark::train {

namespace {

constexpr std::string_view kSweepFormat = "waymark-sweep-1";
constexpr std::array<std::string_view, 6> kPlanStates = {"planned",     "running", "finished", "failed",
                                                     "interrupted", "refused"};

void check_state(const JsonReader& r, const std::string& state) {
  if (std::find(kPlanStates.begin(), kPlanStates.end(), state) == kPlanStates.end())
    r.refuse("state", "must be planned, running, finished, failed, interrupted or refused, is " +
                          json_string(shorten(state, 60)));
}

}  // namespace

std::string plan_to_json(const SweepPlan& plan) {
  Json::Array runs;
  for (const PlannedRun& run : plan.runs) {
    Json entry;
    entry.set("id", run.id).set("name", run.name);
    if (!run.folder.empty()) entry.set("folder", run.folder);
    entry.set("seed", run.seed).set("state", run.state);
    if (!run.reason.empty()) entry.set("reason", run.reason);
    entry.set("config", texts_json(run.config));
    if (!run.config_short.empty()) entry.set("config_short", texts_json(run.config_short));
    check_state(JsonReader(entry, "sweep.json"), run.state);
    runs.push_back(std::move(entry));
  }
  Json out;
  out.set("format", kSweepFormat).set("runs", std::move(runs));
  return write_json(out, 2) + "\n";
}

SweepPlan plan_from_json(std::string_view text, std::string_view origin) {
  const Json value = parse_json(text, origin);
  JsonReader top(value, std::string(origin));
  top.check_format(kSweepFormat);
  SweepPlan plan;
  top.need("runs");
  const Json::Array runs = top.array("runs");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    JsonReader r(runs[i], top.origin(), fmt::format("runs[{}]", i));
    PlannedRun run;
    run.id = r.text("id");
    run.name = r.text("name");
    run.folder = r.maybe_text("folder").value_or("");
    run.seed = r.integer("seed");
    run.state = r.text("state");
    check_state(r, run.state);
    run.reason = r.maybe_text("reason").value_or("");
    r.need("config");
    run.config = r.texts("config");
    run.config_short = r.texts("config_short");
    r.finish();
    plan.runs.push_back(std::move(run));
  }
  top.finish();
  return plan;
}

void save_plan(const std::filesystem::path& folder, const SweepPlan& plan) {
  write_file_atomic(folder / "sweep.json", plan_to_json(plan));
}

SweepPlan load_plan(const std::filesystem::path& file) {
  return plan_from_json(read_file(file, i64{1} << 26), file.string());
}

}  // namespace waymark::train
