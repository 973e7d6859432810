#include "nn/attention/mask.h"

#include <algorithm>

#include "nn/attention/mask_node.h"

namespace waymark::nn {

const std::vector<MaskPrimitive>& mask_primitives() {
  using K = MaskKind;
  static const std::vector<MaskPrimitive> list = {
      {.name = "none", .kind = K::none},
      {.name = "causal", .kind = K::causal},
      {.name = "window", .kind = K::window, .numbers = {{"left", 0}, {"right", 0}, {"dilation", 1, 1}}},
      {.name = "blocks", .kind = K::blocks, .numbers = {{"size", 1}, {"before", 0, 0}, {"after", 0, 0}}},
      {.name = "strided", .kind = K::strided, .numbers = {{"stride", 1}}},
      {.name = "summary", .kind = K::summary, .numbers = {{"stride", 1}, {"c", 1}}},
      {.name = "global", .kind = K::global, .numbers = {{"count", 0}}, .set = "slots", .takes_input = true, .takes_set = true},
      {.name = "columns", .kind = K::columns, .set = "slots", .takes_set = true},
      {.name = "rows", .kind = K::rows, .set = "slots", .takes_set = true},
      {.name = "prefix", .kind = K::prefix, .numbers = {{"n", 0}}},
      {.name = "random_blocks", .kind = K::random_blocks, .numbers = {{"size", 1}, {"r", 0}, {"seed", 0, 0}}},
      {.name = "lengths", .kind = K::lengths, .set = "lengths", .takes_input = true, .takes_set = true},
      {.name = "keys", .kind = K::keys, .set = "keys", .takes_input = true},
      {.name = "documents", .kind = K::documents, .set = "ids", .takes_input = true, .takes_set = true,
       .least_item = -kLargestMaskNumber},
      {.name = "dense", .kind = K::dense, .set = "allowed", .takes_input = true},
      {.name = "heads", .kind = K::heads, .set = "masks", .takes_masks = true},
  };
  return list;
}

const MaskPrimitive& mask_primitive(MaskKind kind) {
  for (const MaskPrimitive& p : mask_primitives())
    if (p.kind == kind) return p;
  fail("mask", "a combination is no primitive");
}

namespace {

void check_number(const MaskPrimitive& p, const MaskNumber& n, i64 value) {
  if (value < n.least || value > kLargestMaskNumber)
    fail("mask", "{}: {}={} must be {} to {}", p.name, n.name, value, n.least, kLargestMaskNumber);
}

void check_array(const char* name, const Tensor& t, DType dtype, int least, int most) {
  if (!t.defined()) fail("mask", "{}: the array is undefined", name);
  if (t.dtype() != dtype)
    fail("mask", "{}: the array must be {}, got {}", name, dtype == kB8 ? "b8 (true = allowed)" : "i64", name_of(t.dtype()));
  if (t.dim() < least || t.dim() > most) fail("mask", "{}: the array must have {} to {} axes, got {}", name, least, most, t.shape());
}

Mask with_array(MaskKind kind, const Tensor& array) { return make_mask({.kind = kind, .array = array}); }

// A conjunction or disjunction of both, without one inside another of its kind.
Mask joined(MaskKind kind, const Mask& a, const Mask& b) {
  MaskNode node{.kind = kind};
  for (const Mask* m : {&a, &b})
    if (m->node() && m->node()->kind == kind) node.parts.insert(node.parts.end(), m->node()->parts.begin(), m->node()->parts.end());
    else node.parts.push_back(*m);
  return make_mask(std::move(node));
}

bool is_none(const Mask& m) { return m.node() && m.node()->kind == MaskKind::none; }

bool is_combination(MaskKind k) { return k == MaskKind::conjunction || k == MaskKind::disjunction || k == MaskKind::negation; }

template <class F> bool all_of(const std::vector<Mask>& parts, F f) { return std::all_of(parts.begin(), parts.end(), f); }
template <class F> bool any_of(const std::vector<Mask>& parts, F f) { return std::any_of(parts.begin(), parts.end(), f); }

// A property of allowed pairs: it holds for a conjunction if for one part, for alternatives if for all.
template <class F> bool holds(const Mask& m, F leaf) {
  const MaskNode* n = m.node();
  if (!n) return false;
  const auto below = [&](const Mask& part) { return holds(part, leaf); };
  switch (n->kind) {
    case MaskKind::none: return true;
    case MaskKind::conjunction: return any_of(n->parts, below);
    case MaskKind::disjunction:
    case MaskKind::heads: return all_of(n->parts, below);
    case MaskKind::negation: return false;
    default: return leaf(*n);
  }
}

}  // namespace

Mask make_mask(MaskNode n) {
  for (const Mask& part : n.parts)
    if (const MaskNode* below = part.node()) {
      n.depth = std::max(n.depth, below->depth + 1);
      n.size += below->size;
    }
  if (n.depth > kDeepestTree) fail("mask", "an expression of {} levels of &, | and ~: at most {}", n.depth, kDeepestTree);
  if (n.size > kLargestTree) fail("mask", "an expression of {} masks: at most {}", n.size, kLargestTree);
  if (!is_combination(n.kind)) {
    const MaskPrimitive& p = mask_primitive(n.kind);
    const bool has_array = n.array.defined() || n.from_input || n.source;
    switch (n.kind) {
      case MaskKind::global:
        if (n.counted) check_number(p, p.numbers[0], n.numbers.at(0));
        break;
      case MaskKind::heads:
        if (n.parts.empty()) fail("mask", "heads: there must be an expression for each head");
        if (any_of(n.parts, [](const Mask& m) { return m.per_head(); })) fail("mask", "heads: an entry that differs by head itself");
        break;
      default:
        for (size_t i = 0; i < p.numbers.size(); ++i) check_number(p, p.numbers[i], n.numbers.at(i));
    }
    if (n.kind == MaskKind::summary && n.numbers[1] > n.numbers[0])
      fail("mask", "summary: c={} is larger than stride={}", n.numbers[1], n.numbers[0]);
    if (p.set && !has_array && !n.counted && !p.takes_masks) {
      for (const i64 item : n.numbers)
        if (item < p.least_item || item > kLargestMaskNumber)
          fail("mask", "{}: {} must be {} to {}", p.name, item, p.least_item, kLargestMaskNumber);
      if (n.kind != MaskKind::lengths && n.kind != MaskKind::documents) {
        std::sort(n.numbers.begin(), n.numbers.end());
        n.numbers.erase(std::unique(n.numbers.begin(), n.numbers.end()), n.numbers.end());
      }
    }
  }
  return Mask(std::make_shared<const MaskNode>(std::move(n)));
}

Mask Mask::none() { return make_mask({.kind = MaskKind::none}); }
Mask Mask::causal() { return make_mask({.kind = MaskKind::causal}); }
Mask Mask::window(i64 left, i64 right, i64 dilation) { return make_mask({.kind = MaskKind::window, .numbers = {left, right, dilation}}); }
Mask Mask::blocks(i64 size, i64 before, i64 after) { return make_mask({.kind = MaskKind::blocks, .numbers = {size, before, after}}); }
Mask Mask::strided(i64 stride) { return make_mask({.kind = MaskKind::strided, .numbers = {stride}}); }
Mask Mask::summary(i64 stride, i64 c) { return make_mask({.kind = MaskKind::summary, .numbers = {stride, c}}); }
Mask Mask::global(std::vector<i64> slots) { return make_mask({.kind = MaskKind::global, .numbers = std::move(slots)}); }
Mask Mask::global_first(i64 count) { return make_mask({.kind = MaskKind::global, .numbers = {count}, .counted = true}); }
Mask Mask::columns(std::vector<i64> slots) { return make_mask({.kind = MaskKind::columns, .numbers = std::move(slots)}); }
Mask Mask::rows(std::vector<i64> slots) { return make_mask({.kind = MaskKind::rows, .numbers = std::move(slots)}); }
Mask Mask::prefix(i64 n) { return make_mask({.kind = MaskKind::prefix, .numbers = {n}}); }
Mask Mask::random_blocks(i64 size, i64 r, i64 seed) { return make_mask({.kind = MaskKind::random_blocks, .numbers = {size, r, seed}}); }
Mask Mask::lengths(std::vector<i64> lengths) { return make_mask({.kind = MaskKind::lengths, .numbers = std::move(lengths)}); }
Mask Mask::heads(std::vector<Mask> masks) { return make_mask({.kind = MaskKind::heads, .parts = std::move(masks)}); }

Mask Mask::global(const Tensor& which) {
  check_array("global", which, kB8, 1, 2);
  return with_array(MaskKind::global, which);
}
Mask Mask::keys(const Tensor& keep) {
  check_array("keys", keep, kB8, 1, 2);
  return with_array(MaskKind::keys, keep);
}
Mask Mask::documents(const Tensor& ids) {
  check_array("documents", ids, kI64, 1, 2);
  return with_array(MaskKind::documents, ids);
}
Mask Mask::dense(const Tensor& allowed) {
  check_array("dense", allowed, kB8, 2, 4);
  return with_array(MaskKind::dense, allowed);
}

Mask operator&(const Mask& a, const Mask& b) {
  if (a.is_all() || is_none(b)) return b;
  if (b.is_all() || is_none(a)) return a;
  return joined(MaskKind::conjunction, a, b);
}
Mask operator|(const Mask& a, const Mask& b) {
  if (b.is_all() || is_none(a)) return b;
  if (a.is_all() || is_none(b)) return a;
  return joined(MaskKind::disjunction, a, b);
}
Mask operator~(const Mask& a) {
  if (a.is_all()) return Mask::none();
  if (is_none(a)) return {};
  if (a.node()->kind == MaskKind::negation) return a.node()->parts[0];
  return make_mask({.kind = MaskKind::negation, .parts = {a}});
}

bool Mask::implies_causal() const {
  return holds(*this, [](const MaskNode& n) { return n.kind == MaskKind::causal; });
}

bool Mask::separates_documents() const {
  return holds(*this, [](const MaskNode& n) { return n.kind == MaskKind::documents || n.kind == MaskKind::dense; });
}

bool Mask::key_only() const {
  if (!node_) return true;
  switch (node_->kind) {
    case MaskKind::none:
    case MaskKind::columns:
    case MaskKind::lengths:
    case MaskKind::keys: return true;
    case MaskKind::conjunction:
    case MaskKind::disjunction:
    case MaskKind::negation: return all_of(node_->parts, [](const Mask& m) { return m.key_only(); });
    default: return false;
  }
}

bool Mask::documents_only() const {
  return !node_ || node_->kind == MaskKind::documents ||
         (node_->kind == MaskKind::conjunction && all_of(node_->parts, [](const Mask& m) { return m.documents_only(); }));
}

bool Mask::per_head() const {
  if (!node_) return false;
  return node_->kind == MaskKind::heads || node_->kind == MaskKind::random_blocks ||
         (node_->kind == MaskKind::dense && (node_->from_input || (node_->source ? node_->source->heads > 1 : node_->array.dim() > 2 && node_->array.size(-3) > 1))) ||
         any_of(node_->parts, [](const Mask& m) { return m.per_head(); });
}

std::optional<i64> Mask::max_distance() const {
  if (!node_) return std::nullopt;
  const std::vector<i64>& n = node_->numbers;
  std::optional<i64> bound;
  switch (node_->kind) {
    case MaskKind::none: return 0;
    case MaskKind::window: return std::max(n[0], n[1]) * n[2];
    case MaskKind::blocks: return (std::max(n[1], n[2]) + 1) * n[0] - 1;
    case MaskKind::conjunction:
      for (const Mask& m : node_->parts)
        if (const auto d = m.max_distance()) bound = bound ? std::min(*bound, *d) : *d;
      return bound;
    case MaskKind::disjunction:
    case MaskKind::heads:
      for (const Mask& m : node_->parts) {
        const auto d = m.max_distance();
        if (!d) return std::nullopt;
        bound = std::max(bound.value_or(0), *d);
      }
      return bound;
    default: return std::nullopt;
  }
}

std::string Mask::position_reader() const {
  if (!node_) return "";
  switch (node_->kind) {
    case MaskKind::causal:
    case MaskKind::window:
    case MaskKind::blocks:
    case MaskKind::strided:
    case MaskKind::summary:
    case MaskKind::prefix:
    case MaskKind::random_blocks: return to_string();
    default: break;
  }
  for (const Mask& m : node_->parts)
    if (std::string reader = m.position_reader(); !reader.empty()) return reader;
  return "";
}

std::vector<std::string> Mask::inputs() const {
  std::vector<std::string> names;
  if (!node_) return names;
  if (node_->from_input) names.emplace_back(mask_primitive(node_->kind).name);
  for (const Mask& m : node_->parts)
    for (std::string& name : m.inputs())
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  return names;
}

}  // namespace waymark::nn
