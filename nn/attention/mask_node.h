// Internal: the tree behind a Mask, and the table of its primitives, which parser, printer and constructors share.
#pragma once

#include <memory>

#include "nn/attention/mask.h"

namespace waymark::nn {

enum class MaskKind : u8 {
  none, causal, window, blocks, strided, summary, global, columns, rows, prefix, random_blocks, lengths, keys, documents,
  dense, heads,
  conjunction, disjunction, negation,  // of parts; n-ary, none of the same kind below itself
};

// Pairs that are worked out row by row: the pattern of an attention that no primitive says. It is printed as dense(input).
class MaskSource {
 public:
  virtual ~MaskSource() = default;
  // allowed[j] = 1 if query i of batch row b may attend to key j, else 0, for all keys of the call it was made for.
  virtual void row(i64 b, i64 h, i64 i, u8* allowed) const = 0;
  i64 batch = 1, heads = 1;  // 1: the same for all
  i64 queries = 0, keys = 0;

 protected:
  MaskSource() = default;
};

struct MaskNode {
  MaskKind kind = MaskKind::none;
  std::vector<i64> numbers = {};  // integer arguments in the order of the table; or the items of a set
  bool counted = false;           // global(count=g)
  bool from_input = false;        // the call brings the array
  Tensor array = {};
  std::vector<Mask> parts = {};
  std::shared_ptr<const MaskSource> source = {};  // of dense, in place of an array
  // Of the tree from here on; make_mask() sets them. Both have a limit: questions go down by recursion, and a mask that is
  // joined with itself again and again would grow without bound.
  i64 depth = 1, size = 1;
};

// An integer argument of a primitive.
struct MaskNumber {
  const char* name;
  i64 least;
  std::optional<i64> otherwise = {};  // nothing: it must be given
};
struct MaskPrimitive {
  const char* name;
  MaskKind kind;
  std::vector<MaskNumber> numbers = {};
  const char* set = nullptr;   // the name of its set argument
  bool takes_input = false, takes_set = false, takes_masks = false;
  i64 least_item = 0;          // of the set
};
const std::vector<MaskPrimitive>& mask_primitives();
const MaskPrimitive& mask_primitive(MaskKind kind);
inline constexpr i64 kLargestMaskNumber = (i64{1} << 31) - 2;
inline constexpr i64 kDeepestTree = 256, kLargestTree = i64{1} << 16;

// Checks the node, and normalises sets. Error for a tree that is too deep or too large.
Mask make_mask(MaskNode node);

}  // namespace waymark::nn
