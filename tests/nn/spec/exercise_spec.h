// Reads a text as every kind of spec and checks what came out. An Error is a fine answer to any text; a crash, another
// exception or a result that does not print and parse back to itself is not. Shared by the tests and the fuzz target.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/spec/options.h"

namespace waymark::test {

// True if the text is a value, a spec, a sum or a pattern.
bool exercise_spec(const std::string& text);

// What the fuzz target and the tests start from: good and broken texts.
const std::vector<std::string>& spec_samples();

// A few names with every type of option.
const nn::SpecTables& sample_tables();

}  // namespace waymark::test
