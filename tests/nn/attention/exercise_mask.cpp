#include "tests/nn/attention/exercise_mask.h"

#include <cstdlib>

#include "core/tensor/error.h"
#include "nn/attention/mask.h"

namespace waymark::test {

bool exercise_mask(const std::string& text) {
  nn::Mask m;
  try {
    m = nn::Mask::parse(text);
  } catch (const Error&) {
    return false;
  }
  // Not a doctest check: the fuzz target is built without doctest.
  const auto require = [](bool ok) {
    if (!ok) std::abort();
  };
  const std::string canonical = m.to_string();
  // Canonical text has no more brackets than the text it came from, but negations and parts may stand deeper.
  nn::Mask again;
  try {
    again = nn::Mask::parse(canonical);
  } catch (const Error&) {
    require(false);
  }
  require(again.to_string() == canonical);
  require(again.is_all() == m.is_all() && again.implies_causal() == m.implies_causal() && again.key_only() == m.key_only());
  require(again.per_head() == m.per_head() && again.max_distance() == m.max_distance() && again.inputs() == m.inputs());
  require((~~m).to_string() == canonical);
  return true;
}

const std::vector<std::string>& mask_samples() {
  static const std::vector<std::string> samples = {
      "all()", "none()", "causal() & window(64, 64) | global(count=1)", "window(left=3, right=0, dilation=2)",
      "blocks(4, before=1, after=1) & ~columns({3, 5})", "strided(5) | summary(5, 2)", "global({0, 5})", "rows({})",
      "prefix(4) & documents(input)", "random_blocks(4, 2, seed=7)", "lengths({5, 3})", "keys(input) & dense(input)",
      "heads({causal(), window(2, 2), (all() | none()) & ~causal()})", "documents({0, 0, -1, 1})", "~(~~causal() | global(input))",
      "window(1)", "window(1, 2, 3, 4)", "blocks(0)", "summary(2, 3)", "global(count=1, slots={0})", "heads({heads({all()})})",
      "windw(1, 2)", "causal() causal()", "((((causal()))))", "", "window(99999999999999999999, 1)"};
  return samples;
}

}  // namespace waymark::test
