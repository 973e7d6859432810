// Files that are whole or not there: written under a temporary name in the same folder, synced, renamed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark::train {

// Temporary names begin with this; what is left of a killed process is removed at the next start.
inline constexpr std::string_view kTemporaryPrefix = ".tmp-";

// Replaces `path` by a file of these bytes. Whatever happens, also a kill in the middle or a full disk, `path` is
// afterwards either the old file or the new one. The folder must exist. Error with path and reason.
WAYMARK_API void write_file_atomic(const std::filesystem::path& path, std::string_view bytes);

// Makes new entries of a folder (a rename) survive a loss of power. A file system that cannot do it is no error.
WAYMARK_API void sync_folder(const std::filesystem::path& folder);

// Removes entries of `folder` (not below it) whose names begin with the prefix. Returns how many. A file that a live
// process of this machine is writing stays.
WAYMARK_API i64 remove_temporary_files(const std::filesystem::path& folder);

// The whole file. Error with path and reason, also for a folder and for more than `limit` bytes.
WAYMARK_API std::string read_file(const std::filesystem::path& path, i64 limit = i64{1} << 30);

}  // namespace waymark::train
