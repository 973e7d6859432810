// Problems of a request: all of them are collected, printed together, and answered with exit code 2.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/error.h"

namespace waymark::train {

struct Problem {
  std::string origin = {};    // "tiny.toml:12", "--set", "--position", "default"; may be empty
  std::string text = {};      // further lines are indented when printed
  bool refusal = false;  // the judge refuses the pair: in a sweep such a cell is listed, but is no failure
};
using Problems = std::vector<Problem>;

// The text of the program, one line per problem:
//   2 problems, nothing was read or written
//     tiny.toml:12  model.num_head = 8: unknown key. Did you mean model.num_heads?
//     --position    unknown position encoding roep. Did you mean rope?
WAYMARK_API std::string problems_text(const Problems& problems);

// A request that was wrong. what() is problems_text.
class WAYMARK_API ConfigError : public Error {
 public:
  explicit ConfigError(Problems problems) : Error("", problems_text(problems)), problems_(std::move(problems)) {}
  const Problems& problems() const { return problems_; }

 private:
  Problems problems_;
};

}  // namespace waymark::train
