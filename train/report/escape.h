// Names, prompts and paths come from strangers: every output format gets them through one of these functions.
// All of them accept any bytes. Text is UTF-8; bytes that are none become U+FFFD.
#pragma once

#include <string>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark::train {

// One line of printable text: every control character (C0, DEL, C1, line and paragraph separators, and the marks that
// turn the writing direction) becomes a space, invalid UTF-8 becomes U+FFFD.
WAYMARK_API std::string clean_line(std::string_view text);
// clean_line, and at most `limit` code points, the last one then being "…". limit >= 1.
WAYMARK_API std::string shorten(std::string_view text, i64 limit);
// Number of code points of valid UTF-8, the width of a cell in a terminal for the alphabets used here.
WAYMARK_API i64 display_width(std::string_view text);

// XML and HTML text, also inside attribute quotes: & < > " ' escaped, control characters except tab and newline
// replaced (XML 1.0 forbids them even as references).
WAYMARK_API std::string escape_xml(std::string_view text);
// A cell of a Markdown table: one line, nothing in it can start markup, a link, HTML or another cell.
WAYMARK_API std::string escape_markdown(std::string_view text);
// LaTeX text: one line, the ten special characters escaped.
WAYMARK_API std::string escape_latex(std::string_view text);
// A field of a CSV line (RFC 4180): quoted, quotes doubled, if it has a comma, a quote or a line break.
WAYMARK_API std::string csv_field(std::string_view text);
// A JSON string with its quotes.
WAYMARK_API std::string json_string(std::string_view text);

// A name for one file or folder made from any text: letters, digits and `-_.=+` stay, every run of anything else is
// one `-`, no leading dot or dash, at most `limit` characters (what is cut off leaves a hash of the whole in its
// place, so two long names stay two names); "unnamed" if nothing is left.
WAYMARK_API std::string file_name(std::string_view text, i64 limit = 96);

// A word for a shell: as it is if it is plain, else 'in quotes'.
WAYMARK_API std::string shell_quoted(std::string_view word);

}  // namespace waymark::train
