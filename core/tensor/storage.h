// Storage: the memory behind one tensor and all its views, with the version that in-place ops raise.
//
// Invariants
// * Views and detach() share the Storage, hence its version. Parameters that lie in one Block have one Storage each:
//   changing one does not raise the version of another.
// * Every successful in-place op adds 1 to `version` and leaves its name and place in `last_writer`, so the message of
//   a version conflict can name both ops.
#pragma once

#include <atomic>

#include "core/tensor/allocator.h"
#include "core/tensor/loc.h"

namespace waymark {

struct Writer {
  const char* op = nullptr;  // static text: the name of an OpInfo
  std::string_view scope;    // interned module path
  Loc loc;
};

class WAYMARK_API Storage : public RefCounted {
 public:
  static Intrusive<Storage> allocate(i64 bytes);
  // `bytes` bytes of a shared block, from `offset` on (parameters that lie flat in one block).
  static Intrusive<Storage> part_of(Intrusive<Block> block, i64 offset, i64 bytes);
  static void destroy(Storage* storage);
  static i64 live() { return live_.load(std::memory_order_relaxed); }

  std::byte* data() const { return data_; }
  i64 bytes() const { return bytes_; }
  u32 version() const { return version_; }
  const Writer& last_writer() const { return writer_; }
  void wrote(const Writer& writer) {
    ++version_;
    writer_ = writer;
  }
  const Intrusive<Block>& block() const { return block_; }

 private:
  Storage(Intrusive<Block> block, i64 offset, i64 bytes);
  Intrusive<Block> block_;
  std::byte* data_;
  i64 bytes_;
  u32 version_ = 0;
  Writer writer_;
  static std::atomic<i64> live_;
};

}  // namespace waymark
