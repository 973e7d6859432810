#include "nn/attention/mask_rows.h"

#include <algorithm>

#include "core/ops/convert.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "nn/attention/mask_node.h"
#include "nn/attention/random_blocks.h"

namespace waymark::nn {

std::vector<u8> kept_tokens(const Tensor& keep, i64 b, i64 length) {
  std::vector<u8> out(static_cast<size_t>(length), 1);
  if (keep.defined())
    for (i64 j = 0; j < length; ++j) out[static_cast<size_t>(j)] = keep.at<bool>({keep.size(0) == 1 ? 0 : b, j});
  return out;
}

std::vector<i64> block_numbers(const Positions& positions, i64 b, i64 length, i64 size, i64 shift) {
  const i64 s = ((shift % size) + size) % size;
  std::vector<i64> out(static_cast<size_t>(length));
  for (i64 j = 0; j < length; ++j) {
    const i64 p = positions.at(b, j);
    out[static_cast<size_t>(j)] = p < 0 ? -1 : (p + s) / size;
  }
  return out;
}

i64 count_blocks(const std::vector<i64>& blocks, const std::vector<u8>& kept) {
  i64 largest = -1;
  for (size_t j = 0; j < blocks.size(); ++j)
    if (kept[j]) largest = std::max(largest, blocks[j]);
  return largest + 1;
}

std::vector<u8> first_kept(i64 count, const std::vector<u8>& kept) {
  std::vector<u8> out(kept.size(), 0);
  for (size_t j = 0; j < kept.size() && count > 0; ++j)
    if (kept[j]) {
      out[j] = 1;
      --count;
    }
  return out;
}

namespace {

std::vector<i64> position_values(const Positions& positions, i64 b, i64 length) {
  std::vector<i64> out(static_cast<size_t>(length));
  for (i64 j = 0; j < length; ++j) out[static_cast<size_t>(j)] = positions.at(b, j);
  return out;
}

std::vector<u8> listed_slots(const std::vector<i64>& slots, i64 length) {
  std::vector<u8> out(static_cast<size_t>(length), 0);
  for (const i64 s : slots)
    if (s < length) out[static_cast<size_t>(s)] = 1;
  return out;
}

// Summary columns; a token without a position is one.
std::vector<u8> summary_columns(const std::vector<i64>& positions, const std::vector<u8>& kept, i64 stride, i64 c, i64 shift,
                                bool causal) {
  const i64 s = ((shift % stride) + stride) % stride;
  std::vector<u8> out(positions.size());
  i64 last = -1;
  for (size_t j = 0; j < positions.size(); ++j) {
    out[j] = positions[j] < 0 || (positions[j] + s) % stride >= stride - c;
    if (kept[j] && positions[j] >= 0) last = std::max(last, (positions[j] + s) / stride);
  }
  if (causal || last < 0) return out;
  std::vector<size_t> tail;  // kept tokens of the last block
  for (size_t j = 0; j < positions.size(); ++j) {
    if (!kept[j] || positions[j] < 0 || (positions[j] + s) / stride != last) continue;
    if ((positions[j] + s) % stride == stride - 1) return out;  // the block does not end early
    tail.push_back(j);
  }
  std::stable_sort(tail.begin(), tail.end(), [&](size_t a, size_t b) { return positions[a] < positions[b]; });
  for (size_t n = 0; n < tail.size() && n < static_cast<size_t>(c); ++n) out[tail[tail.size() - 1 - n]] = 1;
  return out;
}

}  // namespace

// A node for one call. Values of a batch row are at `at(b)`: one entry if the rows are equal.
struct MaskRows::Rule {
  MaskKind kind = MaskKind::none;
  bool everything = false;
  std::vector<i64> numbers = {};
  i64 keys = 0;
  std::vector<std::vector<i64>> query = {}, key = {};          // positions, blocks, residues, ids
  std::vector<std::vector<u8>> query_is = {}, key_is = {};     // members of a set
  std::vector<i64> query_blocks = {}, key_blocks = {};         // of random_blocks: how many there are
  bool behind = false;                                         // random blocks are earlier ones
  Draw draw = {};
  std::shared_ptr<const MaskSource> source = {};
  Tensor array = {};                                           // dense, [1|B, 1|H, L, M]
  std::vector<std::unique_ptr<const Rule>> parts = {};
  bool batch = false, head = false;

  template <class T> static const T& at(const std::vector<T>& list, i64 b) { return list[list.size() == 1 ? 0 : static_cast<size_t>(b)]; }
  void row(i64 b, i64 h, i64 i, u8* out) const;
};

void MaskRows::Rule::row(i64 b, i64 h, i64 i, u8* out) const {
  const size_t n = static_cast<size_t>(keys), at_i = static_cast<size_t>(i);
  const auto all = [&](bool value) { std::fill(out, out + n, u8{value}); };
  if (everything) return all(true);
  const auto each = [&](auto rule) {
    for (size_t j = 0; j < n; ++j) out[j] = rule(j) ? u8{1} : u8{0};
  };
  switch (kind) {
    case MaskKind::none: return all(false);
    case MaskKind::causal: {
      const i64 p = at(query, b)[at_i];
      const i64* k = at(key, b).data();
      return each([=](size_t j) { return k[j] <= p; });
    }
    case MaskKind::prefix: {
      const i64 p = std::max(at(query, b)[at_i], numbers[0] - 1);
      const i64* k = at(key, b).data();
      return each([=](size_t j) { return k[j] <= p; });
    }
    case MaskKind::window: {
      const i64 p = at(query, b)[at_i], step = numbers[2], left = -numbers[0] * step, right = numbers[1] * step;
      if (p < 0) return all(true);
      const i64* k = at(key, b).data();
      if (step == 1) return each([=](size_t j) { return (k[j] < 0) | ((k[j] - p >= left) & (k[j] - p <= right)); });
      return each([=](size_t j) { return k[j] < 0 || (k[j] - p >= left && k[j] - p <= right && (k[j] - p) % step == 0); });
    }
    case MaskKind::blocks: {
      const i64 block = at(query, b)[at_i], before = -numbers[1], after = numbers[2];
      if (block < 0) return all(true);
      const i64* k = at(key, b).data();
      return each([=](size_t j) { return k[j] < 0 || (k[j] - block >= before && k[j] - block <= after); });
    }
    case MaskKind::strided: {
      const i64 residue = at(query, b)[at_i];
      if (residue < 0) return all(true);
      const i64* k = at(key, b).data();
      return each([=](size_t j) { return k[j] < 0 || k[j] == residue; });
    }
    case MaskKind::random_blocks: {
      const i64 block = at(query, b)[at_i];
      if (block < 0) return all(true);
      const i64* k = at(key, b).data();
      // A block beyond the kept ones belongs to padding alone.
      const i64 blocks = at(key_blocks, b), candidates = block >= at(query_blocks, b) ? 0 : behind ? std::min(block, blocks) : blocks;
      if (numbers[1] >= candidates) return each([=](size_t j) { return k[j] < candidates; });
      std::vector<i64> picked = pick_blocks(draw, h, block, candidates, numbers[1]);
      std::sort(picked.begin(), picked.end());
      return each([&](size_t j) { return k[j] < 0 || std::binary_search(picked.begin(), picked.end(), k[j]); });
    }
    case MaskKind::documents: {
      const i64 id = at(query, b)[at_i];
      if (id < 0) return all(false);
      const i64* k = at(key, b).data();
      return each([=](size_t j) { return k[j] == id; });
    }
    case MaskKind::summary:
      if (at(query, b)[at_i] < 0) return all(true);
      std::copy_n(at(key_is, b).data(), n, out);
      return;
    case MaskKind::global:
      if (at(query_is, b)[at_i]) return all(true);
      std::copy_n(at(key_is, b).data(), n, out);
      return;
    case MaskKind::rows: return all(at(query_is, b)[at_i] != 0);
    case MaskKind::columns:
    case MaskKind::lengths:
    case MaskKind::keys: std::copy_n(at(key_is, b).data(), n, out); return;
    case MaskKind::dense: {
      if (source) return source->row(source->batch == 1 ? 0 : b, source->heads == 1 ? 0 : h, i, out);
      const i64 rows = array.size(0), heads = array.size(1), queries = array.size(2), columns = array.size(3);
      const bool* from = array.data<bool>() + (((rows == 1 ? 0 : b) * heads + (heads == 1 ? 0 : h)) * queries + (queries == 1 ? 0 : i)) * columns;
      if (columns == 1) return all(from[0]);
      return each([=](size_t j) { return from[j]; });
    }
    case MaskKind::heads: return parts[static_cast<size_t>(h)]->row(b, h, i, out);
    case MaskKind::negation:
      parts[0]->row(b, h, i, out);
      return each([=](size_t j) { return out[j] == 0; });
    case MaskKind::conjunction:
    case MaskKind::disjunction: {
      std::vector<u8> other(n);
      parts[0]->row(b, h, i, out);
      for (size_t part = 1; part < parts.size(); ++part) {
        parts[part]->row(b, h, i, other.data());
        const u8* o = other.data();
        if (kind == MaskKind::conjunction) each([=](size_t j) { return out[j] & o[j]; });
        else each([=](size_t j) { return out[j] | o[j]; });
      }
      return;
    }
  }
}

namespace {

class Preparation {
 public:
  explicit Preparation(const MaskCall& c) : c_(c) {}
  std::unique_ptr<const MaskRows::Rule> rule(const Mask& m);

 private:
  // f(b) for each row that differs; the list has one entry if `rows` is 1.
  template <class F> auto each(i64 rows, F f) const {
    std::vector<decltype(f(i64{0}))> list;
    for (i64 b = 0; b < rows; ++b) list.push_back(f(b));
    return list;
  }
  static i64 rows_of(const Tensor& keep) { return keep.defined() ? keep.size(0) : 1; }
  i64 position_rows() const { return std::max(c_.query_positions.rows(), c_.key_positions.rows()); }
  // Blocks, counted from kept tokens: the rows that positions and keep bits tell apart.
  i64 kept_rows() const { return std::max({position_rows(), rows_of(c_.query_keep), rows_of(c_.key_keep)}); }

  Tensor array_of(const MaskNode& n, const Tensor& of_call) const {
    const Tensor& t = n.from_input ? of_call : n.array;
    const char* name = mask_primitive(n.kind).name;
    if (!t.defined()) fail("mask", "{}(input) needs the array {} of the call, which was not given", name, name);
    return t;
  }
  // A b8 or i64 array with one value for each of `length` tokens, as [1|B, length].
  Tensor token_array(const MaskNode& n, const Tensor& of_call, DType dtype, i64 length) const {
    Tensor t = array_of(n, of_call);
    const char* name = mask_primitive(n.kind).name;
    if (t.dtype() != dtype) fail("mask", "{}: the array must be {}, got {}", name, name_of(dtype), name_of(t.dtype()));
    if ((t.dim() != 1 && t.dim() != 2) || t.size(-1) != length || (t.dim() == 2 && t.size(0) != c_.batch && t.size(0) != 1))
      fail("mask", "{}: the array is {}, but the call has {} rows of {} tokens", name, t.shape(), c_.batch, length);
    return t.dim() == 1 ? t.unsqueeze(0) : t;
  }
  static std::vector<u8> bits(const Tensor& t, i64 b) { return kept_tokens(t, b, t.size(1)); }
  static std::vector<i64> ids(const Tensor& t, i64 b) {
    std::vector<i64> out;
    for (i64 j = 0; j < t.size(1); ++j) out.push_back(t.at<i64>({b, j}));
    return out;
  }

  void by_position(MaskRows::Rule& r) const {
    r.query = each(c_.query_positions.rows(), [&](i64 b) { return position_values(c_.query_positions, b, c_.queries); });
    r.key = each(c_.key_positions.rows(), [&](i64 b) { return position_values(c_.key_positions, b, c_.keys); });
  }
  void by_block(MaskRows::Rule& r, i64 size) const {
    r.query = each(c_.query_positions.rows(), [&](i64 b) { return block_numbers(c_.query_positions, b, c_.queries, size, c_.shift); });
    r.key = each(c_.key_positions.rows(), [&](i64 b) { return block_numbers(c_.key_positions, b, c_.keys, size, c_.shift); });
  }
  void pick(MaskRows::Rule& r, const MaskNode& n) const;

  const MaskCall& c_;
};

void Preparation::pick(MaskRows::Rule& r, const MaskNode& n) const {
  by_block(r, n.numbers[0]);
  r.draw = current_generator().fixed_draw("mask.random_blocks", c_.redraw.value_or(static_cast<u64>(n.numbers[2])));
  r.behind = c_.causal;
  r.key_blocks = each(kept_rows(), [&](i64 b) { return count_blocks(MaskRows::Rule::at(r.key, b), kept_tokens(c_.key_keep, b, c_.keys)); });
  r.query_blocks = each(kept_rows(), [&](i64 b) { return count_blocks(MaskRows::Rule::at(r.query, b), kept_tokens(c_.query_keep, b, c_.queries)); });
}

std::unique_ptr<const MaskRows::Rule> Preparation::rule(const Mask& m) {
  auto r = std::make_unique<MaskRows::Rule>();
  r->keys = c_.keys;
  const MaskNode* n = m.node();
  if (!n) {
    r->everything = true;
    return r;
  }
  r->kind = n->kind;
  r->numbers = n->numbers;
  for (const Mask& part : n->parts) {
    r->parts.push_back(rule(part));
    r->batch |= r->parts.back()->batch;
    r->head |= r->parts.back()->head;
  }
  const auto members = [&](std::vector<u8> queries, std::vector<u8> keys) {
    r->query_is = {std::move(queries)};
    r->key_is = {std::move(keys)};
  };
  switch (n->kind) {
    case MaskKind::causal:
    case MaskKind::prefix:
    case MaskKind::window: by_position(*r); break;
    case MaskKind::blocks: by_block(*r, n->numbers[0]); break;
    case MaskKind::strided:
      by_position(*r);
      for (auto* list : {&r->query, &r->key})
        for (auto& values : *list)
          for (i64& p : values) p = p < 0 ? -1 : p % n->numbers[0];
      break;
    case MaskKind::summary:
      by_position(*r);
      r->key_is = each(std::max(c_.key_positions.rows(), rows_of(c_.key_keep)), [&](i64 b) {
        return summary_columns(MaskRows::Rule::at(r->key, b), kept_tokens(c_.key_keep, b, c_.keys), n->numbers[0], n->numbers[1],
                               c_.shift, c_.causal);
      });
      break;
    case MaskKind::random_blocks:
      pick(*r, *n);
      r->head = c_.heads > 1;
      break;
    case MaskKind::global:
      if (n->from_input || n->array.defined()) {
        if (c_.cross) fail("mask", "global(input) names tokens of one sequence, and cross-attention has two");
        const Tensor which = token_array(*n, c_.arrays.global, kB8, c_.queries);
        r->query_is = r->key_is = each(which.size(0), [&](i64 b) { return bits(which, b); });
      } else if (n->counted) {
        r->query_is = each(rows_of(c_.query_keep), [&](i64 b) { return first_kept(n->numbers[0], kept_tokens(c_.query_keep, b, c_.queries)); });
        r->key_is = each(rows_of(c_.key_keep), [&](i64 b) { return first_kept(n->numbers[0], kept_tokens(c_.key_keep, b, c_.keys)); });
      } else {
        members(listed_slots(n->numbers, c_.queries), listed_slots(n->numbers, c_.keys));
      }
      break;
    case MaskKind::columns: members({}, listed_slots(n->numbers, c_.keys)); break;
    case MaskKind::rows: members(listed_slots(n->numbers, c_.queries), {}); break;
    case MaskKind::lengths: {
      std::vector<i64> lengths = n->numbers;
      if (n->from_input) lengths = array_of(*n, c_.arrays.lengths).to_vector<i64>();
      if (static_cast<i64>(lengths.size()) != c_.batch && lengths.size() != 1)
        fail("mask", "lengths: {} numbers for {} rows", lengths.size(), c_.batch);
      r->key_is = each(static_cast<i64>(lengths.size()), [&](i64 b) {
        std::vector<u8> keys(static_cast<size_t>(c_.keys), 0);
        std::fill_n(keys.begin(), std::clamp(lengths[static_cast<size_t>(b)], i64{0}, c_.keys), u8{1});
        return keys;
      });
      break;
    }
    case MaskKind::keys: {
      const Tensor keep = token_array(*n, c_.arrays.keys, kB8, c_.keys);
      r->key_is = each(keep.size(0), [&](i64 b) { return bits(keep, b); });
      break;
    }
    case MaskKind::documents: {
      if (c_.cross) fail("mask", "documents(...) compares tokens of one sequence, and cross-attention has two");
      if (n->from_input || n->array.defined()) {
        const Tensor given = token_array(*n, c_.arrays.documents, kI64, c_.keys);
        r->query = r->key = each(given.size(0), [&](i64 b) { return ids(given, b); });
      } else {
        if (static_cast<i64>(n->numbers.size()) != c_.keys) fail("mask", "documents: {} ids for {} tokens", n->numbers.size(), c_.keys);
        r->query = r->key = {n->numbers};
      }
      break;
    }
    case MaskKind::dense: {
      if (n->source) {
        const MaskSource& s = *n->source;
        if ((s.batch != 1 && s.batch != c_.batch) || (s.heads != 1 && s.heads != c_.heads) || s.queries != c_.queries || s.keys != c_.keys)
          fail("mask", "a pattern of {} rows, {} heads, {} queries and {} keys in a call of {}, {}, {} and {}", s.batch, s.heads, s.queries,
               s.keys, c_.batch, c_.heads, c_.queries, c_.keys);
        r->source = n->source;
        r->batch = n->source->batch > 1;
        r->head = n->source->heads > 1;
        break;
      }
      Tensor t = array_of(*n, c_.arrays.dense);
      if (t.dtype() != kB8) fail("mask", "dense: the array must be b8 (true = allowed), got {}", name_of(t.dtype()));
      if (!broadcasts_to(t.shape(), {c_.batch, c_.heads, c_.queries, c_.keys}))
        fail("mask", "dense({}) does not fit a call with {} rows, {} heads, {} queries and {} keys", t.shape(), c_.batch, c_.heads,
             c_.queries, c_.keys);
      while (t.dim() < 4) t = t.unsqueeze(0);
      r->array = contiguous(t);
      r->batch = t.size(0) > 1;
      r->head = t.size(1) > 1;
      break;
    }
    case MaskKind::heads: r->head = c_.heads > 1; break;
    default: break;
  }
  for (const size_t rows : {r->query.size(), r->key.size(), r->query_is.size(), r->key_is.size(), r->key_blocks.size()}) r->batch |= rows > 1;
  return r;
}

}  // namespace

void check_mask_call(const MaskCall& c) {
  if (c.batch < 0 || c.heads < 1 || c.queries < 0 || c.keys < 0)
    fail("mask", "a call of {} rows, {} heads, {} queries and {} keys: must be at least 0, 1, 0 and 0", c.batch, c.heads, c.queries, c.keys);
  if (c.query_positions.defined()) c.query_positions.check_fits("mask", "positions of queries", c.batch, c.queries);
  if (c.key_positions.defined()) c.key_positions.check_fits("mask", "positions of keys", c.batch, c.keys);
  const auto check_keep = [&](const char* name, const Tensor& keep, i64 length) {
    if (!keep.defined()) return;
    if (keep.dtype() != kB8) fail("mask", "{} must be b8 (true = kept), got {}", name, name_of(keep.dtype()));
    if (keep.dim() != 2 || keep.size(1) != length || (keep.size(0) != c.batch && keep.size(0) != 1))
      fail("mask", "{} must be [{}, {}], got {}", name, c.batch, length, keep.shape());
  };
  check_keep("query_keep", c.query_keep, c.queries);
  check_keep("key_keep", c.key_keep, c.keys);
}

MaskRows::MaskRows(const Mask& mask, const MaskCall& call) {
  check_mask_call(call);
  if (const std::string reader = mask.position_reader();
      !reader.empty() && !(call.query_positions.defined() && call.key_positions.defined()))
    fail("mask", "{} reads positions, and the call has none", reader);
  mask.check_heads(call.heads);
  rule_ = Preparation(call).rule(mask);
}
MaskRows::~MaskRows() = default;
bool MaskRows::by_batch() const { return rule_->batch; }
bool MaskRows::by_head() const { return rule_->head; }
void MaskRows::row(i64 b, i64 h, i64 i, u8* allowed) const { rule_->row(b, h, i, allowed); }

namespace {

bool fits_heads(const Mask& m, i64 heads) {
  if (!m.node()) return true;
  const std::vector<Mask>& parts = m.node()->parts;
  if (m.node()->kind == MaskKind::heads) return static_cast<i64>(parts.size()) == heads;
  return std::all_of(parts.begin(), parts.end(), [&](const Mask& part) { return fits_heads(part, heads); });
}

}  // namespace

void Mask::check_heads(i64 heads) const {
  if (!fits_heads(*this, heads)) fail("mask", "{} but the model has {} heads", to_string(true), heads);
}

void Mask::check_call(const MaskCall& call) const { const MaskRows rows(*this, call); }

Tensor Mask::pairs(const MaskCall& c, QueryRows of) const {
  const MaskRows rows(*this, c);
  if (of.first < 0 || of.count < 0 || of.first > c.queries - of.count)
    fail("mask", "queries {} ... {} of a call with {}", of.first, of.first + of.count - 1, c.queries);
  if (of.count == 0) of = {0, c.queries};
  if (is_all()) return {};
  if (c.batch == 0) return make_empty({0, 1, of.count, c.keys}, kB8);
  const i64 batch = rows.by_batch() ? c.batch : 1, heads = rows.by_head() ? c.heads : 1;
  const Tensor out = make_empty({batch, heads, of.count, c.keys}, kB8);
  u8* to = reinterpret_cast<u8*>(out.data<bool>());
  for (i64 b = 0; b < batch; ++b)
    for (i64 h = 0; h < heads; ++h)
      for (i64 i = of.first; i < of.first + of.count; ++i, to += c.keys) rows.row(b, h, i, to);
  return out;
}

Tensor Mask::allowed_keys(const MaskCall& c) const {
  if (!key_only()) fail("mask", "{} depends on the query, too: it is no mask of keys", to_string(true));
  const MaskRows rows(*this, c);
  if (is_all()) return {};
  const Tensor out = make_empty({c.batch, c.keys}, kB8);
  u8* to = reinterpret_cast<u8*>(out.data<bool>());
  for (i64 b = 0; b < c.batch; ++b, to += c.keys) rows.row(b, 0, 0, to);
  return out;
}

}  // namespace waymark::nn
