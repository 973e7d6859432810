#include "train/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace waymark::train {

namespace {

constexpr double kPi = 3.14159265358979323846;

// Options checked: T where it is needed, a warm-up that fits into it.
WarmUp warm_up(const char* name, i64 total, double warmup, i64 start, bool needs_total) {
  if (needs_total && total < 1) fail(name, "total = {}: must be the number of updates, >= 1", total);
  if (total < 0) fail(name, "total = {}: must be >= 0 (0 = unknown)", total);
  if (!(warmup >= 0 && std::isfinite(warmup))) fail(name, "warmup = {}: must be >= 0", warmup);
  if (start != 0 && start != 1) fail(name, "start = {}: must be 0 or 1", start);
  if (warmup > 0 && warmup < 1) {
    if (total == 0) fail(name, "warmup = {} is a share of the updates, so total must be given", warmup);
    warmup *= static_cast<double>(total);
  }
  return {total, warmup, start};
}
void check_final(const char* name, double value) {
  if (!(value >= 0 && value <= 1)) fail(name, "final = {}: must be in [0, 1]", value);
}

}  // namespace

Schedule::Schedule(const char* name, Optimizer& optimizer) : name_(name), optimizer_(optimizer) {
  for (i64 g = 0; g < optimizer.groups(); ++g) base_.push_back(optimizer.lr(g));
}

double Schedule::factor(i64 t) const {
  if (t < 0) fail(name_, "there is no update {}", t);
  return factor_at(t);
}
std::optional<double> Schedule::momentum(i64 t) const {
  if (t < 0) fail(name_, "there is no update {}", t);
  return momentum_at(t);
}
void Schedule::set_updates(i64 t) {
  const double f = factor(t);
  for (size_t g = 0; g < base_.size(); ++g) optimizer_.set_lr(static_cast<i64>(g), base_[g] * f);
  if (const auto m = momentum(t)) optimizer_.set_momentum(*m);
  updates_ = t;
}

Constant::Constant(Optimizer& optimizer, const ConstantOptions& o)
    : Schedule("Constant", optimizer), w_(warm_up(name(), o.total, o.warmup, o.start, false)) {
  start();
}
double Constant::factor_at(i64 t) const { return w_(static_cast<double>(t + w_.start)); }

Linear::Linear(Optimizer& optimizer, const LinearOptions& o)
    : Schedule("Linear", optimizer), w_(warm_up(name(), o.total, o.warmup, o.start, true)), final_(o.final), from_(o.from) {
  check_final(name(), final_);
  start();
}
double Linear::factor_at(i64 t) const {
  const double total = static_cast<double>(w_.total), s = static_cast<double>(t + w_.start);
  if (from_ == LinearFrom::product) return w_(s) * std::max(final_, 1 - static_cast<double>(t) / total);
  if (s < w_.warmup) return w_(s);
  if (s >= total) return final_;  // also where the warm-up is as long as the run
  const double length = from_ == LinearFrom::start ? total : total - w_.warmup;
  return final_ + (1 - final_) * (total - s) / length;
}

Cosine::Cosine(Optimizer& optimizer, const CosineOptions& o)
    : Schedule("Cosine", optimizer), w_(warm_up(name(), o.total, o.warmup, o.start, true)), final_(o.final), form_(o.form) {
  check_final(name(), final_);
  start();
}
double Cosine::factor_at(i64 t) const {
  const double total = static_cast<double>(w_.total), s = static_cast<double>(t + w_.start);
  double p = std::max(0.0, s - w_.warmup);
  if (form_ == CosineForm::lra) {
    p /= total;
    p -= std::floor(p);
  } else {
    p = p > 0 ? std::min(1.0, p / std::max(1.0, total - w_.warmup)) : 0;
  }
  return w_(s) * (final_ + (1 - final_) * 0.5 * (1 + std::cos(kPi * p)));
}

Rsqrt::Rsqrt(Optimizer& optimizer, const RsqrtOptions& o)
    : Schedule("Rsqrt", optimizer), w_(warm_up(name(), o.total, o.warmup, o.start, false)), normalised_(o.normalised) {
  if (w_.warmup < 1) fail(name(), "warmup = {}: must be at least one update", o.warmup);
  start();
}
double Rsqrt::factor_at(i64 t) const {
  const double s = static_cast<double>(t + w_.start), root = std::sqrt(std::max(s, w_.warmup));
  return normalised_ ? w_(s) * std::sqrt(w_.warmup) / root : w_(s) / root;
}

OneCycle::OneCycle(Optimizer& optimizer, const OneCycleOptions& o) : Schedule("OneCycle", optimizer), options_(o) {
  if (o.total < 1) fail(name(), "total = {}: must be the number of updates, >= 1", o.total);
  if (!(o.pct >= 0 && o.pct <= 1)) fail(name(), "pct = {}: must be in [0, 1]", o.pct);
  if (!(o.div >= 1 && std::isfinite(o.div))) fail(name(), "div = {}: must be >= 1", o.div);
  if (!(o.final_div >= 1 && std::isfinite(o.final_div))) fail(name(), "final_div = {}: must be >= 1", o.final_div);
  if (!(o.base >= 0 && o.base <= o.max && o.max < 1))
    fail(name(), "base = {} and max = {}: must be 0 <= base <= max < 1", o.base, o.max);
  if (o.cycle_momentum && !optimizer.has_momentum())
    fail(name(), "the optimizer has no momentum to move; set cycle_momentum = false");
  start();
}
// From `low` to `high` in phase 1, from `high` to `end` in phase 2.
double OneCycle::along(i64 t, double low, double high, double end) const {
  const double n = static_cast<double>(t), total = static_cast<double>(options_.total);
  const double turn = options_.pct * total - 1, last = total - 1;
  double from = low, to = high, p = turn > 0 ? n / turn : 1;
  if (n > turn) {
    from = high;
    to = end;
    p = last > turn ? std::min(1.0, (n - std::max(turn, 0.0)) / (last - std::max(turn, 0.0))) : 1;
  }
  if (options_.anneal == Anneal::linear) return from + (to - from) * p;
  return to + (from - to) * 0.5 * (1 + std::cos(kPi * p));
}
double OneCycle::factor_at(i64 t) const {
  return along(t, 1 / options_.div, 1, 1 / (options_.div * options_.final_div));
}
std::optional<double> OneCycle::momentum_at(i64 t) const {
  if (!options_.cycle_momentum) return std::nullopt;
  return along(t, options_.max, options_.base, options_.max);
}

StepDecay::StepDecay(Optimizer& optimizer, const StepOptions& o)
    : Schedule("StepDecay", optimizer), w_(warm_up(name(), o.total, o.warmup, o.start, false)), every_(o.every),
      gamma_(o.gamma) {
  if (every_ < 1) fail(name(), "every = {}: must be >= 1", every_);
  if (!(gamma_ > 0 && gamma_ <= 1)) fail(name(), "gamma = {}: must be in (0, 1]", gamma_);
  start();
}
double StepDecay::factor_at(i64 t) const {
  return std::pow(gamma_, static_cast<double>(t / every_)) * w_(static_cast<double>(t + w_.start));
}

}  // namespace waymark::train
