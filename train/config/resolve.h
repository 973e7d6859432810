// From raw sources to a checked Config.
#pragma once

#include <optional>

#include "train/config/config.h"
#include "train/config/registries.h"
#include "train/config/source.h"

namespace waymark::train {

// Joins the sources in their order, fills in defaults, checks types, ranges, specs and rules between keys. Problems are
// appended, all of them; there is a config only if none was found here. Nothing is read and nothing is written.
WAYMARK_API std::optional<Config> resolve_config(const std::vector<Source>& sources, Problems& problems,
                                                 const Registries& registries = train::registries());
// The same for a cell of a sweep: the config is there also if all its problems are refusals of the judge.
WAYMARK_API std::optional<Config> resolve_cell(const std::vector<Source>& sources, Problems& problems,
                                               const Registries& registries = train::registries());
// Throws ConfigError. Problems that were found before (in reading the sources) are passed in.
WAYMARK_API Config resolve_or_throw(const std::vector<Source>& sources, Problems problems = {},
                                    const Registries& registries = train::registries());

}  // namespace waymark::train
