// How the commands print: results on stdout, everything else on stderr.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace waymark::train::cli {

// --color auto|always|never (empty = auto), --quiet, --verbose. auto: stderr is a terminal and NO_COLOR is not set.
void set_console(const std::string& color, bool quiet, bool verbose);
bool is_quiet();
bool is_verbose();

// A stream that was closed before the program began (>&-) would be given to the first file that is opened, and what is
// printed would land in that file. Fills the places of streams 0 to 2, so that their use fails instead.
void keep_places_of_streams();

// To stderr. Never throws: a stderr that cannot be written is no reason to end a training.
void note(std::string_view text);
template <class... T> void note(fmt::format_string<T...> text, T&&... values) {
  note(std::string_view(fmt::format(text, std::forward<T>(values)...)));
}
void print_error(std::string_view text);    // "waymark: ..." in red where colours are on
void print_warning(std::string_view text);  // "warning: ..."; nothing if quiet

}  // namespace waymark::train::cli
