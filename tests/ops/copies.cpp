// Ops that promise a copy never share memory with their inputs, whatever their arguments; views always do.
#include <doctest/doctest.h>

#include <set>

#include "core/ops/registry.h"
#include "tests/ops/instance.h"
#include "tests/ops/values.h"

namespace waymark::test {
namespace {

bool shares_memory(const Tensor& a, const Tensor& b) {
  return a.numel() > 0 && b.numel() > 0 && a.impl()->storage == b.impl()->storage;
}
// A view where strides, dtype or arguments allow it, else a copy.
bool may_be_either(std::string_view op) {
  static const std::set<std::string_view> names = {"reshape", "flatten",  "unflatten", "ravel",
                                                   "contiguous", "to",    "positive",  "einsum", "dropout", "index",
                                                   "sum_to_size"};
  return names.contains(op);
}

}  // namespace

TEST_CASE("op cases: copies share no memory with the inputs, views share all of it") {
  for (const OpCase& c : all_cases()) {
    const OpInfo* op = find_op(c.op);
    if (!op || !op->apply || may_be_either(c.op)) continue;
    for (const MemoryLayout layout : {MemoryLayout::contiguous, MemoryLayout::permuted}) {
      const Instance x = instance(op, title_of(c), c.args, layout, 1);
      INFO(x.title);
      for (const Tensor& y : x.run(x.leaves)) {
        bool shared = false;
        for (const Tensor& t : x.leaves) shared |= shares_memory(y, t);
        if (y.numel() > 0) CHECK(shared == op->view);
      }
    }
  }
}

TEST_CASE("copies stay copies where there is nothing to do") {
  const Tensor x = leaf({2, 3}, {1, 2, 3, 4, 5, 6}), one = leaf({1, 1}, {2}), scalar = leaf({}, {2});
  const Tensor none = make_empty({0}, kI64), nothing = make_empty({0, 3}, kF64);
  struct Row {
    const char* op;
    std::vector<std::pair<const char*, Argument>> arguments;
  };
  const std::vector<Row> rows = {
      {"clone", {{"input", x}}},
      {"repeat", {{"input", x}, {"repeats", List{1, 1}}}},
      {"tile", {{"input", x}, {"dims", List{1}}}},
      {"tile", {{"input", x}, {"dims", List{}}}},
      {"repeat_interleave", {{"input", x}, {"repeats", i64{1}}, {"dim", i64{0}}}},
      {"repeat_interleave", {{"input", x}, {"repeats", i64{1}}}},
      {"repeat_interleave", {{"input", x}, {"repeats", make<i64>({1}, {1})}, {"dim", i64{1}}}},
      {"roll", {{"input", x}, {"shifts", List{0}}}},
      {"roll", {{"input", x}, {"shifts", List{2, 3}}, {"dims", List{0, 1}}}},
      {"flip", {{"input", x}, {"dims", List{}}}},
      {"flip", {{"input", one}, {"dims", List{0}}}},
      {"rot90", {{"input", x}, {"k", i64{4}}}},
      {"pad", {{"input", x}, {"pad", List{0, 0}}}},
      {"pad", {{"input", x}, {"pad", List{0, 0}}, {"mode", std::string("reflect")}}},
      {"pad", {{"input", x}, {"pad", List{}}}},
      {"tril", {{"input", x}, {"diagonal", i64{9}}}},
      {"triu", {{"input", x}, {"diagonal", i64{-9}}}},
      {"diff", {{"input", x}, {"n", i64{0}}}},
      {"cat", {{"tensors", std::vector<Tensor>{x}}}},
      {"cat", {{"tensors", std::vector<Tensor>{x, nothing}}}},
      {"stack", {{"tensors", std::vector<Tensor>{x}}}},
      {"hstack", {{"tensors", std::vector<Tensor>{x}}}},
      {"vstack", {{"tensors", std::vector<Tensor>{x}}}},
      {"vstack", {{"tensors", std::vector<Tensor>{scalar}}}},
      {"sum", {{"input", scalar}}},
      {"sum", {{"input", one}, {"dim", List{0, 1}}}},
      {"mean", {{"input", scalar}}},
      {"nansum", {{"input", scalar}}},
      {"prod", {{"input", scalar}}},
      {"amax", {{"input", scalar}}},
      {"amin", {{"input", one}, {"dim", List{0}}}},
      {"max", {{"input", scalar}, {"dim", i64{0}}}},
      {"median", {{"input", scalar}}},
      {"kthvalue", {{"input", scalar}, {"k", i64{1}}}},
      {"quantile", {{"input", scalar}, {"q", 0.5}}},
      {"logsumexp", {{"input", scalar}, {"dim", List{0}}}},
      {"norm", {{"input", scalar}}},
      {"cumsum", {{"input", scalar}, {"dim", i64{0}}}},
      {"cumprod", {{"input", one}, {"dim", i64{0}}}},
      {"logcumsumexp", {{"input", scalar}, {"dim", i64{0}}}},
      {"cummax", {{"input", scalar}, {"dim", i64{0}}}},
      {"sort", {{"input", scalar}}},
      {"topk", {{"input", scalar}, {"k", i64{1}}}},
      {"index_add", {{"input", x}, {"dim", i64{0}}, {"index", none}, {"source", nothing}}},
      {"index_copy", {{"input", x}, {"dim", i64{0}}, {"index", none}, {"source", nothing}}},
      {"index_fill", {{"input", x}, {"dim", i64{0}}, {"index", none}, {"value", 1.0}}},
      {"scatter", {{"input", x}, {"dim", i64{0}}, {"index", make_empty({0, 3}, kI64)}, {"src", nothing}}},
      {"scatter_add", {{"input", x}, {"dim", i64{0}}, {"index", make_empty({0, 3}, kI64)}, {"src", nothing}}},
      {"scatter_reduce",
       {{"input", x}, {"dim", i64{0}}, {"index", make_empty({0, 3}, kI64)}, {"src", nothing}, {"reduce", std::string("sum")}}},
      {"masked_fill", {{"input", x}, {"mask", make<bool>({}, {false})}, {"value", 1.0}}},
      {"masked_scatter", {{"input", x}, {"mask", make<bool>({}, {false})}, {"source", nothing}}},
      {"masked_select", {{"input", x}, {"mask", make<bool>({}, {true})}}},
      {"where", {{"condition", make<bool>({}, {true})}, {"input", x}, {"other", x}}},
      {"index_select", {{"input", x}, {"dim", i64{0}}, {"index", make<i64>({2}, {0, 1})}}},
      {"gather", {{"input", scalar}, {"dim", i64{0}}, {"index", make<i64>({}, {0})}}},
      {"take", {{"input", scalar}, {"index", make<i64>({}, {0})}}},
      {"index", {{"input", x}, {"indices", std::vector<IndexArgument>{make<bool>({2}, {true, true})}}}},
      {"pow", {{"input", x}, {"exponent", i64{1}}}},
      {"mul", {{"input", x}, {"other", i64{1}}}},
      {"add", {{"input", x}, {"other", i64{0}}}},
      {"clamp", {{"input", x}, {"min", -1e30}}},
      {"round", {{"input", x}}},
      {"linear", {{"input", x}, {"weight", x}}},
      {"softmax", {{"input", scalar}, {"dim", i64{0}}}},
      {"avg_pool1d", {{"input", x}, {"kernel_size", i64{1}}}},
      {"interpolate", {{"input", leaf({1, 2, 3}, {1, 2, 3, 4, 5, 6})}, {"size", i64{3}}}},
      {"kron", {{"input", x}, {"other", one}}},
      {"diag_embed", {{"input", leaf({1}, {1})}}},
      {"trace", {{"input", one}}},
  };
  for (const Row& row : rows) {
    OpCall call(row.op);
    std::vector<Tensor> inputs;
    for (const auto& [name, value] : row.arguments) {
      call.set(name, value);
      if (const Tensor* t = std::get_if<Tensor>(&value)) inputs.push_back(*t);
      if (const auto* list = std::get_if<std::vector<Tensor>>(&value)) inputs.insert(inputs.end(), list->begin(), list->end());
    }
    find_op(row.op)->apply(call);
    INFO(std::string(row.op));
    for (const auto& result : call.results)
      for (const Tensor& t : inputs) CHECK_FALSE(result.second.impl()->storage == t.impl()->storage);
  }
}

}  // namespace waymark::test
