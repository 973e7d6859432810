#include "core/tensor/storage.h"

#include "core/tensor/error.h"

namespace waymark {

std::atomic<i64> Storage::live_{0};

Storage::Storage(Intrusive<Block> block, i64 offset, i64 bytes)
    : block_(std::move(block)), data_(block_->data() + offset), bytes_(bytes) {
  live_.fetch_add(1, std::memory_order_relaxed);
}

Intrusive<Storage> Storage::allocate(i64 bytes) {
  Intrusive<Block> block = Block::allocate(bytes);
  return part_of(std::move(block), 0, bytes);
}

Intrusive<Storage> Storage::part_of(Intrusive<Block> block, i64 offset, i64 bytes) {
  if (offset < 0 || bytes < 0 || offset > block->bytes() - bytes)
    fail("storage", "{} bytes from {} do not lie in a block of {} bytes", bytes, offset, block->bytes());
  return Intrusive<Storage>(new (small_allocate(sizeof(Storage))) Storage(std::move(block), offset, bytes));
}

void Storage::destroy(Storage* storage) {
  storage->~Storage();
  live_.fetch_sub(1, std::memory_order_relaxed);
  small_free(storage, sizeof(Storage));
}

}  // namespace waymark
