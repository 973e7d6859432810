#include "core/inspect/recorder.h"

#include <fnmatch.h>

#include <chrono>

#include "core/inspect/replay.h"
#include "core/kernels/statistics.h"
#include "core/ops/elementwise.h"

namespace waymark::inspect {
namespace {

constexpr i64 kMaxHeldBytes = i64{1} << 28;  // of tensors that are held for their identity only
constexpr i64 kPictureSide = 64;

i64 now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Picture picture_of(const Tensor& t) {
  Picture p;
  if (!t.is_floating_point() || t.numel() == 0) return p;
  const Tensor dense = ops::contiguous_value(t);
  const i64 columns = t.dim() ? t.shape().back() : 1, rows = t.numel() / columns;
  p.rows = std::min(rows, kPictureSide);
  p.columns = std::min(columns, kPictureSide);
  p.means.assign(static_cast<size_t>(p.rows * p.columns), 0);
  visit_float(dense.dtype(), [&](auto zero) {
    kernels::block_means(dense.data<decltype(zero)>(), rows, columns, p.rows, p.columns, p.means.data());
  });
  return p;
}

}  // namespace

std::string ForwardRecord::label() const {
  return seq ? fmt::format("{} #{}", op->name, seq) : fmt::format("{} @{}", op->name, number);
}

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)), last_end_(now()) {}
Recorder::~Recorder() { leave(); }
Recorder* Recorder::current() {
  for (Watcher* w : watching())
    if (auto* const recorder = dynamic_cast<Recorder*>(w)) return recorder;
  return nullptr;
}

void Recorder::clear() {
  trace_ = Trace();
  held_.clear();
  held_bytes_ = 0;
  kept_.clear();
}

// ---- tensors ----------------------------------------------------------------------------------------------------------

// The record that stands for t now; kNoTensor if t was not met.
u32 Recorder::find(const Tensor& t) const {
  const AutogradMeta* m = meta_of(t);
  if (m && m->history.node) {
    const auto it = trace_.made_.find({m->history.node->seq, m->history.slot});
    return it == trace_.made_.end() ? kNoTensor : it->second;
  }
  const auto it = held_.find(t.impl());
  return it == held_.end() || it->second.version != t.version() ? kNoTensor : it->second.id;
}

bool Recorder::keeps(const std::string& name, i64 numel) const {
  if (options_.keep != Keep::values) return false;
  if (numel <= options_.max_elements) return true;
  for (const std::string& glob : options_.names)
    if (fnmatch(glob.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

void Recorder::keep_value(TensorRecord& record, const Tensor& t) {
  if (keeps(record.name, t.numel())) {
    record.value = alias(t);  // without history: the graph is not kept alive
    kept_.emplace(t.impl()->storage.get(), record.id);
  } else if (options_.keep == Keep::values) {
    record.picture = picture_of(t);
  }
}

u32 Recorder::add(const Tensor& t, std::string name, u64 seq, u32 slot, const TensorStats* known) {
  const u32 id = static_cast<u32>(trace_.tensors_.size());
  TensorRecord record;
  record.id = id;
  record.name = std::move(name);
  record.seq = seq;
  record.slot = slot;
  record.requires_grad = t.requires_grad();
  record.set(t, known ? *known : stats_of(t));
  record.value = Tensor();
  const AutogradMeta* m = meta_of(t);
  if (m && m->view) record.view_of = find(Tensor(m->view->base));
  keep_value(record, t);
  trace_.tensors_.push_back(std::move(record));
  if (seq) {
    trace_.made_[{seq, slot}] = id;
  } else if (held_bytes_ + t.nbytes() <= kMaxHeldBytes || held_.contains(t.impl()) || t.requires_grad()) {
    if (!held_.contains(t.impl()) && !t.requires_grad()) held_bytes_ += t.nbytes();
    held_.insert_or_assign(t.impl(), Held{t, id, t.version()});
  }
  return id;
}

// An input: known, or met for the first time.
u32 Recorder::source(const Tensor& t) {
  if (!t.defined()) return kNoTensor;
  if (const u32 known = find(t); known != kNoTensor) return known;
  const AutogradMeta* m = meta_of(t);
  const Edge edge = m && m->history.node ? m->history : Edge{};
  std::string name = m && !m->name.empty() ? m->name : edge.node ? name_of_target(edge) : "";
  if (name.empty()) name = t.requires_grad() ? fmt::format("leaf {}", t.shape()) : "constant";
  return add(t, std::move(name), edge.node ? edge.node->seq : 0, edge.slot, nullptr);
}

// ---- forward ----------------------------------------------------------------------------------------------------------

void Recorder::see_op(const ForwardEvent& event) {
  const i64 begin = now();
  Node* const running = thread_state().running;
  // Inside a rule only what create_graph records is an op of its own; a checkpoint's second run is none.
  if (running && (!event.node || thread_state().sink)) return;
  const ops::Unrecorded values_only;
  ForwardRecord f;
  f.number = static_cast<u32>(trace_.forward_.size());
  f.seq = event.node ? event.node->seq : 0;
  f.op = &event.op;
  f.attributes = event.attrs.list();
  f.scope_id = thread_state().scope;
  f.loc = event.inputs.loc();
  f.nanoseconds = begin - last_end_;
  if (running) {
    const ForwardRecord* of = trace_.find_forward(running->seq);
    f.order = of ? of->order + 1 : 2;
  }
  std::vector<Tensor> inputs;
  inputs.reserve(event.inputs.size());
  f.inputs.reserve(event.inputs.size());
  for (size_t i = 0; i < event.inputs.size(); ++i) {
    const Tensor& t = event.inputs[i];
    inputs.push_back(t);
    // In place: the target as it was has an alias without a name; its record is the target's latest.
    u32 id = kNoTensor;
    if (t.defined() && !event.op.view && !event.outputs.empty() && !t.is(event.outputs[0]) && find(t) == kNoTensor &&
        overlap_of(t, event.outputs[0]) == Overlap::full) {
      const auto it = held_.find(event.outputs[0].impl());
      if (it != held_.end()) id = it->second.id;
    }
    f.inputs.push_back(id != kNoTensor ? id : source(t));
    if (t.defined()) f.bytes += static_cast<double>(t.nbytes());
  }
  for (u32 k = 0; k < event.outputs.size(); ++k) {
    const Tensor& t = event.outputs[k];
    f.bytes += static_cast<double>(t.nbytes());
    f.in_place |= held_.contains(t.impl()) || (f.op->name.ends_with('_') && k == 0);
    std::string name = t.name();
    if (name.empty()) {
      name = f.label();
      if (event.outputs.size() > 1) name += fmt::format(".{}", k);
    }
    // A view of all elements has the statistics of its base, but for places.
    const TensorStats* known = nullptr;
    if (event.op.view && !f.inputs.empty() && f.inputs[0] != kNoTensor) {
      const TensorRecord& base = trace_.tensors_[f.inputs[0]];
      if (base.computed && base.stats.count == t.numel() && !base.stats.nonfinite()) known = &base.stats;
    }
    const TensorStats copy = known ? *known : TensorStats();
    const u32 id = add(t, std::move(name), t.is_floating_point() ? f.seq : 0, k, known ? &copy : nullptr);
    trace_.tensors_[id].event = f.number;
    if (event.op.view && !f.inputs.empty() && trace_.tensors_[id].view_of == kNoTensor) trace_.tensors_[id].view_of = f.inputs[0];
    f.outputs.push_back(id);
  }
  if (event.op.flops) {
    OpCall call = call_of(event.op, inputs, f.attributes);
    try {
      f.flops = event.op.flops(call);
    } catch (const Error&) {  // an argument that the op does not record
      f.flops = 0;
    }
  } else {
    for (const Tensor& t : event.outputs) f.flops += event.op.view ? 0 : static_cast<double>(t.numel());
  }
  if (event.node) {
    for (const Saved& s : event.node->saved) {
      SavedRecord r;
      r.what = s.what(event.op);
      if (s.kind == SaveKind::input && s.index < f.inputs.size()) r.tensor = f.inputs[s.index];
      if (s.kind == SaveKind::output && s.index < f.outputs.size()) r.tensor = f.outputs[s.index];
      if (s.data) r.shape = s.data->shape;
      r.bytes = s.bytes;
      r.version = s.version;
      f.saved.push_back(std::move(r));
    }
    trace_.of_node_[f.seq] = f.number;
  }
  trace_.forward_.push_back(std::move(f));
  last_end_ = now();
}

void Recorder::see_write(const Tensor& target) {
  const auto [first, last] = kept_.equal_range(target.impl()->storage.get());
  if (first == last) return;
  const ops::Unrecorded values_only;
  for (auto it = first; it != last; ++it) {
    TensorRecord& record = trace_.tensors_[it->second];
    Tensor copy = make_empty_like(record.value, record.value.dtype());
    ops::copy_into(copy, record.value);
    record.value = copy;
  }
  kept_.erase(first, last);
}

// ---- backward ---------------------------------------------------------------------------------------------------------

void Recorder::fill_in(NodeCard& card, const Node& node) {
  const ForwardRecord* f = trace_.find_forward(node.seq);
  if (!f) return;
  card.recorded = true;
  card.attributes = f->attributes;
  card.order = f->order;
  const auto fill = [&](std::vector<CardTensor>& list, const std::vector<u32>& ids) {
    for (size_t i = 0; i < list.size() && i < ids.size(); ++i) {
      if (ids[i] == kNoTensor) continue;
      const TensorRecord& r = trace_.tensors_[ids[i]];
      const Tensor own = list[i].value;
      const std::string name = list[i].name.empty() ? r.name : list[i].name;
      list[i] = static_cast<const CardTensor&>(r);
      list[i].name = name;
      if (!list[i].value.defined()) list[i].value = own;
    }
  };
  fill(card.inputs, f->inputs);
  fill(card.outputs, f->outputs);
}

void Recorder::trim(CardTensor& t, const std::string& of) const {
  if (t.value.defined() && !keeps(of, t.value.numel())) t.value = Tensor();
}

void Recorder::see_card(NodeCard&& kept) {
  for (auto* list : {&kept.inputs, &kept.outputs})
    for (CardTensor& t : *list) trim(t, t.name);
  // Gradients are kept where the values of their tensor are.
  for (size_t k = 0; k < kept.incoming.size(); ++k) {
    const std::string& of = k < kept.outputs.size() ? kept.outputs[k].name : kept.label;
    trim(kept.incoming[k].gradient, of);
    for (Contribution& c : kept.incoming[k].contributions) trim(c.gradient, of);
  }
  for (NodeCard::Outgoing& out : kept.outgoing)
    for (CardTensor* t : {&out.before, &out.after, &out.slot_before, &out.slot_after}) trim(*t, out.to);
  trace_.backward_.push_back(std::move(kept));
}

void Recorder::see_rewind(u64 run, i64 to) {
  std::erase_if(trace_.backward_, [&](const NodeCard& c) { return c.run == run && c.step > to; });
}

// ---- record -----------------------------------------------------------------------------------------------------------

Trace record(const Tensor& loss, RunOptions options) {
  options.retain_graph = true;
  std::unique_ptr<Recorder> own;
  Recorder* recorder = Recorder::current();
  if (!recorder) {
    own = std::make_unique<Recorder>(RecorderOptions{.keep = Keep::values, .max_elements = INT64_MAX});
    recorder = own.get();
  }
  const std::shared_ptr<const Trace> seen = recorder->shared_trace();  // a hook may end the recorder
  BackwardRun run(loss, std::move(options));
  while (run.step()) {}
  Trace trace = *seen;
  trace.keep_run(run.number());
  return trace;
}

}  // namespace waymark::inspect
