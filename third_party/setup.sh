#!/usr/bin/env bash
# Installs what packages.txt lists: build tools and libraries; with --with-fuzz also clang and its run-time library,
# with --with-text the text of the quickstart.
# Quick when all is there: it asks dpkg only, and calls apt-get for what is missing.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
with_fuzz=0
with_text=0
for argument in "$@"; do
  case $argument in
    --with-fuzz) with_fuzz=1 ;;
    --with-text) with_text=1 ;;
    *) echo "usage: setup.sh [--with-fuzz] [--with-text]" >&2; exit 2 ;;
  esac
done

packages=()
while read -r package key _; do
  case $package in '' | '#'*) continue ;; esac
  case $key in
    fuzz) if [[ $with_fuzz == 0 ]]; then continue; fi ;;
    text) if [[ $with_text == 0 ]]; then continue; fi ;;
  esac
  packages+=("$package")
done < "$here/packages.txt"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup.sh knows Debian and its relatives only. Please install, under the names of this system:" >&2
  grep -v '^#' "$here/packages.txt" | sed '/^ *$/d; s/^/  /' >&2
  exit 2
fi

installed() { [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]; }

missing_packages() {
  local package
  for package in "${packages[@]}"; do installed "$package" || echo "$package"; done
}

# Sanitizers and libFuzzer are in libclang-rt-N-dev since clang 14, for the N that the package `clang` stands for.
clang_runtime() {
  local version
  version=$( (dpkg-query -W -f '${Depends}\n' clang; apt-cache depends clang) 2>/dev/null |
    sed -n 's/.*clang-\([0-9][0-9]*\).*/\1/p' | head -n 1) || true
  if [[ -n $version ]] && apt-cache show "libclang-rt-$version-dev" >/dev/null 2>&1; then
    echo "libclang-rt-$version-dev"
  fi
}

as_root=()
if [[ $(id -u) != 0 ]]; then as_root=(sudo); fi

install_missing() {
  local missing
  mapfile -t missing < <(missing_packages)
  if [[ ${#missing[@]} == 0 ]]; then return; fi
  if [[ ${#as_root[@]} != 0 ]] && ! command -v sudo >/dev/null; then
    echo "setup.sh is not root and there is no sudo. As root, run: apt-get install ${missing[*]}" >&2
    exit 2
  fi
  echo "installing: ${missing[*]}"
  if [[ ${updated:-0} == 0 ]]; then
    "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq
    updated=1
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
    install -y -qq --no-install-recommends "${missing[@]}"
}

install_missing
if [[ $with_fuzz == 1 ]]; then
  runtime=$(clang_runtime)
  if [[ -n $runtime ]]; then packages+=("$runtime"); install_missing; fi
fi
