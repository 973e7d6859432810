#!/usr/bin/env bash
# Builds the fuzz targets with clang (third_party/setup.sh --with-fuzz installs it) and runs each of them.
#   bash tests/fuzz/run.sh [RUNS of each target, default 200000] [TARGET...: npy npz safetensors spec config mask, default all]
# Exit code 1 if a target found something; libFuzzer then names the file that holds the input. An input may take two minutes
# by the clock: on a loaded machine a process waits for ten seconds and more.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
runs=${1:-200000}
shift || true
build=${WAYMARK_BUILD_DIR:-$root/build/fuzz}

CXX=clang++ cmake -S "$root" -B "$build" -G Ninja -DWAYMARK_FUZZ=ON -DWAYMARK_TESTS=OFF
cmake --build "$build" --target fuzz
mkdir -p "$build/findings"
"$build/make_corpus" "$build/corpus"

if [[ $# == 0 ]]; then
  for main in "$root"/tests/fuzz/fuzz_*.cpp; do
    format=$(basename "$main" .cpp)
    set -- "$@" "${format#fuzz_}"
  done
fi

passed=0 failed=0
for format in "$@"; do
  target=$build/fuzz_$format
  case $format in
    spec | config | mask) max_len=1024 ;;  # what is worth finding in texts is short
    *) max_len=65536 ;;
  esac
  mkdir -p "$build/corpus/$format"
  echo "=== $format: $runs runs"
  if "$target" -runs="$runs" -max_len="$max_len" -entropic=0 -timeout=120 -rss_limit_mb=1024 -print_final_stats=1 \
      -artifact_prefix="$build/findings/$format-" "$build/corpus/$format" 2>"$build/findings/$format.log"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
  fi
  tail -n 8 "$build/findings/$format.log"
done
echo "fuzz: $passed passed, $failed failed"
[[ $failed == 0 ]]
