// `waymark help TOPIC`: everything that can be written in a config or on the command line, from the registries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::train::cli {

// "encodings", "attentions", "tasks", "optimizers", "schedules", "keys", "ops"
std::vector<std::string> help_topics();
// Text of a topic or of the name of any one thing; nothing if there is no such name.
std::optional<std::string> topic_text(std::string_view topic);
// Every name that topic_text knows, for suggestions.
std::vector<std::string> topic_names();

}  // namespace waymark::train::cli
