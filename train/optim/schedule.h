// Learning rate schedules: a factor on the learning rate, as a function of completed updates.
//
//   train::AdamW optimizer(net.parameters(), {.lr = 1e-3});
//   train::Cosine schedule(optimizer, {.total = 2000, .warmup = 100});
//   for (...) { ...; optimizer.step(); schedule.step(); }
//
// t = completed updates, s = t + start: with start = 1 the first update does not have learning rate 0.
// W(s) = min(1, s / warmup), 1 if warmup = 0; a warmup below 1 is a share of `total`. T = total.
#pragma once

#include <optional>
#include <vector>

#include "train/optim/base.h"

namespace waymark::train {

class WAYMARK_API Schedule {
 public:
  virtual ~Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // lr after t completed updates, as a share of the optimizer's. Error for t < 0.
  double factor(i64 t) const;
  // Likewise the momentum (β₁ of Adam); none: it is not touched.
  std::optional<double> momentum(i64 t) const;

  // One update more: sets the learning rates of the optimizer's groups for the next one.
  void step() { set_updates(updates_ + 1); }
  // All the state there is: what a checkpoint keeps.
  i64 updates() const { return updates_; }
  void set_updates(i64 t);
  // Learning rate in force of a group.
  double lr(i64 group = 0) const { return optimizer_.lr(group); }

 protected:
  // The optimizer must outlive the schedule; its present learning rates are what factors refer to.
  Schedule(const char* name, Optimizer& optimizer);
  virtual double factor_at(i64 t) const = 0;
  virtual std::optional<double> momentum_at(i64) const { return std::nullopt; }
  void start() { set_updates(0); }  // at the end of a constructor
  Optimizer& optimizer() const { return optimizer_; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  Optimizer& optimizer_;
  std::vector<double> base_;
  i64 updates_ = 0;
};

// Options that most schedules have, checked and resolved.
struct WarmUp {
  i64 total = 0;      // T; 0 = unknown
  double warmup = 0;  // updates
  i64 start = 1;      // 0 or 1
  double operator()(double s) const { return warmup > 0 && s < warmup ? s / warmup : 1; }
};

// W(s)
struct ConstantOptions {
  i64 total = 0;  // only for a warmup below 1
  double warmup = 0;
  i64 start = 1;
};
class WAYMARK_API Constant : public Schedule {
 public:
  explicit Constant(Optimizer& optimizer, const ConstantOptions& options = {});

 protected:
  double factor_at(i64 t) const override;

 private:
  WarmUp w_;
};

// warmup:  W, then final + (1 − final)(T − s)/(T − warmup)
// start:   W, then final + (1 − final)(T − s)/T: drops by warmup/T at the end of the warm-up (BERT)
// product: W · max(final, 1 − t/T)
enum class LinearFrom : u8 { warmup, start, product };
struct LinearOptions {
  i64 total = 0;  // required
  double warmup = 0, final = 0;
  LinearFrom from = LinearFrom::warmup;
  i64 start = 1;
};
class WAYMARK_API Linear : public Schedule {
 public:
  explicit Linear(Optimizer& optimizer, const LinearOptions& options);

 protected:
  double factor_at(i64 t) const override;

 private:
  WarmUp w_;
  double final_;
  LinearFrom from_;
};

// W · (final + (1 − final) · (1 + cos π p)/2)
// once: p = (s − warmup)/(T − warmup), at most 1;   lra: p = frac(max(0, s − warmup)/T) (Long Range Arena)
enum class CosineForm : u8 { once, lra };
struct CosineOptions {
  i64 total = 0;  // required
  double warmup = 0, final = 0;
  CosineForm form = CosineForm::once;
  i64 start = 1;
};
class WAYMARK_API Cosine : public Schedule {
 public:
  explicit Cosine(Optimizer& optimizer, const CosineOptions& options);

 protected:
  double factor_at(i64 t) const override;

 private:
  WarmUp w_;
  double final_;
  CosineForm form_;
};

// W · √(warmup / max(s, warmup));   normalised = false: W / √max(s, warmup)
struct RsqrtOptions {
  i64 total = 0;  // only for a warmup below 1
  double warmup = 1000;
  bool normalised = true;
  i64 start = 1;
};
class WAYMARK_API Rsqrt : public Schedule {
 public:
  explicit Rsqrt(Optimizer& optimizer, const RsqrtOptions& options = {});

 protected:
  double factor_at(i64 t) const override;

 private:
  WarmUp w_;
  bool normalised_;
};

// Smith and Topin (1708.07120) in PyTorch's form: from 1/div up to 1 at update pct·T − 1, then down to 1/(div·final_div)
// at update T − 1; momentum runs max -> base -> max along with it.
enum class Anneal : u8 { cos, linear };
struct OneCycleOptions {
  i64 total = 0;  // required
  double pct = 0.3, div = 25, final_div = 1e4;
  Anneal anneal = Anneal::cos;
  bool cycle_momentum = true;  // Error if the optimizer has no momentum
  double base = 0.85, max = 0.95;
};
class WAYMARK_API OneCycle : public Schedule {
 public:
  explicit OneCycle(Optimizer& optimizer, const OneCycleOptions& options);

 protected:
  double factor_at(i64 t) const override;
  std::optional<double> momentum_at(i64 t) const override;

 private:
  double along(i64 t, double low, double high, double end) const;
  OneCycleOptions options_;
};

// gamma^floor(t / every) · W
struct StepOptions {
  i64 every = 0;  // required
  double gamma = 0.1;
  i64 total = 0;  // only for a warmup below 1
  double warmup = 0;
  i64 start = 1;
};
class WAYMARK_API StepDecay : public Schedule {
 public:
  explicit StepDecay(Optimizer& optimizer, const StepOptions& options);

 protected:
  double factor_at(i64 t) const override;

 private:
  WarmUp w_;
  i64 every_;
  double gamma_;
};

}  // namespace waymark::train
