// Recorder: a guard that takes down what the ops and the backward runs of its thread do.
//
// * Statistics of every tensor are always kept. Keep::values keeps handles besides (no copies); before an in-place op
//   overwrites such a value, it is copied. What is written through data(), at() or accessor() is not seen.
// * Values of tensors above max_elements are kept only if their name is among `names`; otherwise statistics and a
//   picture of 64 x 64 block means.
// * Off, it costs one thread-local branch per op.
// * Recorders nest, and end in any order, on any thread, also inside a hook (core/inspect/watcher.h).
#pragma once

#include <memory>
#include <unordered_map>

#include "core/inspect/trace.h"
#include "core/inspect/watcher.h"

namespace waymark::inspect {

enum class Keep : u8 { stats, values };

struct RecorderOptions {
  Keep keep = Keep::stats;
  i64 max_elements = 65536;
  std::vector<std::string> names{};  // globs of names whose values and gradients are kept whatever their size
};

class WAYMARK_API Recorder final : public Watcher {
 public:
  explicit Recorder(RecorderOptions options = {});
  ~Recorder() override;

  // What was seen so far; all backward runs in turn.
  const Trace& trace() const { return trace_; }
  // The same, for who may outlive the recorder.
  std::shared_ptr<const Trace> shared_trace() const { return kept_trace_; }
  // Forgets it.
  void clear();
  // The innermost recorder of this thread; null without.
  static Recorder* current();

 private:
  void see_op(const ForwardEvent& event) override;
  void see_write(const Tensor& target) override;
  bool asks_for_cards() const override { return true; }
  void fill_in(NodeCard& card, const Node& node) override;
  void see_card(NodeCard&& card) override;
  void see_rewind(u64 run, i64 to) override;

  u32 find(const Tensor& t) const;
  u32 source(const Tensor& t);
  u32 add(const Tensor& t, std::string name, u64 seq, u32 slot, const TensorStats* known);
  void keep_value(TensorRecord& record, const Tensor& t);
  bool keeps(const std::string& name, i64 numel) const;
  void trim(CardTensor& t, const std::string& of) const;

  RecorderOptions options_;
  const std::shared_ptr<Trace> kept_trace_ = std::make_shared<Trace>();
  Trace& trace_ = *kept_trace_;
  // Tensors without a node, held so that their address stays theirs: constants, leaves.
  struct Held {
    Tensor tensor;
    u32 id, version;
  };
  std::unordered_map<const TensorImpl*, Held> held_;
  i64 held_bytes_ = 0;
  std::unordered_multimap<const Storage*, u32> kept_;  // records whose value is a handle of this storage
  i64 last_end_ = 0;                                   // nanoseconds
};

// Runs backward from `loss` and returns the trace: the forward events of the recorder in force, if there is one, and
// the cards of this run, with values. Nothing is committed or freed: a later loss.backward() works as if this had not
// been. `options`: seeds, inputs, create_graph.
WAYMARK_API Trace record(const Tensor& loss, RunOptions options = {});

}  // namespace waymark::inspect
