#include "core/inspect/watcher.h"

namespace waymark::inspect {

Watcher::Watcher() : outer_(thread_state().observer), outer_run_(run_observer()) {
  thread_state().observer = this;
  run_observer() = this;
}
Watcher::~Watcher() {
  thread_state().observer = outer_;
  run_observer() = outer_run_;
}

void Watcher::on_op(const ForwardEvent& event) {
  if (outer_) outer_->on_op(event);
  see_op(event);
}
void Watcher::before_write(const Tensor& target) {
  if (outer_) outer_->before_write(target);
  see_write(target);
}
void Watcher::on_rule(const Node& node, std::span<const Tensor> g, const Grads& out) {
  if (outer_) outer_->on_rule(node, g, out);
  see_rule(node, g, out);
}
void Watcher::on_start(u64 run, const std::vector<Tensor>& roots) {
  if (outer_run_) outer_run_->on_start(run, roots);
  see_start(run, roots);
}
bool Watcher::wants_cards() const { return asks_for_cards() || (outer_run_ && outer_run_->wants_cards()); }
void Watcher::complete(NodeCard& card, const Node& node) {
  if (outer_run_) outer_run_->complete(card, node);
  fill_in(card, node);
}
void Watcher::on_card(NodeCard&& card) {
  if (outer_run_) outer_run_->on_card(NodeCard(card));
  see_card(std::move(card));
}
void Watcher::on_rewind(u64 run, i64 to) {
  if (outer_run_) outer_run_->on_rewind(run, to);
  see_rewind(run, to);
}
bool Watcher::pause() {
  const bool outer = outer_run_ && outer_run_->pause();
  return asks_for_pause() || outer;
}

}  // namespace waymark::inspect
