// Reads bytes as a config file, resolves it and expands its sweep. Problems are a fine answer to any bytes; a crash, an
// exception or a config that does not print and resolve back to itself is not. Shared by the tests and the fuzz target.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace waymark::test {

// Between the file and each setting that --set would give: "format = ...\x1emodel.position=rope".
inline constexpr char kSettingMark = '\x1e';

// True if there is a config without problems.
bool exercise_config(std::string_view bytes);

// What the fuzz target and the tests start from: good and broken files.
const std::vector<std::string>& config_samples();

}  // namespace waymark::test
