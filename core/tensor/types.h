// Names of the number types that the whole engine uses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace waymark {

using i8 = std::int8_t;
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

}  // namespace waymark

// Public symbols of a shared build (BUILD_SHARED_LIBS=ON); everything else is hidden.
#if defined(WAYMARK_SHARED)
#define WAYMARK_API __attribute__((visibility("default")))
#else
#define WAYMARK_API
#endif
