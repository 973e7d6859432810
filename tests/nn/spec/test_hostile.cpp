// Mutated spec texts: whatever they say, the answer is a value that prints and parses back, or an Error.
#include <doctest/doctest.h>

#include "tests/nn/spec/exercise_spec.h"
#include "tests/test_level.h"
#include "tests/text_mutations.h"

using namespace waymark::test;

TEST_CASE("spec: mutated texts") {
  check_mutations(spec_samples(), "ab1.-+()[]=,\"\\* e\n\xc3\x01", by_level(500, 5000, 200000), exercise_spec);
}
