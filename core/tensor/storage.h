// Storage: the memory behind one tensor and all its views, with the version that in-place ops raise.
//
// Invariants
// * Views and detach() share the Storage, hence its version. Parameters that lie in one Block have one Storage each:
//   changing one does not raise the version of another.
// * Every successful in-place op adds 1 to `version` and leaves its name and place in `last_writer`, so the message of
//   a version conflict can name both ops.
// * Memory that no other storage shares belongs to the storage itself; it becomes a Block when somebody asks for one.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "core/tensor/allocator.h"
#include "core/tensor/loc.h"

namespace waymark {

struct Writer {
  const char* op = nullptr;  // static text: the name of an OpInfo
  std::string_view scope;    // interned module path
  Loc loc;
  const char* name() const { return op ? op : "an in-place op"; }
  // "net.cpp:42 in encoder.ffn", or as much of it as is known.
  std::string place() const;
};

class WAYMARK_API Storage : public RefCounted {
 public:
  // Throws OutOfMemory.
  static Intrusive<Storage> allocate(i64 bytes);
  // `bytes` bytes of a shared block, from `offset` on (parameters that lie flat in one block).
  static Intrusive<Storage> part_of(Intrusive<Block> block, i64 offset, i64 bytes);
  static void destroy(Storage* storage);
  static i64 live();

  std::byte* data() const { return data_; }
  i64 bytes() const { return bytes_; }
  u32 version() const { return version_; }
  const Writer& last_writer() const { return writer_; }
  void wrote(const Writer& writer) {
    ++version_;
    writer_ = writer;
  }
  // The block that this storage lies in.
  Intrusive<Block> block() const;
  // The same storage, or two in one block.
  bool shares_memory(const Storage& other) const {
    if (this == &other) return true;
    const Block* mine = block_.load(std::memory_order_acquire);
    return mine && mine == other.block_.load(std::memory_order_acquire);
  }
  // Nothing but this storage holds the memory, and it is the allocator's (not a user's, from_blob).
  bool alone() const {
    const Block* block = block_.load(std::memory_order_acquire);
    return !block || (block->use_count() == 1 && !block->borrowed());
  }

 private:
  Storage(Memory memory, i64 bytes) : data_(memory.data), bytes_(bytes), size_class_(memory.size_class) {}
  ~Storage() = default;
  std::byte* data_;
  i64 bytes_;
  mutable std::atomic<Block*> block_{nullptr};  // null: the memory is this storage's own; else one count of it
  int size_class_;                              // of memory of its own
  u32 version_ = 0;
  Writer writer_;
};

}  // namespace waymark
