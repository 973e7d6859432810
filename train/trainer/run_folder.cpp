#include "train/trainer/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/io/files.h"
#include "nn/spec/suggest.h"
#include "train/report/escape.h"
#include "train/report/json.h"
#include "train/trainer/machine.h"

namespace waymark::train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kLock = "run.lock";
constexpr const char* kOwn[] = {"config.toml", "overrides.txt", "metrics.jsonl", "result.json", "log.txt",
                                "checkpoints", "position",      "plots",         "report.html"};

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}
// What a lock file says about the process that holds it.
std::string owner_of(const fs::path& lock) {
  try {
    const Json value = parse_json(read_file(lock, 4096), lock.string());
    JsonReader r(value, lock.string());
    return fmt::format("process {} on {} since {}", r.integer("pid"), shorten(r.text("host"), 60),
                       shorten(r.text("start"), 40));
  } catch (const Error&) {
    return "another process";
  }
}
// The id in the first line of config.toml, "# Resolved config of run 3f9a1c07d2e4. ..."; empty if it has none.
std::string id_of_config(const fs::path& file) {
  std::string text;
  try {
    text = read_file(file, 1 << 20);
  } catch (const Error&) {
    return "";
  }
  constexpr std::string_view head = "# Resolved config of run ";
  if (text.rfind(head, 0) != 0) return "";
  const std::string id = text.substr(head.size(), 12);
  return id.size() == 12 && id.find_first_not_of("0123456789abcdef") == std::string::npos ? id : "";
}

}  // namespace

RunFolderState look_at_run_folder(const fs::path& folder) {
  RunFolderState state;
  std::error_code error;
  if (!fs::exists(folder, error)) return state;
  if (!fs::is_directory(folder, error)) {
    state.kind = RunFolderState::Kind::foreign;
    return state;
  }
  state.id = id_of_config(folder / "config.toml");
  if (fs::exists(folder / "result.json", error)) {
    try {
      state.result = load_result(folder / "result.json");
      if (state.id.empty()) state.id = state.result->id;
    } catch (const Error&) {  // a damaged result is no result
    }
  }
  if (state.id.empty()) {
    const bool empty = fs::directory_iterator(folder, error) == fs::directory_iterator();
    state.kind = empty ? RunFolderState::Kind::absent : RunFolderState::Kind::foreign;
  } else {
    const bool finished = state.result && state.result->status == RunStatus::finished && state.result->id == state.id;
    state.kind = finished ? RunFolderState::Kind::finished : RunFolderState::Kind::unfinished;
  }
  return state;
}

std::optional<std::string> place_refusal(const fs::path& folder) {
  if (folder.empty()) return "must name a folder";
  std::error_code error;
  const std::string name = nn::printable(folder.string(), 200);
  fs::path at = folder;
  // The nearest part that is there: a file has no status below it.
  while (!at.empty() && !fs::exists(fs::symlink_status(at, error))) {
    const fs::path parent = at.parent_path();
    if (parent == at) break;
    at = parent;
  }
  if (at.empty()) at = ".";
  const std::string shown = nn::printable(at.string(), 200);
  const fs::file_status there = fs::status(at, error);
  if (!fs::exists(there)) return fmt::format("{}: {} leads nowhere", name, shown);  // a link without an end
  if (!fs::is_directory(there)) return at == folder ? name + " is no folder" : fmt::format("{}: {} is no folder", name, shown);
  if (::access(at.c_str(), W_OK | X_OK) != 0)
    return fmt::format("{} cannot be written: {}", at == folder ? name : name + ": " + shown,
                       std::generic_category().message(errno));
  return std::nullopt;
}

std::optional<std::string> folder_refusal(const fs::path& folder, const RunFolderState& state, const std::string& id,
                                          FolderUse use) {
  using Kind = RunFolderState::Kind;
  const std::string name = nn::printable(folder.string(), 200);
  if (const auto refusal = place_refusal(folder)) return refusal;
  // A run at work; with --force too, and also if it is the very same run.
  if (is_locked(folder)) return fmt::format("{} is in use by {}", name, owner_of(folder / kLock));
  if (use == FolderUse::force) return std::nullopt;
  if (state.kind == Kind::foreign)
    return name + " is not empty and is no run's folder; --force writes into it (and removes nothing but a run's files)";
  if (state.kind == Kind::absent)
    return use == FolderUse::resume ? std::optional("there is no run to resume in " + name) : std::nullopt;
  if (id.empty()) return std::nullopt;
  if (state.id != id && use != FolderUse::resume)
    return fmt::format("{} has another run, {} (this one is {}); --out gives another folder, --force starts again there",
                       name, state.id, id);
  // With --resume another id is an extension, or an error that names the keys: decided by the checkpoint.
  if (state.id == id && state.kind != Kind::finished && use == FolderUse::fresh)
    return name + " has this run, unfinished; --resume continues it, --force starts again";
  return std::nullopt;
}

bool check_folder_use(const fs::path& folder, const RunFolderState& state, const std::string& id, FolderUse use) {
  if (const auto refusal = folder_refusal(folder, state, id, use)) throw ConfigError(Problems{{"--out", *refusal}});
  return use == FolderUse::force || state.kind != RunFolderState::Kind::finished || state.id != id;
}

std::optional<std::string> resume_refusal(const fs::path& from) {
  std::error_code ignored;
  const std::string name = nn::printable(from.string(), 200);
  if (!fs::exists(from, ignored)) return "there is no " + name;
  for (const char* part : {"state.json", "checkpoints", "config.toml"})
    if (fs::exists(from / part, ignored)) return std::nullopt;
  return name + " is neither a checkpoint nor a run's folder";
}

fs::path run_of(const fs::path& from) {
  std::error_code ignored;
  const fs::path folder = from.filename().empty() ? from.parent_path() : from;  // without the last '/'
  const bool checkpoint = fs::exists(folder / "state.json", ignored) && folder.parent_path().filename() == "checkpoints";
  return checkpoint ? folder.parent_path().parent_path() : folder;
}

RunLock::RunLock(const fs::path& folder) : path_(folder / kLock) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd_ < 0) fail("", "cannot write {}: {}", path_.string(), std::generic_category().message(errno));
    // The kernel drops the lock with the process, so a lock that can be had is one whose owner is gone. is_locked() of
    // another process may hold it for a moment.
    int refused = ::flock(fd_, LOCK_EX | LOCK_NB);
    for (int wait = 0; refused != 0 && wait < 5; ++wait) {
      ::usleep(20000);
      refused = ::flock(fd_, LOCK_EX | LOCK_NB);
    }
    if (refused != 0) {
      ::close(fd_);
      fd_ = -1;
      fail("", "{} is in use by {}", nn::printable(folder.string(), 200), owner_of(path_));
    }
    // An owner that just ended may have removed the file that we opened.
    struct stat mine {}, there {};
    if (::fstat(fd_, &mine) == 0 && ::stat(path_.c_str(), &there) == 0 && mine.st_ino == there.st_ino) break;
    ::close(fd_);
    fd_ = -1;
  }
  if (fd_ < 0) fail("", "cannot lock {}", path_.string());
  Json entry;
  entry.set("pid", static_cast<i64>(::getpid())).set("host", host_name()).set("start", utc_now());
  const std::string text = write_json(entry) + "\n";
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    fail("", "cannot write {}: {}", path_.string(), std::generic_category().message(errno));
}

RunLock::~RunLock() {
  ::unlink(path_.c_str());
  ::close(fd_);
}

bool is_locked(const fs::path& folder) {
  const int fd = ::open((folder / kLock).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const bool taken = ::flock(fd, LOCK_SH | LOCK_NB) != 0;  // shared: two that ask do not see each other
  ::close(fd);
  return taken;
}

void clear_run_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const char* name : kOwn) fs::remove_all(folder / name, ignored);
}

}  // namespace waymark::train
