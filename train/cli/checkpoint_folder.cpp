// Which checkpoint a user means.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "core/io/files.h"
#include "train/cli/console.h"
#include "train/cli/requests.h"
#include "train/report/json.h"
#include "train/trainer/checkpoint.h"

namespace waymark::train::cli {

namespace fs = std::filesystem;

void refuse(const std::string& origin, const std::string& text) { throw ConfigError(Problems{{origin, text}}); }

bool names_checkpoint(const std::string& which) {
  const bool step = which.size() > 5 && which.rfind("step-", 0) == 0 && which.find_first_not_of("0123456789", 5) == std::string::npos;
  return step || which == "last" || which == "best";
}

std::string checkpoint_folder(const std::string& given, const std::string& which, const std::string& origin) {
  const fs::path target = given;
  if (!fs::is_directory(target)) refuse(given, "no such folder; give the folder of a run or of a checkpoint");
  if (fs::exists(target / "model.safetensors")) return target.string();
  const fs::path checkpoints = target / "checkpoints", index = checkpoints / "index.json";
  if (!fs::is_directory(checkpoints)) refuse(given, "holds neither a checkpoint nor a run with checkpoints");
  std::string name = which;
  if (name == "last" || name == "best") {
    // The index is a convenience: without a good one the folders say what is there, but not what was best.
    Json list;
    try {
      list = parse_json(read_file(index), index.string());
    } catch (const Error& e) {
      if (name == "best") refuse(origin, fmt::format("which checkpoint is the best is not known: {}", e.what()));
      print_warning(e.what());
    }
    const Json* entry = list.is_object() ? list.find(name) : nullptr;
    if (entry && entry->is_string()) {
      name = entry->as_string();
    } else {
      std::string newest, interrupted;
      for (const CheckpointName& n : CheckpointStore(checkpoints).list()) {
        std::string& place = n.kind == CheckpointKind::step ? newest : interrupted;
        if (place.empty()) place = n.name;
      }
      if (name == "last" && !newest.empty())
        name = newest;
      else if (!interrupted.empty())
        refuse(origin, fmt::format("the run was interrupted and has no {} checkpoint; what it saved then is {}", name,
                                      (checkpoints / interrupted).string()));
      else
        refuse(origin, fmt::format("the run has no {} checkpoint", name));
    }
  } else {
    // step-N, with or without leading zeros; digits only, as the request says.
    const std::string digits = name.substr(std::min(name.find_first_not_of('0', 5), name.size() - 1));
    name = "step-" + (digits.size() < 8 ? std::string(8 - digits.size(), '0') : "") + digits;
  }
  if (!fs::is_directory(target / "checkpoints" / name)) refuse(origin, fmt::format("{} has no checkpoint {}", given, name));
  return (target / "checkpoints" / name).string();
}

}  // namespace waymark::train::cli
