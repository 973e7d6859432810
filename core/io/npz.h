// npz: several npy arrays in one zip archive, as numpy.savez and savez_compressed write it. Member "x.npy" is array "x".
//
// Members are stored or deflated; zip64 is read. Refused are archives on several disks, with a comment or anything
// else around them, encrypted members, other methods of compression, two members of one name, and sizes or checksums
// that disagree anywhere. Names are labels; nothing is looked up on disk by them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/npy.h"

namespace waymark {

// An open archive. Copies share it; reading is thread-safe.
class WAYMARK_API Npz {
 public:
  // In the order of the archive.
  const std::vector<std::string>& names() const;
  size_t size() const { return names().size(); }
  bool contains(std::string_view name) const;
  // Reads the array now and checks its checksum; dtypes as load_npy.
  Tensor get(std::string_view name) const;
  struct Info {
    FileDType dtype{};
    Shape shape;
  };
  // What the header of the array says; its data is not read.
  Info info(std::string_view name) const;
  // For messages: the path.
  const std::string& origin() const;

 private:
  struct Contents;
  class Reading;
  friend Npz load_npz(Bytes source);
  explicit Npz(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

WAYMARK_API Npz load_npz(const std::filesystem::path& path);
WAYMARK_API Npz load_npz(Bytes source);

struct NpzOptions {
  bool compress = false;  // deflate the members
  NpyOptions arrays{};
};

// Written atomically, members in the order given; the same tensors always give the same bytes. Error if a name appears
// twice, is no UTF-8 text of at most 4 KiB without NUL, or is empty.
WAYMARK_API void save_npz(const std::filesystem::path& path, const NamedTensors& tensors,
                          const NpzOptions& options = {});

}  // namespace waymark
