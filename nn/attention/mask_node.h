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

struct MaskNode {
  MaskKind kind = MaskKind::none;
  std::vector<i64> numbers = {};  // integer arguments in the order of the table; or the items of a set
  bool counted = false;           // global(count=g)
  bool from_input = false;        // the call brings the array
  Tensor array = {};
  std::vector<Mask> parts = {};
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

// Checks the node, and normalises sets.
Mask make_mask(MaskNode node);

}  // namespace waymark::nn
