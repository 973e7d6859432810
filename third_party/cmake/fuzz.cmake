# Fuzz targets, one for each tests/fuzz/fuzz_*.cpp; tests/fuzz/run.sh builds and runs them.

# Only what reads the bytes of strangers is compiled (of the archive below the linker takes what the targets use): with
# clang and sanitizers the whole library would take ten times as long. train/config/registries.cpp, which joins the
# config to the rest of the house, is left out; the targets bring registries of their own.
file(GLOB fuzzed_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/io/*.cpp ${PROJECT_SOURCE_DIR}/core/tensor/*.cpp
  ${PROJECT_SOURCE_DIR}/nn/spec/*.cpp ${PROJECT_SOURCE_DIR}/nn/attention/mask.cpp
  ${PROJECT_SOURCE_DIR}/nn/attention/mask_text.cpp ${PROJECT_SOURCE_DIR}/train/config/*.cpp
  ${PROJECT_SOURCE_DIR}/train/report/escape.cpp)
list(FILTER fuzzed_sources EXCLUDE REGEX "train/config/registries.cpp$")
file(GLOB fuzz_mains CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.cpp)
file(GLOB fuzz_exercises CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/core/io/exercise.cpp
  ${PROJECT_SOURCE_DIR}/tests/nn/*/exercise_*.cpp ${PROJECT_SOURCE_DIR}/tests/train/config/exercise_*.cpp)
file(GLOB fuzz_samples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/core/io/hostile_*.cpp)

add_library(fuzz_support STATIC EXCLUDE_FROM_ALL tests/fuzz/memory_watch.cpp ${fuzz_exercises} ${fuzzed_sources})
target_include_directories(fuzz_support PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
target_link_libraries(fuzz_support PUBLIC waymark_flags Threads::Threads)
foreach(key IN ITEMS fmt nlohmann_json libzip zlib tomlplusplus xxhash)
  target_link_libraries(fuzz_support PUBLIC waymark_dep::${key})
endforeach()

add_executable(make_corpus EXCLUDE_FROM_ALL tests/fuzz/make_corpus.cpp ${fuzz_samples})
target_link_libraries(make_corpus PRIVATE fuzz_support)

add_custom_target(fuzz DEPENDS make_corpus)
foreach(main IN LISTS fuzz_mains)
  get_filename_component(name ${main} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${main})
  target_link_libraries(${name} PRIVATE fuzz_support)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz ${name})
endforeach()
