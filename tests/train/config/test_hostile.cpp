// Mutated configs: whatever a file says, the answer is a config or a list of problems.
#include <doctest/doctest.h>

#include "tests/test_level.h"
#include "tests/text_mutations.h"
#include "tests/train/config/exercise_config.h"

using namespace waymark;

TEST_CASE("config: mutated files and settings") {
  test::check_mutations(test::config_samples(), "[]{}()=,.'\"\\\n #+-*0123456789eabtruefals_\xc3\xbc\x01\x1e",
                  test::by_level(100, 400, 20000), test::exercise_config);
}
