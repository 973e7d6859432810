// Two columns and wrapped lines for the help texts.
#pragma once

#include <string>
#include <vector>

namespace waymark::train::cli {

struct Row {
  std::string left, right;
};
// "  left   right" with the right side wrapped at `width` columns; a long left side stands on a line of its own.
std::string columns(const std::vector<Row>& rows, size_t width = 100, size_t indent = 2);
// Lines of at most `width` columns, the last with its end.
std::string paragraph(const std::string& text, size_t width = 100);

}  // namespace waymark::train::cli
