# Fuzz targets, one for each tests/fuzz/fuzz_*.cpp; tests/fuzz/run.sh builds and runs them.

file(GLOB fuzz_mains CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.cpp)
file(GLOB fuzz_samples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/core/io/hostile_*.cpp)

add_library(fuzz_support STATIC EXCLUDE_FROM_ALL tests/fuzz/memory_watch.cpp tests/core/io/exercise.cpp)
target_include_directories(fuzz_support PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(fuzz_support PUBLIC waymark waymark_flags)

add_executable(make_corpus EXCLUDE_FROM_ALL tests/fuzz/make_corpus.cpp ${fuzz_samples})
target_include_directories(make_corpus PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(make_corpus PRIVATE waymark_flags waymark_dep::fmt waymark_dep::zlib)

add_custom_target(fuzz DEPENDS make_corpus)
foreach(main IN LISTS fuzz_mains)
  get_filename_component(name ${main} NAME_WE)
  add_executable(${name} EXCLUDE_FROM_ALL ${main})
  target_link_libraries(${name} PRIVATE fuzz_support)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzz ${name})
endforeach()
