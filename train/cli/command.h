// What a command is: a table of its arguments, which the parser and the help both read, and a function.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/types.h"
#include "train/config/problem.h"

namespace waymark::train::cli {

enum class ArgumentType : u8 { text, integer, real };

struct OptionInfo {
  std::string name;      // "--set"; with a short form "-j,--jobs"
  std::string value;     // "KEY=VALUE": what follows; empty for a flag
  std::string doc;       // one line
  std::string fallback;  // the default, as help shows it
  ArgumentType type = ArgumentType::text;
  std::vector<std::string> choices = {};  // the only values, if any
  bool repeats = false;                   // may be given several times
  bool value_may_lack = false;            // --resume [PATH]: a value follows unless it begins with - or is a .toml file
  int values = 1;                         // how many words follow
  bool hidden = false;                    // taken, and refused with its reason, but no help shows it
};

struct PositionalInfo {
  std::string name;  // "CONFIG"
  std::string doc;
  i64 min = 0, max = 1;  // how many; max < 0: any number
};

// Checked arguments of one call.
class Arguments {
 public:
  bool has(std::string_view option) const;  // "--set", "-v": as declared, without the short form
  // The value, or the empty text / `otherwise` if it was not given.
  std::string text(std::string_view option) const;
  i64 integer(std::string_view option, i64 otherwise = 0) const;
  double real(std::string_view option, double otherwise = 0) const;
  std::vector<std::string> all(std::string_view option) const;
  i64 count(std::string_view option) const;
  const std::vector<std::string>& positionals() const { return positionals_; }
  // The whole call, quoted so that it can be pasted into a shell.
  const std::string& command_line() const { return command_line_; }

  // What parsing found wrong; a command with `joins_problems` reports it together with what it finds itself.
  Problems problems;
  // Has this option a problem already? Then its value says nothing.
  bool is_bad(std::string_view option) const;

 private:
  friend struct Parser;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> positionals_;
  std::string command_line_;
};

struct Command {
  std::string name, summary;  // summary: one line
  std::vector<PositionalInfo> positionals;
  std::vector<OptionInfo> options;
  std::vector<std::string> examples;         // whole command lines, at least one
  std::function<int(const Arguments&)> run;  // the exit code
  std::string details = {};                  // further lines of the help
  // run() is called although parsing found problems, and throws them with its own: a user sees all of them at once.
  bool joins_problems = false;
};

// --help, --version, --threads, --quiet, -v, --color: every command has them.
const std::vector<OptionInfo>& common_options();

// Checks `words` against the table; problems are collected (unknown options with suggestions, missing values, types).
// `split` becomes false if the words could not even be told apart: then nothing else can be said about them.
Arguments parse_arguments(const Command& command, const std::vector<std::string>& words, Problems& problems,
                          bool* split = nullptr);

// The program without the program's name: dispatches, prints errors, returns the exit code: 0, 1, 2, 130 or 143.
WAYMARK_API int run_program(const std::vector<std::string>& words);

// All commands, in the order of the help.
const std::vector<Command>& commands();
std::string command_help(const Command& command);
std::string overview();
std::string version_text();

}  // namespace waymark::train::cli
