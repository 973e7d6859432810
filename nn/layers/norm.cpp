#include "nn/layers/norm.h"

#include "core/ops/normalisation.h"

namespace waymark::nn {

namespace {

void check(const char* op, i64 width, double eps) {
  if (width < 1) fail(op, "a width of {}: must be at least 1", width);
  if (!(eps > 0)) fail(op, "eps is {}: must be greater than 0", eps);
}

}  // namespace

LayerNorm::LayerNorm(ModuleBase* parent, std::string_view name, i64 width, double eps) : Module(parent, name), eps_(eps) {
  check("layer_norm", width, eps);
  weight = parameter("weight", {width}, init::ones(), {.no_decay = true});
  bias = parameter("bias", {width}, init::zeros(), {.no_decay = true});
}

Tensor LayerNorm::forward(const Tensor& x) const { return layer_norm(x, weight.shape(), weight, bias, eps_); }

RMSNorm::RMSNorm(ModuleBase* parent, std::string_view name, i64 width, double eps) : Module(parent, name), eps_(eps) {
  check("rms_norm", width, eps);
  weight = parameter("weight", {width}, init::ones(), {.no_decay = true});
}

Tensor RMSNorm::forward(const Tensor& x) const { return rms_norm(x, weight.shape(), weight, eps_); }

NormType norm_type(std::string_view name) {
  if (name == "layer") return NormType::layer;
  if (name == "rms") return NormType::rms;
  fail("norm", "\"{}\" is neither layer nor rms", name);
}

Norm::Norm(ModuleBase& parent, std::string_view name, NormType type, i64 width, double eps)
    : Module(parent, name), type_(type), eps_(eps) {
  check("norm", width, eps);
  weight = parameter("weight", {width}, init::ones(), {.no_decay = true});
  if (type_ == NormType::layer) bias = parameter("bias", {width}, init::zeros(), {.no_decay = true});
}

Tensor Norm::forward(const Tensor& x) const {
  return type_ == NormType::layer ? layer_norm(x, weight.shape(), weight, bias, eps_)
                                  : rms_norm(x, weight.shape(), weight, eps_);
}

}  // namespace waymark::nn
