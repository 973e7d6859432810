#include "nn/layers/activation.h"

#include "core/ops/activation.h"
#include "nn/spec/suggest.h"

namespace waymark::nn {

namespace {

struct Entry {
  const char* name;
  Tensor (*function)(const Tensor& x);
};
constexpr Entry kEntries[] = {
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"gelu_tanh", [](const Tensor& x) { return gelu(x, "tanh"); }},
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"silu", [](const Tensor& x) { return silu(x); }},
};

}  // namespace

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const Entry& e : kEntries) names.emplace_back(e.name);
  return names;
}

Activation::Activation(std::string_view name) : name_(name), function_(nullptr) {
  for (const Entry& e : kEntries)
    if (name == e.name) function_ = e.function;
  if (!function_) fail("activation", "unknown activation {}.{}", printable(name), did_you_mean(name, activation_names()));
}

}  // namespace waymark::nn
