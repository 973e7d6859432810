// How the commands print: results on stdout, everything else on stderr.
#pragma once

#include <string>
#include <string_view>

namespace waymark::train::cli {

// --color auto|always|never (empty = auto), --quiet, --verbose. auto: stderr is a terminal and NO_COLOR is not set.
void set_console(const std::string& color, bool quiet, bool verbose);
bool is_quiet();
bool is_verbose();

void print_error(std::string_view text);    // "waymark: ..." in red where colours are on
void print_warning(std::string_view text);  // "warning: ..."; nothing if quiet

}  // namespace waymark::train::cli
