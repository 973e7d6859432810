#include "core/ops/attention_terms.h"

#include <algorithm>

#include "core/ops/elementwise.h"

namespace waymark {

namespace {

template <class... F> struct Overloaded : F... {
  using F::operator()...;
};
template <class... F> Overloaded(F...) -> Overloaded<F...>;

// [L] or [B, L], contiguous, row by row.
struct PerToken {
  explicit PerToken(const Tensor& t) : values(ops::contiguous_value(t)), rows(t.dim() == 2 ? t.size(0) : 1), length(t.size(-1)) {}
  const i64* row(i64 b) const { return values.data<i64>() + (rows == 1 ? 0 : b * length); }
  Tensor values;
  i64 rows, length;
};

// f(value of the query, value of the key) for all pairs, as i64 [1|B, 1, Lq, Lk].
template <class F> Tensor of_pairs(const Tensor& queries, const Tensor& keys, F f) {
  const PerToken q(queries), k(keys);
  const i64 batch = std::max(q.rows, k.rows);
  const Tensor out = make_empty({batch, 1, q.length, k.length}, kI64);
  i64* to = out.data<i64>();
  for (i64 b = 0; b < batch; ++b)
    for (i64 i = 0; i < q.length; ++i)
      for (i64 j = 0; j < k.length; ++j) *to++ = f(q.row(b)[i], k.row(b)[j]);
  return out;
}

i64 row_of(const PairIndex& index, i64 delta) {
  if (index.absent && (delta < index.lo || delta > index.hi)) return -1;
  const i64 clamped = std::clamp(delta, index.lo, index.hi);
  i64 at = clamped - index.lo;
  if (!index.listed.empty()) {
    const auto found = std::lower_bound(index.listed.begin(), index.listed.end(), clamped);
    if (found == index.listed.end() || *found != clamped)
      fail("attention", "the difference {} of two positions is not among the {} that the index lists", clamped, index.listed.size());
    at = found - index.listed.begin();
  }
  return index.row.empty() ? at : index.row[static_cast<size_t>(at)];
}

// The checks of one term.
class TermCheck {
 public:
  TermCheck(const ScoreTerm& term, DType dtype, const TermSizes& sizes) : term_(term), dtype_(dtype), sizes_(sizes) {}

  void operator()(const Table& t) const {
    stages({Stage::table});
    index(t.index, by_head(t.w, 3, sizes_.width, "[1|H, R, d]"));
  }
  void operator()(const Distance& t) const {
    stages({Stage::multiply, Stage::table, Stage::bias});
    index(t.index, by_head(t.beta, 2, -1, "[1|H, R]"));
    reset(t.reset);
  }
  void operator()(const KeyBias& t) const {
    stages({Stage::content, Stage::table});
    by_pair(t.kappa, {-1, -1, sizes_.keys}, "[1|B, 1|H, Lk]");
  }
  void operator()(const RowProduct& t) const {
    stages({Stage::content, Stage::table});
    const bool per_query = t.left.defined();
    if (per_query != t.right.defined()) fail("attention", "the term {} has one of left and right; needs both or none", term_.name);
    by_pair(t.x, {-1, -1, sizes_.queries, -2}, "[1|B, 1|H, Lq, w]");
    by_pair(t.y, {-1, -1, per_query ? sizes_.queries : sizes_.keys, -2}, per_query ? "[1|B, 1|H, Lq, w]" : "[1|B, 1|H, Lk, w]");
    if (!per_query && t.x.size(3) != t.y.size(3))
      fail("attention", "the term {} multiplies rows of width {} and {}", term_.name, t.x.size(3), t.y.size(3));
    if (per_query) {
      classes(t.left, sizes_.keys, "left", t.x.size(3));
      classes(t.right, sizes_.keys, "right", t.y.size(3));
    }
    reset(t.reset);
  }
  void operator()(const PairTable& t) const {
    stages({Stage::content, Stage::bias});
    if (t.by_slot) by_pair(t.t, {-1, -1, sizes_.queries, sizes_.keys}, "[1|B, 1|H, Lq, Lk]");
    else by_pair(t.t, {-1, -1, -2, -2}, "[1|B, 1|H, positions, positions]");
  }
  void operator()(const ThreeWay& t) const {
    stages({Stage::content});
    index(t.index, by_head(t.w, 3, sizes_.width, "[1|H, R, d]"));
  }
  void operator()(const Prefix& t) const {
    stages({Stage::gate});
    tensor(t.table);
    if (t.table.dim() != 2 || t.table.size(0) < 1 || t.table.size(1) != sizes_.width) wrong_shape(t.table, "[max_pos, d]");
  }
  void operator()(const Value& t) const {
    stages({Stage::value});
    index(t.index, by_head(t.u, 3, sizes_.value_width, "[1|H, R, dv]"));
  }
  void operator()(const Custom& t) const {
    stages({Stage::multiply, Stage::table, Stage::bias});
    if (!t.forward || !t.backward) fail("attention", "the term {} has no {} function", term_.name, t.forward ? "backward" : "forward");
    if (t.scratch < 0) fail("attention", "the term {} asks for {} doubles of working memory", term_.name, t.scratch);
    for (const Tensor& input : t.inputs) tensor(input);
  }

 private:
  void stages(std::initializer_list<Stage> allowed) const {
    if (std::find(allowed.begin(), allowed.end(), term_.stage) == allowed.end())
      fail("attention", "the term {} has a stage that its family does not have", term_.name);
  }
  void tensor(const Tensor& t) const {
    if (!t.defined()) fail("attention", "the term {} has an undefined tensor", term_.name);
    if (t.dtype() != dtype_)
      fail("attention", "the term {} is {}, the queries are {}", term_.name, name_of(t.dtype()), name_of(dtype_));
  }
  [[noreturn]] void wrong_shape(const Tensor& t, const char* shape) const {
    fail("attention", "the term {} has a tensor of shape {}; needs {} with B = {}, H = {}, Lq = {}, Lk = {}, d = {}, dv = {}",
         term_.name, t.shape(), shape, sizes_.batch, sizes_.heads, sizes_.queries, sizes_.keys, sizes_.width, sizes_.value_width);
  }
  // [1|H, R] or [1|H, R, last]; returns R.
  i64 by_head(const Tensor& t, int axes, i64 last, const char* shape) const {
    tensor(t);
    if (t.dim() != axes || (t.size(0) != 1 && t.size(0) != sizes_.heads) || (last >= 0 && t.size(-1) != last)) wrong_shape(t, shape);
    return t.size(1);
  }
  // Axes 1|B and 1|H, then these extents; -2: any.
  void by_pair(const Tensor& t, const Shape& wanted, const char* shape) const {
    tensor(t);
    bool fits = t.dim() == wanted.size() && (t.size(0) == 1 || t.size(0) == sizes_.batch) && (t.size(1) == 1 || t.size(1) == sizes_.heads);
    for (int d = 2; fits && d < wanted.size(); ++d) fits = wanted[d] == -2 || t.size(d) == wanted[d];
    if (!fits) wrong_shape(t, shape);
  }
  void reset(const Tensor& t) const {
    if (t.defined() && by_head(t, 2, 2, "[1|H, 2]") != 2) wrong_shape(t, "[1|H, 2]");
  }
  // i64 [1|B, length]; values below `count` unless that is -1.
  void classes(const Tensor& t, i64 length, const char* what, i64 count) const {
    if (!t.defined() || t.dtype() != kI64 || t.dim() != 2 || (t.size(0) != 1 && t.size(0) != sizes_.batch) || t.size(1) != length)
      fail("attention", "the term {} needs {} as i64 [1|{}, {}], got {}", term_.name, what, sizes_.batch, length,
           t.defined() ? fmt::format("{} {}", name_of(t.dtype()), t.shape()) : "an undefined tensor");
    if (count < 0) return;
    for (const i64 v : t.to_vector<i64>())
      if (v < 0 || v >= count) fail("attention", "the term {} reads the channel {} of {} ({})", term_.name, v, count, what);
  }
  void index(const PairIndex& x, i64 count) const {
    if (!x.reads_positions() || x.key_class.defined()) {
      classes(x.query_class, sizes_.queries, "query classes", -1);
      classes(x.key_class, sizes_.keys, "key classes", -1);
      if (count < 2) fail("attention", "the term {} uses the rows 0 and 1 of a table of {}", term_.name, count);
      return;
    }
    if (x.lo > x.hi) fail("attention", "the term {} has an empty range of differences [{}, {}]", term_.name, x.lo, x.hi);
    const i64 differences = x.listed.empty() ? x.hi - x.lo + 1 : static_cast<i64>(x.listed.size());
    if (!x.row.empty() && static_cast<i64>(x.row.size()) != differences)
      fail("attention", "the term {} names {} rows for {} differences", term_.name, x.row.size(), differences);
    const i64 largest = x.row.empty() ? differences - 1 : *std::max_element(x.row.begin(), x.row.end());
    const i64 smallest = x.row.empty() ? 0 : *std::min_element(x.row.begin(), x.row.end());
    if (smallest < 0 || largest >= count)
      fail("attention", "the term {} uses the rows {} ... {} of a table of {}", term_.name, smallest, largest, count);
  }

  const ScoreTerm& term_;
  DType dtype_;
  const TermSizes& sizes_;
};

}  // namespace

bool ScoreTerm::reads_positions() const {
  return std::visit(Overloaded{[](const KeyBias&) { return false; }, [](const Prefix&) { return false; },
                               [](const RowProduct&) { return true; }, [](const Custom&) { return true; },
                               [](const PairTable& t) { return !t.by_slot; },
                               [](const auto& t) { return t.index.reads_positions(); }},
                    family);
}

Tensor pair_rows(const PairIndex& index, const Tensor& query_positions, const Tensor& key_positions) {
  if (!index.reads_positions())
    return of_pairs(index.query_class, index.key_class, [](i64 q, i64 k) { return i64{q != k}; });
  return of_pairs(query_positions, key_positions, [&](i64 q, i64 k) { return q < 0 || k < 0 ? -1 : row_of(index, k - q); });
}

void check_term(const ScoreTerm& term, DType dtype, const TermSizes& sizes) { std::visit(TermCheck(term, dtype, sizes), term.family); }

}  // namespace waymark
