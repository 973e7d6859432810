#include "core/ops/attention_reference.h"

#include <algorithm>
#include <limits>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/counts.h"
#include "core/ops/create.h"
#include "core/ops/custom_pairs.h"
#include "core/ops/dropout.h"
#include "core/ops/functions.h"
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
  for (const ScoreTerm& term : c.terms) {
    check_term(term, c.query.dtype(), q[1], tq.size(-1), v[3]);
    if (reads_positions(term) && (!c.query_positions.defined() || !c.key_positions.defined()))
      fail("attention", "the term {} reads positions, and the call has none", term.name);
    const auto* t = std::get_if<PairTable>(&term.family);
    if (t && ((t->t.size(0) != 1 && t->t.size(0) != q[0]) || t->t.size(2) != q[2] || t->t.size(3) != k[2]))
      fail("attention", "the term {} has a tensor of shape {}; needs [1|{}, 1|{}, {}, {}]", term.name, t->t.shape(), q[0], q[1],
           q[2], k[2]);
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
    for (size_t i = 0; i < call_.terms.size(); ++i) {
      const ScoreTerm& t = call_.terms[i];
      if (t.stage != Stage::multiply) continue;
      const Tensor m = by_pair(t, 1);
      if (parts) parts->push_back({t.name, m.expand(c.shape()), true, static_cast<int>(i)});
      c = mul(c, m);
    }
    return c;
  }

  // f(name, term, summand) for each summand of a stage.
  template <class F> void each(Stage stage, F f) const {
    for (size_t i = 0; i < call_.terms.size(); ++i) {
      const ScoreTerm& t = call_.terms[i];
      if (t.stage != stage) continue;
      const int term = static_cast<int>(i);
      if (const auto* table = std::get_if<Table>(&t.family)) {
        const Tensor r = rows(table->index), w = shared_rows(table->w).mT();
        if (table->side != Side::key) f("q_" + t.name, term, pair_gather(matmul(term_query_, w), r, PairSide::query));
        if (table->side != Side::query) f("k_" + t.name, term, pair_gather(matmul(term_key_, w), r, PairSide::key));
      } else {
        f(t.name, term, by_pair(t, 0));
      }
    }
  }

  // f(name, term, summand) for each gate; `score`, of everything before the gates, becomes that of everything.
  template <class F> void each_gate(Tensor& score, F f) const {
    for (size_t i = 0; i < call_.terms.size(); ++i) {
      const auto* p = std::get_if<Prefix>(&call_.terms[i].family);
      if (!p) continue;
      const Tensor added = prefix(*p, score);
      f(call_.terms[i].name, static_cast<int>(i), added);
      score = add(std::move(score), added);
    }
  }

  // Softmax of all stages over the allowed keys.
  Tensor weights() const {
    Tensor x = content(), bias;
    double scale = call_.content_scale;
    bool tables = false;
    each(Stage::bias, [&](const std::string&, int, Tensor b) { bias = bias.defined() ? add(std::move(bias), b) : std::move(b); });
    bool gates = false;
    for (const ScoreTerm& t : call_.terms) {
      tables |= t.stage == Stage::table;
      gates |= t.stage == Stage::gate;
    }
    if (call_.offset.defined()) bias = bias.defined() ? add(std::move(bias), call_.offset) : call_.offset;
    // One factor for everything is left to the softmax.
    if (gates || bias.defined() || (tables && call_.table_scale != call_.content_scale)) {
      if (scale != 1) x = mul(std::move(x), scale);
      each(Stage::table, [&](const std::string&, int, Tensor a) { x = add(std::move(x), mul(std::move(a), call_.table_scale)); });
      if (bias.defined()) x = add(std::move(x), bias);
      scale = 1;
    } else {
      each(Stage::table, [&](const std::string&, int, Tensor a) { x = add(std::move(x), std::move(a)); });
    }
    each_gate(x, [](const std::string&, int, const Tensor&) {});
    const Tensor keep = call_.keep.defined() ? call_.keep : ones({1, 1, 1, 1}, kB8);
    return call_.groups.empty() ? masked_softmax(x, keep, -1, scale) : mean_over_groups(x, keep, scale);
  }

 private:
  // The value of every pair, `neutral` for those that have none: [1|B, 1|H, Lq, Lk].
  Tensor by_pair(const ScoreTerm& t, double neutral) const {
    if (const auto* d = std::get_if<Distance>(&t.family)) return distance(*d, neutral);
    if (const auto* pairs = std::get_if<PairTable>(&t.family)) return pairs->t;
    return to(custom_pairs(std::get<Custom>(t.family), neutral, query_.size(0), query_.size(1), call_.query_positions,
                           call_.key_positions), query_.dtype());
  }
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

  Tensor distance(const Distance& d, double neutral) const {
    const Tensor r = rows(d.index), value = pair_gather(d.beta, r, PairSide::shared);
    const i64* row = r.data<i64>();
    const bool any_absent = neutral != 0 && std::any_of(row, row + r.numel(), [](i64 v) { return v < 0; });
    return any_absent ? where(lt(r, 0), neutral, value) : value;
  }

  // What a gate adds to each pair. Masked keys count nothing.
  Tensor prefix(const Prefix& p, const Tensor& score) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const Tensor gates = sigmoid(call_.keep.defined() ? masked_fill(score, logical_not(call_.keep), -infinity) : score);
    const double last = static_cast<double>(p.table.size(0) - 1);
    const Tensor count = clamp(flip(cumsum(flip(gates, {-1}), -1), {-1}), {}, last), whole = nan_to_num(floor(count.detach()));
    const Tensor rows = matmul(term_query_, p.table.mT()), part = sub(count, whole);  // NaN stays in the part
    const Tensor low = pair_gather(rows, to(whole, kI64), PairSide::query),
                 high = pair_gather(rows, to(clamp(add(whole, 1), {}, last), kI64), PairSide::query);
    return add(low, mul(part, sub(high, low)));
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
  scores.each_gate(total, [&](const std::string& name, int term, const Tensor& value) { parts.push_back({name, value, false, term}); });
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
