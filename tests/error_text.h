// The message of the Error that a call throws, for tests of messages; says so if it throws none.
#pragma once

#include <string>

#include "core/tensor/error.h"

namespace waymark::test {

template <class F> std::string error_text(F call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "(no error)";
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace waymark::test
