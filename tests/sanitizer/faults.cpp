// Faults on purpose: ctest runs this in sanitizer builds and fails unless the sanitizer stops each one.
//   faults race       a loop body that writes what another chunk writes (invisible to TSan if TBB ran the loop)
//   faults overflow   a read behind the end of a heap block
//   faults undefined  a signed overflow
#include <fmt/format.h>

#include <limits>
#include <string_view>
#include <vector>

#include "core/parallel/parallel.h"

int main(int argc, char** argv) {
  const std::string_view fault = argc > 1 ? argv[1] : "";
  if (fault == "race") {
    waymark::set_num_threads(2);
    long sum = 0;
    for (int run = 0; run < 100; ++run)
      waymark::parallel_for(1 << 20, 1 << 12, [&](waymark::i64 begin, waymark::i64 end) { sum += end - begin; });
    fmt::print("not stopped: {}\n", sum);
  } else if (fault == "overflow") {
    std::vector<int> values(static_cast<size_t>(argc), 1);
    fmt::print("not stopped: {}\n", *(values.data() + argc));
  } else if (fault == "undefined") {
    int large = std::numeric_limits<int>::max() - 2;
    large += argc + 1;
    fmt::print("not stopped: {}\n", large);
  }
}
