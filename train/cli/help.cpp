// waymark help [TOPIC]
#include <fmt/format.h>

#include "nn/spec/suggest.h"
#include "train/cli/command_list.h"
#include "train/cli/help_topics.h"

namespace waymark::train::cli {

namespace {

int run(const Arguments& arguments) {
  const auto& words = arguments.positionals();
  if (words.empty()) {
    std::string topics;
    for (const std::string& topic : help_topics()) topics += (topics.empty() ? "" : ", ") + topic;
    fmt::print("{}Topics: {}, or the name of any one of them.\n", overview(), topics);
    return 0;
  }
  const auto text = topic_text(words[0]);
  if (!text)
    throw ConfigError({{"", fmt::format("there is no help on {}.{}", nn::printable(words[0]),
                                        nn::did_you_mean(words[0], topic_names()))}});
  fmt::print("{}", *text);
  return 0;
}

}  // namespace

Command help_command() {
  return {"help", "explain a command, an encoding, an attention, a task, a config key, ...",
          {{"TOPIC", "a topic or a name; without it: the commands", 0, 1}},
          {},
          {"waymark help encodings", "waymark help huang-m4", "waymark help keys"},
          run};
}

}  // namespace waymark::train::cli
