// What training adds to the loss by comparing passes over the same batch: train.regularizer.
//
//   sar     a pass with another topology of the sparse attentions (Liu et al. 2022, 2203.12276, as its abstract and public
//           reviews describe it; what they leave open are options)
//   r-drop  a pass with other dropout masks (Liang et al. 2021, 2106.14448)
//
// u: outputs of the usual pass, v: of sar's, w: of r-drop's; y: targets; J: Kullback–Leibler divergence per scored target:
//
//   loss = mean of CE over the passes that carry it + α_sar·J(u, v) + α_rdrop·J(u, w)
//
// * Passes run one after the other on the same items, so a batch of one item works, and repeating items changes nothing.
// * Dropout masks are keyed by (step, item, token): dropout=independent draws new ones for v, dropout=shared the same.
//   Everything else that is drawn in a step (hashes, noise of encodings) is the same in all passes, but for shift=redraw.
// * Offsets are functions of (seed, step), so a resumed run goes on as it would have.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "train/config/config.h"
#include "train/trainer/model.h"

namespace waymark::train {

WAYMARK_API const nn::SpecTables& regularizer_tables();
// Adds a problem for each option that does not fit the model: a shift where no attention has blocks, an offset that
// moves no border, a redraw where nothing is drawn.
WAYMARK_API void check_regularizer(const Config& config, Problems& problems);
// What has no effect with this model; empty: everything has.
WAYMARK_API std::string idle_regularizer(const Config& config);

// The batch with the tokens of each row moved right by `offset` places, cyclically among its kept tokens that have a
// position; those take the positions of their new places. `places` i64 [B, L]: where each token has gone.
struct RolledBatch {
  Batch batch = {};
  Tensor places = {};
};
WAYMARK_API RolledBatch roll_tokens(const Batch& batch, i64 offset);

class WAYMARK_API Regularizer {
 public:
  // `config` as it was checked.
  explicit Regularizer(const Config& config);

  i64 passes() const { return 1 + (sar_ ? 1 : 0) + (r_drop_ ? 1 : 0); }
  // The offset of sar in a step, 0 with shift=redraw. Reads the generator's seed.
  i64 offset(i64 step) const;

  struct Losses {
    Tensor sum;                     // of the part's targets: what is divided by the targets of the step
    double ce = 0;                  // what it is made of; α·J of those that are there
    std::optional<double> sar = {}, r_drop = {};
  };
  // Losses of some items of step `step`, of which `first` is the first, in a DrawScope of that place. `output`: the
  // usual pass, made in the same scope.
  Losses losses(TaskModel& model, const Task& task, const Batch& part, const Tensor& output, i64 step, i64 first) const;

 private:
  Tensor second_output(TaskModel& model, const Batch& part, i64 step, i64 first) const;

  std::optional<nn::Options> sar_, r_drop_;
  i64 block_ = 0;  // random offsets are below it
};

}  // namespace waymark::train
