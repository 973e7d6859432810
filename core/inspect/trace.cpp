#include "core/inspect/trace.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/engine/run_state.h"

namespace waymark::inspect {
namespace {

bool in_scope(const std::string& scope, std::string_view wanted) {
  if (wanted.empty() || scope == wanted) return true;
  if (scope.size() > wanted.size() && scope.starts_with(wanted) && scope[wanted.size()] == '.') return true;
  return fnmatch(std::string(wanted).c_str(), scope.c_str(), 0) == 0;
}

bool is_op(const NodeCard& c, std::string_view op) {
  return c.op == op || c.label == op || (op.starts_with('#') && fmt::format("#{}", c.seq) == op);
}

}  // namespace

TraceNode Trace::node(std::string_view op, std::string_view scope, size_t which) const {
  size_t found = 0;
  for (const NodeCard& c : backward_)
    if (is_op(c, op) && in_scope(c.scope, scope) && found++ == which) return TraceNode(c);
  const std::string place = scope.empty() ? "" : fmt::format(" in {}", scope);
  if (found) fail("trace", "{} ran {} times{}; there is no number {}", op, found, place, which);
  std::set<std::string> ops;
  for (const NodeCard& c : backward_)
    if (in_scope(c.scope, scope)) ops.insert(c.op);
  if (ops.empty()) fail("trace", "no node ran backward{}", place);
  fail("trace", "no {} ran backward{}; there are {}", op, place, fmt::join(ops, ", "));
}

TraceTensor Trace::tensor(std::string_view name) const {
  const std::vector<std::string> all = names();
  if (std::find(all.begin(), all.end(), name) != all.end()) return {*this, std::string(name)};
  std::vector<std::string> some;
  for (const std::string& n : all)
    if (n.find('#') == std::string::npos && n.find('@') == std::string::npos) some.push_back(n);
  if (some.size() > 8) some.resize(8);
  fail("trace", "there is no tensor \"{}\"; named ones are {}", name, some.empty() ? "none" : fmt::format("{}", fmt::join(some, ", ")));
}

std::vector<std::string> Trace::names() const {
  std::vector<std::string> out;
  std::set<std::string> seen;
  const auto add = [&](const std::string& n) {
    if (!n.empty() && seen.insert(n).second) out.push_back(n);
  };
  for (const TensorRecord& t : tensors_) add(t.name);
  for (const NodeCard& c : backward_) {
    for (const CardTensor& t : c.outputs) add(t.name);
    for (const NodeCard::Outgoing& o : c.outgoing) add(o.to);
  }
  return out;
}

void Trace::expect_order(const std::vector<std::string>& ops) const {
  size_t next = 0;
  std::string last = "the start";
  for (const NodeCard& c : backward_) {
    if (next == ops.size()) return;
    if (!is_op(c, ops[next])) continue;
    last = c.label;
    ++next;
  }
  if (next == ops.size()) return;
  std::vector<std::string> order;
  for (const NodeCard& c : backward_) order.push_back(c.op);
  fail("trace", "no {} ran backward after {}; the order was {}", ops[next], last, fmt::join(order, ", "));
}

const ForwardRecord* Trace::find_forward(u64 seq) const {
  const auto it = of_node_.find(seq);
  return it == of_node_.end() ? nullptr : &forward_[it->second];
}
const TensorRecord* Trace::find_tensor(u64 seq, u32 slot) const {
  const auto it = made_.find({seq, slot});
  return it == made_.end() ? nullptr : &tensors_[it->second];
}
const TensorRecord* Trace::find_tensor(std::string_view name) const {
  for (size_t i = tensors_.size(); i-- > 0;)
    if (tensors_[i].name == name) return &tensors_[i];
  return nullptr;
}
void Trace::keep_run(u64 run) {
  std::erase_if(backward_, [&](const NodeCard& c) { return c.run != run; });
}

// ---- one node, one tensor ---------------------------------------------------------------------------------------------

Tensor TraceNode::value_of(const CardTensor& t, std::string_view what) const {
  if (t.value.defined()) return t.value;
  if (!t.computed) fail("trace", "{} of {} was not computed, which is not zero", what, card_->label);
  fail("trace", "the values of {} of {} ({} elements) were not kept; record with keep = values, and name it if it is large", what,
       card_->label, t.stats.count);
}

Tensor TraceNode::incoming(size_t output) const {
  if (output >= card_->incoming.size()) fail("trace", "{} has {} outputs; there is no number {}", card_->label, card_->incoming.size(), output);
  return value_of(card_->incoming[output].gradient, "the gradient of the output");
}
Tensor TraceNode::outgoing(int input) const {
  for (const NodeCard::Outgoing& o : card_->outgoing)
    if (o.input == input) return value_of(o.after, "the gradient for " + o.to);
  fail("trace", "input {} of {} wanted no gradient", input, card_->label);
}
Tensor TraceNode::input(size_t i) const {
  if (i >= card_->inputs.size()) fail("trace", "{} has {} inputs; there is no number {}", card_->label, card_->inputs.size(), i);
  return value_of(card_->inputs[i], fmt::format("input {}", i));
}
Tensor TraceNode::output(size_t k) const {
  if (k >= card_->outputs.size()) fail("trace", "{} has {} outputs; there is no number {}", card_->label, card_->outputs.size(), k);
  return value_of(card_->outputs[k], fmt::format("output {}", k));
}

Tensor TraceTensor::value() const {
  const TensorRecord* r = trace_->find_tensor(name_);
  if (r && r->value.defined()) return r->value;
  for (const NodeCard& c : trace_->backward())
    for (const auto* list : {&c.inputs, &c.outputs})
      for (const CardTensor& t : *list)
        if (t.name == name_ && t.value.defined()) return t.value;
  fail("trace", "the values of {} were not kept; record with keep = values, and name it if it is large", name_);
}

std::vector<Contribution> TraceTensor::contributions() const {
  // Of a tensor that a node made, the card of that node has them; but it may not have run, and leaves have no card.
  std::vector<Contribution> parts;
  for (const NodeCard& c : trace_->backward())
    for (const NodeCard::Outgoing& o : c.outgoing) {
      if (o.to != name_ || !o.after.computed) continue;
      Contribution part;
      part.from = c.label;
      part.seq = c.seq;
      part.input = o.input;
      part.gradient = o.after;
      parts.push_back(std::move(part));
    }
  const CardTensor sum = gradient();
  for (const NodeCard& c : trace_->backward())
    for (size_t k = 0; k < c.outputs.size() && k < c.incoming.size(); ++k)
      if (c.outputs[k].name == name_ && !c.incoming[k].contributions.empty()) parts = c.incoming[k].contributions;
  if (!parts.empty() && std::isnan(parts[0].share) && sum.value.defined()) share_out(parts, sum.value);
  std::stable_sort(parts.begin(), parts.end(), [](const Contribution& a, const Contribution& b) {
    return a.gradient.stats.norm > b.gradient.stats.norm;
  });
  return parts;
}

CardTensor TraceTensor::gradient() const {
  CardTensor sum;
  sum.name = "grad(" + name_ + ")";
  for (const NodeCard& c : trace_->backward()) {
    for (size_t k = 0; k < c.outputs.size() && k < c.incoming.size(); ++k)
      if (c.outputs[k].name == name_) return c.incoming[k].gradient;
    for (const NodeCard::Outgoing& o : c.outgoing)
      if (o.to == name_ && o.slot_after.computed) sum = o.slot_after;
  }
  return sum;
}

}  // namespace waymark::inspect
