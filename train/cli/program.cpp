// Dispatch, errors and exit codes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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

std::vector<std::string> common_names() {
  std::vector<std::string> names;
  for (const OptionInfo& option : common_options()) names.push_back(option.name.substr(option.name.find(',') + 1));
  return names;
}

int unknown_command(const std::string& word) {
  std::vector<std::string> names;
  for (const Command& command : commands()) names.push_back(command.name);
  const bool is_option = !word.empty() && word[0] == '-';
  return wrong(
      fmt::format("unknown {} {}.{} See waymark help.", is_option ? "option" : "command", printable(word),
                  nn::did_you_mean(word, is_option ? common_names() : names)));
}

int run_command(const Command& command, const std::vector<std::string>& words) {
  Problems problems;
  bool split = true;
  Arguments arguments = parse_arguments(command, words, problems, &split);
  if (arguments.has("--help")) {
    fmt::print("{}", command_help(command));
    return kFine;
  }
  if (arguments.has("--version")) {
    fmt::print("{}", version_text());
    return kFine;
  }
  set_console(arguments.text("--color"), arguments.has("--quiet"), arguments.has("--verbose"));
  arguments.problems = problems;
  if (const std::string threads = arguments.text("--threads");
      !threads.empty() && threads != "auto" && !arguments.is_bad("--threads")) {
    const i64 n = arguments.integer("--threads");
    if (n < 1 || n > 4096)
      arguments.problems.push_back({"--threads", fmt::format("must be 1..4096 or auto, not {}", threads)});
    else
      set_num_threads(static_cast<int>(n));
  }
  if (!arguments.problems.empty() && !(split && command.joins_problems)) throw ConfigError(arguments.problems);
  return command.run(arguments);
}

// Options that every command has may stand before it, too: waymark --threads 2 train ... Returns the words with the
// command first; empty if only options are there.
std::vector<std::string> command_first(const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size() && words[at].size() > 1 && words[at][0] == '-') {
    const std::string& word = words[at];
    const std::string name = word.substr(0, word.find('='));
    const OptionInfo* known = nullptr;
    for (const OptionInfo& option : common_options()) {
      const size_t comma = option.name.find(',');
      const bool is_short = comma != std::string::npos && option.name.substr(0, comma) == name;
      if (is_short || option.name.substr(comma == std::string::npos ? 0 : comma + 1) == name) known = &option;
    }
    if (!known) return words;  // the error names it
    at += known->value.empty() || name != word ? 1 : 2;
  }
  if (at >= words.size()) return {};
  std::vector<std::string> out{words.begin() + static_cast<std::ptrdiff_t>(at), words.end()};
  out.insert(out.begin() + 1, words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

int dispatch(const std::vector<std::string>& given) {
  if (given.empty()) {
    fmt::print("{}", overview());
    return kFine;
  }
  // waymark --help [TOPIC] is waymark help [TOPIC].
  std::vector<std::string> words = given;
  if (words[0] == "--help" || words[0] == "-h") words[0] = "help";
  if (words[0] == "--version") {
    if (words.size() > 1)
      throw ConfigError({{"", fmt::format("unexpected argument {} behind --version", printable(words[1]))}});
    fmt::print("{}", version_text());
    return kFine;
  }
  words = command_first(words);
  if (words.empty()) {
    const auto given_option = [&](const char* name) { return std::find(given.begin(), given.end(), name) != given.end(); };
    if (!given_option("--version")) throw ConfigError(Problems{{"", "a command is missing: waymark help lists them"}});
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
    print_error("out of memory; a smaller model, train.batch_size or data.train_size needs less");
  } catch (const std::exception& e) { print_error(e.what()); }
  // A full disk shows itself when the buffers are written.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout)) && code == kFine) {
    print_error("standard output cannot be written");
    code = kFailed;
  }
  return code;
}

}  // namespace waymark::train::cli
