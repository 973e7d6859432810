// Kind `optimizer`: one parameter `w`, a gradient for each step, the final parameter.
#include "train/optim/clip.h"
#include "train/optim/registry.h"
#include "train/verify/kinds.h"

namespace waymark::train {

// {"name"-less options} as the spec text that the registry resolves: numbers, booleans and lists of numbers.
static std::string option_text(const Json& v) {
  if (v.is_bool()) return v.as_bool() ? "true" : "false";
  if (v.is_int()) return fmt::to_string(v.as_int());
  if (v.is_number()) return shortest(v.as_double());
  if (v.is_string()) return v.as_string();
  std::string out = "[";
  for (const Json& x : v.as_array()) out += (out.size() > 1 ? "," : "") + option_text(x);
  return out + "]";
}

std::unique_ptr<Optimizer> optimizer_from_case(std::vector<ParamGroup> groups, const std::string& name, const Json::Object& options) {
  std::string text = name + "(";
  for (const auto& [key, value] : options) text += (text.back() == '(' ? "" : ", ") + key + "=" + option_text(value);
  return make_optimizer(std::move(groups), optimizer_tables().resolve(nn::parse_spec(text + ")")));
}

void run_optimizer_case(CaseContext& c) {
  std::string name;
  Json::Object options;
  i64 steps = 0;
  double clip = 0;
  std::vector<double> rates;
  for (const auto& [key, value] : c.config().as_object()) {
    if (key == "optimizer") name = value.as_string();
    else if (key == "steps") steps = value.as_int();
    else if (key == "clip_norm") clip = value.as_double();
    else if (key == "lr" && value.is_array()) for (const Json& v : value.as_array()) rates.push_back(v.as_double());
    else options.emplace_back(key, value);
  }
  if (name.empty()) return c.problem("config has no optimizer");
  if (steps < 1) return c.problem("config.steps must be at least 1");
  if (!rates.empty() && static_cast<i64>(rates.size()) != steps)
    return c.problem(fmt::format("config.lr has {} rates for {} steps", rates.size(), steps));
  if (!rates.empty()) options.emplace_back("lr", rates[0]);
  const Tensor w = c.get("param.w").requires_grad_();
  const auto optimizer = optimizer_from_case({{.params = {w}}}, name, options);
  for (i64 t = 1; t <= steps; ++t) {
    w.set_grad(c.get(fmt::format("input.grad.{}", t)));
    if (!rates.empty()) optimizer->set_lr(rates[static_cast<size_t>(t - 1)]);
    optimizer->step(clip > 0 ? clip_factor(grad_norm({w}), clip) : 1);
  }
  c.compare("output", w.detach());
}

}  // namespace waymark::train
