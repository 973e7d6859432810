// DataLoader: a data set in batches, in an order that can be resumed.
//
//   train::TensorDataset data({inputs, targets});
//   train::DataLoader loader(data, {.batch_size = 32, .shuffle = true, .seed = 7});
//   for (int epoch = 0; epoch < 10; ++epoch)
//     for (const std::vector<Tensor>& batch : loader) step(batch[0], batch[1]);
//
// The order of epoch e is drawn from (seed, stream data.order, e) alone. So a cursor, (e, i) = i batches of epoch e are
// handed out, is all there is to save: set_cursor() goes on exactly there.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace waymark::train {

struct LoaderOptions {
  i64 batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;  // leave out the short last batch of an epoch
  u64 seed = 0;
};

struct Cursor {
  i64 epoch = 0, batch = 0;
  bool operator==(const Cursor&) const = default;
};

// Which items come in which batch.
class WAYMARK_API BatchOrder {
 public:
  // items = 0: without end; the items are 0, 1, 2, ... and there is only epoch 0. Errors: items < 0, batch_size < 1,
  // and drop_last with fewer items than a batch.
  BatchOrder(i64 items, const LoaderOptions& options);

  i64 items() const { return items_; }
  i64 batches() const;  // of an epoch; Error if there is no end
  const Cursor& cursor() const { return cursor_; }
  // Error if the epoch has no such batch. batch = batches() is the beginning of the next epoch.
  void set_cursor(const Cursor& cursor);
  // The items of the next batch; after the last one of an epoch the next epoch begins.
  std::vector<i64> next();

 private:
  void draw_order();
  i64 items_;
  LoaderOptions options_;
  Cursor cursor_;
  i64 drawn_epoch_ = -1;
  std::vector<i64> order_;  // of drawn_epoch_; empty without shuffle
};

// D has `i64 size() const` and `batch(std::span<const i64> items) const`, which returns anything.
template <class D> class DataLoader {
 public:
  // The data set must outlive the loader.
  DataLoader(const D& data, const LoaderOptions& options) : data_(data), order_(data.size(), options) {}

  i64 batches() const { return order_.batches(); }
  const Cursor& cursor() const { return order_.cursor(); }
  void set_cursor(const Cursor& cursor) { order_.set_cursor(cursor); }
  auto next() { return data_.batch(order_.next()); }

  // A loop goes over what is left of the epoch of the cursor; the next loop begins the next epoch.
  class Iterator {
   public:
    Iterator(DataLoader* loader, i64 epoch) : loader_(loader), epoch_(epoch) {}
    auto operator*() const { return loader_->next(); }  // once per position, as range-for does
    Iterator& operator++() { return *this; }
    bool operator!=(const Iterator&) const { return loader_->cursor().epoch == epoch_; }

   private:
    DataLoader* loader_;
    i64 epoch_;
  };
  Iterator begin() { return {this, cursor().epoch}; }
  Iterator end() { return {this, cursor().epoch}; }

 private:
  const D& data_;
  BatchOrder order_;
};

// Rows of tensors with equal first extents; a batch has the same tensors with the chosen rows, copied, without history.
class WAYMARK_API TensorDataset {
 public:
  explicit TensorDataset(std::vector<Tensor> tensors);
  i64 size() const { return size_; }
  std::vector<Tensor> batch(std::span<const i64> items) const;

 private:
  std::vector<Tensor> tensors_;
  i64 size_ = 0;
};

}  // namespace waymark::train
