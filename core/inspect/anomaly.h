// AnomalyMode: finds where NaN and infinities come from.
//
//   inspect::AnomalyMode mode;            // raise: an AnomalyError when it matters
//   loss.backward();
//
// * level(t) is 0 for finite values, 1 with ±inf, 2 with NaN; scalar arguments count as inputs. A forward op is an
//   origin if its output's level is above that of its inputs, element by element where the op works so. A rule is one if
//   its gradient's level is above that of the incoming gradient and of the saved values.
// * A hook that returns a worse gradient than it was given is the origin of that.
// * Modes nest, and end in any order, on any thread, also inside a hook (core/inspect/watcher.h).
// * A forward origin is only a candidate: what is discarded, as in where(x > 0, log(x), 0), is legal. It is reported when
//   the root of a backward run is not finite, or when a gradient becomes so because of it.
// * What is reported is the origin, never an op that only passed it on. A value that came in from outside is reported as
//   the input that it is.
#pragma once

#include <map>
#include <unordered_map>

#include "core/inspect/watcher.h"

namespace waymark::inspect {

enum class OnFind : u8 {
  raise,      // AnomalyError when it matters
  raise_now,  // AnomalyError at the forward op already
  record,     // reports() only
  pause,      // reports(), and BackwardRun::until stops there
};

struct WAYMARK_API AnomalyReport {
  bool backward = false;       // a derivative rule, or a hook, made it; false: the op itself
  bool planted = false;        // no op made it: `subject` came in so
  std::string subject;         // "sqrt #3", "the rule of sqrt #3", "hook 1 of sqrt #3", "input \"w\" of matmul #3"
  std::string op, formula, rule, scope, place;
  u64 seq = 0;                 // of the node; 0: there is none
  int level = 0;               // 1: ±inf, 2: NaN
  std::string inner;           // the op inside a rule or a fused kernel that made it; empty: not known
  std::vector<std::string> places;   // the first three, with the values of the inputs there
  std::vector<std::string> inputs;   // name, shape, statistics
  std::vector<std::string> path;     // labels of the ops that passed it on, as far as it was seen
  std::string seen;            // where it was noticed: "the root is nan", "the gradient for x, in backward of mul #4"
  std::string hint;            // a likely cause and its cure; empty: none of the known patterns
  std::string growth;          // the largest growth of a gradient in this run, if it was above 1000
  std::string to_string() const;
};

class WAYMARK_API AnomalyError : public Error {
 public:
  AnomalyError(AnomalyReport report, Loc loc);
  const AnomalyReport& report() const { return *report_; }

 private:
  std::shared_ptr<const AnomalyReport> report_;
};

class WAYMARK_API AnomalyMode final : public Watcher {
 public:
  explicit AnomalyMode(OnFind on_find = OnFind::raise);
  ~AnomalyMode() override;

  // The same for any tensor, without backward: true if it is finite; else a report, raised in the modes that raise.
  bool check(const Tensor& t);
  const std::vector<AnomalyReport>& reports() const { return reports_; }

 private:
  // A forward op that made something non-finite, or an input that came so.
  struct Candidate {
    AnomalyReport report;
    Loc loc;
  };
  // One op that put out something non-finite; `parent` is the one that it got it from.
  struct Passed {
    std::string label;
    int parent = -1, candidate = -1;
  };
  struct Growth {
    double ratio = 0;
    std::string label;
  };

  void see_op(const ForwardEvent& event) override;
  void see_write(const Tensor& target) override;
  void see_rule(const Node& node, std::span<const Tensor> g, const Grads& out) override;
  void see_start(u64 run, const std::vector<Tensor>& roots) override;
  bool asks_for_hooks() const override { return true; }
  void see_hook(const HookEvent& event) override;
  bool asks_for_pause() override;

  int passed_of(const Tensor& t) const;
  int source(const ForwardEvent& event, size_t input, const std::string& label, int level);
  AnomalyReport report_of(int passed) const;
  AnomalyReport rule_report(const Node& node, std::span<const Tensor> g, const Tensor& bad, size_t input, int level) const;
  AnomalyReport saved_report(const Node& node, std::span<const Tensor> g, const Tensor& bad);
  void found(AnomalyReport report, Loc loc);

  OnFind on_find_;
  std::vector<AnomalyReport> reports_;
  std::vector<Candidate> candidates_;
  std::vector<Passed> passed_;
  std::map<std::pair<u64, u32>, int> of_output_;        // (seq, slot) of a node
  std::map<u64, std::vector<int>> of_inputs_;           // seq -> for each input
  std::unordered_map<const TensorImpl*, std::pair<Tensor, int>> of_constant_;  // held: without a node
  Tensor before_;                                       // the target of an in-place op, as it was
  const Storage* before_storage_ = nullptr;
  std::map<u64, bool> selected_;                        // nodes whose output a where, masked_fill or index picks from
  Growth growth_;
  bool run_reported_ = false, pause_ = false;
};

}  // namespace waymark::inspect
