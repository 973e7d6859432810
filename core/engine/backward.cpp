#include "core/engine/backward.h"

#include "core/engine/run_state.h"

namespace waymark {

// ---- GradMap ----------------------------------------------------------------------------------------------------------

const Tensor& GradMap::operator[](const Tensor& t) const {
  const auto it = index_.find(t.impl());
  if (it == index_.end())
    fail("grads", "no gradient arrived at {} ({}); absent is not zero", describe(t), t.shape());
  return entries_[it->second].grad;
}
bool GradMap::contains(const Tensor& t) const { return index_.contains(t.impl()); }
void GradMap::set(const Tensor& t, Tensor g) {
  const auto [it, fresh] = index_.try_emplace(t.impl(), entries_.size());
  if (fresh) entries_.push_back({t, std::move(g)});
  else entries_[it->second].grad = std::move(g);
}

// ---- BackwardRun ------------------------------------------------------------------------------------------------------

BackwardRun::BackwardRun(const Tensor& root, RunOptions options) : BackwardRun(std::vector<Tensor>{root}, std::move(options)) {}
BackwardRun::BackwardRun(std::vector<Tensor> roots, RunOptions options)
    : state_(std::make_unique<State>(std::move(roots), std::move(options))) {}
BackwardRun::~BackwardRun() = default;
BackwardRun::BackwardRun(BackwardRun&&) noexcept = default;
BackwardRun& BackwardRun::operator=(BackwardRun&&) noexcept = default;

bool BackwardRun::step() {
  if (state_->phase == State::Phase::ended) return false;
  NodeCard card;
  if (!state_->run_one(&card)) return false;
  if (RunObserver* observer = run_observer(); observer && observer->wants_cards()) observer->on_card(NodeCard(card));
  state_->last_card = std::move(card);
  state_->has_card = true;
  return true;
}

bool BackwardRun::until(const StopPoint& stop) {
  while (const Node* n = next()) {
    // A stop before the node that we already stand at would never move on.
    if (stop.matches_next(*n) && !(state_->stopped_at == n->seq)) {
      state_->stopped_at = n->seq;
      return true;
    }
    if (!step()) return false;
    if (stop.matches_done(state_->last_card)) return true;
    if (RunObserver* observer = run_observer(); observer && observer->pause()) return true;
  }
  return false;
}

const NodeCard& BackwardRun::current() const {
  if (!state_->has_card) fail("backward", "no node ran yet; call step() first");
  return state_->last_card;
}
const Node* BackwardRun::next() const { return state_->peek(); }
i64 BackwardRun::index() const { return static_cast<i64>(state_->done); }
i64 BackwardRun::total() const { return static_cast<i64>(state_->total); }
u64 BackwardRun::number() const { return state_->run_number; }
const std::vector<Tensor>& BackwardRun::roots() const { return state_->roots; }
std::vector<const Node*> BackwardRun::nodes() const {
  std::vector<const Node*> out;
  for (const State::NodeState& n : state_->nodes)
    if (n.wanted) out.push_back(n.node.get());
  return out;
}
std::vector<Tensor> BackwardRun::leaves() const {
  std::vector<Tensor> out;
  for (const State::LeafState& l : state_->leaves)
    if (l.wanted) out.push_back(l.leaf);
  return out;
}
bool BackwardRun::replaying() const { return state_->replaying; }
GradMap BackwardRun::grads() const { return state_->collect(); }

void BackwardRun::rewind(i64 to) {
  State& s = *state_;
  s.check_alive();
  if (s.phase == State::Phase::ended) fail("rewind", "the run is finished: its values are freed");
  if (!s.options.rewindable) fail("rewind", "the run keeps no saved values; construct it with rewindable = true");
  if (to < 0 || to > static_cast<i64>(s.done)) fail("rewind", "step {} is outside [0, {}]", to, s.done);
  s.replaying = true;
  s.has_card = false;
  s.stopped_at = 0;
  if (RunObserver* observer = run_observer()) observer->on_rewind(s.run_number, 0);
  s.start();
  while (static_cast<i64>(s.done) < to) step();
  s.replaying = false;
}

GradMap BackwardRun::finish() {
  state_->run_rest();
  GradMap map = state_->commit();
  if (state_->options.rewindable && !state_->options.retain_graph) state_->release_all();
  return map;
}
GradMap BackwardRun::finish_without_commit() {
  state_->run_rest();
  if (state_->options.rewindable && !state_->options.retain_graph) state_->release_all();
  state_->check_all_arrived();
  return state_->collect();
}

GradMap grad(const Tensor& root, const std::vector<Tensor>& inputs, RunOptions options) {
  return grad(std::vector<Tensor>{root}, inputs, std::move(options));
}
GradMap grad(const std::vector<Tensor>& roots, const std::vector<Tensor>& inputs, RunOptions options) {
  if (inputs.empty()) fail("grad", "there is no input to differentiate for");
  options.inputs = inputs;
  return BackwardRun(roots, std::move(options)).finish_without_commit();
}

}  // namespace waymark
