// Dropout: in training, elements become 0 with probability p, the others are divided by 1 - p.
#pragma once

#include "nn/module/module.h"

namespace waymark::nn {

// Draws from the stream `<module path>.dropout` (of a module called dropout: its path); 0 <= p < 1.
class WAYMARK_API Dropout : public Module<Dropout> {
 public:
  Dropout(ModuleBase& parent, std::string_view name, double p) : Dropout(&parent, name, p) {}
  explicit Dropout(double p = 0.5) : Dropout(nullptr, "", p) {}
  Tensor forward(const Tensor& x) const;
  double p() const { return p_; }

 private:
  Dropout(ModuleBase* parent, std::string_view name, double p);
  double p_;
};

// Error unless 0 <= p < 1.
WAYMARK_API void check_dropout(std::string_view what, double p);

}  // namespace waymark::nn
