// Internal: marks memory that nobody may touch, for AddressSanitizer; nothing in other builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define WAYMARK_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WAYMARK_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(WAYMARK_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace waymark {

#if defined(WAYMARK_ADDRESS_SANITIZER)
inline void poison_memory(const void* p, std::size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void unpoison_memory(const void* p, std::size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
inline void poison_memory(const void*, std::size_t) {}
inline void unpoison_memory(const void*, std::size_t) {}
#endif

}  // namespace waymark
