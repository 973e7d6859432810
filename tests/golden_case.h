// A case file of tests/golden: what another framework computed, and the comparison with ours.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "core/io/safetensors.h"
#include "core/ops/convert.h"

namespace waymark::test {

class GoldenCase {
 public:
  explicit GoldenCase(const std::string& name)
      : file_(load_safetensors(std::string(WAYMARK_SOURCE_DIR) + "/tests/golden/nn/" + name + ".safetensors")), name_(name),
        config_(nlohmann::json::parse(file_.metadata().at("config"))) {
    REQUIRE(file_.metadata().at("format") == "waymark-case-1");
    rtol_ = std::stod(file_.metadata().at("rtol"));
    atol_ = std::stod(file_.metadata().at("atol"));
  }
  const std::string& name() const { return name_; }
  std::string module() const { return file_.metadata().at("module"); }
  const nlohmann::json& config() const { return config_; }
  bool has(const std::string& tensor) const { return file_.contains(tensor); }
  Tensor get(const std::string& tensor) const { return file_.get(tensor); }
  // Undefined if the file has none.
  Tensor find(const std::string& tensor) const { return has(tensor) ? get(tensor) : Tensor(); }
  // 1 = keep, as b8.
  Tensor mask(const std::string& tensor) const { return has(tensor) ? to(get(tensor), kB8) : Tensor(); }
  bool is_f32() const { return get(has("output") ? "output" : "output.q").dtype() == kF32; }
  // Tensors whose name begins with the prefix, without it.
  std::vector<std::pair<std::string, Tensor>> with_prefix(const std::string& prefix) const {
    std::vector<std::pair<std::string, Tensor>> list;
    for (const std::string& n : file_.names())
      if (n.substr(0, prefix.size()) == prefix) list.emplace_back(n.substr(prefix.size()), file_.get(n));
    return list;
  }

  // |ours - theirs| <= atol + rtol |theirs| everywhere. `counts`, if given, marks the rows (last axis left out) that do.
  void compare(const std::string& tensor, const Tensor& ours, const std::vector<bool>* counts = nullptr) const {
    REQUIRE_MESSAGE(has(tensor), name_ << " has no " << tensor);
    const Tensor theirs = get(tensor);
    CHECK_MESSAGE(ours.shape() == theirs.shape(), name_ << " " << tensor << ": " << to_string(ours.shape()) << " for " << to_string(theirs.shape()));
    if (!(ours.shape() == theirs.shape())) return;
    const auto a = ours.to_vector<double>(), b = theirs.to_vector<double>();
    const size_t width = theirs.dim() ? static_cast<size_t>(theirs.size(-1)) : 1;
    double worst = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (counts && !(*counts)[i / width]) continue;
      const double error = std::abs(a[i] - b[i]) / (atol_ + rtol_ * std::abs(b[i]));
      worst = std::max(worst, std::isnan(error) ? INFINITY : error);
    }
    CHECK_MESSAGE(worst <= 1, name_ << " " << tensor << ": error of " << worst << " tolerances");
  }

 private:
  SafeTensors file_;
  std::string name_;
  nlohmann::json config_;
  double rtol_ = 0, atol_ = 0;
};

// Parameters are made in the default dtype.
class DefaultDType {
 public:
  explicit DefaultDType(DType t) : before_(default_dtype()) { set_default_dtype(t); }
  ~DefaultDType() { set_default_dtype(before_); }
  DefaultDType(const DefaultDType&) = delete;
  DefaultDType& operator=(const DefaultDType&) = delete;

 private:
  DType before_;
};

}  // namespace waymark::test
