#include "train/optim/base.h"

#include <cmath>
#include <cstring>
#include <map>
#include <unordered_set>

#include "core/autograd/record.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/projection.h"

namespace waymark::train {

Optimizer::Optimizer(const char* name, std::vector<std::string> slots, std::vector<ParamGroup> groups, Group defaults)
    : name_(name), slots_(std::move(slots)) {
  std::unordered_set<const TensorImpl*> seen;
  std::unordered_set<std::string> names;
  for (ParamGroup& group : groups) {
    groups_.push_back({group.lr.value_or(defaults.lr), group.weight_decay.value_or(defaults.weight_decay)});
    check_option("lr", groups_.back().lr, 0, INFINITY);
    check_option("weight_decay", groups_.back().weight_decay, 0, INFINITY);
    for (Tensor& p : group.params) {
      if (!p.defined()) fail(name_, "parameter {} is undefined", params_.size());
      if (!is_float(p.dtype()) || !p.is_leaf())
        fail(name_, "parameter {} ({} {}) is {}: optimizers take leaves of a float dtype", params_.size(),
             name_of(p.dtype()), p.shape(), p.is_leaf() ? "no float" : describe(p));
      if (!seen.insert(p.impl()).second) fail(name_, "parameter {} ({}) is given twice", params_.size(), describe(p));
      std::string label = p.name();
      if (label.empty() || !names.insert(label).second) label = fmt::format("{}", params_.size());
      names.insert(label);
      names_.push_back(std::move(label));
      group_of_.push_back(groups_.size() - 1);
      params_.push_back(std::move(p));
    }
  }
  if (params_.empty()) fail(name_, "there are no parameters");
  updates_.assign(params_.size(), 0);
  state_.assign(slots_.size(), std::vector<Tensor>(params_.size()));
}
Optimizer::~Optimizer() = default;

void Optimizer::check_option(const char* option, double value, double low, double high, bool high_included) const {
  const bool fine = value >= low && (value < high || (high_included && value == high));
  if (fine) return;
  if (std::isinf(high)) fail(name_, "{} = {}: must be finite and >= {}", option, value, low);
  fail(name_, "{} = {}: must be in [{}, {}{}", option, value, low, high, high_included ? ']' : ')');
}

const Optimizer::Group& Optimizer::at(i64 group) const {
  if (group < 0 || group >= groups()) fail(name_, "there is no group {}: it has {}", group, groups());
  return groups_[static_cast<size_t>(group)];
}
void Optimizer::set_lr(i64 group, double lr) {
  at(group);
  check_option("lr", lr, 0, INFINITY);
  groups_[static_cast<size_t>(group)].lr = lr;
}
void Optimizer::set_lr(double lr) {
  for (i64 g = 0; g < groups(); ++g) set_lr(g, lr);
}
void Optimizer::set_weight_decay(i64 group, double weight_decay) {
  at(group);
  check_option("weight_decay", weight_decay, 0, INFINITY);
  groups_[static_cast<size_t>(group)].weight_decay = weight_decay;
}
double Optimizer::momentum() const { fail(name_, "it has no momentum"); }
void Optimizer::set_momentum(double) { fail(name_, "it has no momentum"); }

void Optimizer::zero_grad() const {
  for (const Tensor& p : params_) p.set_grad(Tensor());
}

std::optional<Shape> Optimizer::state_shape(size_t, const Tensor& param) const { return param.shape(); }

void Optimizer::wrote(const Tensor& param) const {
  param.impl()->storage->wrote({name_, current_scope_path(), Loc::here()});
}

void Optimizer::step(double grad_scale) {
  const NoGrad no_grad;
  std::vector<Item> items;
  for (size_t i = 0; i < params_.size(); ++i) {
    const Tensor g = params_[i].grad();
    if (!g.defined()) continue;
    check_inplace(name_, params_[i], {g});
    items.push_back({i, &groups_[group_of_[i]], params_[i], contiguous(g), updates_[i] + 1});
  }
  if (items.empty()) return;
  make_state(items);
  update(items, grad_scale);
  for (const Item& item : items) {
    project(item.param);
    ++updates_[item.index];
  }
}

// The state of all parameters that get their first update now lies in one block per slot.
void Optimizer::make_state(std::span<const Item> items) {
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    struct StatePiece {
      size_t index;
      DType dtype;
      Shape shape;
      i64 at, bytes;
    };
    std::vector<StatePiece> pieces;
    i64 total = 0;
    for (const Item& item : items) {
      if (state_[slot][item.index].defined()) continue;
      const auto shape = state_shape(slot, item.param);
      if (!shape) continue;
      i64 bytes = size_of(item.param.dtype());
      for (const i64 n : *shape) bytes *= n;
      pieces.push_back({item.index, item.param.dtype(), *shape, total, bytes});
      total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
    if (pieces.empty()) continue;
    const Intrusive<Block> block = Block::allocate(total);
    std::memset(block->data(), 0, static_cast<size_t>(total));
    for (const StatePiece& p : pieces) {
      Shape strides(p.shape.size());
      i64 stride = 1;
      for (int d = p.shape.size() - 1; d >= 0; --d) {
        strides[d] = stride;
        stride *= p.shape[d];
      }
      state_[slot][p.index] = Tensor(Intrusive<TensorImpl>(
          new TensorImpl(Storage::part_of(block, p.at, p.bytes), p.dtype, p.shape, strides, 0)));
    }
  }
}

namespace {
template <class T> Tensor number(T value) {
  const Tensor t = make_empty({}, dtype_of<T>);
  *t.data<T>() = value;
  return t;
}
}  // namespace

OptimizerState Optimizer::state_dict() const {
  const NoGrad no_grad;
  OptimizerState out;
  for (size_t g = 0; g < groups_.size(); ++g) {
    out.emplace_back(fmt::format("lr.{}", g), number(groups_[g].lr));
    out.emplace_back(fmt::format("weight_decay.{}", g), number(groups_[g].weight_decay));
  }
  if (has_momentum()) out.emplace_back("momentum", number(momentum()));
  for (size_t i = 0; i < params_.size(); ++i) {
    if (updates_[i] == 0) continue;
    out.emplace_back("step." + names_[i], number(updates_[i]));
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (const Tensor& t = state_[slot][i]; t.defined()) out.emplace_back(slots_[slot] + "." + names_[i], clone(t));
  }
  return out;
}

void Optimizer::load_state_dict(const OptimizerState& state) {
  std::map<std::string, Tensor> given;
  std::string problems;
  const auto problem = [&](const std::string& text) { problems += "\n  " + text; };
  for (const auto& [name, tensor] : state)
    if (!given.emplace(name, tensor).second) problem(name + ": given twice");
  // The entry, checked, or nothing; found entries leave the map.
  const auto take = [&](const std::string& name, DType dtype, const Shape& shape) -> Tensor {
    const auto found = given.find(name);
    if (found == given.end()) {
      problem(name + ": missing");
      return {};
    }
    const Tensor t = found->second;
    given.erase(found);
    if (t.defined() && t.dtype() == dtype && t.shape() == shape) return t;
    problem(t.defined() ? fmt::format("{}: {} {}, must be {} {}", name, name_of(t.dtype()), t.shape(), name_of(dtype), shape)
                        : name + ": undefined");
    return {};
  };
  const auto take_number = [&](const std::string& name, double below) {
    const Tensor t = take(name, kF64, {});
    const double value = t.defined() ? t.item<double>() : 0;
    if (!(value >= 0 && value < below)) problem(fmt::format("{}: {} must be >= 0 and < {}", name, value, below));
    return value;
  };

  std::vector<Group> groups;
  for (size_t g = 0; g < groups_.size(); ++g)
    groups.push_back({take_number(fmt::format("lr.{}", g), INFINITY),
                      take_number(fmt::format("weight_decay.{}", g), INFINITY)});
  const double beta = has_momentum() ? take_number("momentum", 1) : 0;
  std::vector<i64> updates(params_.size(), 0);
  std::vector<std::vector<Tensor>> loaded(slots_.size(), std::vector<Tensor>(params_.size()));
  for (size_t i = 0; i < params_.size(); ++i) {
    if (!given.contains("step." + names_[i])) continue;
    if (const Tensor t = take("step." + names_[i], kI64, {}); t.defined()) {
      updates[i] = t.item<i64>();
      if (updates[i] < 1) problem(fmt::format("step.{}: {} must be at least 1", names_[i], updates[i]));
    }
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      if (const auto shape = state_shape(slot, params_[i]))
        loaded[slot][i] = take(slots_[slot] + "." + names_[i], params_[i].dtype(), *shape);
  }
  for (const auto& [name, tensor] : given) problem(name + ": unexpected");
  if (!problems.empty()) fail(name_, "the state does not fit, nothing was loaded:{}", problems);

  const NoGrad no_grad;
  // make_state lays the memory out as a step does; values follow.
  std::vector<Item> items;
  for (size_t i = 0; i < params_.size(); ++i) {
    if (updates[i] > 0) items.push_back({i, nullptr, params_[i], {}, 0});
    for (size_t slot = 0; slot < slots_.size(); ++slot) state_[slot][i] = Tensor();
  }
  make_state(items);
  for (size_t slot = 0; slot < slots_.size(); ++slot)
    for (size_t i = 0; i < params_.size(); ++i)
      if (loaded[slot][i].defined()) copy_(state_[slot][i], loaded[slot][i]);
  groups_ = std::move(groups);
  updates_ = std::move(updates);
  if (has_momentum()) set_momentum(beta);
}

}  // namespace waymark::train
