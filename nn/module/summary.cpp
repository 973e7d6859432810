#include "nn/module/summary.h"

#include <algorithm>

namespace waymark::nn {

Summary summary(const ModuleBase& model) {
  Summary s;
  for (const NamedParameter& p : model.named_parameters()) {
    s.rows.push_back({p.name, p.tensor.shape(), p.tensor.numel(), p.no_decay, p.tensor.requires_grad()});
    s.total += p.tensor.numel();
    s.bytes += p.tensor.nbytes();
  }
  return s;
}

i64 count_parameters(const ModuleBase& model) { return summary(model).total; }

std::string with_commas(i64 n) {
  std::string text = std::to_string(n);
  const size_t first = n < 0 ? 1 : 0;
  for (size_t at = text.size(); at > first + 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string Summary::to_string() const {
  const std::string head = "parameter", last = fmt::format("{} parameter{}", rows.size(), rows.size() == 1 ? "" : "s");
  size_t name = std::max(head.size(), last.size()), shape = 5, count = std::max<size_t>(5, with_commas(total).size());
  for (const Row& r : rows) {
    name = std::max(name, r.name.size());
    shape = std::max(shape, waymark::to_string(r.shape).size());
  }
  std::string text = fmt::format("{:<{}}   {:<{}}   {:>{}}\n", head, name, "shape", shape, "count", count);
  for (const Row& r : rows)
    text += fmt::format("{:<{}}   {:<{}}   {:>{}}{}\n", r.name, name, waymark::to_string(r.shape), shape,
                        with_commas(r.count), count, r.trained ? "" : "   frozen");
  text += fmt::format("{:<{}}   {:<{}}   {:>{}}\n", last, name, "", shape, with_commas(total), count);
  return text;
}

}  // namespace waymark::nn

fmt::appender fmt::formatter<waymark::nn::Summary>::format(const waymark::nn::Summary& value, fmt::format_context& c) const {
  return fmt::format_to(c.out(), "{}", value.to_string());
}
