#include "core/ops/custom_pairs.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/autograd/record.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/parallel/parallel.h"

namespace waymark {

namespace {

constexpr OpInfo kCustomPairs{.name = "custom_pairs", .family = "attention", .doc = "values of (query, key) pairs by a program's own function",
                              .schema = "custom_pairs(Tensor[] inputs) -> Tensor", .formula = "y_ij = f(p_i, p_j, h; inputs)",
                              .rule = "inputs: the program's own derivative, summed over the pairs"};
constexpr OpInfo kCustomPairsBackward{
    .name = "custom_pairs_backward", .family = "attention", .doc = "sums of a program's own derivative over (query, key) pairs",
    .schema = "custom_pairs_backward(Tensor grad, Tensor[] inputs) -> Tensor", .formula = "dinput = Σ g_ij·∂f/∂input",
    .rule = not_differentiable("a program's own function of pairs has a first derivative only")};

// What forward and backward share: positions, sizes, the inputs in f64.
struct CustomCall {
  Custom term;
  Tensor query_positions, key_positions;
  i64 batch = 1, heads = 1;
  double neutral = 0;

  i64 queries() const { return query_positions.size(-1); }
  i64 keys() const { return key_positions.size(-1); }
  i64 pairs() const { return queries() * keys(); }
  std::span<const i64> row(const Tensor& positions, i64 b) const {
    const i64 length = positions.size(-1);
    return {positions.data<i64>() + (positions.dim() == 2 && positions.size(0) > 1 ? b * length : 0), static_cast<size_t>(length)};
  }
};

std::vector<Tensor> in_f64(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> out;
  const NoGrad off;
  for (const Tensor& t : inputs) out.push_back(ops::contiguous_value(to(t.detach(), kF64)));
  return out;
}
std::vector<std::span<const double>> spans_of(const std::vector<Tensor>& inputs) {
  std::vector<std::span<const double>> out;
  for (const Tensor& t : inputs) out.emplace_back(t.data<double>(), static_cast<size_t>(t.numel()));
  return out;
}

// f(tile, number of the tile, working memory) for every row of the batch and head, on several threads.
template <class F> void each_tile(const CustomCall& c, F f) {
  std::vector<i32> slots(static_cast<size_t>(std::max(c.queries(), c.keys())));
  std::iota(slots.begin(), slots.end(), 0);
  parallel_for(c.batch * c.heads, std::max<i64>(1, kGrain / 16 / std::max<i64>(1, c.pairs())), [&](i64 begin, i64 end) {
    std::vector<double> scratch(static_cast<size_t>(c.term.scratch));
    for (i64 tile = begin; tile < end; ++tile) {
      const i64 b = tile / c.heads;
      f(TileRef{b, tile % c.heads, {slots.data(), static_cast<size_t>(c.queries())}, {slots.data(), static_cast<size_t>(c.keys())},
                c.row(c.query_positions, b), c.row(c.key_positions, b)},
        tile, std::span<double>(scratch));
    }
  });
}

Tensor custom_value(const CustomCall& c, const std::vector<Tensor>& inputs) {
  const i64 lq = c.queries(), lk = c.keys();
  const Tensor out = make_empty({c.batch, c.heads, lq, lk}, kF64);
  if (out.numel() == 0) return out;
  const auto in = spans_of(inputs);
  each_tile(c, [&](const TileRef& tile, i64 number, std::span<double> scratch) {
    std::vector<double> value(static_cast<size_t>(c.pairs()));
    c.term.forward(tile, in, scratch, value);
    double* to = out.data<double>() + number * c.pairs();
    for (i64 i = 0; i < lq; ++i)
      for (i64 j = 0; j < lk; ++j)
        *to++ = tile.q_pos[static_cast<size_t>(i)] < 0 || tile.k_pos[static_cast<size_t>(j)] < 0 ? c.neutral : value[static_cast<size_t>(j * lq + i)];
  });
  return out;
}

// One gradient per input. Each tile sums into arrays of its own, which are added in their order: the same bits for any
// number of threads.
std::vector<Tensor> custom_gradients(const CustomCall& c, const std::vector<Tensor>& inputs, const Tensor& gradient) {
  const i64 lq = c.queries(), lk = c.keys(), tiles = c.batch * c.heads;
  const Tensor g = ops::contiguous_value(gradient);
  const auto in = spans_of(inputs);
  i64 total = 0;
  for (const Tensor& t : inputs) total += t.numel();
  std::vector<std::vector<double>> parts(static_cast<size_t>(tiles));
  if (c.pairs() > 0)
    each_tile(c, [&](const TileRef& tile, i64 number, std::span<double> scratch) {
      std::vector<double> upstream(static_cast<size_t>(c.pairs()));
      const double* from = g.data<double>() + number * c.pairs();
      for (i64 i = 0; i < lq; ++i)
        for (i64 j = 0; j < lk; ++j, ++from)
          upstream[static_cast<size_t>(j * lq + i)] = tile.q_pos[static_cast<size_t>(i)] < 0 || tile.k_pos[static_cast<size_t>(j)] < 0 ? 0 : *from;
      std::vector<double>& own = parts[static_cast<size_t>(number)];
      own.resize(static_cast<size_t>(total));
      std::vector<std::span<double>> out;
      size_t at = 0;
      for (const Tensor& t : inputs) {
        out.emplace_back(own.data() + at, static_cast<size_t>(t.numel()));
        at += static_cast<size_t>(t.numel());
      }
      c.term.backward(tile, in, scratch, upstream, out);
    });
  std::vector<Tensor> sums;
  size_t at = 0;
  for (const Tensor& t : inputs) {
    const Tensor sum = make_empty(t.shape(), kF64);
    for (i64 i = 0; i < t.numel(); ++i, ++at) {
      double s = 0;
      for (const auto& part : parts)
        if (!part.empty()) s += part[at];
      sum.data<double>()[i] = s;
    }
    sums.push_back(sum);
  }
  return sums;
}

}  // namespace

Tensor custom_pairs(const Custom& term, const Tensor& query_positions, const Tensor& key_positions, i64 batch, i64 heads, DType dtype,
                    double neutral) {
  const auto rows = [](const Tensor& t) { return t.dim() == 2 ? t.size(0) : 1; };
  Custom functions = term;
  functions.inputs.clear();  // the node holds them
  const auto call = std::make_shared<const CustomCall>(CustomCall{
      std::move(functions), ops::contiguous_value(query_positions), ops::contiguous_value(key_positions),
      term.reads_batch ? batch : std::max(rows(query_positions), rows(key_positions)), heads, neutral});
  const std::vector<Tensor> inputs = in_f64(term.inputs);
  Tensor value;
  {
    const NoGrad off;
    value = to(custom_value(*call, inputs), dtype);
  }
  const Loc at = Loc::here();
  return record(kCustomPairs, value, Inputs(std::span<const Tensor>(term.inputs), at), [&](Saver& s) {
    std::vector<SavedTensor> saved;
    for (size_t i = 0; i < term.inputs.size(); ++i) saved.push_back(s.input(i));
    return [saved, call, at](Tensor g, const Need& need) -> Grads {
      std::vector<Tensor> now, sums;
      for (const SavedTensor& t : saved) now.push_back(*t);
      {
        const NoGrad off;
        sums = custom_gradients(*call, in_f64(now), to(g.detach(), kF64));
        for (size_t i = 0; i < sums.size(); ++i) sums[i] = to(sums[i], now[i].dtype());
      }
      std::vector<Tensor> read = now;
      read.push_back(g);
      Grads out;
      for (size_t i = 0; i < sums.size(); ++i)
        out.push_back(need[i] ? record_nondiff(kCustomPairsBackward, sums[i], Inputs(std::span<const Tensor>(read), at)) : Tensor());
      return out;
    };
  });
}

}  // namespace waymark
