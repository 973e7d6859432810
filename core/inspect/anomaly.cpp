#include "core/inspect/anomaly.h"

#include <algorithm>
#include <cmath>

#include "core/inspect/anomaly_hints.h"
#include "core/inspect/replay.h"
#include "core/ops/elementwise.h"
#include "core/tensor/strided.h"

namespace waymark::inspect {
namespace {

constexpr size_t kMaxCandidates = 1000, kMaxPassed = 100000;
constexpr double kLargeGrowth = 1000;

int level_of(double v) { return std::isnan(v) ? 2 : std::isinf(v) ? 1 : 0; }

// Of a scalar argument that is a value. Orders of norms and bounds of a clamp are infinite by right.
int level_of(const std::pair<std::string, AttrValue>& attribute) {
  const auto& [name, value] = attribute;
  if (name == "p" || name == "min" || name == "max" || !std::holds_alternative<double>(value)) return 0;
  return level_of(std::get<double>(value));
}

std::string number(double v) { return std::isnan(v) ? "nan" : fmt::format("{:.6g}", v); }

// Sees ops while a rule or a twin runs once more, and keeps the first one that raises the level.
class InnerOp final : public Observer {
 public:
  InnerOp() : outer_(thread_state().observer) { thread_state().observer = this; }
  ~InnerOp() override { thread_state().observer = outer_; }
  void on_op(const ForwardEvent& e) override {
    if (!name_.empty()) return;
    int in = 0, out = 0;
    for (size_t i = 0; i < e.inputs.size(); ++i) in = std::max(in, nonfinite_level(e.inputs[i]));
    for (const auto& a : e.attrs.list()) in = std::max(in, level_of(a));
    for (const Tensor& t : e.outputs) out = std::max(out, nonfinite_level(t));
    if (out > in) name_ = e.op.name;
  }
  void before_write(const Tensor&) override {}
  void on_rule(const Node&, std::span<const Tensor>, const Grads&) override {}
  const std::string& name() const { return name_; }

 private:
  Observer* outer_;
  std::string name_;
};

std::string inner_op_of_rule(const Node& node, std::span<const Tensor> g) {
  const NoGrad off;
  const ExplainMode composed;
  InnerOp inner;
  Need need(node.edges.size());
  for (size_t i = 0; i < node.edges.size(); ++i)
    if (node.edges[i].wanted()) need.set(i);
  std::vector<Tensor> again(g.begin(), g.end());
  try {
    (void)run_rule(const_cast<Node&>(node), again, need);
  } catch (const Error&) {
    return "";
  }
  return inner.name();
}

std::string inner_op_of_twin(const OpInfo& op, std::span<const Tensor> inputs,
                             const std::vector<std::pair<std::string, AttrValue>>& attributes) {
  if (op.twin.empty() || !op.apply) return "";
  const NoGrad off;
  const ExplainMode composed;
  InnerOp inner;
  try {
    (void)call_again(op, inputs, attributes);
  } catch (const Error&) {
    return "";
  }
  return inner.name();
}

// t broadcast to `shape`, in f64, row by row.
std::vector<double> spread(const Tensor& t, const Shape& shape) { return ops::expand_value(t, shape).to_vector<double>(); }

bool broadcasts(std::span<const Tensor> inputs, const Shape& shape) {
  for (const Tensor& t : inputs)
    if (t.defined() && !broadcasts_to(t.shape(), shape)) return false;
  return true;
}

// Positions at which the output is worse than every input there; all of them for ops that do not work by element.
std::vector<i64> origins_in(const OpInfo& op, std::span<const Tensor> inputs, int scalars, const Tensor& output, size_t most) {
  std::vector<i64> out;
  const std::vector<double> y = output.to_vector<double>();
  std::vector<std::vector<double>> x;
  int whole = scalars;
  const bool by_element = works_by_element(op) && broadcasts(inputs, output.shape());
  for (const Tensor& t : inputs) {
    if (!t.defined() || !t.is_floating_point()) continue;
    if (by_element) x.push_back(spread(t, output.shape()));
    else whole = std::max(whole, nonfinite_level(t));
  }
  for (size_t i = 0; i < y.size() && out.size() < most; ++i) {
    int level = whole;
    for (const auto& v : x) level = std::max(level, level_of(v[i]));
    if (level_of(y[i]) > level) out.push_back(static_cast<i64>(i));
  }
  return out;
}

std::string tensor_line(std::string_view name, const Tensor& t) {
  return fmt::format("{} {} {}   {}", name, t.shape(), name_of(t.dtype()), short_text(stats_of(t)));
}

double squares_of(const Tensor& t) { return t.defined() && t.is_floating_point() ? alignment_of(t, t).dot : 0; }

}  // namespace

// ---- the report -------------------------------------------------------------------------------------------------------

std::string AnomalyReport::to_string() const {
  std::string out = planted ? fmt::format("anomaly: {} is {}; no op made it", subject, level == 2 ? "nan" : "infinite")
                            : fmt::format("anomaly: {} made {}", subject, level == 2 ? "NaN" : "an infinity");
  const auto line = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) out += fmt::format("\n  {:<7}{}", name, text);
  };
  if (!planted) {
    line("value", formula);
    line("rule", rule);
  }
  line("where", place.empty() || scope.empty() ? place + scope : place + " in " + scope);
  for (const std::string& p : places) line("at", p);
  for (const std::string& i : inputs) line("input", i);
  line("inside", inner);
  if (path.size() > 12) {
    std::vector<std::string> ends(path.begin(), path.begin() + 6);
    ends.push_back(fmt::format("({} more)", path.size() - 12));
    ends.insert(ends.end(), path.end() - 6, path.end());
    line("path", fmt::format("{}", fmt::join(ends, " -> ")));
  } else {
    line("path", fmt::format("{}", fmt::join(path, " -> ")));
  }
  line("seen", seen);
  line("growth", growth);
  line("hint", hint);
  return out;
}

AnomalyError::AnomalyError(AnomalyReport report, Loc at)
    : Error("", report.to_string(), at), report_(std::make_shared<const AnomalyReport>(std::move(report))) {}

AnomalyMode::AnomalyMode(OnFind on_find) : on_find_(on_find) {}
AnomalyMode::~AnomalyMode() { leave(); }

void AnomalyMode::found(AnomalyReport report, Loc loc) {
  run_reported_ = true;
  reports_.push_back(std::move(report));
  if (on_find_ == OnFind::pause) pause_ = true;
  if (on_find_ == OnFind::raise || on_find_ == OnFind::raise_now) throw AnomalyError(reports_.back(), loc);
}

bool AnomalyMode::asks_for_pause() { return std::exchange(pause_, false); }

// ---- forward ----------------------------------------------------------------------------------------------------------

int AnomalyMode::passed_of(const Tensor& t) const {
  const AutogradMeta* m = meta_of(t);
  if (m && m->history.node) {
    const auto it = of_output_.find({m->history.node->seq, m->history.slot});
    return it == of_output_.end() ? -1 : it->second;
  }
  const auto it = of_constant_.find(t.impl());
  return it == of_constant_.end() ? -1 : it->second.second;
}

// A non-finite input that no seen op made.
int AnomalyMode::source(const ForwardEvent& event, size_t input, const std::string& label, int level) {
  const Tensor& t = event.inputs[input];
  Candidate c;
  c.report.planted = true;
  c.report.level = level;
  c.report.op = event.op.name;
  c.report.subject = fmt::format("input {} of {}", t.name().empty() ? fmt::format("{} ({} {})", input, t.shape(), name_of(t.dtype()))
                                                                    : "\"" + t.name() + "\"",
                                 label);
  c.report.scope = scope_path(thread_state().scope);
  c.loc = event.inputs.loc();
  if (c.loc) c.report.place = fmt::format("{}:{}", c.loc.name(), c.loc.line);
  const std::vector<double> v = t.to_vector<double>();
  for (size_t i = 0; i < v.size() && c.report.places.size() < 3; ++i)
    if (level_of(v[i]) == level) c.report.places.push_back(fmt::format("{} = {}", position_text(t.shape(), static_cast<i64>(i)), number(v[i])));
  c.report.inputs.push_back(tensor_line(t.name().empty() ? fmt::format("input {}", input) : t.name(), t));
  candidates_.push_back(std::move(c));
  passed_.push_back({"", -1, static_cast<int>(candidates_.size()) - 1});
  const int id = static_cast<int>(passed_.size()) - 1;
  const AutogradMeta* m = meta_of(t);
  if (m && m->history.node) of_output_[{m->history.node->seq, m->history.slot}] = id;
  else of_constant_.insert_or_assign(t.impl(), std::pair(t, id));
  return id;
}

void AnomalyMode::see_write(const Tensor& target) {
  const ops::Unrecorded values_only;
  before_ = make_empty_like(target, target.dtype());
  ops::copy_into(before_, target);
  before_storage_ = target.impl()->storage.get();
}

void AnomalyMode::see_op(const ForwardEvent& event) {
  // Inside a rule only what create_graph records is an op of its own; a checkpoint's second run repeats the first.
  if (thread_state().running && (!event.node || thread_state().sink)) return;
  int out_level = 0;
  for (const Tensor& t : event.outputs) out_level = std::max(out_level, nonfinite_level(t));
  if (out_level == 0) {
    before_ = Tensor();
    return;
  }
  if (candidates_.size() >= kMaxCandidates || passed_.size() >= kMaxPassed) return;
  const ops::Unrecorded values_only;
  const std::string label = event.node ? event.node->label() : std::string(event.op.name);
  std::vector<Tensor> inputs;
  std::vector<int> from;
  int in_level = 0, scalars = 0, parent = -1, parent_level = 0;
  for (size_t i = 0; i < event.inputs.size(); ++i) {
    Tensor t = event.inputs[i];
    // What an in-place op has overwritten: as it was.
    if (t.defined() && before_.defined() && t.impl()->storage.get() == before_storage_ && t.shape() == before_.shape()) t = before_;
    inputs.push_back(t);
    const int level = nonfinite_level(t);
    int id = -1;
    if (level > 0) {
      id = passed_of(event.inputs[i]);
      if (id < 0) id = source(event, i, label, level);
      if (level > parent_level) {
        parent = id;
        parent_level = level;
      }
    }
    in_level = std::max(in_level, level);
    from.push_back(id);
  }
  before_ = Tensor();
  for (const auto& a : event.attrs.list()) scalars = std::max(scalars, level_of(a));
  const Loc loc = event.inputs.loc();
  int candidate = -1;
  for (const Tensor& y : event.outputs) {
    if (nonfinite_level(y) == 0) continue;
    // By element an op may be an origin although another element came in worse.
    const bool may = nonfinite_level(y) > std::max(in_level, scalars) || works_by_element(event.op);
    const std::vector<i64> places = may ? origins_in(event.op, inputs, scalars, y, 3) : std::vector<i64>();
    if (places.empty()) continue;
    AnomalyReport r;
    r.subject = label;
    r.op = event.op.name;
    r.formula = event.op.formula;
    r.rule = event.op.rule.text();
    r.scope = scope_path(thread_state().scope);
    if (loc) r.place = fmt::format("{}:{}", loc.name(), loc.line);
    r.seq = event.node ? event.node->seq : 0;
    const bool by_element = broadcasts(inputs, y.shape()) && works_by_element(event.op);
    const std::vector<double> values = y.to_vector<double>();
    for (i64 at : places) {
      std::string text = position_text(y.shape(), at) + ": ";
      if (by_element)
        for (size_t i = 0; i < inputs.size(); ++i)
          if (inputs[i].defined())
            text += fmt::format("input {} = {}, ", i, number(spread(inputs[i], y.shape())[static_cast<size_t>(at)]));
      const double v = values[static_cast<size_t>(at)];
      r.level = std::max(r.level, level_of(v));
      r.places.push_back(text + "output = " + number(v));
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined())
        r.inputs.push_back(tensor_line(event.inputs[i].name().empty() ? fmt::format("input {}", i) : event.inputs[i].name(), inputs[i]));
    r.inner = inner_op_of_twin(event.op, inputs, event.attrs.list());
    r.hint = forward_hint(event.op, inputs, y, event.attrs.list());
    candidates_.push_back({std::move(r), loc});
    candidate = static_cast<int>(candidates_.size()) - 1;
    break;
  }
  passed_.push_back({label, parent, candidate});
  const int id = static_cast<int>(passed_.size()) - 1;
  for (u32 k = 0; k < event.outputs.size(); ++k) {
    if (nonfinite_level(event.outputs[k]) == 0) continue;
    if (event.node) of_output_[{event.node->seq, k}] = id;
    else of_constant_.insert_or_assign(event.outputs[k].impl(), std::pair(event.outputs[k], id));
  }
  if (event.node) of_inputs_[event.node->seq] = std::move(from);
  if (candidate >= 0 && on_find_ == OnFind::raise_now) {
    AnomalyReport r = candidates_[static_cast<size_t>(candidate)].report;
    r.seen = "at the op itself";
    found(std::move(r), loc);
  }
}

// The earliest op on the way to this one that is an origin; without any, the input that came in so.
AnomalyReport AnomalyMode::report_of(int passed) const {
  std::vector<std::string> path;
  int op = -1, input = -1;
  std::vector<std::string> to_op;
  for (int at = passed; at >= 0; at = passed_[static_cast<size_t>(at)].parent) {
    const Passed& p = passed_[static_cast<size_t>(at)];
    if (!p.label.empty()) path.push_back(p.label);
    if (p.candidate < 0) continue;
    if (candidates_[static_cast<size_t>(p.candidate)].report.planted) {
      input = p.candidate;
    } else {
      op = p.candidate;
      to_op = path;
    }
  }
  AnomalyReport r;
  if (op >= 0 || input >= 0) {
    r = candidates_[static_cast<size_t>(op >= 0 ? op : input)].report;
    if (op >= 0) path = to_op;
  } else {
    r.planted = true;
    r.subject = "a value that was there before anomaly mode began";
  }
  std::reverse(path.begin(), path.end());
  r.path = std::move(path);
  return r;
}

bool AnomalyMode::check(const Tensor& t) {
  const int level = nonfinite_level(t);
  if (level == 0) return true;
  AnomalyReport r = report_of(passed_of(t));
  if (r.level == 0) r.level = level;
  r.seen = fmt::format("in the checked tensor, {} {}", t.shape(), name_of(t.dtype()));
  found(std::move(r), Loc());
  return false;
}

// ---- backward ---------------------------------------------------------------------------------------------------------

void AnomalyMode::see_start(u64, const std::vector<Tensor>& roots) {
  run_reported_ = false;
  growth_ = {};
  selected_.clear();
  for (const Tensor& root : roots) {
    const int level = nonfinite_level(root);
    if (level == 0) continue;
    AnomalyReport r = report_of(passed_of(root));
    if (r.level == 0) r.level = level;
    r.seen = root.numel() == 1 ? fmt::format("the root is {}", number(root.item<double>()))
                               : fmt::format("the root {} is not finite", root.shape());
    return found(std::move(r), Loc());
  }
}

AnomalyReport AnomalyMode::rule_report(const Node& node, std::span<const Tensor> g, const Tensor& bad, size_t input, int level) const {
  AnomalyReport r;
  r.backward = true;
  r.level = level;
  r.subject = "the rule of " + node.label();
  r.op = node.op->name;
  r.formula = node.op->formula;
  r.rule = node.op->rule.text();
  r.scope = scope_path(node.scope);
  r.seq = node.seq;
  if (node.loc) r.place = fmt::format("{}:{}", node.loc.name(), node.loc.line);
  const std::vector<double> v = bad.to_vector<double>();
  for (size_t i = 0; i < v.size() && r.places.size() < 3; ++i) {
    if (level_of(v[i]) < level) continue;
    std::string text = position_text(bad.shape(), static_cast<i64>(i)) + ": ";
    for (const Tensor& t : g)
      if (t.defined() && t.shape() == bad.shape()) text += fmt::format("g = {}, ", number(t.to_vector<double>()[i]));
    for (const Saved& s : node.saved)
      if (s.data && s.data->shape == bad.shape() && s.kind <= SaveKind::output)
        text += fmt::format("saved {} = {}, ", s.what(*node.op), number(Tensor(s.data).to_vector<double>()[i]));
    r.places.push_back(text + "gradient = " + number(v[i]));
  }
  for (const Tensor& t : g)
    if (t.defined()) r.inputs.push_back(tensor_line("g", t));
  for (const Saved& s : node.saved)
    if (s.data && s.kind <= SaveKind::output)
      r.inputs.push_back(tensor_line("saved " + s.what(*node.op), Tensor(s.data)));
  r.inner = inner_op_of_rule(node, g);
  r.path = {node.label()};
  r.seen = fmt::format("in the gradient for {}, in backward of {}", name_of_target(node.edges[input]), node.label());
  r.hint = backward_hint(node, bad);
  return r;
}

// The rule passed on what a saved value brought.
AnomalyReport AnomalyMode::saved_report(const Node& node, std::span<const Tensor> g, const Tensor& bad) {
  int passed = -1;
  for (const Saved& s : node.saved) {
    if (!s.data || nonfinite_level(Tensor(s.data)) == 0) continue;
    if (s.kind == SaveKind::input) {
      const auto it = of_inputs_.find(node.seq);
      if (it != of_inputs_.end() && s.index < it->second.size()) passed = it->second[s.index];
    } else if (s.kind == SaveKind::output) {
      const auto it = of_output_.find({node.seq, s.index});
      if (it != of_output_.end()) passed = it->second;
    }
    if (passed >= 0) break;
  }
  AnomalyReport r = report_of(passed);
  const std::vector<double> v = bad.to_vector<double>();
  bool zero = false;
  for (const Tensor& t : g) {
    if (!t.defined() || t.shape() != bad.shape()) continue;
    const std::vector<double> gv = t.to_vector<double>();
    for (size_t i = 0; i < v.size() && !zero; ++i) zero = level_of(v[i]) > 0 && gv[i] == 0;
  }
  if (zero && selected_[node.seq]) r.hint = branch_hint();
  return r;
}

void AnomalyMode::see_rule(const Node& node, std::span<const Tensor> g, const Grads& out) {
  const ops::Unrecorded values_only;
  const bool picked = picks_elements(node.op->name) || (selected_.contains(node.seq) && selected_[node.seq]);
  if (picked)
    for (const Edge& e : node.edges)
      if (e.node) selected_[e.node->seq] = true;
  double in = 0;
  for (const Tensor& t : g) in += squares_of(t);
  for (size_t i = 0; i < out.size(); ++i) {
    const Tensor& bad = out[i].value;
    const double ratio = in > 0 && bad.defined() ? std::sqrt(squares_of(bad) / in) : 0;
    if (std::isfinite(ratio) && ratio > growth_.ratio) growth_ = {ratio, node.label()};
    const int level = nonfinite_level(bad);
    if (level == 0 || run_reported_) continue;
    int known = 0, saved = 0;
    for (const Tensor& t : g) known = std::max(known, nonfinite_level(t));
    for (const Saved& s : node.saved)
      if (s.data) saved = std::max(saved, nonfinite_level(Tensor(s.data)));
    AnomalyReport r;
    if (level > std::max(known, saved)) {
      r = rule_report(node, g, bad, i, level);
    } else if (saved >= level || known == 0) {
      r = saved_report(node, g, bad);
    } else {
      r.backward = r.planted = true;
      r.subject = "the gradient that arrived at " + node.label();
      r.op = node.op->name;
      r.hint = "a seed that is not finite, or a sum of contributions that overflows";
    }
    if (r.level == 0) r.level = level;
    r.seen = fmt::format("in the gradient for {}, in backward of {}", name_of_target(node.edges[i]), node.label());
    if (growth_.ratio > kLargeGrowth) {
      r.growth = fmt::format("largest growth in this run: {:.2g}-fold at {}", growth_.ratio, growth_.label);
      if (r.hint.empty()) r.hint = r.growth;
    }
    found(std::move(r), node.loc);
  }
}

void AnomalyMode::see_hook(const HookEvent& event) {
  const ops::Unrecorded values_only;
  const int level = nonfinite_level(event.after), before = nonfinite_level(event.before);
  if (level <= before || run_reported_) return;
  AnomalyReport r;
  r.backward = true;
  r.level = level;
  r.subject = fmt::format("hook {} of {}", event.number, event.of);
  Loc loc;
  if (const Node* node = event.node) {
    r.op = node->op->name;
    r.scope = scope_path(node->scope);
    r.seq = node->seq;
    loc = node->loc;
    if (loc) r.place = fmt::format("{}:{}", loc.name(), loc.line);
    r.path = {node->label()};
  }
  const std::vector<double> v = event.after.to_vector<double>(), was = event.before.to_vector<double>();
  for (size_t i = 0; i < v.size() && r.places.size() < 3; ++i)
    if (level_of(v[i]) == level)
      r.places.push_back(fmt::format("{}: came as {}, returned as {}", position_text(event.after.shape(), static_cast<i64>(i)), number(was[i]), number(v[i])));
  r.inputs.push_back(tensor_line("g", event.before));
  r.seen = fmt::format("in the gradient that the hook gave back, {} {}", event.after.shape(), name_of(event.after.dtype()));
  r.hint = "the gradient came to the hook better than it left; guard what the hook computes";
  found(std::move(r), loc);
}

}  // namespace waymark::inspect
