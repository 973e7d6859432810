// Internal: text in lines of a limited width, for cards and the stepper.
#pragma once

#include <string>
#include <string_view>

namespace waymark {

// Columns that a UTF-8 text takes: one a code point.
int columns_of(std::string_view text);
// `head`, then `body` broken at runs of spaces so that no line is longer than `width` (a longer word stands alone);
// further lines start with as many spaces as `head` has columns. No newline at the end.
std::string hanging(std::string_view head, std::string_view body, int width);

}  // namespace waymark
