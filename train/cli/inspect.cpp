// waymark inspect RUN|CHECKPOINT
#include "nn/spec/suggest.h"
#include "train/cli/config_options.h"
#include "train/cli/requests.h"
#include "train/trainer/run_folder.h"

namespace waymark::train::cli {

namespace {

InspectRequest inspect_request(const Arguments& arguments) {
  Problems problems = arguments.problems;
  InspectRequest request;
  if (!arguments.positionals().empty()) request.target = arguments.positionals().front();
  if (arguments.has("--which")) request.which = arguments.text("--which");
  if (!names_checkpoint(request.which))
    problems.push_back({"--which", fmt::format("must be last, best or step-N, not {}", nn::printable(request.which))});
  if (arguments.has("--split")) request.split = arguments.text("--split");
  request.item = arguments.integer("--item");
  if (request.item < 0) problems.push_back({"--item", fmt::format("must be >= 0, not {}", request.item)});
  request.items = arguments.integer("--items", 32);
  if (request.items < 1) problems.push_back({"--items", fmt::format("must be >= 1, not {}", request.items)});
  if (arguments.has("--input")) {
    request.input = arguments.text("--input");
    for (const char* option : {"--split", "--item", "--items"})
      if (arguments.has(option)) problems.push_back({option, "has no effect: --input says what is looked at"});
  }
  request.weights = arguments.has("--weights");
  request.out = arguments.text("--out");
  if (arguments.has("--out"))
    if (const auto refusal = place_refusal(request.out)) problems.push_back({"--out", *refusal});
  request.force = arguments.has("--force");
  if (arguments.has("--data-dir"))
    request.settings.push_back({"data.dir", arguments.text("--data-dir"), "--data-dir", true});
  if (arguments.has("--threads") && !arguments.is_bad("--threads"))
    request.settings.push_back({"run.threads", arguments.text("--threads"), "--threads", false});
  request.quiet = arguments.has("--quiet");
  request.command_line = arguments.command_line();
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return request;
}

}  // namespace

Command inspect_command(std::function<int(const InspectRequest&)> run) {
  Command command;
  command.name = "inspect";
  command.summary = "look into a trained model: attention and encodings by distance, as a page, drawings and arrays";
  command.positionals = {{"RUN", "folder of a run or of a checkpoint", 1, 1}};
  command.options = {
      {"--which", "NAME", "checkpoint of the run: last, best or step-N", "last"},
      {"--split", "NAME", "where the items come from: val, test, or an extra test set of the task", "test"},
      {"--item", "N", "the item whose attention is drawn", "0", ArgumentType::integer},
      {"--items", "K", "statistics over this many items from that one on", "32", ArgumentType::integer},
      {"--input", "TEXT", "look at this text instead: letters, or the names that waymark data show prints", ""},
      {"--weights", "", "keep all weights of the item, however long it is (up to 256 tokens they are kept anyway)", ""},
      {"--out", "DIR", "where everything is written", "<RUN>/inspect"},
      {"--force", "", "write into a folder that is not empty", ""},
      {"--data-dir", "DIR", "where data files are looked for first", ""},
  };
  command.examples = {"waymark inspect runs/a", "waymark inspect runs/a --split test --item 3 --out look",
                      "waymark inspect runs/a --input 'in the begin_ing'"};
  command.details =
      "Written are index.html (works offline), svg/*.svg, and position/<layer>.npz (numpy.load) with\n"
      "  weights [H, Lq, Lk]                   of the item\n"
      "  delta, count, attention_mean          mean weight at each distance p_key - p_query\n"
      "  score_<part>_mean, score_<part>_sd    each summand of the score, in logits; content, ..., total; NaN: no pair\n"
      "  within, mean_distance, entropy        how local each head is, and uniform attention beside it\n"
      "  table, norm, cosine, bias, kernel, gram, pairs, each with the distances of its rows: what the encodings hold\n";
  command.joins_problems = true;
  command.run = [run = std::move(run)](const Arguments& arguments) { return run(inspect_request(arguments)); };
  return command;
}

}  // namespace waymark::train::cli
