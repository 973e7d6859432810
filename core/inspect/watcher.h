// Internal: a guard that sees the ops and the backward runs of its thread while it lives. Guards nest: each passes on
// what it sees to the one that was there before.
#pragma once

#include "core/autograd/record.h"
#include "core/engine/backward.h"

namespace waymark::inspect {

class WAYMARK_API Watcher : private Observer, private RunObserver {
 public:
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

 protected:
  Watcher();
  ~Watcher() override;

  // What a derived guard does; the chain is this class's work.
  virtual void see_op(const ForwardEvent&) {}
  virtual void see_write(const Tensor& /*target*/) {}
  virtual void see_rule(const Node&, std::span<const Tensor> /*g*/, const Grads& /*out*/) {}
  virtual void see_start(u64 /*run*/, const std::vector<Tensor>& /*roots*/) {}
  virtual bool asks_for_cards() const { return false; }
  virtual void fill_in(NodeCard&, const Node&) {}
  virtual void see_card(NodeCard&&) {}
  virtual void see_rewind(u64 /*run*/, i64 /*to*/) {}
  virtual bool asks_for_pause() { return false; }

 private:
  void on_op(const ForwardEvent& event) final;
  void before_write(const Tensor& target) final;
  void on_rule(const Node& node, std::span<const Tensor> g, const Grads& out) final;
  void on_start(u64 run, const std::vector<Tensor>& roots) final;
  bool wants_cards() const final;
  void complete(NodeCard& card, const Node& node) final;
  void on_card(NodeCard&& card) final;
  void on_rewind(u64 run, i64 to) final;
  bool pause() final;

  Observer* const outer_;
  RunObserver* const outer_run_;
};

}  // namespace waymark::inspect
