// safetensors: named tensors in one file (https://github.com/huggingface/safetensors, README "Format").
//
//   8 bytes     length N of the header, little-endian; 2 <= N <= 100,000,000
//   N bytes     JSON: {"__metadata__": {text: text, ...}, "name": {"dtype": "F32", "shape": [2, 3],
//               "data_offsets": [begin, end]}, ...}, padded with spaces; offsets count from the end of the header
//   the rest    row-major little-endian data of all tensors, without gaps or overlaps
//
// A file is checked in full when it is opened, its data when a tensor is read: a broken or hostile file is an Error
// that names the place, and never costs more memory than a small multiple of its size.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/elements.h"
#include "core/io/files.h"
#include "core/tensor/tensor.h"

namespace waymark {

using Metadata = std::map<std::string, std::string>;

// An open file. Copies share it; reading is thread-safe.
class WAYMARK_API SafeTensors {
 public:
  struct Entry {
    std::string name;
    FileDType dtype{};
    Shape shape;
    i64 begin = 0, end = 0;  // bytes of the data, counted from its start
  };

  // In the order of the header.
  const std::vector<Entry>& entries() const { return contents_->entries; }
  std::vector<std::string> names() const;
  size_t size() const { return entries().size(); }
  // Null if there is none of this name.
  const Entry* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Reads the tensor now: F64 and F32 as they are, F16 and BF16 as f32, integers as i64, BOOL as b8.
  Tensor get(std::string_view name) const;
  const Metadata& metadata() const { return contents_->metadata; }
  // For messages: the path.
  const std::string& origin() const { return contents_->source->name(); }

 private:
  struct Contents {
    Bytes source;
    i64 data_begin = 0;
    std::vector<Entry> entries;
    std::vector<u32> by_name;  // indices of entries, sorted by name
    Metadata metadata;
  };
  friend SafeTensors load_safetensors(Bytes source);
  explicit SafeTensors(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

WAYMARK_API SafeTensors load_safetensors(const std::filesystem::path& path);
WAYMARK_API SafeTensors load_safetensors(Bytes source);

struct SafeTensorsOptions {
  std::optional<FileDType> floats{};  // write f32 and f64 tensors as F16 or BF16; absent: as they are
};

// Writes the file atomically, larger elements first, then by name: the same tensors always give the same bytes.
// Weight files carry the metadata `format` = `pt`; other readers refuse them without it.
// Error if a name appears twice or is no UTF-8 text of at most 4 KiB without NUL, or if it is `__metadata__`.
WAYMARK_API void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                                  const Metadata& metadata = {{"format", "pt"}},
                                  const SafeTensorsOptions& options = {});

}  // namespace waymark
