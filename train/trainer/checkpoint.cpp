#include "train/trainer/checkpoint.h"

#include <fmt/format.h>
#include <fcntl.h>
#include <stdio.h>  // renameat2
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "core/io/safetensors.h"
#include "train/config/hash.h"
#include "train/report/json.h"

namespace waymark::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kModel = "model.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kState = "state.json";
constexpr const char* kConfig = "config.toml";

std::string_view word_of(CheckpointKind kind) {
  return kind == CheckpointKind::step ? "step" : kind == CheckpointKind::interrupted ? "interrupted" : "nonfinite";
}
std::string name_of(CheckpointKind kind, i64 step) { return fmt::format("{}-{:08}", word_of(kind), step); }

std::optional<CheckpointName> parse_name(const std::string& name) {
  for (const CheckpointKind kind : {CheckpointKind::step, CheckpointKind::interrupted, CheckpointKind::nonfinite}) {
    const std::string head = std::string(word_of(kind)) + "-";
    if (name.rfind(head, 0) != 0) continue;
    const std::string digits = name.substr(head.size());
    if (digits.size() < 8 || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return {};
    return CheckpointName{name, kind, std::stoll(digits)};
  }
  return {};
}

nn::StateDict read_tensors(const fs::path& file) {
  const SafeTensors tensors = load_safetensors(file);
  nn::StateDict out;
  for (const auto& entry : tensors.entries()) out.emplace_back(entry.name, tensors.get(entry.name));
  return out;
}

// A name for a folder at work that no other process takes.
fs::path temporary(const fs::path& folder, const std::string& name) {
  return folder / fmt::format("{}{}-{}", kTemporaryPrefix, name, ::getpid());
}

// `to` becomes `from`; at no moment is there neither the old nor the new one under that name, where the file system can
// do it.
void put_in_place(const fs::path& from, const fs::path& to) {
  if (fs::exists(to)) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      std::error_code ignored;
      fs::remove_all(from, ignored);  // now the old one
      return;
    }
    fs::remove_all(to);
  }
  fs::rename(from, to);
}

}  // namespace

CheckpointContents load_checkpoint(const fs::path& folder, CheckpointPart part) {
  CheckpointContents out;
  const fs::path state = folder / kState;
  state_from_json(read_file(state), state.string(), out.state, out.facts);
  for (const char* file : {kModel, kOptimizer, kConfig}) {
    if (file == kOptimizer && part == CheckpointPart::weights) continue;
    const auto hash = out.facts.files.find(file);
    if (hash == out.facts.files.end()) fail("", "{}: \"files\" does not name {}", state.string(), file);
    if (xxh128_hex(read_file(folder / file, i64{1} << 40)) != hash->second)
      fail("", "{}: damaged: its bytes are not those that were written", (folder / file).string());
  }
  out.model = read_tensors(folder / kModel);
  if (part == CheckpointPart::all) out.optimizer = read_tensors(folder / kOptimizer);
  out.config = read_file(folder / kConfig);
  return out;
}

std::vector<CheckpointName> CheckpointStore::list() const {
  std::vector<CheckpointName> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored)) {
    const auto name = parse_name(entry.path().filename().string());
    if (name && name->kind != CheckpointKind::nonfinite && entry.is_directory(ignored)) names.push_back(*name);
  }
  std::sort(names.begin(), names.end(), [](const CheckpointName& a, const CheckpointName& b) {
    return a.step != b.step ? a.step > b.step : a.kind < b.kind;
  });
  return names;
}

fs::path CheckpointStore::path_of(i64 step) const { return folder_ / name_of(CheckpointKind::step, step); }

std::string CheckpointStore::save(CheckpointKind kind, const CheckpointContents& contents, std::optional<i64> best,
                                  i64 keep) {
  fs::create_directories(folder_);
  const std::string name = name_of(kind, contents.state.step);
  const fs::path at_work = temporary(folder_, name);
  fs::remove_all(at_work);
  fs::create_directory(at_work);
  save_safetensors(at_work / kModel, contents.model);
  save_safetensors(at_work / kOptimizer, contents.optimizer);
  write_file_atomic(at_work / kConfig, contents.config);
  CheckpointFacts facts = contents.facts;
  facts.files.clear();
  for (const char* file : {kModel, kOptimizer, kConfig}) facts.files[file] = xxh128_hex(read_file(at_work / file, i64{1} << 40));
  write_file_atomic(at_work / kState, state_to_json(contents.state, facts));
  sync_folder(at_work);
  put_in_place(at_work, folder_ / name);
  sync_folder(folder_);

  // The newest is `last`; an interrupted one is only until the next regular one.
  std::vector<CheckpointName> names = list();
  Json index;
  for (const CheckpointName& n : names) {
    if (n.kind != CheckpointKind::step) continue;
    index.set("last", n.name);
    break;
  }
  if (best && fs::exists(path_of(*best))) index.set("best", name_of(CheckpointKind::step, *best));
  if (kind == CheckpointKind::interrupted) index.set("interrupted", name);
  write_file_atomic(folder_ / "index.json", write_json(index, 2) + "\n");

  if (kind != CheckpointKind::step) return name;
  i64 kept = 0;
  for (const CheckpointName& n : names) {
    const bool newest = n.kind == CheckpointKind::step && kept < std::max<i64>(keep, 1);
    if (newest) ++kept;
    if (!newest && !(best && n.kind == CheckpointKind::step && n.step == *best)) remove(n.name);
  }
  return name;
}

void CheckpointStore::remove(const std::string& name) {
  // First out of its name, then piece by piece.
  const fs::path grave = temporary(folder_, "old-" + name);
  std::error_code ignored;
  fs::remove_all(grave, ignored);
  fs::rename(folder_ / name, grave);
  fs::remove_all(grave, ignored);
}

void CheckpointStore::remove_after(i64 step) {
  for (const CheckpointName& n : list())
    if (n.step > step) remove(n.name);
}

void CheckpointStore::remove_temporary() {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, ignored))
    if (entry.path().filename().string().rfind(kTemporaryPrefix, 0) == 0) old.push_back(entry.path());
  for (const fs::path& path : old) fs::remove_all(path, ignored);
}

}  // namespace waymark::train
