#include "core/inspect/anomaly_hints.h"

#include <algorithm>
#include <cmath>

#include "core/engine/stats.h"
#include "core/tensor/strided.h"

namespace waymark::inspect {
namespace {

template <size_t N> bool one_of(std::string_view name, const std::string_view (&list)[N]) {
  if (name.ends_with('_')) name.remove_suffix(1);  // the in-place form
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

constexpr std::string_view kGuard = "use norm(), normalize(eps), or add eps inside";

bool is_exponential(std::string_view op) {
  constexpr std::string_view list[] = {"exp", "exp2", "expm1", "pow", "sinh", "cosh", "square"};
  return one_of(op, list);
}
bool is_logarithm(std::string_view op) {
  constexpr std::string_view list[] = {"log", "log2", "log10", "log1p", "logit", "xlogy"};
  return one_of(op, list);
}
bool is_root_or_quotient(std::string_view op) {
  constexpr std::string_view list[] = {"sqrt", "rsqrt", "div", "reciprocal", "norm", "pow"};
  return one_of(op, list);
}
bool is_softmax(std::string_view op) {
  constexpr std::string_view list[] = {"softmax", "log_softmax", "softmin", "logsumexp"};
  return one_of(op, list);
}

// Row-major position of the first element for which f holds; -1: none.
template <class F> i64 first_where(const Tensor& t, F f) {
  const std::vector<double> v = t.to_vector<double>();
  for (size_t i = 0; i < v.size(); ++i)
    if (f(v[i])) return static_cast<i64>(i);
  return -1;
}

// First row along `dim` that has only values for which f holds, as the index of its first element; -1: none.
template <class F> i64 row_of_only(const Tensor& t, i64 dim, F f) {
  if (t.dim() == 0) return -1;
  const int axis = static_cast<int>(dim < 0 ? dim + t.dim() : dim);
  if (axis < 0 || axis >= t.dim()) return -1;
  const std::vector<double> v = t.to_vector<double>();
  const i64 n = t.shape()[axis];
  i64 inner = 1;
  for (int d = axis + 1; d < t.dim(); ++d) inner *= t.shape()[d];
  for (i64 at = 0; n > 0 && at < t.numel(); ++at) {
    if (at / inner % n != 0) continue;
    bool all = true;
    for (i64 k = 0; k < n && all; ++k) all = f(v[static_cast<size_t>(at + k * inner)]);
    if (all) return at;
  }
  return -1;
}

// A view, or a number added to or a limit set for a tensor: sum + eps is still a sum.
bool passes_on(const Node& n) {
  constexpr std::string_view list[] = {"add", "sub", "clamp", "clamp_min"};
  return n.op->view || (n.edges.size() == 1 && one_of(n.op->name, list));
}

// The op that made t, seen through these.
std::string_view maker_of(const Tensor& t) {
  const AutogradMeta* m = meta_of(t);
  const Node* n = m ? m->history.node.get() : nullptr;
  for (int i = 0; n && passes_on(*n) && i < 8; ++i) n = n->edges.size() ? n->edges[0].node.get() : nullptr;
  return n ? n->op->name : std::string_view();
}

}  // namespace

bool picks_elements(std::string_view op) {
  constexpr std::string_view list[] = {"where", "masked_fill", "index", "index_select", "select", "slice", "gather", "take",
                                       "masked_select", "narrow", "masked_softmax"};
  return one_of(op, list);
}

bool works_by_element(const OpInfo& op) {
  constexpr std::string_view families[] = {"arithmetic", "pointwise", "functions", "select", "activation", "comparison", "convert",
                                           "dropout", "inplace"};
  return one_of(op.family, families);
}

std::string branch_hint() {
  return "branch not taken here; guard the input as well: where(c, sqrt(where(c, x, 1)), 0)";
}

std::string forward_hint(const OpInfo& op, std::span<const Tensor> inputs, const Tensor& output,
                         const std::vector<std::pair<std::string, AttrValue>>& attributes) {
  if (inputs.empty() || !inputs[0].defined()) return "";
  const Tensor& x = inputs[0];
  if (is_softmax(op.name)) {
    i64 dim = -1;
    for (const auto& [name, value] : attributes)
      if (name == "dim" && std::holds_alternative<i64>(value)) dim = std::get<i64>(value);
    const double empty = op.name == "softmin" ? INFINITY : -INFINITY;
    const i64 row = row_of_only(x, dim, [&](double v) { return v == empty; });
    if (row >= 0)
      return fmt::format("the row at {} has no key left; use masked_softmax or check the mask", position_text(x.shape(), row));
  }
  if (is_exponential(op.name) && nonfinite_level(output) == 1) {
    double largest = -INFINITY;
    for (const double v : x.to_vector<double>())
      if (std::isfinite(v)) largest = std::max(largest, v);
    return fmt::format("overflow: the largest {} is {:.6g}; use logsumexp, or clamp it",
                       op.name.starts_with("pow") || op.name == "square" ? "base" : "exponent", largest);
  }
  if (is_logarithm(op.name)) {
    const i64 at = first_where(x, [&](double v) { return op.name == "log1p" ? v <= -1 : v <= 0; });
    if (at >= 0)
      return fmt::format("log of {:.6g} at {}; use xlogy, clamp or log_softmax", x.to_vector<double>()[static_cast<size_t>(at)],
                         position_text(x.shape(), at));
  }
  if (op.name.starts_with("div") && inputs.size() > 1 && inputs[1].defined()) {
    const i64 at = first_where(inputs[1], [](double v) { return v == 0; });
    if (at >= 0) {
      const std::string_view maker = maker_of(inputs[1]);
      constexpr std::string_view sums[] = {"sum", "matmul", "mm", "bmm", "mv", "einsum", "cumsum", "linear_recurrence"};
      if (one_of(maker, sums))
        return fmt::format("denominator 0 at {}: the {} that it comes from has no positive term there; add eps", position_text(inputs[1].shape(), at), maker);
      return fmt::format("the divisor is 0 at {}; {}", position_text(inputs[1].shape(), at), kGuard);
    }
  }
  if (op.name.starts_with("sqrt") || op.name == "rsqrt" || op.name == "reciprocal") {
    const i64 at = first_where(x, [](double v) { return v <= 0; });
    if (at >= 0)
      return fmt::format("{} of {:.6g} at {}; {}", op.name, x.to_vector<double>()[static_cast<size_t>(at)], position_text(x.shape(), at),
                         op.name.starts_with("sqrt") ? "clamp the input to 0 at least" : kGuard);
  }
  return "";
}

std::string backward_hint(const Node& node, const Tensor& gradient) {
  const std::string_view op = node.op->name;
  if (is_root_or_quotient(op)) return std::string(kGuard);
  if (is_logarithm(op)) return "the logarithm's input is 0; use xlogy, clamp or log_softmax";
  if (is_exponential(op) && nonfinite_level(gradient) == 1) return "overflow in the derivative; use logsumexp, or clamp the exponent";
  return "";
}

}  // namespace waymark::inspect
