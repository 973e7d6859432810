#include "core/inspect/replay.h"

namespace waymark::inspect {
namespace {

struct TensorParameter {
  std::string name;
  bool list = false;
};

// "softmax(Tensor input, int dim, Tensor? weight=None, Tensor[] more) -> Tensor": input, weight, more[].
std::vector<TensorParameter> tensor_parameters(std::string_view schema) {
  std::vector<TensorParameter> out;
  const size_t open = schema.find('('), close = schema.rfind(") ->");
  if (open == std::string_view::npos) return out;
  std::string_view rest = schema.substr(open + 1, std::min(close, schema.size()) - open - 1);
  while (!rest.empty()) {
    size_t end = 0;
    for (int depth = 0; end < rest.size(); ++end) {
      if (rest[end] == '[' || rest[end] == '(') ++depth;
      if (rest[end] == ']' || rest[end] == ')') --depth;
      if (rest[end] == ',' && depth == 0) break;
    }
    std::string_view part = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (!part.starts_with("Tensor")) continue;
    const size_t space = part.find(' ');
    if (space == std::string_view::npos) continue;
    const std::string_view type = part.substr(0, space), name = part.substr(space + 1);
    out.push_back({std::string(name.substr(0, name.find('='))), type.find("[]") != std::string_view::npos});
  }
  return out;
}

}  // namespace

OpCall call_of(const OpInfo& op, std::span<const Tensor> inputs,
               const std::vector<std::pair<std::string, AttrValue>>& attributes) {
  OpCall call{std::string(op.name)};
  const auto given = [&](const std::string& name) {
    for (const auto& a : attributes)
      if (a.first == name) return true;
    return false;
  };
  std::vector<TensorParameter> parameters = tensor_parameters(op.schema);
  std::erase_if(parameters, [&](const TensorParameter& p) { return given(p.name); });  // a number in place of a tensor
  size_t next = 0;
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (parameters[k].list) {
      // Several lists have one length: linear_packed's weights and biases.
      size_t later = 0, lists = 1;
      for (size_t j = k + 1; j < parameters.size(); ++j) ++(parameters[j].list ? lists : later);
      const size_t left = inputs.size() - std::min(inputs.size(), next);
      const size_t length = left > later ? (left - later) / lists : 0;
      std::vector<Tensor> list;
      for (size_t i = 0; i < length; ++i) list.push_back(inputs[next++]);
      call.set(parameters[k].name, std::move(list));
      continue;
    }
    if (next >= inputs.size()) break;
    const Tensor& t = inputs[next++];
    if (t.defined()) call.set(parameters[k].name, t);
  }
  for (const auto& [name, value] : attributes)
    std::visit([&, key = &name](const auto& v) { call.set(*key, v); }, value);
  return call;
}

std::vector<Tensor> call_again(const OpInfo& op, std::span<const Tensor> inputs,
                               const std::vector<std::pair<std::string, AttrValue>>& attributes) {
  if (!op.apply) fail(op.name, "this op cannot be called by its name");
  OpCall call = call_of(op, inputs, attributes);
  op.apply(call);
  std::vector<Tensor> out;
  for (auto& result : call.results) out.push_back(result.second);
  return out;
}

}  // namespace waymark::inspect
