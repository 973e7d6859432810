// WAYMARK_CLONES on a function makes the compiler emit it for SSE2, AVX2 and AVX-512, and pick one at program start:
// one portable binary, at native speed (engine.md 11.3).
#pragma once

// The names are levels of the architecture on purpose: clones named after Intel chips fall back to the default on AMD
// without a word. clang before 18 does not know these names. With -march=native there is nothing to choose.
// The resolvers of g++ run before ThreadSanitizer is ready.
#if defined(__x86_64__) && !defined(WAYMARK_NATIVE) && !defined(__SANITIZE_THREAD__) && \
    ((defined(__clang__) && __clang_major__ >= 18) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ >= 12))
#define WAYMARK_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#define WAYMARK_HAS_CLONES 1
#else
#define WAYMARK_CLONES
#define WAYMARK_HAS_CLONES 0
#endif
