#include "core/ops/custom_pairs.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "core/autograd/record.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/join.h"
#include "core/ops/shape.h"
#include "core/parallel/parallel.h"

namespace waymark {

using namespace ops;

namespace {

constexpr i64 kTileQueries = 64;

// A call as plain data; the inputs come as one vector, behind each other.
class CustomCall {
 public:
  CustomCall(const Custom& c, double neutral, i64 batch, i64 heads, const Tensor& query_positions, const Tensor& key_positions)
      : functions_(c), neutral_(neutral), heads_(heads), q_(query_positions), k_(key_positions) {
    batch_ = c.batched || q_.rows > 1 || k_.rows > 1 ? batch : 1;
    for (const Tensor& t : c.inputs) sizes_.push_back(t.numel());
    functions_.inputs.clear();  // the graph holds them
  }

  Shape shape() const { return {batch_, heads_, q_.length, k_.length}; }
  i64 count() const { return std::accumulate(sizes_.begin(), sizes_.end(), i64{0}); }

  Tensor values(const Tensor& inputs) const {
    const Tensor y = make_empty(shape(), kF64);
    const auto in = parts<const double>(inputs.data<double>());
    each_tile([&](i64 task, const TileRef& tile, std::span<double> scratch, std::vector<double>& cells) {
      functions_.forward(tile, in, scratch, cells);
      double* to = y.data<double>() + (task * q_.length + tile.q_slot[0]) * k_.length;
      const size_t queries = tile.q_pos.size(), keys = tile.k_pos.size();
      for (size_t i = 0; i < queries; ++i)
        for (size_t j = 0; j < keys; ++j)
          *to++ = tile.q_pos[i] < 0 || tile.k_pos[j] < 0 ? neutral_ : cells[j * queries + i];
    });
    return y;
  }

  // Σ g_ij ∂v_ij/∂inputs.
  Tensor gradient(const Tensor& g, const Tensor& inputs) const {
    const Tensor by_task = zeros({batch_ * heads_, count()}, kF64), sum = zeros({count()}, kF64);
    const auto in = parts<const double>(inputs.data<double>());
    each_tile([&](i64 task, const TileRef& tile, std::span<double> scratch, std::vector<double>& cells) {
      const double* from = g.data<double>() + (task * q_.length + tile.q_slot[0]) * k_.length;
      const size_t queries = tile.q_pos.size(), keys = tile.k_pos.size();
      for (size_t i = 0; i < queries; ++i)
        for (size_t j = 0; j < keys; ++j, ++from)
          cells[j * queries + i] = tile.q_pos[i] < 0 || tile.k_pos[j] < 0 ? 0 : *from;
      functions_.backward(tile, in, scratch, cells, parts<double>(by_task.data<double>() + task * count()));
    });
    for (i64 task = 0; task < batch_ * heads_; ++task)
      for (i64 n = 0; n < count(); ++n) sum.data<double>()[n] += by_task.data<double>()[task * count() + n];
    return sum;
  }

  // Σ_n u_n ∂v_ij/∂inputs_n for every pair, each a tile of its own.
  Tensor along(const Tensor& u, const Tensor& inputs) const {
    const Tensor y = zeros(shape(), kF64);
    const auto in = parts<const double>(inputs.data<double>());
    const double one = 1;
    each_tile([&](i64 task, const TileRef& tile, std::span<double> scratch, std::vector<double>&) {
      std::vector<double> gradient(static_cast<size_t>(count()));
      double* to = y.data<double>() + (task * q_.length + tile.q_slot[0]) * k_.length;
      for (size_t i = 0; i < tile.q_pos.size(); ++i)
        for (size_t j = 0; j < tile.k_pos.size(); ++j, ++to) {
          if (tile.q_pos[i] < 0 || tile.k_pos[j] < 0) continue;
          std::fill(gradient.begin(), gradient.end(), 0);
          const TileRef pair{tile.batch, tile.head, tile.q_slot.subspan(i, 1), tile.k_slot.subspan(j, 1),
                             tile.q_pos.subspan(i, 1), tile.k_pos.subspan(j, 1)};
          functions_.backward(pair, in, scratch, {&one, 1}, parts<double>(gradient.data()));
          *to = std::inner_product(gradient.begin(), gradient.end(), u.data<double>(), 0.0);
        }
    });
    return y;
  }

  // Derivative of gradient(g, inputs) along u.
  Tensor gradient_along(const Tensor& u, const Tensor& g, const Tensor& inputs) const {
    const Tensor y = zeros({count()}, kF64);
    const auto largest = [](const Tensor& t) {
      double m = 0;
      for (i64 n = 0; n < t.numel(); ++n) m = std::max(m, std::abs(t.data<double>()[n]));
      return m;
    };
    const double length = largest(u);
    if (length == 0) return y;
    const double h = 2e-4 * std::max(1.0, largest(inputs)) / length;
    for (const auto& [step, weight] : {std::pair(-2.0, 1.0), {-1.0, -8.0}, {1.0, 8.0}, {2.0, -1.0}}) {
      const Tensor at = make_empty(inputs.shape(), kF64);
      for (i64 n = 0; n < count(); ++n) at.data<double>()[n] = inputs.data<double>()[n] + step * h * u.data<double>()[n];
      const Tensor there = gradient(g, at);
      for (i64 n = 0; n < count(); ++n) y.data<double>()[n] += weight * there.data<double>()[n] / (12 * h);
    }
    return y;
  }

 private:
  struct Side {
    explicit Side(const Tensor& positions)
        : rows(positions.dim() == 2 ? positions.size(0) : 1), length(positions.size(-1)),
          values(contiguous_value(positions).to_vector<i64>()), slots(static_cast<size_t>(length)) {
      std::iota(slots.begin(), slots.end(), 0);
    }
    std::span<const i64> row(i64 b) const {
      return std::span(values).subspan(static_cast<size_t>((rows == 1 ? 0 : b) * length), static_cast<size_t>(length));
    }
    i64 rows, length;
    std::vector<i64> values;
    std::vector<i32> slots;
  };

  // The vector of all inputs, one part for each.
  template <class T> std::vector<std::span<T>> parts(T* data) const {
    std::vector<std::span<T>> list;
    for (const i64 n : sizes_) {
      list.emplace_back(data, static_cast<size_t>(n));
      data += n;
    }
    return list;
  }

  // f(task, tile, scratch, cells): all keys and some queries of one batch row and head; cells [keys × queries] are zeros.
  template <class F> void each_tile(F f) const {
    if (q_.length == 0 || k_.length == 0) return;
    parallel_for(batch_ * heads_, 1, [&](i64 begin, i64 end) {
      std::vector<double> scratch(static_cast<size_t>(functions_.scratch)), cells;
      for (i64 task = begin; task < end; ++task)
        for (i64 first = 0; first < q_.length; first += kTileQueries) {
          const i64 b = task / heads_;
          const size_t from = static_cast<size_t>(first), queries = static_cast<size_t>(std::min(kTileQueries, q_.length - first));
          cells.assign(queries * static_cast<size_t>(k_.length), 0);
          f(task, TileRef{b, task % heads_, std::span(q_.slots).subspan(from, queries), k_.slots, q_.row(b).subspan(from, queries), k_.row(b)},
            std::span(scratch), cells);
        }
    });
  }

  Custom functions_;
  double neutral_;
  i64 batch_ = 1, heads_;
  Side q_, k_;
  std::vector<i64> sizes_;
};
using SharedCall = std::shared_ptr<const CustomCall>;

constexpr OpInfo kCustomPairsSecond{
    .name = "custom_pairs_second", .family = "custom_pairs", .doc = "second derivatives of custom_pairs",
    .schema = "custom_pairs_second(Tensor grad, Tensor input) -> Tensor", .formula = "∂v·u, or ∂²(g·v)·u",
    .rule = "none: an error"};

// A derivative of its own would be missing without a word wherever it is one of several paths: it is an error.
Tensor second_derivative(Tensor value, Inputs inputs) {
  return record(kCustomPairsSecond, std::move(value), std::move(inputs), [](Saver&) {
    return [](Tensor, const Need&) -> Grads {
      fail("custom_pairs", "custom score terms have first and second derivatives, but no third ones");
    };
  });
}

constexpr OpInfo kCustomPairsBackward{
    .name = "custom_pairs_backward", .family = "custom_pairs", .doc = "gradient of custom_pairs",
    .schema = "custom_pairs_backward(Tensor grad, Tensor input) -> Tensor", .formula = "y = Σ g_ij·∂v_ij/∂x",
    .rule = "dg_ij = u·∂v_ij/∂x;  dx = the change of y along u, by a central difference",
    .saves = {{"grad", For{1}}, {"input", For{0, 1}}}};

constexpr OpInfo kCustomPairs{
    .name = "custom_pairs", .family = "custom_pairs", .doc = "values of (query, key) pairs from functions of the program",
    .schema = "custom_pairs(Tensor input) -> Tensor", .formula = "v_ij = f(p_i, p_j, head; x)",
    .rule = "dx = Σ g_ij·∂v_ij/∂x, by the program's function", .saves = {{"input", For{0}}}};

Tensor custom_pairs_backward(const SharedCall& call, const Tensor& g_, const Tensor& x_) {
  const Tensor g = contiguous_value(g_), x = contiguous_value(x_);
  return record(kCustomPairsBackward, call->gradient(g, x), {g_, x_}, [&](Saver& s) {
    return [call, g = s.input(0), x = s.input(1)](Tensor u_, const Need& need) -> Grads {
      const Tensor u = contiguous_value(u_), gv = contiguous_value(*g), xv = contiguous_value(*x);
      Tensor dg, dx;
      if (need[0]) dg = second_derivative(call->along(u, xv), {u_, *x});
      if (need[1]) dx = second_derivative(call->gradient_along(u, gv, xv), {u_, *g, *x});
      return {dg, dx};
    };
  });
}

}  // namespace

Tensor custom_pairs(const Custom& c, double neutral, i64 batch, i64 heads, const Tensor& query_positions,
                    const Tensor& key_positions) {
  std::vector<Tensor> flat;
  for (const Tensor& t : c.inputs) flat.push_back(to(t, kF64).reshape({-1}));
  const Tensor all = flat.empty() ? zeros({0}, kF64) : cat(flat, 0), x = contiguous_value(all);
  const SharedCall call = std::make_shared<CustomCall>(c, neutral, batch, heads, query_positions, key_positions);
  return record(kCustomPairs, call->values(x), {all}, [&](Saver& s) {
    return [call, x = s.input(0)](Tensor g, const Need&) -> Grads { return {custom_pairs_backward(call, g, *x)}; };
  });
}

}  // namespace waymark
