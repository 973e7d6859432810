// Where data comes from: files in known places, and programs of the system. Nothing here opens a network connection.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace waymark::train {

// `data.dir` of the config first (if it is not empty), then $WAYMARK_DATA, ./data, and the system's folders.
std::vector<std::filesystem::path> data_folders(const std::string& data_dir);
// The first of the names that is a file in one of the folders.
std::optional<std::filesystem::path> find_data_file(const std::vector<std::filesystem::path>& folders,
                                                    const std::vector<std::string>& names);

// A file by its name: as it stands, from the working directory if it is relative, then in the folders above. ConfigError
// with the places searched if it is nowhere.
std::filesystem::path find_text_file(const std::string& data_dir, const std::filesystem::path& name);

// The King James Bible: kjv.txt in one of the folders, else what `bible -f gen1:1-rev22:21` of the Debian package
// bible-kjv prints. 31,102 lines "Ge1:1 In the beginning ..."; without `labels` each line begins after its first space.
// ConfigError with the places searched and the package if it is nowhere, or if it is another text.
std::string read_kjv(const std::string& data_dir, bool labels);
// tinyshakespeare.txt or tinyshakespeare/input.txt (karpathy/char-rnn, data/tinyshakespeare/input.txt).
std::string read_shakespeare(const std::string& data_dir);
// Licence texts that Debian installs in /usr/share/common-licenses: GPL-3, Apache-2.0 and MPL-2.0 behind each other, and
// GFDL-1.3 for measuring.
struct LicenseTexts {
  std::string training = {}, measured = {};
};
LicenseTexts read_licenses(const std::string& data_dir);

}  // namespace waymark::train
