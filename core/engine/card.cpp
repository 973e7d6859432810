#include "core/engine/card.h"

#include <limits>

#include "core/engine/run_state.h"

namespace waymark {

TensorStats stats_of(const Tensor& t) {
  TensorStats s;
  const std::vector<double> values = t.to_vector<double>();
  s.count = static_cast<i64>(values.size());
  double sum = 0, squares = 0;
  i64 finite = 0;
  for (double v : values) {
    if (std::isnan(v)) { ++s.nan; continue; }
    if (std::isinf(v)) { ++(v > 0 ? s.positive_inf : s.negative_inf); continue; }
    s.zeros += v == 0;
    s.min = finite ? std::min(s.min, v) : v;
    s.max = finite ? std::max(s.max, v) : v;
    ++finite;
    sum += v;
    squares += v * v;
  }
  if (finite) {
    s.mean = sum / static_cast<double>(finite);
    double deviations = 0;
    for (double v : values)
      if (std::isfinite(v)) deviations += (v - s.mean) * (v - s.mean);
    s.sd = finite > 1 ? std::sqrt(deviations / static_cast<double>(finite - 1)) : 0;
  }
  s.norm = s.nan ? NAN : s.positive_inf + s.negative_inf ? INFINITY : std::sqrt(squares);
  return s;
}

namespace {

std::string name_of_target(const Edge& e) {
  if (e.leaf) {
    const AutogradMeta* m = meta_of(e.leaf.get());
    return m && !m->name.empty() ? m->name : fmt::format("leaf {}", e.leaf->shape);
  }
  if (SlotHooks* h = e.node->find_hooks(e.slot); h && !h->name.empty()) return h->name;
  return e.node->label();
}

std::string_view kind_name(SaveKind k) {
  switch (k) {
    case SaveKind::input: return "input";
    case SaveKind::output: return "output";
    case SaveKind::indices: return "indices";
    case SaveKind::bits: return "mask";
    case SaveKind::stats: return "statistics";
    case SaveKind::shape: return "shape";
    default: return "random key";
  }
}

std::string bytes_text(i64 b) {
  return b < 1024 ? fmt::format("{} B", b) : b < 1 << 20 ? fmt::format("{:.1f} KiB", static_cast<double>(b) / 1024)
                                                         : fmt::format("{:.1f} MiB", static_cast<double>(b) / 1048576);
}

std::string summary(const Tensor& t) {
  if (!t.defined()) return "-";  // not computed, which is not zero
  const TensorStats s = stats_of(t);
  std::string out = fmt::format("{} {}", t.shape(), name_of(t.dtype()));
  if (s.count == 0) return out + "   empty";
  out += fmt::format("   norm {:.2g}", s.norm);
  if (std::isfinite(s.min)) out += fmt::format("   [{:.2g}, {:.2g}]", s.min, s.max);
  if (s.nan) out += fmt::format("   {} NaN", s.nan);
  if (s.positive_inf + s.negative_inf) out += fmt::format("   {} inf", s.positive_inf + s.negative_inf);
  return out;
}

}  // namespace

NodeCard BackwardRun::State::describe_node(const Node& node) {
  NodeCard c;
  c.op = node.op->name;
  c.label = node.label();
  c.seq = node.seq;
  c.formula = node.op->formula;
  c.rule = node.op->rule.text();
  c.scope = scope_path(node.scope);
  c.place = node.loc ? fmt::format("{}:{}", node.loc.name(), node.loc.line) : "";
  for (const Saved& s : node.saved) {
    NodeCard::SavedItem item;
    item.what = s.kind <= SaveKind::output || s.kind == SaveKind::shape ? fmt::format("{} {}", kind_name(s.kind), s.index)
                                                                       : std::string(kind_name(s.kind));
    item.bytes = s.bytes;
    item.version_saved = item.version_now = s.version;
    if (s.data) {
      item.shape = s.data->shape;
      item.dtype = name_of(s.data->dtype);
      item.version_now = s.data->storage->version();
    }
    c.saved.push_back(std::move(item));
  }
  return c;
}

NodeCard::Outgoing BackwardRun::State::describe_edge(const Edge& to, const Grad& g) {
  NodeCard::Outgoing out;
  out.to = name_of_target(to);
  out.is_leaf = static_cast<bool>(to.leaf);
  out.before = g.value;
  if (!g.value.defined()) return out;
  const Shape& shape = to.leaf ? to.leaf->shape : to.node->outputs[to.slot].shape;
  out.after = g.window || g.value.shape() == shape || !broadcasts_to(shape, g.value.shape()) ? g.value
                                                                                            : sum_to_size(g.value, shape);
  return out;
}

void BackwardRun::State::finish_card(NodeCard& card, const Node& node) {
  const bool freed = node.released;
  for (NodeCard::SavedItem& s : card.saved) s.freed = freed;
  double in = 0;
  for (const NodeCard::Value& v : card.incoming)
    if (v.tensor.defined()) in += std::pow(stats_of(v.tensor).norm, 2);
  in = std::sqrt(in);
  for (NodeCard::Outgoing& o : card.outgoing) {
    if (!o.after.defined()) continue;
    const TensorStats s = stats_of(o.after);
    o.gain = in > 0 ? s.norm / in : NAN;
    if (s.nan + s.positive_inf + s.negative_inf)
      card.notes.push_back(fmt::format("{} of {} elements of the gradient for {} are not finite",
                                       s.nan + s.positive_inf + s.negative_inf, s.count, o.to));
    else if (s.count && s.zeros == s.count)
      card.notes.push_back(fmt::format("the gradient for {} is exactly 0", o.to));
  }
}

const Node* BackwardRun::State::peek() {
  for (size_t i = at; i < nodes.size(); ++i) {
    if (!nodes[i].wanted) continue;
    for (size_t k = 0; k < nodes[i].node->outputs.size(); ++k)
      if (slots[nodes[i].first_slot + k].value.defined()) return nodes[i].node.get();
  }
  return nullptr;
}

void BackwardRun::State::release_all() {
  for (NodeState& n : nodes)
    if (n.wanted) n.node->release();
}

std::string NodeCard::to_string() const {
  std::string out = fmt::format("{}/{}  {}", step, total, label);
  if (!scope.empty()) out += "   " + scope;
  if (!place.empty()) out += "   " + place;
  out += fmt::format("\n  {}   |   {}", formula, rule);
  for (const Value& v : incoming) out += fmt::format("\n  in     {} {}", v.name, summary(v.tensor));
  for (const SavedItem& s : saved) {
    out += fmt::format("\n  saved  {}", s.what);
    if (!s.dtype.empty()) out += fmt::format(" {} {}", s.shape, s.dtype);
    out += "   " + bytes_text(s.bytes);
    if (!s.dtype.empty()) out += fmt::format("   version {}/{}", s.version_saved, s.version_now);
    if (s.freed) out += "   freed";
  }
  for (const Outgoing& o : outgoing) {
    out += fmt::format("\n  out    {} <- {}", o.to, summary(o.after));
    if (o.before.defined() && o.after.defined() && o.before.shape() != o.after.shape())
      out += fmt::format("   summed from {}", o.before.shape());
    if (std::isfinite(o.gain)) out += fmt::format("   gain {:.2g}", o.gain);
    out += fmt::format("   arrived {} of {}", o.arrived, o.expected);
  }
  if (hooks_run) out += fmt::format("\n  hooks  {} ran{}", hooks_run, hooks_changed ? ", changed the gradient" : "");
  for (const std::string& n : notes) out += "\n  notes  " + n;
  return out;
}

}  // namespace waymark
