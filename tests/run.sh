#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests. Works from any folder.
#   bash tests/run.sh [CMake arguments, e.g. -DWAYMARK_WERROR=ON]
#   WAYMARK_TEST_LEVEL=quick|normal|full   how much the tests do (default normal)
#   WAYMARK_BUILD_DIR=folder               where to build (default build/release)
#   WAYMARK_TEST_WRAPPER="setarch -R"      put before the test commands
# The last line is `N passed, N failed` (at level full the fuzz targets' follow); exit code 1 if anything failed, 2 if the set-up could not be done.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${WAYMARK_BUILD_DIR:-$root/build/release}
jobs=$(nproc)

bash "$root/third_party/setup.sh"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_UNITY_BUILD=ON "$@"
cmake --build "$build" --parallel "$jobs"

cd "$build"
status=0
# shellcheck disable=SC2086  # the wrapper is a command with arguments
${WAYMARK_TEST_WRAPPER:-} ctest --parallel "$jobs" --output-on-failure --no-tests=error || status=1

# ctest counts groups. The log has each group's own `waymark-tests: N passed, N failed`; a test without that line is
# one case, and so is a group that failed in another way (a crash, a sanitizer's report at exit).
awk '
  function close_test() {
    if (!open) return
    if (ok) all_passed += counted ? passed : 1
    else { all_passed += passed; all_failed += failed ? failed : 1 }
  }
  / Testing: / { close_test(); open = 1; ok = counted = passed = failed = 0 }
  /^waymark-tests: [0-9]+ passed, [0-9]+ failed$/ { passed += $2; failed += $4; counted = 1 }
  /^Test Passed\.$|^Test Pass Reason:/ { ok = 1 }
  END { close_test(); printf "%d passed, %d failed\n", all_passed, all_failed }
' Testing/Temporary/LastTest.log

# At length: the libFuzzer targets, two million runs each. They need clang.
if [[ ${WAYMARK_TEST_LEVEL:-} == full ]]; then
  bash "$root/third_party/setup.sh" --with-fuzz
  WAYMARK_BUILD_DIR=$build/fuzz bash "$root/tests/fuzz/run.sh" 2000000 || status=1
fi
exit "$status"
