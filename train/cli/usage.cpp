// The texts of --help, made from the tables that the parser reads.
#include <fmt/format.h>

#include <algorithm>

#include "train/cli/command.h"
#include "train/cli/text_layout.h"

namespace waymark::train::cli {

namespace {

std::string left_column(const OptionInfo& option) {
  std::string text = option.name;
  if (const size_t comma = text.find(','); comma != std::string::npos) text.insert(comma + 1, " ");
  return option.value.empty() ? text : text + " " + option.value;
}

std::string right_column(const OptionInfo& option) {
  std::string text = option.doc;
  if (!option.choices.empty()) {
    std::string list = option.type == ArgumentType::integer ? "int" : option.type == ArgumentType::real ? "number" : "";
    for (const std::string& choice : option.choices) {
      if (!list.empty()) list += " | ";
      list += choice;
    }
    text += fmt::format(" ({})", list);
  } else if (!option.value.empty() && option.type != ArgumentType::text) {
    text += option.type == ArgumentType::integer ? " (int)" : " (number)";
  }
  if (!option.fallback.empty()) text += fmt::format(" [{}]", option.fallback);
  if (option.repeats) text += "; may be repeated";
  return text;
}

std::string rows_of(const std::vector<OptionInfo>& options) {
  std::vector<Row> rows;
  for (const OptionInfo& option : options)
    if (!option.hidden) rows.push_back({left_column(option), right_column(option)});
  return columns(rows);
}

std::string usage_line(const Command& command) {
  std::string text = "waymark " + command.name;
  for (const PositionalInfo& p : command.positionals) {
    const std::string many = p.max < 0 || p.max > 1 ? "..." : "";
    text += p.min > 0 ? " " + p.name + many : fmt::format(" [{}{}]", p.name, many);
  }
  return text + " [OPTIONS]";
}

}  // namespace

std::string command_help(const Command& command) {
  std::string out = fmt::format("{}: {}\n\nUsage: {}\n", command.name, command.summary, usage_line(command));
  if (!command.positionals.empty()) {
    std::vector<Row> rows;
    for (const PositionalInfo& p : command.positionals) rows.push_back({p.name, p.doc});
    out += "\n" + columns(rows);
  }
  if (!command.options.empty()) out += "\nOptions\n" + rows_of(command.options);
  out += "\nOptions of every command\n" + rows_of(common_options());
  if (!command.details.empty()) out += "\n" + command.details;
  out += "\nExamples\n";
  for (const std::string& example : command.examples) out += "  " + example + "\n";
  return out;
}

std::string overview() {
  std::string out =
      "waymark: position encodings and sparse, low-rank and linear attention, compared on your own machine\n\n"
      "Usage: waymark COMMAND [OPTIONS]\n\n";
  std::vector<Row> rows;
  std::string examples;
  int count = 0;
  for (const Command& command : commands()) {
    rows.push_back({command.name, command.summary});
    if (count < 3 && !command.examples.empty() && command.name != "help") {
      examples += "  " + command.examples.front() + "\n";
      ++count;
    }
  }
  out += columns(rows) + "\nFirst examples\n" + examples;
  return out + "\nwaymark COMMAND --help shows the options, waymark help TOPIC what can be written in them.\n";
}

}  // namespace waymark::train::cli
