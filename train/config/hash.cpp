#include "train/config/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace waymark::train {

std::string xxh128_hex(std::string_view bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", h.high64, h.low64);  // the canonical order: high half first
}

}  // namespace waymark::train
