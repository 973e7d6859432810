// Reads a text as a mask expression and checks what came out: an Error is a fine answer to any text; a crash, or a mask
// whose text does not parse back to itself, is not. Shared by the tests and the fuzz target.
#pragma once

#include <string>
#include <vector>

namespace waymark::test {

// True if the text is a mask.
bool exercise_mask(const std::string& text);
const std::vector<std::string>& mask_samples();

}  // namespace waymark::test
