// Loc: a place in the caller's source. Its default argument is evaluated where the call (or the implicit
// conversion to Arg) stands, so operators and methods know their line as well as functions do.
#pragma once

namespace waymark {

struct Loc {
  const char* file = nullptr;
  int line = 0;

  // Not std::source_location: clang 14 has none.
  static constexpr Loc here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
  constexpr explicit operator bool() const { return file != nullptr; }
  // File name without its folders, as the messages print it.
  constexpr const char* name() const {
    const char* last = file ? file : "";
    for (const char* p = last; *p; ++p)
      if (*p == '/') last = p + 1;
    return last;
  }
};

}  // namespace waymark
