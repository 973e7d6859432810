// Optimizer: the base of all optimizers. Names and meaning of the options are PyTorch's.
//
//   train::AdamW optimizer(net.parameters(), {.lr = 1e-3});
//   for (...) { optimizer.zero_grad(); loss().backward(); optimizer.step(); }
//
// * A parameter without a gradient is passed over: its values, its state and its count of updates stay.
// * A step changes parameters in place, under NoGrad, and raises their versions: a graph that saved one of them can no
//   longer be run backward.
// * All parameters that are given decay (if there is a weight decay), as in PyTorch; the trainer makes groups.
// * Parameters with bounds (core/autograd/bounds.h) are projected after each step.
// * Results do not depend on the number of threads.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::train {

// Parameters with settings of their own:
//   AdamW optimizer({{.params = matrices}, {.params = others, .weight_decay = 0.0}}, {.lr = 1e-3});
struct ParamGroup {
  std::vector<Tensor> params = {};
  std::optional<double> lr = {}, weight_decay = {};  // none: the optimizer's
};

// What an optimizer remembers, by name: "exp_avg.encoder.layers.0.ffn.up.weight", "step.<name>" (updates of this
// parameter), "lr.0", "weight_decay.0" (of group 0). A parameter without a name is called by its place: "exp_avg.3".
// What core/io/safetensors.h writes and reads.
using OptimizerState = std::vector<std::pair<std::string, Tensor>>;

class WAYMARK_API Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // One update. Every gradient counts grad_scale times, .grad stays as it is: so clipping needs no pass of its own.
  void step(double grad_scale = 1);
  // Takes the gradients away: .grad is then undefined, not zero.
  void zero_grad() const;

  const std::vector<Tensor>& parameters() const { return params_; }
  i64 groups() const { return static_cast<i64>(groups_.size()); }
  // Settings in force of a group. Error for a group that does not exist, and for a value that is not finite and >= 0.
  double lr(i64 group = 0) const { return at(group).lr; }
  double weight_decay(i64 group = 0) const { return at(group).weight_decay; }
  void set_lr(i64 group, double lr);
  void set_lr(double lr);  // of all groups
  void set_weight_decay(i64 group, double weight_decay);

  // β₁ of Adam and its relatives, momentum of SGD: what one-cycle moves. Error where there is none.
  virtual bool has_momentum() const { return false; }
  virtual double momentum() const;
  virtual void set_momentum(double value);

  // Copies: later steps do not change what was returned. A parameter that was never updated has no entries.
  OptimizerState state_dict() const;
  // Every missing, unexpected and ill-shaped name is listed in one Error, and then nothing was changed.
  void load_state_dict(const OptimizerState& state);

 protected:
  struct Group {
    double lr = 0, weight_decay = 0;
  };
  // A parameter with a gradient, in a step. `grad` is row-major.
  struct Item {
    size_t index = 0;  // of the parameter
    const Group* group = nullptr;
    Tensor param, grad;
    i64 t = 0;  // number of this update, from 1
  };
  // `name` is the class ("AdamW"), a literal: it stands in messages and as the writer of the parameters. `slots` names
  // the state of one parameter. Errors: no parameter, one that is no float leaf or appears twice, a bad setting.
  Optimizer(const char* name, std::vector<std::string> slots, std::vector<ParamGroup> groups, Group defaults);
  // Settings that must be numbers in a range; Error naming the class and the option otherwise.
  void check_option(const char* option, double value, double low, double high, bool high_included = false) const;

  // Updates the items. Grad mode is off.
  virtual void update(std::span<const Item> items, double grad_scale) = 0;
  // Shape of a parameter's state in a slot; none: this parameter does not use it. By default the parameter's.
  virtual std::optional<Shape> state_shape(size_t slot, const Tensor& param) const;

  // State of a parameter; zeros before its first update. Undefined where state_shape is none.
  Tensor& state(size_t slot, size_t index) { return state_[slot][index]; }
  // To be called after the memory of a parameter was changed by other means than an op.
  void wrote(const Tensor& param) const;

 private:
  const Group& at(i64 group) const;
  void make_state(std::span<const Item> items);

  const char* name_;
  std::vector<std::string> slots_;
  std::vector<Group> groups_;
  std::vector<Tensor> params_;
  std::vector<std::string> names_;
  std::vector<size_t> group_of_;
  std::vector<i64> updates_;                // per parameter
  std::vector<std::vector<Tensor>> state_;  // [slot][parameter]
};

// One group of all parameters.
inline std::vector<ParamGroup> one_group(std::vector<Tensor> params) {
  std::vector<ParamGroup> groups(1);
  groups[0].params = std::move(params);
  return groups;
}

}  // namespace waymark::train
