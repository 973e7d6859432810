#include "train/data/loader.h"

#include <cstring>

#include "core/autograd/state.h"
#include "core/ops/convert.h"
#include "core/random/generator.h"

namespace waymark::train {

BatchOrder::BatchOrder(i64 items, const LoaderOptions& options) : items_(items), options_(options) {
  if (items < 0) fail("DataLoader", "there cannot be {} items", items);
  if (options.batch_size < 1) fail("DataLoader", "batch_size = {}: must be at least 1", options.batch_size);
  if (items > 0 && options.drop_last && items < options.batch_size)
    fail("DataLoader", "{} items make no batch of {}, and drop_last leaves a shorter one out", items, options.batch_size);
}

i64 BatchOrder::batches() const {
  if (items_ == 0) fail("DataLoader", "this data has no end, so an epoch has no number of batches");
  return options_.drop_last ? items_ / options_.batch_size : (items_ + options_.batch_size - 1) / options_.batch_size;
}

void BatchOrder::set_cursor(const Cursor& cursor) {
  const bool fine = cursor.batch >= 0 && (items_ == 0 ? cursor.epoch == 0 : cursor.epoch >= 0 && cursor.batch <= batches());
  if (!fine) fail("DataLoader", "there is no batch {} in epoch {}", cursor.batch, cursor.epoch);
  cursor_ = cursor;
  if (items_ > 0 && cursor_.batch == batches()) cursor_ = {cursor.epoch + 1, 0};
}

void BatchOrder::draw_order() {
  if (!options_.shuffle || drawn_epoch_ == cursor_.epoch) return;
  order_.resize(static_cast<size_t>(items_));
  Generator generator(options_.seed);
  fill_randperm(generator.fixed_draw("data.order", static_cast<u64>(cursor_.epoch)), items_, order_.data());
  drawn_epoch_ = cursor_.epoch;
}

std::vector<i64> BatchOrder::next() {
  const i64 first = cursor_.batch * options_.batch_size;
  const i64 count = items_ == 0 ? options_.batch_size : std::min(options_.batch_size, items_ - first);
  if (items_ > 0) draw_order();
  std::vector<i64> batch(static_cast<size_t>(count));
  for (i64 k = 0; k < count; ++k)
    batch[static_cast<size_t>(k)] = items_ > 0 && options_.shuffle ? order_[static_cast<size_t>(first + k)] : first + k;
  set_cursor({cursor_.epoch, cursor_.batch + 1});
  return batch;
}

TensorDataset::TensorDataset(std::vector<Tensor> tensors) {
  const NoGrad no_grad;
  if (tensors.empty()) fail("TensorDataset", "there are no tensors");
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (!t.defined() || t.dim() == 0) fail("TensorDataset", "tensor {} has no rows", i);
    if (i == 0) size_ = t.size(0);
    if (t.size(0) != size_)
      fail("TensorDataset", "tensor {} has {} rows, tensor 0 has {}; they must agree", i, t.size(0), size_);
    tensors_.push_back(contiguous(t));
  }
  if (size_ == 0) fail("TensorDataset", "the tensors have no rows");
}

std::vector<Tensor> TensorDataset::batch(std::span<const i64> items) const {
  std::vector<Tensor> out;
  for (const i64 item : items)
    if (item < 0 || item >= size_) fail("TensorDataset", "there is no row {} of {}", item, size_);
  for (const Tensor& t : tensors_) {
    Shape shape = t.shape();
    shape[0] = static_cast<i64>(items.size());
    const Tensor rows = make_empty(shape, t.dtype());
    const size_t bytes = static_cast<size_t>(t.nbytes() / size_);
    for (size_t k = 0; k < items.size() && bytes > 0; ++k)
      std::memcpy(rows.raw() + k * bytes, t.raw() + static_cast<size_t>(items[k]) * bytes, bytes);
    out.push_back(rows);
  }
  return out;
}

}  // namespace waymark::train
