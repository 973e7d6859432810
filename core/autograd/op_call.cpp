#include "core/autograd/op_call.h"

#include <limits>

namespace waymark {

const Argument* OpCall::find(std::string_view name) {
  const auto it = arguments_.find(name);
  if (it == arguments_.end()) return nullptr;
  read_[it->first] = true;
  return std::holds_alternative<std::monostate>(it->second) ? nullptr : &it->second;
}
const Argument& OpCall::need(std::string_view name, std::string_view kind) {
  const Argument* a = find(name);
  if (!a) fail(op_, "the argument \"{}\" ({}) is missing", name, kind);
  return *a;
}
void OpCall::wrong(std::string_view name, std::string_view kind) const {
  fail(op_, "the argument \"{}\" is no {}", name, kind);
}

bool OpCall::has(std::string_view name) const {
  const auto it = arguments_.find(name);
  return it != arguments_.end() && !std::holds_alternative<std::monostate>(it->second);
}
bool OpCall::is_tensor(std::string_view name) const {
  const auto it = arguments_.find(name);
  return it != arguments_.end() && std::holds_alternative<Tensor>(it->second);
}
bool OpCall::is_word(std::string_view name) const {
  const auto it = arguments_.find(name);
  return it != arguments_.end() && std::holds_alternative<std::string>(it->second);
}
bool OpCall::is_list(std::string_view name) const {
  const auto it = arguments_.find(name);
  if (it == arguments_.end()) return false;
  return std::holds_alternative<std::vector<i64>>(it->second) || std::holds_alternative<std::vector<std::vector<i64>>>(it->second);
}
const Tensor& OpCall::tensor(std::string_view name) {
  const Argument& a = need(name, "tensor");
  if (const Tensor* t = std::get_if<Tensor>(&a)) return *t;
  wrong(name, "tensor");
}
Tensor OpCall::optional_tensor(std::string_view name) { return find(name) ? tensor(name) : Tensor(); }
const std::vector<Tensor>& OpCall::tensors(std::string_view name) {
  const Argument& a = need(name, "list of tensors");
  if (const auto* t = std::get_if<std::vector<Tensor>>(&a)) return *t;
  wrong(name, "list of tensors");
}
const std::vector<IndexArgument>& OpCall::indices(std::string_view name) {
  const Argument& a = need(name, "list of indices");
  if (const auto* t = std::get_if<std::vector<IndexArgument>>(&a)) return *t;
  wrong(name, "list of indices");
}
i64 OpCall::integer(std::string_view name, std::optional<i64> fallback) {
  const Argument* a = fallback ? find(name) : &need(name, "integer");
  if (!a) return *fallback;
  if (const auto* v = std::get_if<i64>(a)) return *v;
  wrong(name, "integer");
}
std::optional<i64> OpCall::optional_integer(std::string_view name) {
  if (!has(name)) return {};
  return integer(name);
}
double OpCall::number(std::string_view name, std::optional<double> fallback) {
  const Argument* a = fallback ? find(name) : &need(name, "number");
  if (!a) return *fallback;
  if (const auto* v = std::get_if<double>(a)) return *v;
  if (const auto* v = std::get_if<i64>(a)) return static_cast<double>(*v);
  if (const auto* v = std::get_if<std::string>(a)) {
    if (*v == "inf") return std::numeric_limits<double>::infinity();
    if (*v == "-inf") return -std::numeric_limits<double>::infinity();
    if (*v == "nan") return std::numeric_limits<double>::quiet_NaN();
  }
  wrong(name, "number");
}
Scalar OpCall::scalar(std::string_view name, std::optional<Scalar> fallback) {
  const Argument* a = fallback ? find(name) : &need(name, "number");
  if (!a) return *fallback;
  if (const auto* v = std::get_if<i64>(a)) return *v;
  if (const auto* v = std::get_if<bool>(a)) return *v;
  return number(name);
}
bool OpCall::flag(std::string_view name, std::optional<bool> fallback) {
  const Argument* a = fallback ? find(name) : &need(name, "bool");
  if (!a) return *fallback;
  if (const auto* v = std::get_if<bool>(a)) return *v;
  wrong(name, "bool");
}
std::string OpCall::word(std::string_view name, std::optional<std::string> fallback) {
  const Argument* a = fallback ? find(name) : &need(name, "string");
  if (!a) return *fallback;
  if (const auto* v = std::get_if<std::string>(a)) return *v;
  wrong(name, "string");
}
std::vector<i64> OpCall::list(std::string_view name, std::optional<std::vector<i64>> fallback) {
  const Argument* a = fallback ? find(name) : &need(name, "list of integers");
  if (!a) return *fallback;
  if (const auto* v = std::get_if<std::vector<i64>>(a)) return *v;
  if (const auto* v = std::get_if<i64>(a)) return {*v};
  wrong(name, "list of integers");
}
std::vector<std::vector<i64>> OpCall::lists(std::string_view name) {
  const Argument& a = need(name, "list of lists of integers");
  if (const auto* v = std::get_if<std::vector<std::vector<i64>>>(&a)) return *v;
  wrong(name, "list of lists of integers");
}
std::vector<double> OpCall::numbers(std::string_view name) {
  const Argument& a = need(name, "list of numbers");
  if (const auto* v = std::get_if<std::vector<double>>(&a)) return *v;
  if (const auto* v = std::get_if<std::vector<i64>>(&a)) return {v->begin(), v->end()};
  wrong(name, "list of numbers");
}
Dims OpCall::dims(std::string_view name) {
  const Argument* a = find(name);
  if (!a) return {};
  if (const auto* v = std::get_if<i64>(a)) return *v;
  if (const auto* v = std::get_if<std::vector<i64>>(a)) return *v;
  wrong(name, "dim or list of dims");
}
std::optional<DType> OpCall::dtype(std::string_view name) {
  const Argument* a = find(name);
  if (!a) return {};
  const std::string text = word(name);
  for (DType t : {kF32, kF64, kI64, kB8})
    if (name_of(t) == text) return t;
  fail(op_, "the argument \"{}\" is \"{}\"; dtypes are f32, f64, i64, b8", name, text);
}
std::vector<std::string> OpCall::unread() const {
  std::vector<std::string> out;
  for (const auto& [name, value] : arguments_)
    if (!read_.contains(name)) out.push_back(name);
  return out;
}

void OpCall::result(std::string name, Tensor t) { results.emplace_back(std::move(name), std::move(t)); }
void OpCall::result(ValuesIndices r) {
  result("values", std::move(r.values));
  result("indices", std::move(r.indices));
}

}  // namespace waymark
