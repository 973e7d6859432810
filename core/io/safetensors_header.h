// Internal. The JSON header of a safetensors file, as text and as entries. What the text alone can show is checked
// here: kinds of values, names, duplicates, nesting, numbers. What needs the file's length is checked in
// safetensors.cpp.
#pragma once

#include "core/io/safetensors.h"

namespace waymark {

struct SafeTensorsHeader {
  std::vector<SafeTensors::Entry> entries;  // in the order of the text; names not yet compared with each other
  Metadata metadata;
};

inline constexpr i64 kHeaderStart = 8;  // after the length
inline constexpr i64 kHeaderLimit = 100'000'000;
inline constexpr std::string_view kMetadataName = "__metadata__";

// `origin` is the file's name, for messages.
SafeTensorsHeader parse_safetensors_header(std::string_view text, const std::string& origin);

// Without padding.
std::string write_safetensors_header(const std::vector<SafeTensors::Entry>& entries, const Metadata& metadata,
                                     const std::string& origin);

}  // namespace waymark
