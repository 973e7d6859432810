# Reads `waymark table --rows model.position --metric test.loss --format csv` and fails unless every relative encoding is
# better than every absolute one, and huang-m2 better than huang-m1, by mean loss.
BEGIN { FS = "," }
NR == 1 {
  for (i = 1; i <= NF; ++i) if ($i == "mean") mean = i
}
NR > 1 && mean && $mean != "" {
  name = $1
  gsub(/"/, "", name)
  sub(/\(.*/, "", name)
  loss[name] = $mean + 0
}
function complain(text) {
  print "quickstart: " text > "/dev/stderr"
  bad = 1
}
END {
  count = split("none sinusoid learned shaw huang-m1 huang-m2 huang-m3 huang-m4 rope", wanted, " ")
  for (i = 1; i <= count; ++i) {
    name = wanted[i]
    if (!(name in loss)) {
      complain("the table has no loss of " name)
      continue
    }
    if (i <= 3) {
      if (best == "" || loss[name] < best) best = loss[name]
    } else if (worst == "" || loss[name] > worst) worst = loss[name]
  }
  if (bad) exit 1
  if (!(best > worst)) complain("an absolute encoding is not worse than every relative one")
  if (!(loss["huang-m1"] > loss["huang-m2"])) complain("huang-m1 is not worse than huang-m2")
  exit bad
}
