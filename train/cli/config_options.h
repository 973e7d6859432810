// The options that say a config on the command line; train, sweep, eval and inspect share them.
#pragma once

#include <string>
#include <vector>

#include "train/cli/command.h"
#include "train/config/config.h"
#include "train/config/source.h"

namespace waymark::train::cli {

// --task, --preset, --position, --attention, --seed, --steps, --data-dir, --progress, --set
std::vector<OptionInfo> config_options();
// What they say, in the order of the table; --threads among them (run.threads). Problems: a --set without '='.
std::vector<Override> config_overrides(const Arguments& arguments, Problems& problems);
// The TOML files among the positional arguments, read in their order.
std::vector<Source> read_files(const std::vector<std::string>& files, Problems& problems);

// "64,128" as ints >= 1; a problem with this origin otherwise.
std::vector<i64> parse_lengths(const std::string& text, const std::string& origin, Problems& problems);

}  // namespace waymark::train::cli
