// Many case files: which there are, and what they came to.
#include <algorithm>

#include "core/tensor/error.h"
#include "train/verify/verify.h"

namespace waymark::train {

std::vector<std::filesystem::path> case_files(const std::filesystem::path& file_or_folder) {
  if (!std::filesystem::is_directory(file_or_folder)) return {file_or_folder};
  std::vector<std::filesystem::path> files;
  for (const auto& e : std::filesystem::directory_iterator(file_or_folder))
    if (e.path().extension() == ".safetensors" && !e.path().filename().string().starts_with('.'))
      files.push_back(e.path());
  if (files.empty()) fail("verify", "{} has no case files (*.safetensors)", file_or_folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

void VerifySummary::Line::add(const CaseReport& report) {
  ++files;
  passed += report.pass();
  unusable += !report.usable();
  failed += report.usable() && !report.pass();
  tensors += static_cast<i64>(report.checks.size());
  for (const TensorCheck& c : report.checks) {
    max_abs = std::max(max_abs, c.max_abs);
    max_rel = std::max(max_rel, c.max_rel);
    of_tolerance = std::max(of_tolerance, c.of_tolerance);
  }
}

void VerifySummary::add(const CaseReport& report) {
  const std::vector<std::string> order = case_kinds();
  const auto place = [&](const std::string& kind) {
    return std::find(order.begin(), order.end(), kind) - order.begin();
  };
  const std::string kind = place(report.module) < static_cast<std::ptrdiff_t>(order.size()) ? report.module : "-";
  auto line = std::find_if(kinds.begin(), kinds.end(), [&](const Line& l) { return l.kind == kind; });
  if (line == kinds.end()) {
    line = std::find_if(kinds.begin(), kinds.end(), [&](const Line& l) { return place(l.kind) > place(kind); });
    line = kinds.insert(line, Line{.kind = kind});
  }
  line->add(report);
  all.add(report);
}

}  // namespace waymark::train
