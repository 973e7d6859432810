#include "core/ops/attention_terms.h"

#include <algorithm>

#include "core/ops/elementwise.h"

namespace waymark {

namespace {

template <class... F> struct Overloaded : F... {
  using F::operator()...;
};
template <class... F> Overloaded(F...) -> Overloaded<F...>;

}  // namespace

bool reads_positions(const ScoreTerm& term) { return !std::holds_alternative<Prefix>(term.family) && !std::holds_alternative<PairTable>(term.family); }

Tensor pair_rows(const PairIndex& index, const Tensor& query_positions, const Tensor& key_positions) {
  const Tensor q = ops::contiguous_value(query_positions), k = ops::contiguous_value(key_positions);
  const i64 lq = q.size(-1), lk = k.size(-1), q_batch = q.dim() == 2 ? q.size(0) : 1, k_batch = k.dim() == 2 ? k.size(0) : 1;
  const i64 batch = std::max(q_batch, k_batch);
  const Tensor rows = make_empty({batch, 1, lq, lk}, kI64);
  i64* to = rows.data<i64>();
  for (i64 b = 0; b < batch; ++b) {
    const i64 *qs = q.data<i64>() + (q_batch == 1 ? 0 : b * lq), *ks = k.data<i64>() + (k_batch == 1 ? 0 : b * lk);
    for (i64 i = 0; i < lq; ++i)
      for (i64 j = 0; j < lk; ++j, ++to) {
        const i64 delta = ks[j] - qs[i];
        if (qs[i] < 0 || ks[j] < 0 || (index.absent && (delta < index.lo || delta > index.hi))) {
          *to = -1;
        } else {
          const i64 at = std::clamp(delta, index.lo, index.hi) - index.lo;
          *to = index.row.empty() ? at : index.row[static_cast<size_t>(at)];
        }
      }
  }
  return rows;
}

void check_term(const ScoreTerm& term, DType dtype, i64 heads, i64 width, i64 value_width) {
  const auto float_tensor = [&](const Tensor& t) {
    if (!t.defined()) fail("attention", "the term {} has an undefined tensor", term.name);
    if (t.dtype() != dtype)
      fail("attention", "the term {} is {}, the queries are {}", term.name, name_of(t.dtype()), name_of(dtype));
  };
  const auto tensor = [&](const Tensor& t, int axes, i64 last, const char* shape) {
    float_tensor(t);
    if (t.dim() != axes || (t.size(0) != 1 && t.size(0) != heads) || (last >= 0 && t.size(-1) != last))
      fail("attention", "the term {} has a tensor of shape {}; needs {} with H = {}{}", term.name, t.shape(), shape, heads,
           last >= 0 ? fmt::format(", width {}", last) : "");
    return t.size(1);
  };
  const auto index = [&](const PairIndex& x, i64 count) {
    if (x.lo > x.hi) fail("attention", "the term {} has an empty range of differences [{}, {}]", term.name, x.lo, x.hi);
    if (!x.row.empty() && static_cast<i64>(x.row.size()) != x.hi - x.lo + 1)
      fail("attention", "the term {} names {} rows for the differences {} ... {}", term.name, x.row.size(), x.lo, x.hi);
    const i64 largest = x.row.empty() ? x.hi - x.lo : *std::max_element(x.row.begin(), x.row.end());
    const i64 smallest = x.row.empty() ? 0 : *std::min_element(x.row.begin(), x.row.end());
    if (smallest < 0 || largest >= count)
      fail("attention", "the term {} uses the rows {} ... {} of a table of {}", term.name, smallest, largest, count);
  };
  const auto stages = [&](std::initializer_list<Stage> allowed) {
    if (std::find(allowed.begin(), allowed.end(), term.stage) == allowed.end())
      fail("attention", "the term {} has a stage that its family does not have", term.name);
  };
  std::visit(Overloaded{
                 [&](const Table& t) {
                   stages({Stage::table});
                   index(t.index, tensor(t.w, 3, width, "[1|H, R, d]"));
                 },
                 [&](const Distance& t) {
                   stages({Stage::multiply, Stage::table, Stage::bias});
                   index(t.index, tensor(t.beta, 2, -1, "[1|H, R]"));
                 },
                 [&](const ThreeWay& t) {
                   stages({Stage::content});
                   index(t.index, tensor(t.w, 3, width, "[1|H, R, d]"));
                 },
                 [&](const Prefix& t) {
                   stages({Stage::gate});
                   float_tensor(t.table);
                   if (t.table.dim() != 2 || t.table.size(0) < 1 || t.table.size(1) != width)
                     fail("attention", "the term {} has a table of shape {}; needs [max_pos, {}] with max_pos >= 1", term.name,
                          t.table.shape(), width);
                 },
                 [&](const Custom& t) {
                   stages({Stage::multiply, Stage::table, Stage::bias});
                   for (const Tensor& x : t.inputs)
                     if (!x.defined() || !x.is_floating_point())
                       fail("attention", "the term {} has an input that is undefined or not float", term.name);
                   if (!t.forward || !t.backward) fail("attention", "the term {} has no {} function", term.name, t.forward ? "backward" : "forward");
                   if (t.scratch < 0) fail("attention", "the term {} asks for {} doubles of scratch", term.name, t.scratch);
                 },
                 [&](const Value& t) {
                   stages({Stage::value});
                   index(t.index, tensor(t.u, 3, value_width, "[1|H, R, dv]"));
                 },
                 [&](const PairTable& t) {
                   stages({Stage::bias});
                   if (!t.t.defined()) fail("attention", "the term {} has an undefined tensor", term.name);
                   if (t.t.dtype() != dtype)
                     fail("attention", "the term {} is {}, the queries are {}", term.name, name_of(t.t.dtype()), name_of(dtype));
                   if (t.t.dim() != 4 || (t.t.size(1) != 1 && t.t.size(1) != heads))
                     fail("attention", "the term {} has a tensor of shape {}; needs [1|B, 1|H, Lq, Lk] with H = {}", term.name,
                          t.t.shape(), heads);
                 },
             },
             term.family);
}

}  // namespace waymark
