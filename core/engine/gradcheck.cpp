#include "core/engine/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/reduce.h"

namespace waymark {
namespace {

// Reproducible weights in ±[0.5, 1.5]: a uniform g would hide errors that cancel in a sum.
Tensor random_weights(const Shape& shape, std::mt19937_64& rng) {
  Tensor w = make_empty(shape, kF64);
  std::uniform_real_distribution<double> u(0.5, 1.5);
  for (i64 i = 0; i < w.numel(); ++i) w.data<double>()[i] = (rng() & 1 ? 1 : -1) * u(rng);
  return w;
}

// Σ_k Σ w_k ⊙ f_k(inputs) as a scalar with history.
Tensor weighted(const std::vector<Tensor>& outputs, const std::vector<Tensor>& weights) {
  Tensor total;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].defined() || !outputs[k].is_floating_point()) continue;
    const Tensor part = sum(mul(to(outputs[k], kF64), weights[k]));
    total = total.defined() ? add(total, part) : part;
  }
  return total;
}

// Element i in logical order.
double* element(const Tensor& t, i64 i) {
  i64 offset = 0;
  for (int d = t.dim() - 1; d >= 0; --d) {
    offset += i % t.shape()[d] * t.strides()[d];
    i /= t.shape()[d];
  }
  return t.data<double>() + offset;
}

class Checker {
 public:
  Checker(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& o)
      : f_(f), inputs_(inputs), options_(o), rng_(o.seed * 7919 + 17) {}

  GradcheckReport run() {
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (inputs_[i].requires_grad() && inputs_[i].dtype() != kF64)
        return failed(fmt::format("input {} is {}; gradcheck needs f64", i, name_of(inputs_[i].dtype())));
    const std::vector<Tensor> outputs = f_(inputs_);
    for (const Tensor& y : outputs) weights_.push_back(y.defined() && y.is_floating_point() ? random_weights(y.shape(), rng_) : Tensor());
    const Tensor loss = weighted(outputs, weights_);
    if (!loss.defined() || !loss.requires_grad()) {
      report_.message = "no output requires grad";
      report_.passed = false;
      return report_;
    }
    std::vector<Tensor> wanted;
    for (const Tensor& t : inputs_)
      if (t.requires_grad()) wanted.push_back(t);
    const GradMap grads = grad(loss, wanted, {.allow_unused = true});
    for (size_t i = 0; i < inputs_.size() && report_.passed; ++i) {
      if (!inputs_[i].requires_grad()) continue;
      // Absent means: no path. The numeric derivative must then be 0.
      check_input(i, grads.contains(inputs_[i]) ? grads[inputs_[i]].to_vector<double>()
                                                : std::vector<double>(static_cast<size_t>(inputs_[i].numel()), 0.0));
    }
    return report_;
  }

 private:
  GradcheckReport failed(std::string message) {
    report_.passed = false;
    report_.message = std::move(message);
    return report_;
  }

  double value() {
    const EnableGrad on;  // f may differentiate inside
    return weighted(f_(inputs_), weights_).item<double>();
  }

  // d/dt of the loss along `direction` (flat, in logical order) of input i, with step h.
  double numeric(size_t i, const std::vector<std::pair<i64, double>>& direction, double h) {
    const Tensor& x = inputs_[i];
    std::vector<double> before;
    for (auto [k, d] : direction) before.push_back(*element(x, k));
    const auto at = [&](double t) {
      for (size_t n = 0; n < direction.size(); ++n) *element(x, direction[n].first) = before[n] + t * direction[n].second;
      return value();
    };
    const double f1 = at(h), f2 = at(2 * h), b1 = at(-h), b2 = at(-2 * h);
    for (size_t n = 0; n < direction.size(); ++n) *element(x, direction[n].first) = before[n];
    return (8 * (f1 - b1) - (f2 - b2)) / (12 * h);
  }

  void compare(size_t i, const std::string& where, double analytic, const std::vector<std::pair<i64, double>>& direction,
               double h, double scale) {
    const double n = numeric(i, direction, h);
    ++report_.checked;
    const double tolerance = options_.atol * std::max(scale, 1.0) + options_.rtol * std::abs(n);
    const double error = std::abs(analytic - n) / tolerance;
    report_.max_error = std::max(report_.max_error, std::isnan(error) ? INFINITY : error);
    if (error <= 1) return;
    report_.passed = false;
    report_.message = fmt::format("input {} {}, {}: analytic {:.12g}, numeric {:.12g} (step {:.1e}), {:.12g} (step {:.1e})", i,
                                  inputs_[i].shape(), where, analytic, n, h, numeric(i, direction, h / 2), h / 2);
  }

  void check_input(size_t i, const std::vector<double>& analytic) {
    const Tensor& x = inputs_[i];
    const i64 n = x.numel();
    double scale = 0;
    for (double g : analytic) scale = std::max(scale, std::abs(g));
    const auto one = [&](i64 k) {
      const double h = options_.step * std::max(1.0, std::abs(*element(x, k)));
      compare(i, fmt::format("element {}", k), analytic[static_cast<size_t>(k)], {{k, 1.0}}, h, scale);
    };
    if (n <= options_.all_elements) {
      for (i64 k = 0; k < n && report_.passed; ++k) one(k);
      return;
    }
    for (int trial = 0; trial < 16 && report_.passed; ++trial) one(static_cast<i64>(rng_() % static_cast<u64>(n)));
    for (int trial = 0; trial < 8 && report_.passed; ++trial) {
      std::vector<std::pair<i64, double>> direction;
      std::normal_distribution<double> normal;
      double length = 0, inner = 0;
      for (i64 k = 0; k < n; ++k) {
        direction.emplace_back(k, normal(rng_));
        length += direction.back().second * direction.back().second;
      }
      for (auto& [k, d] : direction) {
        d /= std::sqrt(length);
        inner += d * analytic[static_cast<size_t>(k)];
      }
      compare(i, fmt::format("random direction {}", trial), inner, direction, options_.step, scale);
    }
  }

  const TensorFunction& f_;
  const std::vector<Tensor>& inputs_;
  GradcheckOptions options_;
  std::mt19937_64 rng_;
  std::vector<Tensor> weights_;
  GradcheckReport report_;
};

}  // namespace

GradcheckReport gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  return Checker(f, inputs, options).run();
}

GradcheckReport gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  std::mt19937_64 rng(options.seed * 104729 + 3);
  const std::vector<Tensor> outputs = f(inputs);
  std::vector<Tensor> all = inputs;
  std::vector<size_t> float_outputs;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (!outputs[k].defined() || !outputs[k].is_floating_point() || !outputs[k].requires_grad()) continue;
    float_outputs.push_back(k);
    all.push_back(to(random_weights(outputs[k].shape(), rng), outputs[k].dtype()).requires_grad_());
  }
  const size_t n = inputs.size();
  // (inputs, g) -> gradients of the inputs; its own gradcheck is the second order of f.
  const TensorFunction gradient = [&](const std::vector<Tensor>& v) {
    const std::vector<Tensor> x(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(n));
    const std::vector<Tensor> y = f(x);
    std::vector<Tensor> roots, wanted;
    RunOptions run{.create_graph = true, .allow_unused = true};
    for (size_t k = 0; k < float_outputs.size(); ++k) {
      roots.push_back(y[float_outputs[k]]);
      run.seeds.push_back(v[n + k]);
    }
    for (const Tensor& t : x)
      if (t.requires_grad()) wanted.push_back(t);
    const GradMap map = grad(roots, wanted, run);
    std::vector<Tensor> out;
    for (const Tensor& t : wanted)
      if (map.contains(t)) out.push_back(map[t]);
    return out;
  };
  return Checker(gradient, all, options).run();
}

}  // namespace waymark
