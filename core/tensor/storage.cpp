#include "core/tensor/storage.h"

#include "core/tensor/count.h"
#include "core/tensor/error.h"

namespace waymark {

std::string Writer::place() const {
  std::string out = loc ? fmt::format("{}:{}", loc.name(), loc.line) : "";
  if (!scope.empty()) out += (out.empty() ? "in " : " in ") + std::string(scope);
  return out;
}

i64 Storage::live() { return counted(Count::storages); }

Intrusive<Storage> Storage::allocate(i64 bytes) {
  const Memory memory = take_memory(bytes);
  auto* storage = new (small_allocate(sizeof(Storage))) Storage(memory, bytes);
  count(Count::storages);
  return Intrusive<Storage>(storage);
}

Intrusive<Storage> Storage::part_of(Intrusive<Block> block, i64 offset, i64 bytes) {
  if (offset < 0 || bytes < 0 || offset > block->bytes() - bytes)
    fail("storage", "{} bytes from {} do not lie in a block of {} bytes", bytes, offset, block->bytes());
  auto* storage = new (small_allocate(sizeof(Storage))) Storage(Memory{block->data() + offset, -1}, bytes);
  block->ref();
  // Memory of somebody else's is counted twice: a storage of it is never alone(), so no op takes it over for a result.
  if (block->memory_.size_class < 0) block->ref();
  storage->block_.store(block.get(), std::memory_order_relaxed);
  count(Count::storages);
  return Intrusive<Storage>(storage);
}

Intrusive<Block> Storage::block() const {
  Block* block = block_.load(std::memory_order_acquire);
  if (!block) {
    Block* mine = Block::of(Memory{data_, size_class_}, bytes_);
    mine->ref();
    if (block_.compare_exchange_strong(block, mine, std::memory_order_acq_rel)) block = mine;
    else Block::forget(mine);  // another thread was faster; the memory is in its block
  }
  return Intrusive<Block>(block);
}

void Storage::destroy(Storage* storage) {
  if (Block* block = storage->block_.load(std::memory_order_acquire)) {
    if (block->memory_.size_class < 0) block->unref();
    if (block->unref()) Block::destroy(block);
  } else {
    give_memory({storage->data_, storage->size_class_});
  }
  storage->~Storage();
  count(Count::storages, -1);
  small_free(storage, sizeof(Storage));
}

}  // namespace waymark
