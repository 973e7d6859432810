// Mask: which (query, key) pairs a call allows, as a value: a tree over primitives with &, | and ~.
//
//   Mask m = Mask::causal() & Mask::window(64, 64) | Mask::global_first(1);
//   Mask m = Mask::parse("causal() & window(64, 64) | global(count=1)");     // the same; to_string() prints this text
//
//   mask  = and { "|" and } ;   and = not { "&" not } ;   not = "~" not | "(" mask ")" | prim
//   prim  = name "(" [ arg { "," arg } ] ")" ;   arg = [ key "=" ] value     positional arguments first
//   value = int | "input" | set ;   set = "{" [ item { "," item } ] "}" ;   item = int | mask (heads only)
//
// `input` stands for the array of that name of the call (MaskArrays). i, j are slots of query and key, p their positions:
//
//   all(), none()
//   causal()                            p_j <= p_i
//   window(left, right, dilation=1)     -left·D <= p_j - p_i <= right·D, a multiple of D = dilation
//   blocks(size, before=0, after=0)     -before <= blk(j) - blk(i) <= after, blk(t) = floor((p_t + shift)/size)
//   strided(stride)                     p_i - p_j is a multiple of stride
//   summary(stride, c)                  j is among the last c places of its block; or among the last c kept tokens of the
//                                       row's last block, if that ends early (not in causal calls: a row must not depend
//                                       on how far the sequence goes on)
//   global({0, 5}), global(count=g)     i or j is one of these slots; of the first g kept tokens; of input [B, L] b8
//   columns({7}), rows({5})             j, i is one of these slots
//   prefix(n)                           p_j < n or p_j <= p_i
//   random_blocks(size, r, seed=0)      the block of j is one of r drawn for the head and the block of i
//   lengths({5, 3})                     j < the number of the batch row; or input [B]
//   keys(input)                         b8 [B, M]
//   documents(input)                    equal ids, i64 [L] or [B, L]; an id below 0 matches nothing
//   dense(input)                        b8 [..., L, M], axes counted from the right; the only one that costs O(L·M)
//   heads({m_0, m_1})                   another expression for each head
//
// A token without a position (p = -1) is outside every distance rule: window, blocks, strided, summary and random_blocks
// are true where either side has none. Padding is not part of a mask: the call ANDs its key_keep and query_keep last.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/position/positions.h"

namespace waymark::nn {

struct MaskNode;

// Some of the queries of a call, in place of all.
struct QueryRows {
  i64 first = 0, count = 0;  // 0: all
};

// Arrays that expressions name by `input`.
struct MaskArrays {
  Tensor documents = {};  // i64 [L] or [B, L]
  Tensor keys = {};       // b8 [B, M]
  Tensor lengths = {};    // i64 [B]
  Tensor global = {};     // b8 [B, L]
  Tensor dense = {};      // b8 [L, M], [H, L, M] or [B, H, L, M]
};

// What a mask is asked about.
struct MaskCall {
  i64 batch = 1, heads = 1, queries = 0, keys = 0;
  Positions query_positions = {}, key_positions = {};
  Tensor query_keep = {}, key_keep = {};  // b8 [B, L], [B, M]; undefined: all kept
  bool causal = false, cross = false;
  i64 shift = 0;                          // of block borders: blk(t) = floor((p_t + shift)/size)
  std::optional<u64> redraw = {};         // number of the draw of everything random, in place of the seeds
  MaskArrays arrays = {};
};

class WAYMARK_API Mask {
 public:
  Mask() = default;  // all(): every pair
  // Error with the place in the text. Limits, against hostile input: 32 levels of brackets, 16,384 parts, 1 MiB.
  static Mask parse(std::string_view text);

  static Mask all() { return {}; }
  static Mask none();
  static Mask causal();
  static Mask window(i64 left, i64 right, i64 dilation = 1);
  static Mask blocks(i64 size, i64 before = 0, i64 after = 0);
  static Mask strided(i64 stride);
  static Mask summary(i64 stride, i64 c);
  static Mask global(std::vector<i64> slots);
  static Mask global(const Tensor& which);
  static Mask global_first(i64 count);
  static Mask columns(std::vector<i64> slots);
  static Mask rows(std::vector<i64> slots);
  static Mask prefix(i64 n);
  static Mask random_blocks(i64 size, i64 r, i64 seed = 0);
  static Mask lengths(std::vector<i64> lengths);
  static Mask keys(const Tensor& keep);
  static Mask documents(const Tensor& ids);
  static Mask dense(const Tensor& allowed);
  static Mask heads(std::vector<Mask> masks);

  // all() and none() are taken out where they change nothing. Error for an expression of more than 256 levels or 65,536
  // parts.
  friend WAYMARK_API Mask operator&(const Mask& a, const Mask& b);
  friend WAYMARK_API Mask operator|(const Mask& a, const Mask& b);
  friend WAYMARK_API Mask operator~(const Mask& a);

  // ---- Structure, without a look at any pair. Each is true only where it holds whatever the call. ----
  bool is_all() const { return !node_; }
  // It forbids every key behind its query. Then the call is causal.
  bool implies_causal() const;
  // It depends on the key alone.
  bool key_only() const;
  // documents() and nothing else (or all()).
  bool documents_only() const;
  // Only pairs of one document are allowed, so that positions may repeat; given arrays are trusted to see to it.
  bool separates_documents() const;
  bool per_head() const;
  // |p_j - p_i| of no allowed pair with positions is larger; nothing: there is no bound.
  std::optional<i64> max_distance() const;
  // The first primitive that reads positions, arrays of the call; empty: none does.
  std::string position_reader() const;
  std::vector<std::string> inputs() const;
  // Error if heads({...}) has another number of entries.
  void check_heads(i64 heads) const;
  // Error if it does not fit the call, without a look at any pair: lengths({5, 3}) in a call of one row.
  void check_call(const MaskCall& call) const;

  // ---- Values ----
  // The allowed pairs: b8 [1|B, 1|H, L, M]; undefined: all. Error if the mask does not fit the call. `rows`: of these queries
  // alone.
  Tensor pairs(const MaskCall& call, QueryRows rows = {}) const;
  // The allowed keys of a mask that is key_only(): b8 [B, M]; undefined: all.
  Tensor allowed_keys(const MaskCall& call) const;

  // Canonical text: parse() gives the same mask again, with `input` for arrays. brief: heads(3 entries).
  std::string to_string(bool brief = false) const;

  const MaskNode* node() const { return node_.get(); }

 private:
  explicit Mask(std::shared_ptr<const MaskNode> node) : node_(std::move(node)) {}
  friend Mask make_mask(MaskNode node);
  std::shared_ptr<const MaskNode> node_;  // null: all()
};

}  // namespace waymark::nn
