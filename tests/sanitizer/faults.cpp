// Faults on purpose: ctest runs this in sanitizer builds and fails unless the sanitizer stops each one.
//   faults race       a loop body that writes what another chunk writes (invisible to TSan if TBB ran the loop)
//   faults overflow   a read behind the end of a heap block
//   faults freed      a read of tensor memory that went back to the allocator, which keeps it
//   faults tail       a read behind the last element of a tensor, within what the allocator rounded up to
//   faults undefined  a signed overflow
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "core/parallel/parallel.h"
#include "core/tensor/tensor.h"

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
  } else if (fault == "freed" || fault == "tail") {
    waymark::Tensor t = waymark::make_empty({argc + 9}, waymark::kF32);
    const float* values = t.data<float>();
    std::fill_n(t.data<float>(), t.numel(), 1.0F);
    if (fault == "freed") t = waymark::Tensor();
    fmt::print("not stopped: {}\n", fault == "freed" ? values[4] : values[argc + 10]);
  } else if (fault == "undefined") {
    int large = std::numeric_limits<int>::max() - 2;
    large += argc + 1;
    fmt::print("not stopped: {}\n", large);
  }
}
