// Dispatch, errors and exit codes.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>

#include "core/parallel/parallel.h"
#include "nn/spec/suggest.h"
#include "train/cli/command.h"
#include "train/cli/console.h"

namespace waymark::train::cli {

using nn::printable;

const std::vector<OptionInfo>& common_options() {
  static const std::vector<OptionInfo> options = {
      {"-h,--help", "", "print this and stop", ""},
      {"--version", "", "print versions of program, compiler and libraries, and stop", ""},
      {"--threads", "N", "threads to use; results do not depend on it", "auto", ArgumentType::integer, {"auto"}},
      {"-q,--quiet", "", "print results and errors only", ""},
      {"-v,--verbose", "", "print more", ""},
      {"--color",
       "WHEN",
       "colours on the terminal; NO_COLOR turns them off too",
       "auto",
       ArgumentType::text,
       {"auto", "always", "never"}},
  };
  return options;
}

namespace {

constexpr int kFine = 0, kFailed = 1, kWrongRequest = 2;

int wrong(const std::string& text) {
  print_error(text);
  return kWrongRequest;
}

int unknown_command(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  const bool is_option = !word.empty() && word[0] == '-';
  return wrong(
      fmt::format("unknown {} {}.{} See waymark help.", is_option ? "option" : "command", printable(word),
                  nn::did_you_mean(word, is_option ? std::vector<std::string>{"--help", "--version"} : names)));
}

int run_command(const Command& command, const std::vector<std::string>& words) {
  Problems problems;
  const Arguments arguments = parse_arguments(command, words, problems);
  if (arguments.has("--help")) {
    fmt::print("{}", command_help(command));
    return kFine;
  }
  if (arguments.has("--version")) {
    fmt::print("{}", version_text());
    return kFine;
  }
  set_console(arguments.text("--color"), arguments.has("--quiet"), arguments.has("--verbose"));
  if (const std::string threads = arguments.text("--threads"); !threads.empty() && threads != "auto") {
    const i64 n = arguments.integer("--threads");
    if (n < 1 || n > 4096)
      problems.push_back({"--threads", fmt::format("must be 1..4096 or auto, not {}", threads)});
    else
      set_num_threads(static_cast<int>(n));
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return command.run(arguments);
}

int dispatch(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    fmt::print("{}", overview());
    return kFine;
  }
  if (words[0] == "--version") {
    fmt::print("{}", version_text());
    return kFine;
  }
  for (const Command& command : commands())
    if (command.name == words[0]) return run_command(command, {words.begin() + 1, words.end()});
  return unknown_command(words[0]);
}

}  // namespace

int run_program(const std::vector<std::string>& words) {
  int code = kFailed;
  try {
    code = dispatch(words);
  } catch (const ConfigError& e) { code = wrong(e.what()); } catch (const std::bad_alloc&) {
    print_error("out of memory");
  } catch (const std::exception& e) { print_error(e.what()); }
  // A full disk shows itself when the buffers are written.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && code == kFine) {
    print_error("standard output cannot be written");
    code = kFailed;
  }
  return code;
}

}  // namespace waymark::train::cli
