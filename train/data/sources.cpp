#include "train/data/sources.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "core/io/files.h"
#include "core/tensor/error.h"
#include "train/config/problem.h"

namespace waymark::train {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void missing(std::string text) { throw ConfigError(Problems{{"data", std::move(text)}}); }

std::string places(const std::vector<fs::path>& folders, const std::vector<std::string>& names) {
  std::string text;
  for (const fs::path& folder : folders)
    for (const std::string& name : names) text += fmt::format("\n{}", (folder / name).string());
  return text;
}

// The program's file, as the shell would find it.
std::optional<fs::path> on_path(const std::string& program) {
  const char* list = std::getenv("PATH");
  std::string folders = list ? list : "";
  while (!folders.empty()) {
    const size_t colon = std::min(folders.find(':'), folders.size());
    const fs::path candidate = fs::path(folders.substr(0, colon)) / program;
    folders.erase(0, colon + 1);
    if (::access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate)) return candidate;
  }
  // Debian puts games where root's PATH does not look.
  const fs::path games = fs::path("/usr/games") / program;
  if (::access(games.c_str(), X_OK) == 0) return games;
  return std::nullopt;
}

std::string output_of(const std::string& command) {
  struct Close {
    void operator()(std::FILE* f) const { ::pclose(f); }
  };
  std::unique_ptr<std::FILE, Close> pipe(::popen(command.c_str(), "r"));
  if (!pipe) return "";
  std::string out, buffer(1 << 16, '\0');
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) out.append(buffer, 0, n);
  return out;
}

constexpr std::ptrdiff_t kVerses = 31102;

void check_kjv(const std::string& text, const std::string& origin) {
  const auto lines = std::count(text.begin(), text.end(), '\n');
  if (text.rfind("Ge1:1 In the beginning God created", 0) == 0 && lines == kVerses) return;
  missing(fmt::format("{}: this is not the King James Bible as `bible -f gen1:1-rev22:21` prints it ({} lines, must be "
                      "{}, the first one \"Ge1:1 In the beginning ...\")",
                      origin, lines, kVerses));
}

}  // namespace

std::vector<fs::path> data_folders(const std::string& data_dir) {
  std::vector<fs::path> folders;
  if (!data_dir.empty()) folders.emplace_back(data_dir);
  if (const char* set = std::getenv("WAYMARK_DATA"); set && *set) folders.emplace_back(set);
  for (const char* fixed : {"data", "/usr/local/share/datasets", "/usr/share/datasets"}) folders.emplace_back(fixed);
  return folders;
}

std::optional<fs::path> find_data_file(const std::vector<fs::path>& folders, const std::vector<std::string>& names) {
  for (const fs::path& folder : folders)
    for (const std::string& name : names)
      if (std::error_code ignored; fs::is_regular_file(folder / name, ignored)) return folder / name;
  return std::nullopt;
}

fs::path find_text_file(const std::string& data_dir, const fs::path& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored)) return name;
  if (name.is_absolute()) missing(fmt::format("{}: there is no such file", name.string()));
  const auto folders = data_folders(data_dir);
  if (const auto found = find_data_file(folders, {name.string()})) return *found;
  missing(fmt::format("{}: there is no such file. Searched:\n{}{}", name.string(), fs::absolute(name, ignored).string(),
                      places(folders, {name.string()})));
}

std::string read_kjv(const std::string& data_dir, bool labels) {
  const auto folders = data_folders(data_dir);
  std::string text;
  if (const auto file = find_data_file(folders, {"kjv.txt"})) {
    text = read_file(*file);
    check_kjv(text, file->string());
  } else {
    const auto program = on_path("bible");
    if (!program)
      missing(fmt::format("the King James Bible was not found. Install the Debian package: sudo apt-get install "
                          "bible-kjv\nSearched: the program `bible` on PATH{}",
                          places(folders, {"kjv.txt"})));
    text = output_of(fmt::format("'{}' -f gen1:1-rev22:21 2>/dev/null </dev/null", program->string()));
    check_kjv(text, program->string() + " -f gen1:1-rev22:21");
  }
  if (labels) return text;
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t space = std::min(text.find(' ', at), end);
    if (!out.empty()) out += '\n';
    if (space < end) out.append(text, space + 1, end - space - 1);
    at = end + 1;
  }
  return out;
}

std::string read_shakespeare(const std::string& data_dir) {
  const auto folders = data_folders(data_dir);
  const std::vector<std::string> names = {"tinyshakespeare.txt", "tinyshakespeare/input.txt"};
  const auto file = find_data_file(folders, names);
  if (!file)
    missing(fmt::format("tinyshakespeare was not found. Get data/tinyshakespeare/input.txt of karpathy/char-rnn, save it "
                        "as data/tinyshakespeare.txt or name its folder by --data-dir\nSearched:{}",
                        places(folders, names)));
  return read_file(*file);
}

LicenseTexts read_licenses(const std::string& data_dir) {
  auto folders = data_folders(data_dir);
  folders.emplace_back("/usr/share/common-licenses");
  const auto read = [&](const std::string& name) {
    const auto file = find_data_file(folders, {name});
    if (!file)
      missing(fmt::format("the licence text {} was not found. Debian has it in /usr/share/common-licenses (package "
                          "base-files); elsewhere put it into a folder and name that by --data-dir\nSearched:{}",
                          name, places(folders, {name})));
    return read_file(*file);
  };
  return {read("GPL-3") + "\n" + read("Apache-2.0") + "\n" + read("MPL-2.0"), read("GFDL-1.3")};
}

}  // namespace waymark::train
