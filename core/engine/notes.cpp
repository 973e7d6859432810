#include "core/engine/notes.h"

#include <algorithm>
#include <charconv>

#include "core/ops/elementwise.h"

namespace waymark {
namespace {

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

const AttrValue* find_attribute(const Attributes& list, std::string_view name) {
  for (const auto& [key, value] : list)
    if (key == name) return &value;
  return nullptr;
}

std::optional<double> number_of(const AttrValue& v) {
  if (const auto* d = std::get_if<double>(&v)) return *d;
  if (const auto* i = std::get_if<i64>(&v)) return static_cast<double>(*i);
  return std::nullopt;
}

// "0", "−3", or the name of an attribute.
std::optional<double> value_of(std::string text, const Attributes& attributes) {
  constexpr std::string_view minus = "−";
  if (text.starts_with(minus)) text = "-" + text.substr(minus.size());
  double v = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (error == std::errc() && end == text.data() + text.size()) return v;
  if (const AttrValue* a = find_attribute(attributes, text)) return number_of(*a);
  return std::nullopt;
}

// Elements of t for which f holds.
template <class F> i64 count_if(const Tensor& t, F f) {
  const Tensor dense = ops::contiguous_value(t);
  return visit_float(dense.dtype(), [&](auto zero) {
    const auto* p = dense.data<decltype(zero)>();
    i64 n = 0;
    for (i64 i = 0; i < dense.numel(); ++i) n += f(p[i]) ? 1 : 0;
    return n;
  });
}

// Calls f(values of one slice along `axis`, their number) for every slice; axis -1: all values are one slice.
template <class F> void for_each_slice(const Tensor& t, int axis, F f) {
  if (axis < 0 && t.dim() > 0) {
    const Tensor all = ops::contiguous_value(t);
    return for_each_slice(alias(all, {all.numel()}, {1}, all.offset()), 0, f);
  }
  std::vector<i64> order;
  for (int d = 0; d < t.dim(); ++d)
    if (d != axis) order.push_back(d);
  Shape shape, strides;
  for (i64 d : order) {
    shape.push_back(t.shape()[static_cast<int>(d)]);
    strides.push_back(t.strides()[static_cast<int>(d)]);
  }
  const i64 n = t.dim() ? t.shape()[axis] : 1;
  if (t.dim()) {
    shape.push_back(n);
    strides.push_back(t.strides()[axis]);
  }
  const Tensor dense = ops::contiguous_value(alias(t, shape, strides, t.offset()));
  if (n == 0) return;
  visit_float(dense.dtype(), [&](auto zero) {
    const auto* p = dense.data<decltype(zero)>();
    for (i64 at = 0; at < dense.numel(); at += n) f(p + at, n);
  });
}

bool usable(const CardTensor& t) { return t.value.defined() && t.value.is_floating_point() && t.value.numel() > 0; }

void note_kinks(const NodeCard& card, const OpInfo& op, std::vector<std::string>& notes) {
  for (const Kink& k : kinks_of(op, card.attributes)) {
    if (card.inputs.empty()) return;
    const CardTensor& x = card.inputs[0];
    i64 hits = 0, of = 0;
    std::string what = "elements";
    if (k.kind == Kink::Kind::value && k.value == 0 && x.computed) {
      hits = x.stats.zeros;
      of = x.stats.count;
    } else if (!usable(x)) {
      continue;
    } else if (k.kind == Kink::Kind::value) {
      hits = count_if(x.value, [&](auto v) { return static_cast<double>(v) == static_cast<double>(decltype(v)(k.value)); });
      of = x.value.numel();
    } else if (k.kind == Kink::Kind::integer) {
      hits = count_if(x.value, [](auto v) { return std::floor(v) == v; });
      of = x.value.numel();
    } else if (k.kind == Kink::Kind::operands) {
      if (card.inputs.size() < 2 || !usable(card.inputs[1])) continue;
      const Shape shape = broadcast_shapes(op.name, x.value.shape(), card.inputs[1].value.shape());
      const Tensor a = ops::contiguous_value(ops::expand_value(ops::cast_value(x.value, kF64), shape));
      const Tensor b = ops::contiguous_value(ops::expand_value(ops::cast_value(card.inputs[1].value, kF64), shape));
      of = a.numel();
      for (i64 i = 0; i < of; ++i) hits += a.data<double>()[i] == b.data<double>()[i];
    } else {
      what = "slices";
      const bool lowest = op.name.find("min") != std::string_view::npos;
      for_each_slice(x.value, axis_of(card.attributes, x.value.dim()), [&](const auto* p, i64 n) {
        const auto best = lowest ? *std::min_element(p, p + n) : *std::max_element(p, p + n);
        hits += std::count(p, p + n, best) > 1;
        ++of;
      });
    }
    if (hits) notes.push_back(fmt::format("kink {} at {} of {} {}", k.text, hits, of, what));
  }
}

void note_saturation(const NodeCard& card, std::vector<std::string>& notes) {
  if (card.outputs.empty()) return;
  const CardTensor& y = card.outputs[0];
  const auto say = [&](i64 hits, i64 of, std::string_view what, std::string_view condition) {
    if (hits) notes.push_back(fmt::format("{} of {} {} saturated ({})", hits, of, what, condition));
  };
  if (card.op == "relu" || card.op == "relu6") {
    if (y.computed && y.stats.zeros) notes.push_back(fmt::format("{} of {} elements dead (y = 0)", y.stats.zeros, y.stats.count));
    return;
  }
  if (!usable(y)) return;
  if (card.op == "tanh") {
    say(count_if(y.value, [](auto v) { return std::abs(v) > decltype(v)(0.99); }), y.value.numel(), "elements", "|y| > 0.99");
  } else if (card.op == "sigmoid") {
    say(count_if(y.value, [](auto v) { return v > decltype(v)(0.99) || v < decltype(v)(0.01); }), y.value.numel(), "elements",
        "y < 0.01 or y > 0.99");
  } else if (card.op == "softmax" || card.op == "masked_softmax" || card.op == "softmin") {
    i64 hits = 0, rows = 0;
    for_each_slice(y.value, axis_of(card.attributes, y.value.dim()), [&](const auto* p, i64 n) {
      hits += static_cast<double>(*std::max_element(p, p + n)) > 0.99;
      ++rows;
    });
    say(hits, rows, "rows", "max > 0.99");
  }
}

}  // namespace

int axis_of(const Attributes& attributes, int axes) {
  const AttrValue* a = find_attribute(attributes, "dim");
  if (!a || axes == 0) return -1;
  const auto* list = std::get_if<std::vector<i64>>(a);
  const auto* one = std::get_if<i64>(a);
  if (!one && !(list && list->size() == 1)) return -1;
  const i64 dim = one ? *one : (*list)[0];
  return static_cast<int>(dim < 0 ? dim + axes : dim);
}

std::vector<Kink> kinks_of(const OpInfo& op, const Attributes& attributes) {
  std::vector<Kink> out;
  std::string_view rest = op.kinks;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(", "), rest.size());
    const std::string part(rest.substr(0, comma));
    rest.remove_prefix(std::min(rest.size(), comma + 2));
    if (part == "a = b" || part == "x = target") out.push_back({Kink::Kind::operands, 0, part});
    else if (part == "ties") out.push_back({Kink::Kind::ties, 0, part});
    else if (part == "x an integer") out.push_back({Kink::Kind::integer, 0, part});
    else if (part.starts_with("x = "))
      if (const auto v = value_of(part.substr(4), attributes)) out.push_back({Kink::Kind::value, *v, fmt::format("x = {:g}", *v)});
  }
  return out;
}

std::vector<std::string> notes_of(const NodeCard& card, const OpInfo& op) {
  const ops::Unrecorded values_only;
  std::vector<std::string> notes;
  note_kinks(card, op, notes);
  note_saturation(card, notes);
  for (const NodeCard::Outgoing& o : card.outgoing) {
    if (!o.after.computed) continue;
    const TensorStats& s = o.after.stats;
    if (s.nonfinite())
      notes.push_back(fmt::format("{} of {} elements of the gradient for {} are not finite", s.nonfinite(), s.count, o.to));
    else if (s.all_zero())
      notes.push_back(fmt::format("the gradient for {} is exactly 0", o.to));
  }
  return notes;
}

}  // namespace waymark
