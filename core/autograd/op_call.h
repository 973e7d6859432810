// OpCall: the arguments of an op by name, as case files, replay and the fuzzer have them. OpInfo::apply reads them with
// the names and defaults of the op's schema and leaves the results.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark {

// One element of an `indices` list (index, index_put).
using IndexArgument = std::variant<i64, Slice, NoneIndex, EllipsisIndex, Tensor>;

using Argument = std::variant<std::monostate, bool, i64, double, std::string, std::vector<i64>, std::vector<double>,
                              std::vector<std::vector<i64>>, Tensor, std::vector<Tensor>, std::vector<IndexArgument>>;

class WAYMARK_API OpCall {
 public:
  explicit OpCall(std::string op) : op_(std::move(op)) {}
  void set(const std::string& name, Argument value) { arguments_[name] = std::move(value); }

  // Readers; Error naming the op and the argument if it is missing or of another kind. Ints are accepted as floats.
  bool has(std::string_view name) const;
  bool is_tensor(std::string_view name) const;
  bool is_word(std::string_view name) const;
  bool is_list(std::string_view name) const;  // of numbers, or of lists
  const Tensor& tensor(std::string_view name);
  Tensor optional_tensor(std::string_view name);  // undefined if absent
  const std::vector<Tensor>& tensors(std::string_view name);
  const std::vector<IndexArgument>& indices(std::string_view name);
  i64 integer(std::string_view name, std::optional<i64> fallback = {});
  std::optional<i64> optional_integer(std::string_view name);  // empty if absent or null
  double number(std::string_view name, std::optional<double> fallback = {});
  Scalar scalar(std::string_view name, std::optional<Scalar> fallback = {});
  bool flag(std::string_view name, std::optional<bool> fallback = {});
  std::string word(std::string_view name, std::optional<std::string> fallback = {});
  std::vector<i64> list(std::string_view name, std::optional<std::vector<i64>> fallback = {});
  std::vector<std::vector<i64>> lists(std::string_view name);  // tensordot's pair of dims
  std::vector<double> numbers(std::string_view name);
  Dims dims(std::string_view name);  // absent or null: all
  std::optional<DType> dtype(std::string_view name);
  // Names that were given but never read: an unknown argument.
  std::vector<std::string> unread() const;

  // Results; a single one is called "output".
  void result(Tensor t) { result("output", std::move(t)); }
  void result(std::string name, Tensor t);
  void result(ValuesIndices r);  // "values" and "indices"
  std::vector<std::pair<std::string, Tensor>> results;

 private:
  const Argument* find(std::string_view name);
  const Argument& need(std::string_view name, std::string_view kind);
  [[noreturn]] void wrong(std::string_view name, std::string_view kind) const;
  std::string op_;
  std::map<std::string, Argument, std::less<>> arguments_;
  std::map<std::string, bool, std::less<>> read_;
};

}  // namespace waymark
