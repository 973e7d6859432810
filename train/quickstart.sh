#!/usr/bin/env bash
# The main job: a comparison of position encodings on real text, from an empty machine to a table.
#   bash train/quickstart.sh [--text FILE] [--position LIST] [--attention LIST] [--seeds LIST] [--steps N] [--out DIR]
#     --text FILE       any UTF-8 text in place of the King James Bible
#     --position LIST   encodings, commas between (default: none, sinusoid, learned, shaw, huang-m1 ... m4, rope)
#     --attention LIST  attentions (default: dense)
#     --seeds LIST      0..2 or 0,3,7 (default 0..2)
#     --steps N         updates of each run (default 900)
#     --out DIR         folder of the runs (default runs/quickstart); called again, only what is missing is done
# Two runs at a time. Exit code 1 if a run failed, or if the default comparison does not show what it must.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${WAYMARK_BUILD_DIR:-$root/build/quickstart}
positions='none,sinusoid,learned(max_len=256),shaw,huang-m1,huang-m2,huang-m3,huang-m4,rope'
text= attention=dense seeds=0..2 steps=900 out=runs/quickstart default=1

usage() { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --text | --position | --attention | --seeds | --steps | --out)
      if [[ $# -lt 2 ]]; then echo "quickstart: $1 needs a value" >&2; exit 2; fi ;;&
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
if [[ -n $text ]]; then
  if [[ ! -r $text ]]; then echo "quickstart: cannot read $text" >&2; exit 2; fi
  text=$(cd "$(dirname "$text")" && pwd)/$(basename "$text")
  bash "$root/third_party/setup.sh"
  task="char-mlm(source=file, path=\"$text\", lower=true, collapse=true, context=64, test_lengths=[128,256])"
else
  bash "$root/third_party/setup.sh" --with-text
  task='char-mlm(source=kjv, verse_labels=true, lower=true, collapse=true, context=64, test_lengths=[128,256])'
fi
echo "building the program (once)"
mkdir -p "$build"
if ! cmake -S "$root" -B "$build" -G Ninja -DWAYMARK_TESTS=OFF > "$build/configure.log" 2>&1; then
  cat "$build/configure.log" >&2
  exit 1
fi
cmake --build "$build" --target waymark-cli --parallel "$(nproc)"
waymark=$build/waymark

# Bible programs live in /usr/games on some systems.
export PATH=$PATH:/usr/games
"$waymark" sweep "$root/train/configs/quickstart.toml" --task "$task" --set "model.position=$positions" \
  --set "model.attention=$attention" --seeds "$seeds" --steps "$steps" -j 2 --out "$out"

echo
"$waymark" table "$out" --rows model.position --cols none --no-baselines --pooled \
  --metric test.loss,test@128.loss,test@256.loss,test.accuracy,test@128.accuracy,test@256.accuracy \
  --extra parameters,tokens_per_s --plots "$out/plots" | tee "$out/table.md"
echo
echo "table: $out/table.md   plots: $out/plots/*.svg   in all $((SECONDS - started)) s"

# What the comparison must show, on mean losses at the trained length; anything else is reported as measured.
if [[ $default == 1 ]]; then
  "$waymark" table "$out" --rows model.position --cols none --no-baselines --metric test.loss --format csv |
    awk -F, '
      NR == 1 { for (i = 1; i <= NF; ++i) if ($i == "mean") mean = i }
      NR > 1 { name = $1; gsub(/"/, "", name); sub(/\(.*/, "", name); loss[name] = $mean }
      END {
        best = 1e9; worst = 0
        for (name in loss) {
          if (name ~ /^(none|sinusoid|learned)$/) { if (loss[name] < best) best = loss[name] }
          else if (loss[name] > worst) worst = loss[name]
        }
        if (!(best > worst)) { print "quickstart: an absolute encoding is not worse than every relative one" > "/dev/stderr"; exit 1 }
        if (!(loss["huang-m1"] > loss["huang-m2"])) { print "quickstart: huang-m1 is not worse than huang-m2" > "/dev/stderr"; exit 1 }
      }'
fi
