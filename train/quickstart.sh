#!/usr/bin/env bash
# The main job: a comparison of position encodings on real text, from an empty machine to a table.
#   bash train/quickstart.sh [--text FILE] [--position LIST] [--attention LIST] [--seeds LIST] [--steps N] [--out DIR]
#     --text FILE       any UTF-8 text in place of the King James Bible
#     --position LIST   encodings, commas between (default: none, sinusoid, learned, shaw, huang-m1 ... m4, rope)
#     --attention LIST  attentions (default: dense)
#     --seeds LIST      0..2 or 0,3,7 (default 0..2)
#     --steps N         updates of each run (default 900)
#     --out DIR         folder of the runs (default runs/quickstart, with the text's name and the steps behind it if they
#                       are others: one table is of one task); called again, only what is missing is done
# Trained on the first nine tenths of the text, measured on the last. Two runs at a time. Exit code 1 if a run failed, or
# if the default comparison does not show what it must; 2 if the request was wrong.
# Variables: WAYMARK_BUILD_DIR=DIR builds there (default build/quickstart); WAYMARK_PROGRAM=FILE is a program that is
# built already: then nothing is installed and nothing is built.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${WAYMARK_BUILD_DIR:-$root/build/quickstart}
waymark=${WAYMARK_PROGRAM:-$build/waymark}
positions='none,sinusoid,learned(max_len=256),shaw,huang-m1,huang-m2,huang-m3,huang-m4,rope'
text= attention=dense seeds=0..2 steps=900 out= default=1

usage() { sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
wrong() { echo "quickstart: $1" >&2; exit 2; }
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --text | --position | --attention | --seeds | --steps | --out)
      if [[ $# -lt 2 || -z $2 ]]; then wrong "$1 needs a value"; fi ;;&
    --text) text=$2; default=0; shift 2 ;;
    --position) positions=$2; default=0; shift 2 ;;
    --attention) attention=$2; default=0; shift 2 ;;
    --seeds) seeds=$2; shift 2 ;;
    --steps) steps=$2; default=0; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --text=* | --position=* | --attention=* | --seeds=* | --steps=* | --out=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    *) echo "quickstart: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
done

started=$SECONDS
if [[ -z $out ]]; then
  out=runs/quickstart
  if [[ -n $text ]]; then out+=-$(basename "$text"); fi
  if [[ $steps != 900 ]]; then out+=-$steps; fi
fi
recipe='lower=true, collapse=true, context=64, test_lengths=[128,256]'
if [[ -n $text ]]; then
  if [[ ! -f $text || ! -r $text ]]; then wrong "cannot read $text"; fi
  text=$(cd "$(dirname "$text")" && pwd)/$(basename "$text")
  # The path stands between quotes in a spec.
  quoted=${text//\\/\\\\}
  task="char-mlm(source=file, path=\"${quoted//\"/\\\"}\", $recipe)"
else
  task="char-mlm(source=kjv, verse_labels=true, $recipe)"
fi

if [[ -z ${WAYMARK_PROGRAM:-} ]]; then
  if [[ -n $text ]]; then bash "$root/third_party/setup.sh"; else bash "$root/third_party/setup.sh" --with-text; fi
  echo "building the program (once)"
  mkdir -p "$build"
  if ! cmake -S "$root" -B "$build" -G Ninja -DWAYMARK_TESTS=OFF -DCMAKE_UNITY_BUILD=ON > "$build/configure.log" 2>&1; then
    cat "$build/configure.log" >&2
    exit 1
  fi
  cmake --build "$build" --target waymark-cli --parallel "$(nproc)"
fi

# Bible programs live in /usr/games on some systems.
export PATH=$PATH:/usr/games
status=0
"$waymark" sweep "$root/train/configs/quickstart.toml" --task "$task" --set "model.position=$positions" \
  --set "model.attention=$attention" --seeds "$seeds" --steps "$steps" -j 2 --out "$out" || status=$?
# Failed runs are a part of the table; a wrong request or an interruption is the end.
if [[ $status -gt 1 ]]; then exit "$status"; fi

echo
"$waymark" table "$out" --rows model.position --cols none --no-baselines --pooled \
  --metric test.loss,test@128.loss,test@256.loss,test.accuracy,test@128.accuracy,test@256.accuracy \
  --extra parameters,tokens_per_s --plots "$out/plots" | tee "$out/table.md"
echo
echo "table: $out/table.md   plots: $out/plots/*.svg   in all $((SECONDS - started)) s"

if [[ $status != 0 ]]; then exit "$status"; fi

# What the comparison must show, on mean losses at the trained length; anything else is reported as measured.
if [[ $default == 1 ]]; then
  "$waymark" table "$out" --rows model.position --cols none --no-baselines --metric test.loss --format csv |
    awk -f "$root/train/quickstart_check.awk"
fi
