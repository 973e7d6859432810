// index, index_put: lists of integers, slices, tensors.
#include "core/ops/index.h"

#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/index_map.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

static std::vector<IndexItem> items_of(OpCall& c) {
  std::vector<IndexItem> out;
  for (const IndexArgument& a : c.indices("indices")) std::visit([&](const auto& v) { out.emplace_back(v); }, a);
  return out;
}

extern constexpr OpInfo kIndex{.name = "index",
                               .family = "index",
                               .doc = "elements by integers, slices, positions and masks",
                               .schema = "index(Tensor input, Index[] indices) -> Tensor",
                               .formula = "y = x[indices]",
                               .rule = "dx = 0 with g added at the places",
                               .saves = {{"indices", For{0}}, {"shape", For{0}}},
                               .apply = [](OpCall& c) { c.result(index(c.tensor("input"), items_of(c))); }};
extern constexpr OpInfo kIndexPut{
    .name = "index_put",
    .family = "index",
    .doc = "values written, or added, at places given as for index",
    .schema = "index_put(Tensor input, Index[] indices, Tensor values, bool accumulate=False) -> Tensor",
    .formula = "y = x, y[indices] ← values",
    .rule = "dx = g with 0 at the places (accumulate: g),  dvalues = g[indices], 0 for losers",
    .saves = {{"indices", For{0, 1}}},
    .apply = [](OpCall& c) {
      c.result(index_put(c.tensor("input"), items_of(c), c.tensor("values"), c.flag("accumulate", false)));
    }};
extern constexpr OpInfo kIndexPutInplace{
    .name = "index_put_",
    .family = "index",
    .doc = "in-place form of index_put",
    .schema = "index_put_(Tensor(a!) input, Index[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
    .formula = "x[indices] ← values",
    .rule = "as index_put",
    .saves = {{"indices", For{0, 1}}}};

namespace {

// Only integers, slices, None and Ellipsis: a chain of views.
Tensor basic_index(Arg x, const std::vector<IndexItem>& items) {
  int taken = 0, dim = 0;
  for (const IndexItem& item : items)
    taken += std::holds_alternative<i64>(item.value()) || std::holds_alternative<Slice>(item.value());
  Tensor y = *x;
  for (const IndexItem& item : items) {
    if (const i64* at = std::get_if<i64>(&item.value())) {
      y = select(Arg(y, x.loc()), dim, *at);
    } else if (const Slice* s = std::get_if<Slice>(&item.value())) {
      y = slice(Arg(y, x.loc()), dim++, s->start, s->stop, s->step);
    } else if (std::holds_alternative<NoneIndex>(item.value())) {
      y = unsqueeze(Arg(y, x.loc()), dim++);
    } else {
      dim += x->dim() - taken;
    }
  }
  return y.is(*x) ? view(x, x->shape()) : y;
}

}  // namespace

Tensor index(Arg x, const std::vector<IndexItem>& indices) {
  check_defined("index", x);
  std::vector<IndexItem> items = indices;
  const bool tensors = simplify("index", items, x.loc());
  const IndexPlan plan = plan_index("index", x->shape(), x->strides(), items, x.loc());
  if (!tensors) return basic_index(x, items);
  std::vector<Tensor> inputs{*x};
  inputs.insert(inputs.end(), plan.tensors.begin(), plan.tensors.end());
  return record(kIndex, gather_value(*x, plan.rows, plan.result), Inputs(inputs, x.loc()), [&](Saver& s) {
    return [shape = s.shape(0), saved = SavedItems(s, items), n = inputs.size()](Tensor g, const Need&) -> Grads {
      Grads out(n);
      out[0] = index_put(zeros(shape, g.dtype()), *saved, g, true);
      return out;
    };
  });
}

namespace {

struct Put {
  std::vector<IndexItem> items;
  IndexPlan plan;
  std::vector<Tensor> inputs;  // x, values, index tensors
};

// Places of a contiguous tensor of x's shape.
Put plan_put(std::string_view op, const Arg& x, const std::vector<IndexItem>& indices, const Arg& values) {
  check_defined(op, x);
  check_same_dtype(op, x, values);
  Put p{.items = indices, .plan = {}, .inputs = {*x, *values}};
  simplify(op, p.items, x.loc());
  p.plan = plan_index(op, x->shape(), contiguous_strides(x->shape()), p.items, x.loc());
  if (!broadcasts_to(values->shape(), p.plan.result))
    fail_at(x.loc(), op, "the values {} do not broadcast to the places {}", values->shape(), p.plan.result);
  p.inputs.insert(p.inputs.end(), p.plan.tensors.begin(), p.plan.tensors.end());
  return p;
}

void put(const Tensor& y, const Put& p, bool accumulate, const Tensor& values) {
  const Tensor source = contiguous_value(expand_value(values, p.plan.result));
  if (accumulate)
    accumulate_value(y, p.plan.rows, source);
  else
    assign_value(y, p.plan.rows, source);
}

auto put_rule(const Put& p, bool accumulate) {
  return [&p, accumulate](Saver& s) {
    return [saved = SavedItems(s, p.items), accumulate, n = p.inputs.size()](Tensor g, const Need& need) -> Grads {
      const std::vector<IndexItem> items = *saved;
      Grads out(n);
      if (need[0]) out[0] = accumulate ? g : index_put(g, items, zeros({}, g.dtype()));
      if (need[1]) {
        Tensor dv = index(g, items);
        if (!accumulate) {  // of several values for one place only the last one counts
          const IndexPlan plan = plan_index("index_put", g.shape(), contiguous_strides(g.shape()), items, {});
          const Tensor won = winners(plan.rows, g.numel());
          if (won.defined())
            dv = where(reshape(won.unsqueeze(-1).expand({plan.rows.rows(), plan.rows.inner}), plan.result), dv, 0);
        }
        out[1] = dv;
      }
      return out;
    };
  };
}

}  // namespace

Tensor index_put(Arg x, const std::vector<IndexItem>& indices, Arg values, bool accumulate) {
  check_defined("index_put", x);
  const Put p = plan_put("index_put", x, indices, values);
  Tensor y = copy_value(*x);
  put(y, p, accumulate, *values);
  return record(kIndexPut, std::move(y), Inputs(p.inputs, x.loc()), put_rule(p, accumulate),
                [&](Attrs& at) { at("accumulate", accumulate); });
}

const Tensor& index_put_(const Tensor& x, const std::vector<IndexItem>& indices, Arg values, bool accumulate) {
  const Arg target(x, values.loc());
  check_inplace("index_put_", x, {values});
  Put p = plan_put("index_put_", target, indices, values);
  p.inputs[0] = history_before(x);
  modify(x, [&](const Tensor& y) { put(y, p, accumulate, *values); });
  record_inplace(kIndexPutInplace, x, Inputs(p.inputs, values.loc()), put_rule(p, accumulate));
  return x;
}

}  // namespace waymark
