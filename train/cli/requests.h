// What the commands that run experiments are asked to do, checked: configs are resolved and every problem is reported
// before a request exists. commands.cpp joins each command with the function that does the work and returns the exit
// code. Whatever such a function still finds wrong with the request it throws as ConfigError (exit 2);
// any other exception is exit 1.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/cli/command.h"
#include "train/config/config.h"
#include "train/config/sweep_cells.h"

namespace waymark::train::cli {

struct TrainRequest {
  Config config;
  std::string out;                    // folder of the run: --out, else runs/<config.name()>
  std::optional<std::string> resume;  // --resume: empty = newest checkpoint of `out`; else a run or checkpoint folder
  bool force = false, dry_run = false, quiet = false, verbose = false;
  std::string command_line;  // for overrides.txt: can be pasted into a shell
};
Command train_command(std::function<int(const TrainRequest&)> run);
int run_train(const TrainRequest& request);

struct SweepRequest {
  SweepCells cells;
  std::string plan;  // name of the built-in experiment; "list": only print them; empty: none
  std::string out;  // folder of the sweep: --out, else sweeps/<name of the first file>
  i64 jobs = 1;
  std::string rerun;  // empty, "failed" or "all"
  bool fail_fast = false, list = false, quiet = false, verbose = false;
  std::string command_line;
};
Command sweep_command(std::function<int(const SweepRequest&)> run);
int run_sweep(const SweepRequest& request);

struct EvalRequest {
  std::string target;          // folder of a run or of a checkpoint
  std::string which = "last";  // last, best or step-N: of a run
  std::string split = "test";
  std::vector<i64> lengths;        // further test lengths
  i64 draws = 1;                   // frozen noise with this many seeds
  std::optional<i64> seed;         // re-keys frozen noise
  std::vector<Override> settings;  // data.*, train.eval_batches, run.* only
  bool quiet = false, verbose = false;
};
Command eval_command(std::function<int(const EvalRequest&)> run);
int run_eval(const EvalRequest& request);

struct InspectRequest {
  std::string target;          // folder of a run or of a checkpoint
  std::string which = "last";  // last, best or step-N: of a run
  std::string split = "test";
  i64 item = 0, items = 32;          // the one that is drawn, and how many from it on are counted
  std::optional<std::string> input;  // a text in their place
  bool weights = false;              // all of the item, whatever its length
  std::string out;                   // empty: <run>/inspect
  std::vector<Override> settings;    // data.dir, run.threads
  bool force = false, quiet = false;
  std::string command_line;
};
Command inspect_command(std::function<int(const InspectRequest&)> run);
int run_inspect(const InspectRequest& request);

struct StepRequest {
  Config config;
  std::string from;          // folder of a checkpoint; empty: initial weights
  std::optional<i64> batch;  // training step whose batch is walked
  std::string script;        // file of commands; empty: stdin
  bool quiet = false;
};
Command step_command(std::function<int(const StepRequest&)> run);
int run_step(const StepRequest& request);

// Throws a ConfigError: what is wrong, with `origin` for where.
[[noreturn]] void refuse(const std::string& origin, const std::string& text);

// "last", "best" or "step-N".
bool names_checkpoint(const std::string& which);
// The folder of a checkpoint: `target` itself, or of the run at `target` the one that `which` names: last, best, step-N.
// ConfigError, with `origin` for what is wrong with `which`.
std::string checkpoint_folder(const std::string& target, const std::string& which, const std::string& origin);

struct DataRequest {
  std::string action;            // list, info, stats, show, check
  std::optional<Config> config;  // resolved, with the task and its data keys; none for list
  std::string split = "train";
  i64 item = 0;
};
Command data_command(std::function<int(const DataRequest&)> run);
int run_data(const DataRequest& request);  // run_data.cpp

}  // namespace waymark::train::cli
