// Random programs, and what is done with them: run by both sides, compared, shrunk.
#pragma once

#include <map>

#include "tests/graph/program.h"

namespace waymark::test::graph {

// 5 to 60 ops. The same seed gives the same program.
Program random_program(u64 seed);

enum class Outcome { equal, different, refused };
struct Comparison {
  Outcome outcome = Outcome::equal;
  std::string message;  // of the difference, or of the refusal (a saved value was overwritten)
};
// Values, gradients and second derivatives along the direction, by the engine and by the tape.
Comparison compare(const Program& p);

// The smallest program found that still differs.
Program shrink(Program p);

}  // namespace waymark::test::graph
