# waymark-tests, its groups for ctest, and waymark-bench.

if(test_sources AND NOT BUILD_SHARED_LIBS)  # a shared library hides the inner parts that the tests look at
  add_executable(waymark-tests ${test_sources})
  target_include_directories(waymark-tests PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(waymark-tests PRIVATE waymark waymark_flags waymark_dep::doctest)
  foreach(key IN ITEMS random123 nlohmann_json tomlplusplus xxhash openblas libzip zlib)
    if(TARGET waymark_dep::${key})
      target_link_libraries(waymark-tests PRIVATE waymark_dep::${key})
    endif()
  endforeach()
  # Fast asserts: doctest's macros then expand to a call instead of a try block, which halves the compile time.
  target_compile_definitions(waymark-tests PRIVATE DOCTEST_CONFIG_SUPER_FAST_ASSERTS ${backend_definition}
    WAYMARK_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WAYMARK_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(TARGET waymark-cli)
    add_dependencies(waymark-tests waymark-cli)
    target_compile_definitions(waymark-tests PRIVATE WAYMARK_PROGRAM="$<TARGET_FILE:waymark-cli>")
  endif()
  # Tests are compiled once and run once: -O1 saves more than it costs. (The clones' test asks for what -O2 does.)
  target_compile_options(waymark-tests PRIVATE -O1)
  set_source_files_properties(tests/core/kernels/test_clones.cpp PROPERTIES COMPILE_OPTIONS -O2
    SKIP_PRECOMPILE_HEADERS ON)
  set_source_files_properties(tests/main.cpp PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  if(WAYMARK_PCH)
    target_precompile_headers(waymark-tests PRIVATE <doctest/doctest.h> <fmt/format.h> <string> <vector>)
    if(EXISTS ${PROJECT_SOURCE_DIR}/core/tensor/tensor.h)
      target_precompile_headers(waymark-tests PRIVATE ${PROJECT_SOURCE_DIR}/core/tensor/tensor.h)
    endif()
  endif()

  # One ctest entry for each folder, so that ctest -j runs them side by side and names the folder that fails.
  set(folders "")
  foreach(source IN LISTS test_sources)
    get_filename_component(folder ${source} DIRECTORY)
    if(NOT folder STREQUAL "tests")
      list(APPEND folders ${folder})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    set(inner ${folders})
    list(FILTER inner INCLUDE REGEX "^${folder}/")
    set(exclude "")
    if(inner)
      list(TRANSFORM inner REPLACE "(.+)" "*\\1/*")
      list(JOIN inner "," inner)
      set(exclude "-sfe=${inner}")
    endif()
    add_test(NAME ${folder} COMMAND waymark-tests "-sf=*${folder}/*" ${exclude})
    set_tests_properties(${folder} PROPERTIES TIMEOUT 500)
  endforeach()
endif()

if(bench_sources AND TARGET waymark_dep::benchmark)
  add_executable(waymark-bench EXCLUDE_FROM_ALL ${bench_sources})
  target_link_libraries(waymark-bench PRIVATE waymark waymark_flags waymark_dep::benchmark)
endif()

# waymark-headers compiles each header alone, without a precompiled one, to see that it includes what it needs.
foreach(header IN LISTS headers)
  string(MAKE_C_IDENTIFIER ${header} name)
  set(source ${PROJECT_BINARY_DIR}/headers/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n" @ONLY)
  list(APPEND header_sources ${source})
endforeach()
if(header_sources)
  add_library(waymark-headers OBJECT EXCLUDE_FROM_ALL ${header_sources})
  target_compile_options(waymark-headers PRIVATE -fsyntax-only)
  target_link_libraries(waymark-headers PRIVATE waymark waymark_flags)
endif()

# A sanitizer that stops nothing proves nothing: each of these faults must be reported.
if(WAYMARK_SANITIZE)
  add_executable(waymark-faults tests/sanitizer/faults.cpp)
  target_link_libraries(waymark-faults PRIVATE waymark waymark_flags)
  function(waymark_fault sanitizer fault report)
    if(WAYMARK_SANITIZE MATCHES ${sanitizer})
      add_test(NAME tests/sanitizer/${fault} COMMAND waymark-faults ${fault})
      set_tests_properties(tests/sanitizer/${fault} PROPERTIES
        PASS_REGULAR_EXPRESSION "${report}" FAIL_REGULAR_EXPRESSION "not stopped")
    endif()
  endfunction()
  waymark_fault(thread race "data race")
  waymark_fault(address overflow "heap-buffer-overflow")
  waymark_fault(undefined undefined "signed integer overflow")
endif()

# The programs of README.md, and a project that finds an installed Waymark. A sanitized library is not for installing.
include(${PROJECT_SOURCE_DIR}/tests/readme/readme_programs.cmake)
if(NOT WAYMARK_SANITIZE)
  add_test(NAME tests/consumer COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR}
    -D SOURCE=${PROJECT_SOURCE_DIR}/tests/consumer -D GENERATOR=${CMAKE_GENERATOR} -D COMPILER=${CMAKE_CXX_COMPILER}
    -D CONFIG=$<CONFIG> -P ${PROJECT_SOURCE_DIR}/tests/consumer/run.cmake)
endif()
