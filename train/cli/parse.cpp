// The only file that includes CLI11. It splits words into options and values; what they mean is checked here, so that
// all problems are reported at once and in our words.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>

#include "nn/spec/suggest.h"
#include "train/report/escape.h"
#include "train/cli/command.h"

namespace waymark::train::cli {

using nn::printable;

namespace {

// "-j,--jobs" -> "--jobs": the name under which values are kept.
std::string key_of(const OptionInfo& option) { return option.name.substr(option.name.rfind(',') + 1); }

const OptionInfo* find_option(const Command& command, std::string_view key) {
  for (const auto* list : {&command.options, &common_options()})
    for (const OptionInfo& option : *list)
      if (key_of(option) == key) return &option;
  return nullptr;
}

constexpr const char* kNoValue = "\x01";

enum class Number : u8 { fine, malformed, out_of_range };
template <class T> Number look_at(const std::string& text) {
  T value{};
  const char* last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (end != last || code == std::errc::invalid_argument) return Number::malformed;
  return code == std::errc() ? Number::fine : Number::out_of_range;
}

// The word behind an unknown option is its value, not a positional argument; but a config file is one in any case.
bool may_be_value(const std::string& word) {
  return !word.empty() && word[0] != '-' && !(word.size() > 5 && word.rfind(".toml") == word.size() - 5);
}

}  // namespace

struct Parser {
  const Command& command;
  Problems& problems;
  bool split = true;
  Arguments arguments = {};

  Arguments parse(const std::vector<std::string>& given) {
    arguments.command_line_ = "waymark " + command.name;
    for (const std::string& word : given) arguments.command_line_ += " " + shell_quoted(word);
    const std::vector<std::string> words = with_lacking_values(given);
    CLI::App app;
    app.set_help_flag("");
    app.allow_extras();
    std::map<std::string, std::vector<std::string>> values;
    std::map<std::string, size_t> flags;
    for (const auto* list : {&command.options, &common_options()}) {
      for (const OptionInfo& option : *list) {
        const std::string key = key_of(option);
        if (option.value.empty()) {
          app.add_flag(option.name, flags[key], "");
        } else {
          // A fixed number of values each time it is given: a list would swallow the words behind it.
          app.add_option(option.name, values[key], "")
              ->type_size(1)
              ->expected(option.values)
              ->allow_extra_args(false)
              ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
        }
      }
    }
    try {
      app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ParseError& e) {
      // Only a missing value is left to CLI11: "--set: 1 required TEXT missing".
      problems.push_back({"", missing_value(words, e.what())});
      split = false;
      return arguments;
    }
    for (auto& [key, list] : values) {
      std::replace(list.begin(), list.end(), std::string(kNoValue), std::string());
      if (!list.empty()) arguments.values_[key] = std::move(list);
    }
    for (const auto& [key, count] : flags)
      if (count > 0) arguments.values_[key] = std::vector<std::string>(count);
    sort_extras(app.remaining());
    check_values();
    return std::move(arguments);
  }

 private:
  // --resume PATH becomes --resume=PATH, and --resume alone --resume= : CLI11 would take the next word in any case.
  std::vector<std::string> with_lacking_values(const std::vector<std::string>& given) const {
    std::vector<std::string> words;
    for (size_t i = 0; i < given.size(); ++i) {
      words.push_back(given[i]);
      const OptionInfo* option = find_option(command, given[i]);
      if (!option || !option->value_may_lack) continue;
      words.back() += '=';
      const bool follows = i + 1 < given.size() && given[i + 1].rfind('-', 0) != 0 &&
                           !(given[i + 1].size() > 5 && given[i + 1].rfind(".toml") == given[i + 1].size() - 5);
      words.back() += follows ? given[++i] : std::string(kNoValue);  // CLI11 takes an empty value for none
    }
    return words;
  }

  std::string missing_value(const std::vector<std::string>& words, const std::string& otherwise) const {
    for (const std::string& word : words)
      if (const OptionInfo* option = find_option(command, word); option && otherwise.find(word) != std::string::npos)
        return fmt::format("{} needs a value: {} {}", word, word, option->value);
    return otherwise;
  }

  // What CLI11 did not know: options with a typing error, and the positional arguments.
  void sort_extras(const std::vector<std::string>& extras) {
    bool unknown = false, only_positional = false;
    for (size_t i = 0; i < extras.size(); ++i) {
      const std::string& word = extras[i];
      if (!only_positional && word == "--") {
        only_positional = true;
      } else if (!only_positional && word.size() > 1 && word[0] == '-') {
        unknown = true;
        unknown_option(word);
        if (word.find('=') == word.npos && i + 1 < extras.size() && may_be_value(extras[i + 1])) ++i;
      } else {
        arguments.positionals_.push_back(word);
      }
    }
    if (unknown) return;  // how many there are is not certain
    i64 min = 0, max = 0;
    for (const PositionalInfo& p : command.positionals) {
      if (p.min > 0 && static_cast<i64>(arguments.positionals_.size()) < min + p.min)
        problems.push_back({"", fmt::format("{} is missing: {}", p.name, p.doc)});
      min += p.min;
      max = p.max < 0 || max < 0 ? -1 : max + p.max;
    }
    for (size_t i = 0; max >= 0 && i < arguments.positionals_.size(); ++i)
      if (static_cast<i64>(i) >= max)
        problems.push_back({"", fmt::format("unexpected argument {}", printable(arguments.positionals_[i]))});
  }

  void unknown_option(const std::string& word) {
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> known;
    for (const auto* list : {&command.options, &common_options()})
      for (const OptionInfo& option : *list) known.push_back(key_of(option));
    problems.push_back({"", fmt::format("unknown option {}.{} See waymark {} --help.", printable(name),
                                        nn::did_you_mean(name, known), command.name)});
  }

  void check_values() {
    for (const auto& [key, list] : arguments.values_) {
      const OptionInfo& option = *find_option(command, key);
      const size_t each = static_cast<size_t>(option.values), times = list.size() / each;
      if (list.size() % each != 0)
        problems.push_back({"", fmt::format("{0} needs {1} values: {0} {2}", key, each, option.value)});
      if (times > 1 && !option.repeats && !option.value.empty())
        problems.push_back({key, fmt::format("given {} times", times)});
      for (const std::string& value : list) check_value(option, key, value);
    }
  }
  void check_value(const OptionInfo& option, const std::string& key, const std::string& value) {
    const auto& choices = option.choices;
    if (std::find(choices.begin(), choices.end(), value) != choices.end()) return;
    std::string wanted;
    if (option.type != ArgumentType::text) {
      const bool integer = option.type == ArgumentType::integer;
      const Number number = integer ? look_at<i64>(value) : look_at<double>(value);
      if (number == Number::fine) return;
      if (number == Number::out_of_range) {
        problems.push_back({key, fmt::format("{} is out of range: {}", printable(value),
                                             integer ? "an int has at most 63 bits" : "a number is at most 1.8e308")});
        return;
      }
      wanted = integer ? "an int" : "a number";
    } else if (choices.empty()) {
      return;
    }
    std::string list;
    for (const std::string& choice : choices) {
      if (!list.empty()) list += " | ";
      list += choice;
    }
    if (!wanted.empty() && !list.empty()) wanted += " or ";
    const std::string hint = nn::did_you_mean(value, choices);
    problems.push_back(
        {key, fmt::format("must be {}{}, not {}{}{}", wanted, list, printable(value), hint.empty() ? "" : ".", hint)});
  }
};

Arguments parse_arguments(const Command& command, const std::vector<std::string>& words, Problems& problems,
                          bool* split) {
  Parser parser{command, problems};
  Arguments arguments = parser.parse(words);
  if (split) *split = parser.split;
  return arguments;
}

bool Arguments::is_bad(std::string_view option) const {
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& p) { return p.origin == option; });
}

bool Arguments::has(std::string_view option) const { return values_.find(option) != values_.end(); }
std::string Arguments::text(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? "" : found->second.back();
}
std::vector<std::string> Arguments::all(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}
i64 Arguments::count(std::string_view option) const { return static_cast<i64>(all(option).size()); }
i64 Arguments::integer(std::string_view option, i64 otherwise) const {
  const std::string value = text(option);
  std::from_chars(value.data(), value.data() + value.size(), otherwise);
  return otherwise;
}
double Arguments::real(std::string_view option, double otherwise) const {
  const std::string value = text(option);
  std::from_chars(value.data(), value.data() + value.size(), otherwise);
  return otherwise;
}

}  // namespace waymark::train::cli
