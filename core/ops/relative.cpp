#include "core/ops/relative.h"

#include <algorithm>

#include "core/kernels/relative.h"
#include "core/ops/arithmetic.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"
#include "core/tensor/strided.h"

namespace waymark {

using namespace ops;
using kernels::PairRows;
using kernels::PairRun;

std::string_view name_of(PairSide side) {
  return side == PairSide::shared ? "shared" : side == PairSide::query ? "query" : "key";
}

namespace {

PairSide side_of(OpCall& c, std::string_view op) {
  const std::string word = c.word("side");
  for (const PairSide s : {PairSide::shared, PairSide::query, PairSide::key})
    if (word == name_of(s)) return s;
  fail(op, "side \"{}\" is none of shared, query, key", word);
}

Shape lead_of(const Shape& shape, int inner) {
  Shape lead = shape;
  lead.resize(std::max(0, shape.size() - inner));
  return lead;
}
Shape joined(Shape lead, std::initializer_list<i64> inner) {
  for (const i64 v : inner) lead.push_back(v);
  return lead;
}

void check_row_numbers(std::string_view op, const Arg& rows) {
  check_defined(op, rows);
  if (rows->dtype() != kI64) fail_at(rows.loc(), op, "rows must be i64, got {}", name_of(rows->dtype()));
  if (rows->dim() < 2) fail_at(rows.loc(), op, "rows must be [..., Lq, Lk], got {}", rows->shape());
}
void check_float(std::string_view op, const Arg& x) {
  check_defined(op, x);
  if (!x->is_floating_point()) fail_at(x.loc(), op, "needs float values, got {}", name_of(x->dtype()));
}

// The row numbers as kernels take them: contiguous, checked against R, with their runs.
class Rows {
 public:
  Rows(std::string_view op, const Arg& rows, i64 count) : index_(contiguous_value(*rows)) {
    const Shape& s = index_.shape();
    pairs_.queries = s.at(-2);
    pairs_.keys = s.at(-1);
    pairs_.rows = count;
    const i64* r = index_.data<i64>();
    for (i64 i = 0; i < index_.numel(); ++i)
      if (r[i] < -1 || r[i] >= count)
        fail_at(rows.loc(), op, "row {} at position {} is outside the table of {} rows (-1: no row)", r[i],
                position_text(s, i), count);
    const i64 slab = pairs_.queries * pairs_.keys;
    if (slab == 0) runs_.resize(static_cast<size_t>(pairs_.queries));
    for (i64 at = 0; at < index_.numel(); at += slab)
      for (const PairRun& run : kernels::find_runs(r + at, pairs_.queries, pairs_.keys)) runs_.push_back(run);
  }
  // The slab that begins at element `offset` of the row numbers.
  PairRows at(i64 offset) const {
    PairRows p = pairs_;
    p.row = index_.data<i64>() + offset;
    p.runs = runs_.data() + (p.keys ? offset / p.keys : 0);
    return p;
  }
  const Tensor& tensor() const { return index_; }
  i64 queries() const { return pairs_.queries; }
  i64 keys() const { return pairs_.keys; }

 private:
  Tensor index_;
  PairRows pairs_;
  std::vector<PairRun> runs_;
};

// Offsets, in elements, of the slabs of a tensor whose leading axes are broadcast to `lead`.
std::vector<i64> slab_offsets(const Tensor& t, int inner, const Shape& lead) {
  const int own = t.dim() - inner, missing = lead.size() - own;
  std::vector<i64> offsets(static_cast<size_t>(checked_numel("slab_offsets", lead)), 0);
  i64 repeat = 1;  // slabs from one index of the axis to the next
  for (int d = lead.size() - 1; d >= 0; --d) {
    const i64 step = d < missing || t.shape()[d - missing] == 1 ? 0 : t.strides()[d - missing];
    for (size_t s = 0; step && s < offsets.size(); ++s) offsets[s] += static_cast<i64>(s) / repeat % lead[d] * step;
    repeat *= lead[d];
  }
  return offsets;
}

// f(slab) for every slab, those of enough work on several threads.
template <class F> void each_slab(i64 slabs, i64 work, F f) {
  parallel_for(slabs, std::max<i64>(1, kGrain / std::max<i64>(1, work)), [&](i64 begin, i64 end) {
    for (i64 s = begin; s < end; ++s) f(static_cast<size_t>(s));
  });
}

int inner_axes(PairSide side) { return side == PairSide::shared ? 1 : 2; }

Tensor gather_value(const Tensor& x_, const Rows& rows, PairSide side) {
  const Tensor x = contiguous_value(x_);
  const int inner = inner_axes(side);
  const Shape lead = broadcast_shapes("pair_gather", lead_of(x.shape(), inner), lead_of(rows.tensor().shape(), 2));
  Tensor y = make_empty(joined(lead, {rows.queries(), rows.keys()}), x.dtype());
  if (y.numel() == 0) return y;
  const auto from = slab_offsets(x, inner, lead), index = slab_offsets(rows.tensor(), 2, lead);
  const i64 slab = rows.queries() * rows.keys();
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = y.data<T>();
    const T* data = x.data<T>();
    each_slab(static_cast<i64>(from.size()), slab, [&](size_t s) {
      const PairRows p = rows.at(index[s]);
      T* out = to + static_cast<i64>(s) * slab;
      if (side == PairSide::shared) kernels::gather_shared(out, data + from[s], p);
      else if (side == PairSide::query) kernels::gather_query(out, data + from[s], p);
      else kernels::gather_key(out, data + from[s], p);
    });
  });
  return y;
}

Tensor scatter_value(const Tensor& g_, const Rows& rows, PairSide side, i64 count) {
  const Tensor g = contiguous_value(g_);
  const Shape lead = broadcast_shapes("pair_scatter", lead_of(g.shape(), 2), lead_of(rows.tensor().shape(), 2));
  const i64 length = side == PairSide::shared ? 1 : side == PairSide::query ? rows.queries() : rows.keys();
  Tensor x = make_empty(side == PairSide::shared ? joined(lead, {count}) : joined(lead, {length, count}), g.dtype());
  if (x.numel() == 0) return x;
  const auto from = slab_offsets(g, 2, lead), index = slab_offsets(rows.tensor(), 2, lead);
  visit_float(g.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* to = x.data<T>();
    const T* data = g.data<T>();
    each_slab(static_cast<i64>(from.size()), rows.queries() * rows.keys(), [&](size_t s) {
      const PairRows p = rows.at(index[s]);
      T* out = to + static_cast<i64>(s) * length * count;
      if (side == PairSide::shared) kernels::scatter_shared(out, data + from[s], p);
      else if (side == PairSide::query) kernels::scatter_query(out, data + from[s], p);
      else kernels::scatter_key(out, data + from[s], p);
    });
  });
  return x;
}

// g summed over leading axes along which neither x nor the row numbers vary: the scatter then sees fewer slabs.
Tensor reduced_for(const Tensor& g, const Shape& x_lead, const Shape& rows_lead) {
  const Shape lead = broadcast_shapes("pair_gather", x_lead, rows_lead);
  const int extra = g.dim() - 2 - lead.size();
  if (extra == 0 && lead == lead_of(g.shape(), 2)) return g;
  return sum_to_size(g, joined(lead, {g.shape().at(-2), g.shape().at(-1)}));
}

}  // namespace

extern constexpr OpInfo kPairGather{
    .name = "pair_gather", .family = "relative", .doc = "values of (query, key) pairs from rows of a table",
    .schema = "pair_gather(Tensor input, Tensor rows, str side) -> Tensor",
    .formula = "y_ij = x[r_ij], x[i, r_ij] or x[j, r_ij]; 0 without a row",
    .rule = "dx[·, r] = Σ g_ij over the pairs with row r", .saves = {{"rows", For{0}}},
    .apply = [](OpCall& c) { c.result(pair_gather(c.tensor("input"), c.tensor("rows"), side_of(c, "pair_gather"))); }};

Tensor pair_gather(Arg x, Arg rows, PairSide side) {
  check_float("pair_gather", x);
  check_row_numbers("pair_gather", rows);
  if (x->dim() < inner_axes(side))
    fail_at(x.loc(), "pair_gather", "side {} needs {}, got {}", name_of(side),
            side == PairSide::shared ? "[..., R]" : "[..., L, R]", x->shape());
  const i64 length = side == PairSide::query ? rows->shape().at(-2) : rows->shape().at(-1);
  if (side != PairSide::shared && x->shape().at(-2) != length)
    fail_at(x.loc(), "pair_gather", "{} has {} {} rows of values, but the pairs are {}", x->shape(), x->shape().at(-2),
            name_of(side), rows->shape());
  const i64 count = x->shape().at(-1);
  const Rows checked("pair_gather", rows, count);
  return record(kPairGather, gather_value(*x, checked, side), {x, rows}, [&](Saver& s) {
    return [r = s.indices(*rows), side, count, lead = lead_of(x->shape(), inner_axes(side))](Tensor g, const Need&) -> Grads {
      const Tensor rows_ = *r;
      return {pair_scatter(reduced_for(g, lead, lead_of(rows_.shape(), 2)), rows_, side, count), Tensor()};
    };
  }, [&](Attrs& at) { at("side", std::string(name_of(side))); });
}

extern constexpr OpInfo kPairScatter{
    .name = "pair_scatter", .family = "relative", .doc = "sums of (query, key) pairs by row of a table",
    .schema = "pair_scatter(Tensor input, Tensor rows, str side, int num_rows) -> Tensor",
    .formula = "y[·, r] = Σ x_ij over the pairs with row r", .rule = "dx_ij = g[·, r_ij]; 0 without a row",
    .saves = {{"rows", For{0}}}, .apply = [](OpCall& c) {
      const PairSide side = side_of(c, "pair_scatter");
      c.result(pair_scatter(c.tensor("input"), c.tensor("rows"), side, c.integer("num_rows")));
    }};

Tensor pair_scatter(Arg g, Arg rows, PairSide side, i64 num_rows) {
  check_float("pair_scatter", g);
  check_row_numbers("pair_scatter", rows);
  if (num_rows < 0) fail_at(g.loc(), "pair_scatter", "num_rows is {}, it must be at least 0", num_rows);
  if (g->dim() < 2 || g->shape().at(-2) != rows->shape().at(-2) || g->shape().at(-1) != rows->shape().at(-1))
    fail_at(g.loc(), "pair_scatter", "the last two axes differ: {} and rows {}", g->shape(), rows->shape());
  const Rows checked("pair_scatter", rows, num_rows);
  return record(kPairScatter, scatter_value(*g, checked, side, num_rows), {g, rows}, [&](Saver& s) {
    return [r = s.indices(*rows), side](Tensor h, const Need&) -> Grads { return {pair_gather(h, *r, side), Tensor()}; };
  }, [&](Attrs& at) { at("side", std::string(name_of(side))); at("num_rows", num_rows); });
}

// ---- three-way product ------------------------------------------------------------------------------------------------

namespace {

struct ThreeWayShapes {
  Shape lead;
  i64 queries, keys, rows, width;
};

ThreeWayShapes check_three_way(const Arg& q, const Arg& k, const Arg& w, const Arg& rows) {
  const char* op = "three_way_product";
  for (const Arg* a : {&q, &k, &w}) {
    check_float(op, *a);
    if ((*a)->dim() < 2) fail_at(a->loc(), op, "needs [..., L, d] and [..., R, d], got {}", (*a)->shape());
    if ((*a)->dtype() != q->dtype())
      fail_at(a->loc(), op, "dtypes differ: {} and {}; convert one with to(...)", name_of(q->dtype()), name_of((*a)->dtype()));
  }
  check_row_numbers(op, rows);
  const i64 width = q->shape().at(-1);
  if (k->shape().at(-1) != width || w->shape().at(-1) != width)
    fail_at(q.loc(), op, "widths differ: q {}, k {}, w {}", q->shape(), k->shape(), w->shape());
  if (rows->shape().at(-2) != q->shape().at(-2) || rows->shape().at(-1) != k->shape().at(-2))
    fail_at(rows.loc(), op, "rows {} do not fit q {} and k {}", rows->shape(), q->shape(), k->shape());
  Shape lead = lead_of(rows->shape(), 2);
  for (const Arg* a : {&q, &k, &w}) lead = broadcast_shapes(op, lead, lead_of((*a)->shape(), 2));
  return {lead, q->shape().at(-2), k->shape().at(-2), w->shape().at(-2), width};
}

Tensor three_way_value(const ThreeWayShapes& s, const Tensor& q_, const Tensor& k_, const Tensor& w_, const Rows& rows) {
  const Tensor q = contiguous_value(q_), k = contiguous_value(k_), w = contiguous_value(w_);
  Tensor c = make_empty(joined(s.lead, {s.queries, s.keys}), q.dtype());
  if (c.numel() == 0) return c;
  const auto qs = slab_offsets(q, 2, s.lead), ks = slab_offsets(k, 2, s.lead), ws = slab_offsets(w, 2, s.lead),
             index = slab_offsets(rows.tensor(), 2, s.lead);
  const i64 slab = s.queries * s.keys;
  visit_float(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    each_slab(static_cast<i64>(qs.size()), slab * s.width, [&](size_t n) {
      kernels::three_way(c.data<T>() + static_cast<i64>(n) * slab, q.data<T>() + qs[n], k.data<T>() + ks[n],
                         w.data<T>() + ws[n], s.width, rows.at(index[n]));
    });
  });
  return c;
}

Grads three_way_gradients(const ThreeWayShapes& s, const Tensor& g_, const Tensor& q_, const Tensor& k_, const Tensor& w_,
                          const Tensor& rows_, const Need& need) {
  const Tensor g = contiguous_value(g_), q = contiguous_value(q_), k = contiguous_value(k_), w = contiguous_value(w_);
  const Rows rows("three_way_product", rows_, s.rows);
  const auto out = [&](bool wanted, i64 length) {
    return wanted ? make_empty(joined(s.lead, {length, s.width}), q.dtype()) : Tensor();
  };
  Tensor dq = out(need[0], s.queries), dk = out(need[1], s.keys), dw = out(need[2], s.rows);
  const auto gs = slab_offsets(g, 2, s.lead), qs = slab_offsets(q, 2, s.lead), ks = slab_offsets(k, 2, s.lead),
             ws = slab_offsets(w, 2, s.lead), index = slab_offsets(rows.tensor(), 2, s.lead);
  visit_float(q.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto slab_of = [&](const Tensor& t, i64 length, size_t n) {
      return t.defined() ? t.data<T>() + static_cast<i64>(n) * length * s.width : nullptr;
    };
    each_slab(static_cast<i64>(qs.size()), s.queries * s.keys * s.width, [&](size_t n) {
      kernels::three_way_backward(slab_of(dq, s.queries, n), slab_of(dk, s.keys, n), slab_of(dw, s.rows, n),
                                  g.data<T>() + gs[n], q.data<T>() + qs[n], k.data<T>() + ks[n], w.data<T>() + ws[n],
                                  s.width, rows.at(index[n]));
    });
  });
  return {dq, dk, dw, Tensor()};
}

// W_ij = w_{r_ij}, 1 without a row: [..., Lq, Lk, d].
Tensor pair_weights(const Tensor& w, const Tensor& rows) {
  const Tensor found = pair_gather(w.mT(), rows.unsqueeze(-3), PairSide::shared);
  const Tensor by_pair = found.permute([&] {
    std::vector<i64> order;
    for (i64 i = 0; i < found.dim() - 3; ++i) order.push_back(i);
    for (const i64 i : {-2, -1, -3}) order.push_back(i + found.dim());
    return order;
  }());
  return where(lt(rows, 0).unsqueeze(-1), 1.0, by_pair);
}

}  // namespace

extern constexpr OpInfo kThreeWayProduct{
    .name = "three_way_product", .family = "relative", .doc = "queries, keys and a table of relative positions, multiplied",
    .schema = "three_way_product(Tensor query, Tensor key, Tensor table, Tensor rows) -> Tensor",
    .formula = "c_ij = Σ_t q_it·k_jt·w_{r_ij}t",
    .rule = "dq_i = Σ_j g_ij·w_r⊙k_j,  dk_j = Σ_i g_ij·w_r⊙q_i,  dw_r = Σ g_ij·q_i⊙k_j",
    .saves = {{"query", For{1, 2}}, {"key", For{0, 2}}, {"table", For{0, 1}}, {"rows", For{0, 1, 2}}},
    .twin = "three_way_product_twin",
    .flops = [](OpCall& c) {
      return 3.0 * static_cast<double>(c.tensor("rows").numel()) * static_cast<double>(c.tensor("query").numel()) /
             static_cast<double>(std::max<i64>(1, c.tensor("query").size(-2)));
    },
    .apply = [](OpCall& c) {
      c.result(three_way_product(c.tensor("query"), c.tensor("key"), c.tensor("table"), c.tensor("rows")));
    }};

Tensor three_way_product_twin(Arg q, Arg k, Arg w, Arg rows) {
  check_three_way(q, k, w, rows);
  return sum(mul(mul(q->unsqueeze(-2), pair_weights(*w, *rows)), k->unsqueeze(-3)), -1);
}

Tensor three_way_product(Arg q, Arg k, Arg w, Arg rows) {
  if (explain_mode()) return three_way_product_twin(q, k, w, rows);
  const ThreeWayShapes shapes = check_three_way(q, k, w, rows);
  const Rows checked("three_way_product", rows, shapes.rows);
  return record(kThreeWayProduct, three_way_value(shapes, *q, *k, *w, checked), {q, k, w, rows}, [&](Saver& s) {
    return [shapes, q = s.input(0), k = s.input(1), w = s.input(2), r = s.indices(*rows)](Tensor g, const Need& need) -> Grads {
      const Tensor q_ = *q, k_ = *k, w_ = *w, rows_ = *r;
      if (fused_backward_allowed()) return three_way_gradients(shapes, g, q_, k_, w_, rows_, need);
      // Composed, on [..., Lq, Lk, d].
      const Tensor g_ = g.unsqueeze(-1);
      const Tensor weights = need[0] || need[1] ? mul(g_, pair_weights(w_, rows_)) : Tensor();
      const Tensor dq = need[0] ? sum(mul(weights, k_.unsqueeze(-3)), -2) : Tensor();
      const Tensor dk = need[1] ? sum(mul(weights, q_.unsqueeze(-2)), -3) : Tensor();
      Tensor dw;
      if (need[2]) {
        const Tensor products = mul(mul(g_, q_.unsqueeze(-2)), k_.unsqueeze(-3));  // [..., Lq, Lk, d]
        std::vector<i64> order;
        for (i64 i = 0; i < products.dim() - 3; ++i) order.push_back(i);
        for (const i64 i : {-1, -3, -2}) order.push_back(i + products.dim());
        dw = pair_scatter(products.permute(order), rows_.unsqueeze(-3), PairSide::shared, shapes.rows).mT();
      }
      return {dq, dk, dw, Tensor()};
    };
  });
}

}  // namespace waymark
