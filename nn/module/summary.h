// summary(model): its parameters as a table, one line each.
//
//   parameter       shape       count
//   fc1.weight      [128, 64]   8,192
//   fc1.bias        [128]         128
//   2 parameters                8,320
#pragma once

#include <string>
#include <vector>

#include "nn/module/module.h"

namespace waymark::nn {

struct WAYMARK_API Summary {
  struct Row {
    std::string name = {};
    Shape shape = {};
    i64 count = 0;       // elements
    bool no_decay = false;
    bool trained = true;  // requires_grad
  };
  std::vector<Row> rows = {};  // in the order of named_parameters()
  i64 total = 0;          // elements of all parameters, shared ones once
  i64 bytes = 0;

  std::string to_string() const;
};

WAYMARK_API Summary summary(const ModuleBase& model);
// Elements of all parameters.
WAYMARK_API i64 count_parameters(const ModuleBase& model);

// 1234567 -> "1,234,567"
WAYMARK_API std::string with_commas(i64 n);

}  // namespace waymark::nn

template <> struct WAYMARK_API fmt::formatter<waymark::nn::Summary> : waymark::PlainText {
  fmt::appender format(const waymark::nn::Summary& value, fmt::format_context& c) const;
};
