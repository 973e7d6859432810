// The folder of a run: what is in it already, who works in it, and its fixed files.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "train/config/config.h"
#include "train/report/result.h"

namespace waymark::train {

// config.toml, overrides.txt, metrics.jsonl, result.json, log.txt, checkpoints/, position/, run.lock.
struct RunFolderState {
  enum class Kind : u8 {
    absent,      // no folder, or an empty one
    finished,    // a run that finished
    unfinished,  // a run that was interrupted, failed, or was killed
    foreign,     // something that is no run
  };
  Kind kind = Kind::absent;
  std::string id = {};  // of the run, if it is one
  std::optional<RunResult> result = {};
};
WAYMARK_API RunFolderState look_at_run_folder(const std::filesystem::path& folder);

// Why a folder can neither be made nor written here: a part of the path is a file, or may not be written; else nothing.
WAYMARK_API std::optional<std::string> place_refusal(const std::filesystem::path& folder);

enum class FolderUse : u8 { fresh, resume, force };
// Why a run with this id may not use the folder so, and what would be right; nothing if it may, or if there is nothing
// to do. Nothing is changed. Without an id what depends on it is not asked.
WAYMARK_API std::optional<std::string> folder_refusal(const std::filesystem::path& folder, const RunFolderState& state,
                                                      const std::string& id, FolderUse use);
// True: a run with this id may use the folder so. False: it is finished, there is nothing to do. ConfigError with
// folder_refusal otherwise.
WAYMARK_API bool check_folder_use(const std::filesystem::path& folder, const RunFolderState& state,
                                  const std::string& id, FolderUse use);

// Why nothing can be resumed from here; nothing if it is a checkpoint or the folder of a run.
WAYMARK_API std::optional<std::string> resume_refusal(const std::filesystem::path& from);
// The run that a checkpoint belongs to; anything else is taken for the folder of a run itself.
WAYMARK_API std::filesystem::path run_of(const std::filesystem::path& from);

// Held while a run works in its folder: <folder>/run.lock with pid, host and start time. A lock of a process that is
// gone is taken over. Error naming the process if another one holds it.
class WAYMARK_API RunLock {
 public:
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Is a run at work in this folder now?
WAYMARK_API bool is_locked(const std::filesystem::path& folder);

// Removes what an earlier run wrote, nothing else.
WAYMARK_API void clear_run_folder(const std::filesystem::path& folder);

}  // namespace waymark::train
