// LayerNorm and RMSNorm over the last axis, and Norm: one of the two by name.
#pragma once

#include "nn/module/module.h"

namespace waymark::nn {

// (x - μ)/√(σ² + eps) ⊙ weight + bias (Ba et al. 2016); weight starts at 1, bias at 0. x [..., width].
class WAYMARK_API LayerNorm : public Module<LayerNorm> {
 public:
  LayerNorm(ModuleBase& parent, std::string_view name, i64 width, double eps = 1e-5)
      : LayerNorm(&parent, name, width, eps) {}
  explicit LayerNorm(i64 width, double eps = 1e-5) : LayerNorm(nullptr, "", width, eps) {}
  Tensor forward(const Tensor& x) const;

  Tensor weight, bias;

 private:
  LayerNorm(ModuleBase* parent, std::string_view name, i64 width, double eps);
  double eps_;
};

// x/√(mean x² + eps) ⊙ weight (Zhang and Sennrich 2019); weight starts at 1.
class WAYMARK_API RMSNorm : public Module<RMSNorm> {
 public:
  RMSNorm(ModuleBase& parent, std::string_view name, i64 width, double eps = 1e-5)
      : RMSNorm(&parent, name, width, eps) {}
  explicit RMSNorm(i64 width, double eps = 1e-5) : RMSNorm(nullptr, "", width, eps) {}
  Tensor forward(const Tensor& x) const;

  Tensor weight;

 private:
  RMSNorm(ModuleBase* parent, std::string_view name, i64 width, double eps);
  double eps_;
};

enum class NormType : u8 { layer, rms };
// "layer" or "rms"; Error otherwise.
WAYMARK_API NormType norm_type(std::string_view name);

class WAYMARK_API Norm : public Module<Norm> {
 public:
  Norm(ModuleBase& parent, std::string_view name, NormType type, i64 width, double eps = 1e-5);
  Tensor forward(const Tensor& x) const;

  Tensor weight, bias;  // bias undefined for rms

 private:
  NormType type_;
  double eps_;
};

}  // namespace waymark::nn
