// waymark verify FILE...
#include "train/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "nn/spec/suggest.h"
#include "train/cli/command_list.h"
#include "train/cli/console.h"
#include "train/report/escape.h"
#include "train/report/json.h"
#include "train/trainer/run_folder.h"

namespace waymark::train::cli {

namespace {

void print_text(const CaseReport& report) {
  const std::string head =
      fmt::format("{}{}{}", shorten(report.file, 200), report.module.empty() ? "" : "  ", report.module);
  if (!report.usable()) {  // no result, so it is nothing for stdout
    std::string text = head + ": cannot be used";
    for (const std::string& problem : report.problems) text += "\n  " + nn::printable(problem, 500);
    return print_error(text);
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

Json json_of(const VerifySummary::Line& l) {
  return Json::Object{{"kind", l.kind},
                      {"files", l.files},
                      {"passed", l.passed},
                      {"failed", l.failed},
                      {"unusable", l.unusable},
                      {"tensors", l.tensors},
                      {"max_abs", number(l.max_abs)},
                      {"max_rel", number(l.max_rel)},
                      {"of_tolerance", number(l.of_tolerance)}};
}
Json json_of(const VerifySummary& summary) {
  Json::Array kinds;
  for (const VerifySummary::Line& l : summary.kinds) kinds.push_back(json_of(l));
  return Json::Object{{"summary", json_of(summary.all)}, {"kinds", std::move(kinds)}};
}

void print_text(const VerifySummary& summary) {
  const auto line = [](const VerifySummary::Line& l) {
    fmt::print("{:<20} {:>5} {:>5} {:>5} {:>9} {:>8}  {:8.2e}  {:8.2e}  {:8.2e}\n", l.kind, l.files, l.passed, l.failed,
               l.unusable, l.tensors, l.max_abs, l.max_rel, l.of_tolerance);
  };
  fmt::print("\n{:<20} {:>5} {:>5} {:>5} {:>9} {:>8}  {:<8}  {:<8}  {}\n", "kind", "files", "pass", "FAIL", "unusable",
             "tensors", "abs", "rel", "of what is allowed");
  for (const VerifySummary::Line& l : summary.kinds) line(l);
  if (summary.kinds.size() > 1) {
    VerifySummary::Line all = summary.all;
    all.kind = "all";
    line(all);
  }
  fmt::print("{} of {} files pass\n", summary.all.passed, summary.all.files);
}

// Reports as they come, and one summary of all.
class Reports {
 public:
  explicit Reports(const Arguments& arguments)
      : json_(arguments.has("--json")), quiet_(arguments.has("--quiet")), only_(arguments.text("--only")) {}
  void add(const CaseReport& report) {
    summary_.add(report);
    if (json_)
      fmt::print("{}\n", write_json(json_of(report)));
    else if (!quiet_ || !report.pass())
      print_text(report);
  }
  // The exit code.
  int finish() const {
    if (summary_.all.files > 1) {
      if (json_)
        fmt::print("{}\n", write_json(json_of(summary_)));
      else
        print_text(summary_);
    }
    if (!only_.empty() && summary_.all.unusable == 0 && summary_.all.tensors == 0) {
      print_error(fmt::format("--only {}: no file compares a tensor with such a name", nn::printable(only_)));
      return 2;
    }
    return summary_.all.unusable > 0 ? 2 : summary_.all.failed > 0 ? 1 : 0;
  }

 private:
  bool json_, quiet_;
  std::string only_;
  VerifySummary summary_;
};

// waymark verify --write DIR SPEC...: all specs are computed before the first file is written.
int write(const Arguments& arguments) {
  Problems problems = arguments.problems;
  for (const char* option : {"--rtol", "--atol", "--only"})
    if (arguments.has(option)) problems.push_back({option, "is of files that are read, not written"});
  std::set<std::string> specs;
  for (const std::string& spec : arguments.positionals()) {
    if (!specs.insert(spec).second)
      problems.push_back({spec, "is given twice"});
    else if (const std::string text = draft_problem(spec); !text.empty())
      problems.push_back({spec, text});
  }
  if (const auto refusal = place_refusal(arguments.text("--write"))) problems.push_back({"--write", *refusal});
  if (!problems.empty()) throw ConfigError(std::move(problems));
  Reports reports(arguments);
  for (const std::string& spec : arguments.positionals())
    reports.add(write_case(arguments.text("--write"), spec).report);
  return reports.finish();
}

int run_verify(const Arguments& arguments) {
  if (arguments.has("--write")) return write(arguments);
  VerifyOptions options;
  Problems problems = arguments.problems;
  const auto tolerance = [&](const char* name, std::optional<double>& target) {
    if (!arguments.has(name) || arguments.is_bad(name)) return;
    target = arguments.real(name);
    if (!is_tolerance(*target)) problems.push_back({name, fmt::format("must be a finite number >= 0, not {}", *target)});
  };
  tolerance("--rtol", options.rtol);
  tolerance("--atol", options.atol);
  options.only = arguments.text("--only");
  if (!problems.empty()) throw ConfigError(std::move(problems));
  Reports reports(arguments);
  for (const std::string& name : arguments.positionals()) {
    try {
      for (const std::filesystem::path& file : case_files(name)) reports.add(verify_file(file, options));
    } catch (const std::exception& e) {  // a folder without case files
      reports.add({.file = name, .module = {}, .source = {}, .note = {}, .checks = {}, .problems = {e.what()}});
    }
  }
  return reports.finish();
}

}  // namespace

Command verify_command() {
  Command command;
  command.name = "verify";
  command.summary = "compare with what another framework computed";
  command.positionals = {{"FILE", "case files (safetensors), folders of them; with --write specs of cases", 1, -1}};
  command.options = {
      {"--rtol", "X", "relative tolerance", "that of the file", ArgumentType::real},
      {"--atol", "X", "absolute tolerance", "that of the file", ArgumentType::real},
      {"--only", "GLOB", "only tensors with such names", ""},
      {"--json", "", "one JSON object per file, and one that sums up several", ""},
      {"--write", "DIR", "write case files of ours, for others to check themselves against", ""},
  };
  command.examples = {
      "waymark verify case.safetensors", "waymark verify cases/ --only 'grad_*' --quiet",
      "waymark verify --write cases 'huang-m4(clip=3)' 'loss(loss=sar)' 'matmul(input=[2,3], other=[3,4])'"};
  command.details =
      "Exit code 0 if all pass, 1 if a comparison fails, 2 if a file cannot be used (every reason is listed).\n"
      "--quiet prints files that do not pass, and the summary. What is in a case file, and how to write one from\n"
      "PyTorch: waymark help case-files.\n";
  command.joins_problems = true;
  command.run = run_verify;
  return command;
}

}  // namespace waymark::train::cli
