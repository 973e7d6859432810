// waymark verify FILE...
#include "train/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/spec/suggest.h"
#include "train/cli/command_list.h"
#include "train/report/escape.h"
#include "train/report/json.h"

namespace waymark::train::cli {

namespace {

void print_text(const CaseReport& report) {
  const std::string head =
      fmt::format("{}{}{}", shorten(report.file, 200), report.module.empty() ? "" : "  ", report.module);
  if (!report.usable()) {
    fmt::print("{}: cannot be used\n", head);
    for (const std::string& problem : report.problems) fmt::print("  {}\n", nn::printable(problem, 500));
    return;
  }
  fmt::print("{}: {}{}\n", head, report.pass() ? "pass" : "FAIL",
             report.source.empty() ? "" : fmt::format("  ({})", shorten(report.source, 100)));
  size_t width = 0;
  for (const TensorCheck& check : report.checks) width = std::max(width, check.name.size());
  for (const TensorCheck& check : report.checks)
    fmt::print("  {:<4}  {:<{}}  {:<16}  abs {:.2e}  rel {:.2e}{}\n", check.pass ? "pass" : "FAIL", check.name, width,
               to_string(check.shape), check.max_abs, check.max_rel,
               check.pass || check.where.empty() ? "" : "  at " + check.where);
}

Json number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }

Json json_of(const CaseReport& report) {
  Json::Array checks, problems;
  for (const TensorCheck& check : report.checks)
    checks.push_back(Json::Object{{"name", check.name},
                                  {"shape", to_string(check.shape)},
                                  {"max_abs", number(check.max_abs)},
                                  {"max_rel", number(check.max_rel)},
                                  {"where", check.where},
                                  {"pass", check.pass}});
  for (const std::string& problem : report.problems) problems.emplace_back(problem);
  return Json::Object{{"file", report.file},
                      {"module", report.module},
                      {"source", report.source},
                      {"usable", report.usable()},
                      {"pass", report.pass()},
                      {"checks", std::move(checks)},
                      {"problems", std::move(problems)}};
}

int run(const Arguments& arguments) {
  VerifyOptions options;
  Problems problems;
  const auto tolerance = [&](const char* name, std::optional<double>& target) {
    if (!arguments.has(name)) return;
    target = arguments.real(name);
    if (!(*target >= 0)) problems.push_back({name, "must be >= 0"});
  };
  tolerance("--rtol", options.rtol);
  tolerance("--atol", options.atol);
  options.only = arguments.text("--only");
  if (!problems.empty()) throw ConfigError(std::move(problems));
  bool usable = true, pass = true;
  i64 passed = 0;
  for (const std::string& file : arguments.positionals()) {
    const CaseReport report = verify_file(file, options);
    usable = usable && report.usable();
    pass = pass && report.pass();
    passed += report.usable() && report.pass();
    if (arguments.has("--json"))
      fmt::print("{}\n", write_json(json_of(report)));
    else
      print_text(report);
  }
  if (!arguments.has("--json") && arguments.positionals().size() > 1)
    fmt::print("{} of {} files pass\n", passed, arguments.positionals().size());
  return !usable ? 2 : pass ? 0 : 1;
}

}  // namespace

Command verify_command() {
  Command command;
  command.name = "verify";
  command.summary = "compare with what another framework computed";
  command.positionals = {{"FILE", "case files (safetensors)", 1, -1}};
  command.options = {
      {"--rtol", "X", "relative tolerance", "that of the file", ArgumentType::real},
      {"--atol", "X", "absolute tolerance", "that of the file", ArgumentType::real},
      {"--only", "GLOB", "only tensors with such names", ""},
      {"--json", "", "one JSON object per file", ""},
  };
  command.examples = {"waymark verify case.safetensors", "waymark verify cases/*.safetensors --only 'grad_*'"};
  command.details = "Exit code 0 if all pass, 1 if a comparison fails, 2 if a file cannot be used.\n";
  command.run = run;
  return command;
}

}  // namespace waymark::train::cli
