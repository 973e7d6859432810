// `waymark help TOPIC`: everything that can be written in a config or on the command line, from the registries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::train::cli {

// "encodings", "attentions", "tasks", "optimizers", "schedules", "regularizers", "keys", "ops", "case-files"
std::vector<std::string> help_topics();
// Text of a topic or of the name of any one thing; nothing if there is no such name.
std::optional<std::string> topic_text(std::string_view topic);
// Text of `help op NAME`; an op may have the name of something else (help learned, help op where).
std::optional<std::string> op_topic(std::string_view name);
std::vector<std::string> op_names();
// Every name that topic_text knows, for suggestions.
std::vector<std::string> topic_names();

}  // namespace waymark::train::cli
