#include "core/ops/attention_reference.h"

#include <algorithm>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/counts.h"
#include "core/ops/create.h"
#include "core/ops/custom_pairs.h"
#include "core/ops/dropout.h"
#include "core/ops/matmul.h"
#include "core/ops/pointwise.h"
#include "core/ops/rearrange.h"
#include "core/ops/relative.h"
#include "core/ops/scan.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"

namespace waymark {

namespace {

void check_inputs(const ReferenceAttention& c) {
  for (const Tensor* t : {&c.query, &c.key, &c.value})
    if (!t->defined() || t->dim() != 4)
      fail("attention", "query, key and value must be [B, H, L, d], got {}",
           t->defined() ? to_string(t->shape()) : "an undefined tensor");
  const Shape &q = c.query.shape(), &k = c.key.shape(), &v = c.value.shape();
  if (k[0] != q[0] || v[0] != q[0] || k[1] != v[1] || k[2] != v[2] || k[3] != q[3])
    fail("attention", "query {}, key {} and value {} do not fit together", q, k, v);
  if (k[1] == 0 || q[1] % k[1] != 0) fail("attention", "{} heads of keys do not divide {} heads of queries", k[1], q[1]);
  const Tensor& tq = c.term_query.defined() ? c.term_query : c.query;
  const TermSizes sizes{q[0], q[1], q[2], k[2], tq.size(-1), v[3]};
  i64 gates = 0;
  for (const ScoreTerm& term : c.terms) {
    check_term(term, c.query.dtype(), sizes);
    if (term.reads_positions() && (!c.query_positions.defined() || !c.key_positions.defined()))
      fail("attention", "the term {} reads positions, and the call has none", term.name);
    if (term.stage == Stage::gate && ++gates > 1) fail("attention", "two terms gate the scores; the second is {}", term.name);
  }
}

// Heads of keys repeated for the heads of queries that share them.
Tensor repeat_heads(const Tensor& t, i64 heads) {
  const Shape& s = t.shape();
  if (s[1] == heads) return t;
  return t.unsqueeze(2).expand({s[0], s[1], heads / s[1], s[2], s[3]}).reshape({s[0], heads, s[2], s[3]});
}

// [1, R, d] as [R, d]: a product with it is one GEMM over all rows of the other side.
Tensor shared_rows(const Tensor& w) { return w.size(0) == 1 ? w.squeeze(0) : w; }

class Scores {
 public:
  explicit Scores(const ReferenceAttention& c) : call_(c) {
    check_inputs(c);
    const i64 heads = c.query.size(1);
    query_ = c.query;
    key_ = repeat_heads(c.key, heads);
    value_ = repeat_heads(c.value, heads);
    term_query_ = c.term_query.defined() ? c.term_query : query_;
    term_key_ = c.term_key.defined() ? repeat_heads(c.term_key, heads) : key_;
  }

  const Tensor& value() const { return value_; }
  Tensor rows(const PairIndex& index) const { return pair_rows(index, call_.query_positions, call_.key_positions); }

  // m·c, with the multipliers in `parts` if it is given.
  Tensor content(std::vector<ScorePart>* parts = nullptr) const {
    Tensor c;
    for (const ScoreTerm& t : call_.terms)
      if (const auto* w = std::get_if<ThreeWay>(&t.family)) {
        if (c.defined()) fail("attention", "two terms redefine the content product; the second is {}", t.name);
        if (call_.term_query.defined()) fail("attention", "{} redefines the content product that another map changed", t.name);
        c = three_way_product(query_, key_, w->w, rows(w->index));
      }
    if (!c.defined()) c = matmul(query_, key_.mT());
    each(Stage::content, [&](const std::string&, int, const Tensor& summand) { c = add(std::move(c), summand); });
    each(Stage::multiply, [&](const std::string& name, int term, const Tensor& m) {
      if (parts) parts->push_back({name, m.expand(c.shape()), true, term});
      c = mul(c, m);
    });
    return c;
  }

  // f(name, term, values) for what each term of a stage gives: summands or, of stage multiply, factors.
  template <class F> void each(Stage stage, F f) const {
    for (size_t i = 0; i < call_.terms.size(); ++i) {
      const ScoreTerm& t = call_.terms[i];
      if (t.stage != stage) continue;
      const int term = static_cast<int>(i);
      const double neutral = stage == Stage::multiply ? 1 : 0;
      if (const auto* d = std::get_if<Distance>(&t.family)) {
        f(t.name, term, distance(*d, neutral));
      } else if (const auto* bias = std::get_if<KeyBias>(&t.family)) {
        f(t.name, term, unsqueeze(bias->kappa, -2));
      } else if (const auto* product = std::get_if<RowProduct>(&t.family)) {
        f(t.name, term, row_product(*product));
      } else if (const auto* pairs = std::get_if<PairTable>(&t.family)) {
        f(t.name, term, pairs->by_slot ? pairs->t : at_positions(pairs->t));
      } else if (const auto* custom = std::get_if<Custom>(&t.family)) {
        f(t.name, term, to(custom_pairs(*custom, neutral, query_.size(0), query_.size(1), call_.query_positions, call_.key_positions), query_.dtype()));
      } else if (const auto* table = std::get_if<Table>(&t.family)) {
        const Tensor r = rows(table->index), w = shared_rows(table->w).mT();
        if (table->side != Side::key) f("q_" + t.name, term, pair_gather(matmul(term_query_, w), r, PairSide::query));
        if (table->side != Side::query) f("k_" + t.name, term, pair_gather(matmul(term_key_, w), r, PairSide::key));
      }
    }
  }

  // f(name, term, summand) for the gate, if there is one: `scores` is the sum of everything else, in logits.
  template <class F> void gate(const Tensor& scores, F f) const {
    for (size_t i = 0; i < call_.terms.size(); ++i)
      if (const auto* prefix = std::get_if<Prefix>(&call_.terms[i].family)) f(call_.terms[i].name, static_cast<int>(i), prefix_term(*prefix, scores));
  }

  // Softmax of all stages over the allowed keys.
  Tensor weights() const {
    Tensor x = content(), bias;
    double scale = call_.content_scale;
    bool tables = false, gated = false;
    each(Stage::bias, [&](const std::string&, int, Tensor b) { bias = bias.defined() ? add(std::move(bias), b) : std::move(b); });
    for (const ScoreTerm& t : call_.terms) {
      tables |= t.stage == Stage::table;
      gated |= t.stage == Stage::gate;
    }
    if (call_.offset.defined()) bias = bias.defined() ? add(std::move(bias), call_.offset) : call_.offset;
    // One factor for everything is left to the softmax.
    if (bias.defined() || gated || (tables && call_.table_scale != call_.content_scale)) {
      if (scale != 1) x = mul(std::move(x), scale);
      each(Stage::table, [&](const std::string&, int, Tensor a) { x = add(std::move(x), mul(std::move(a), call_.table_scale)); });
      if (bias.defined()) x = add(std::move(x), bias);
      const Tensor ungated = x;
      gate(ungated, [&](const std::string&, int, const Tensor& g) { x = add(x, g); });
      scale = 1;
    } else {
      each(Stage::table, [&](const std::string&, int, Tensor a) { x = add(std::move(x), std::move(a)); });
    }
    Tensor keep = call_.keep.defined() ? call_.keep : ones({1, 1, 1, 1}, kB8);
    // A term of a program may say -inf for "not allowed"; a row of nothing else is an empty one. Ours are finite.
    const auto may_forbid = [](const ScoreTerm& t) { return std::holds_alternative<Custom>(t.family) || std::holds_alternative<PairTable>(t.family); };
    if (std::any_of(call_.terms.begin(), call_.terms.end(), may_forbid))
      keep = logical_and(keep, ne(x.detach(), -std::numeric_limits<double>::infinity()));
    return call_.groups.empty() ? masked_softmax(x, keep, -1, scale) : mean_over_groups(x, keep, scale);
  }

 private:
  Tensor mean_over_groups(const Tensor& x, const Tensor& keep, double scale) const {
    Tensor total, count;
    for (const Tensor& group : call_.groups) {
      const Tensor pairs = logical_and(keep, group), w = masked_softmax(x, pairs, -1, scale);
      const Tensor has_key = to(any(pairs, -1, true), x.dtype());
      total = total.defined() ? add(std::move(total), w) : w;
      count = count.defined() ? add(std::move(count), has_key) : has_key;
    }
    return div(total, clamp(count, 1, {}));
  }

  // Pairs without a position on this side, as b8 that expands to [B, 1, Lq, Lk]; undefined: there are none.
  Tensor missing(const Tensor& positions, int axis) const {
    const Tensor none = lt(positions, 0);
    if (!any(none).item<bool>()) return {};
    return (none.dim() == 2 ? none.unsqueeze(1) : none.unsqueeze(0).unsqueeze(0)).unsqueeze(axis);
  }
  // `value` where both sides have a position; else what `reset` [1|H, 2] says, or neutral 0.
  Tensor with_reset(Tensor value, const Tensor& reset) const {
    const auto put = [&](const Tensor& where_none, i64 column) {
      if (!where_none.defined()) return;
      value = reset.defined() ? where(where_none, reset.select(1, column).unsqueeze(-1).unsqueeze(-1), value) : where(where_none, 0, value);
    };
    put(missing(call_.key_positions, -2), 0);
    put(missing(call_.query_positions, -1), 1);
    return value;
  }

  // β of every pair, `neutral` for those without a row: [1|B, 1|H, Lq, Lk].
  Tensor distance(const Distance& d, double neutral) const {
    const Tensor r = rows(d.index);
    Tensor value = pair_gather(d.beta, r, PairSide::shared);
    const i64* row = r.data<i64>();
    if (neutral != 0 && std::any_of(row, row + r.numel(), [](i64 v) { return v < 0; })) value = where(lt(r, 0), neutral, value);
    return d.reset.defined() ? with_reset(value, d.reset) : value;
  }

  Tensor row_product(const RowProduct& p) const {
    if (!p.left.defined()) return with_reset(matmul(p.x, p.y.mT()), p.reset);
    const auto picked = [&](const Tensor& x, const Tensor& channel) {
      const Tensor rows_of_pairs = channel.unsqueeze(1).unsqueeze(1).expand({channel.size(0), 1, x.size(2), channel.size(1)});
      return pair_gather(x, rows_of_pairs.contiguous(), PairSide::query);
    };
    return with_reset(mul(picked(p.x, p.left), picked(p.y, p.right)), p.reset);
  }

  // t [·, ·, P, Q] at (p_i, p_j); 0 where one is missing.
  Tensor at_positions(const Tensor& t) const {
    const i64 p = t.size(2), q = t.size(3);
    const auto check = [&](const Tensor& positions, i64 extent) {
      for (const i64 v : positions.to_vector<i64>())
        if (v >= extent) fail("attention", "position {} is outside a table of {} positions", v, extent);
    };
    check(call_.query_positions, p);
    check(call_.key_positions, q);
    const auto spread = [](const Tensor& positions, int axis) {
      return (positions.dim() == 2 ? positions.unsqueeze(1) : positions.unsqueeze(0).unsqueeze(0)).unsqueeze(axis);
    };
    const Tensor i = spread(call_.query_positions, -1), j = spread(call_.key_positions, -2);
    const Tensor cell = where(logical_or(lt(i, 0), lt(j, 0)), -1, add(mul(i, q), j));
    return pair_gather(t.reshape({t.size(0), t.size(1), p * q}), cell, PairSide::shared);
  }

  Tensor prefix_term(const Prefix& p, const Tensor& scores) const {
    const double last = static_cast<double>(p.table.size(0) - 1);
    // Keys that are not allowed count 0, whatever their score is.
    const Tensor open = call_.keep.defined() ? masked_fill(scores, logical_not(call_.keep), -std::numeric_limits<double>::infinity()) : scores;
    const Tensor count = clamp(flip(cumsum(flip(sigmoid(open), {-1}), -1), {-1}), {}, last);
    // NaN in a score stays in its share, and names no row.
    const Tensor below = masked_fill(floor(count.detach()), isnan(count), 0), above = clamp(add(below, 1), {}, last), share = sub(count, below);
    const Tensor a = matmul(term_query_, p.table.mT());
    const Tensor low = pair_gather(a, to(below, kI64), PairSide::query), high = pair_gather(a, to(above, kI64), PairSide::query);
    return add(mul(add(neg(share), 1), low), mul(share, high));
  }

  const ReferenceAttention& call_;
  Tensor query_, key_, value_, term_query_, term_key_;
};

// Σ_j α_ij u_{r_ij} = A_i U with A the weights summed by row.
template <class F> void each_value_term(const Scores& scores, const ReferenceAttention& c, F f) {
  for (const ScoreTerm& t : c.terms)
    if (const auto* v = std::get_if<Value>(&t.family)) f(*v, scores.rows(v->index));
}

}  // namespace

ReferenceResult attention_reference(const ReferenceAttention& c) {
  const Scores scores(c);
  ReferenceResult out;
  out.weights = scores.weights();
  const Tensor used = c.dropout_factor.defined() ? mul(out.weights, c.dropout_factor)
                      : c.dropout > 0            ? dropout(out.weights, c.dropout)
                                                 : out.weights;
  out.z = matmul(used, scores.value());
  each_value_term(scores, c, [&](const Value& v, const Tensor& rows) {
    out.z = add(std::move(out.z), matmul(pair_scatter(used, rows, PairSide::query, v.u.size(1)), v.u));
  });
  return out;
}

std::vector<ScorePart> score_parts_reference(const ReferenceAttention& c) {
  const Scores scores(c);
  std::vector<ScorePart> parts, multipliers;
  Tensor total = mul(scores.content(&multipliers), c.content_scale);
  parts.push_back({"content", total});
  for (ScorePart& m : multipliers) parts.push_back(std::move(m));
  for (const Stage stage : {Stage::table, Stage::bias})
    scores.each(stage, [&](const std::string& name, int term, const Tensor& value) {
      const double scale = stage == Stage::table ? c.table_scale : 1;
      parts.push_back({name, (scale == 1 ? value : mul(value, scale)).expand(total.shape()), false, term});
      total = add(total, parts.back().value);
    });
  if (c.offset.defined()) {
    parts.push_back({"visits", c.offset});
    total = add(total, c.offset);
  }
  scores.gate(total, [&](const std::string& name, int term, const Tensor& value) {
    parts.push_back({name, value, false, term});
    total = add(total, value);
  });
  parts.push_back({"total", total});
  return parts;
}

std::vector<ImpliedTerm> implied_terms_reference(const ReferenceAttention& c) {
  const Scores scores(c);
  const Tensor weights = scores.weights();
  std::vector<ImpliedTerm> terms = {{weights, scores.value()}};
  each_value_term(scores, c, [&](const Value& v, const Tensor& rows) {
    terms.push_back({pair_scatter(weights, rows, PairSide::query, v.u.size(1)), v.u.unsqueeze(0)});
  });
  return terms;
}

}  // namespace waymark
