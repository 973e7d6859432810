# The options of the build and the flags they mean. Targets take the flags by linking waymark_flags privately.

option(WAYMARK_WERROR "Warnings are errors (on in CI)" OFF)
option(WAYMARK_NATIVE "Tune for this machine (-march=native) instead of dispatching at run time" OFF)
option(WAYMARK_PCH "Precompiled headers: fmt for the library; doctest and the tensor for the tests" ON)
option(WAYMARK_TESTS "Build waymark-tests (and waymark-bench, when asked for by name)" ${PROJECT_IS_TOP_LEVEL})
set(WAYMARK_BACKEND tbb CACHE STRING "Thread backend: tbb, threads or serial")
set_property(CACHE WAYMARK_BACKEND PROPERTY STRINGS tbb threads serial)
set(WAYMARK_SANITIZE "" CACHE STRING "Halting sanitizers: address,undefined or thread")

if(NOT WAYMARK_BACKEND MATCHES "^(tbb|threads|serial)$")
  message(FATAL_ERROR "WAYMARK_BACKEND is '${WAYMARK_BACKEND}'; it must be tbb, threads or serial")
endif()
if(WAYMARK_SANITIZE MATCHES "thread" AND WAYMARK_BACKEND STREQUAL "tbb")
  message(FATAL_ERROR "ThreadSanitizer cannot see inside Debian's TBB: add -DWAYMARK_BACKEND=threads")
endif()
# Release is -O3 with g++ and clang.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

add_library(waymark_flags INTERFACE)
target_compile_options(waymark_flags INTERFACE
  -fopenmp-simd -fno-math-errno -fno-trapping-math -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of g++ 12 inside std::string's operator+ (GCC bug 105651).
  target_compile_options(waymark_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
endif()
if(WAYMARK_WERROR)
  target_compile_options(waymark_flags INTERFACE -Werror)
endif()
if(WAYMARK_NATIVE)
  target_compile_options(waymark_flags INTERFACE -march=native)
  target_compile_definitions(waymark_flags INTERFACE WAYMARK_NATIVE)
endif()
if(WAYMARK_SANITIZE)
  # -O1 comes after the build type's own level and wins: these builds are for finding faults, and must compile fast.
  target_compile_options(waymark_flags INTERFACE
    -O1 -g1 -fno-omit-frame-pointer -fsanitize=${WAYMARK_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(waymark_flags INTERFACE -fsanitize=${WAYMARK_SANITIZE})
endif()
target_link_options(waymark_flags INTERFACE -Wl,--as-needed)
