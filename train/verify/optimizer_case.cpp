// Kind `optimizer`: one parameter `w`, a gradient for each step, the final parameter.
#include "nn/spec/suggest.h"
#include "train/optim/clip.h"
#include "train/optim/registry.h"
#include "train/verify/kinds.h"

namespace waymark::train {

namespace {

// A value of a config as one of a spec. It is never spelled as text in between, where a text could say more than a value.
nn::SpecValue spec_value(const std::string& key, const Json& v) {
  if (v.is_bool()) return v.as_bool();
  if (v.is_int()) return v.as_int();
  if (v.is_number()) return v.as_double();
  if (v.is_string()) return nn::SpecValue::quoted(v.as_string());
  if (!v.is_array()) fail("verify", "config.{} is {}; an option is a number, a word, a boolean or a list", nn::printable(key), v.kind());
  std::vector<nn::SpecValue> list;
  for (const Json& x : v.as_array()) list.push_back(spec_value(key, x));
  return list;
}

}  // namespace

std::unique_ptr<Optimizer> optimizer_from_case(std::vector<ParamGroup> groups, const std::string& name, const Json::Object& options) {
  nn::Spec spec{.name = name, .args = {}};
  for (const auto& [key, value] : options) spec.args.push_back({.key = key, .value = spec_value(key, value)});
  return make_optimizer(std::move(groups), optimizer_tables().resolve(spec));
}

double clip_norm_key(const Json& config) {
  const Json* v = config.find("clip_norm");
  const double clip = v ? v->as_double() : 0;
  if (!(clip >= 0)) fail("verify", "config.clip_norm is {}; it must be >= 0, 0 = off", clip);
  return clip;
}

std::vector<double> rates_key(const Json& config, i64 steps) {
  const Json* v = config.find("lr");
  if (!v || !v->is_array()) return {};
  std::vector<double> rates;
  for (const Json& rate : v->as_array()) {
    if (!rate.is_number() || !(rate.as_double() >= 0))
      fail("verify", "config.lr[{}] is {}; it must be a number >= 0", rates.size(), write_json(rate));
    rates.push_back(rate.as_double());
  }
  if (static_cast<i64>(rates.size()) != steps) fail("verify", "config.lr has {} rates for {} steps", rates.size(), steps);
  return rates;
}

void run_optimizer_case(CaseContext& c) {
  std::string name;
  Json::Object options;
  i64 steps = 0;
  for (const auto& [key, value] : c.config().as_object()) {
    if (key == "optimizer") name = value.as_string();
    else if (key == "steps") steps = value.as_int();
    else if (key != "clip_norm" && !(key == "lr" && value.is_array())) options.emplace_back(key, value);
  }
  const double clip = clip_norm_key(c.config());
  if (steps < 1) return c.problem(fmt::format("config.steps is {}; it must be at least 1", steps));
  const std::vector<double> rates = rates_key(c.config(), steps);
  if (!rates.empty()) options.emplace_back("lr", rates[0]);
  const Tensor w = c.get("param.w").requires_grad_();
  const auto optimizer = optimizer_from_case({{.params = {w}}}, name, options);
  for (i64 t = 1; t <= steps; ++t) {
    const std::string grad = fmt::format("input.grad.{}", t);
    const Tensor g = c.get(grad);
    if (g.shape() != w.shape() || g.dtype() != w.dtype())
      fail("verify", "{} is {} {}, but param.w is {} {}", grad, name_of(g.dtype()), g.shape(), name_of(w.dtype()), w.shape());
    w.set_grad(g);
    if (!rates.empty()) optimizer->set_lr(rates[static_cast<size_t>(t - 1)]);
    optimizer->step(clip > 0 ? clip_factor(grad_norm({w}), clip) : 1);
  }
  c.compare("output", w.detach());
}

}  // namespace waymark::train
