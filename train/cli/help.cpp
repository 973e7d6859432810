// waymark help [TOPIC]
#include <fmt/format.h>

#include "nn/spec/suggest.h"
#include "train/cli/command_list.h"
#include "train/cli/help_topics.h"

namespace waymark::train::cli {

namespace {

int run_help(const Arguments& arguments) {
  const auto& words = arguments.positionals();
  if (words.empty()) {
    std::string topics;
    for (const std::string& topic : help_topics()) topics += (topics.empty() ? "" : ", ") + topic;
    fmt::print("{}Topics: {}, or the name of any one of them.\n", overview(), topics);
    return 0;
  }
  const bool op = words[0] == "op" && words.size() == 2;
  if (words.size() == 2 && !op)
    throw ConfigError({{"", fmt::format("unexpected argument {}", nn::printable(words[1]))}});
  const std::string& name = words.back();
  const auto text = op ? op_topic(name) : topic_text(name);
  if (!text)
    throw ConfigError({{"", fmt::format("there is no help on {}{}.{}", op ? "op " : "", nn::printable(name),
                                        nn::did_you_mean(name, op ? op_names() : topic_names()))}});
  fmt::print("{}", *text);
  return 0;
}

}  // namespace

Command help_command() {
  return {"help",
          "explain a command, an encoding, an attention, a task, a config key, ...",
          {{"TOPIC", "a topic, a name, or op NAME; without it: the commands", 0, 2}},
          {},
          {"waymark help encodings", "waymark help huang-m4", "waymark help op matmul", "waymark help keys"},
          run_help};
}

}  // namespace waymark::train::cli
