#include "train/trainer/analysis.h"

#include <cmath>

#include "core/autograd/state.h"
#include "core/io/npz.h"
#include "core/ops/convert.h"
#include "core/random/generator.h"

namespace waymark::train {

namespace {

constexpr i64 kWithin[] = {1, 3, 5, 8, 16};

Tensor list_of(const std::vector<i64>& values) {
  const Tensor t = make_empty({static_cast<i64>(values.size())}, kI64);
  std::copy(values.begin(), values.end(), t.data<i64>());
  return t;
}
Tensor zeros_f64(const Shape& shape) {
  const Tensor t = make_empty(shape, kF64);
  std::fill_n(t.data<double>(), t.numel(), 0.0);
  return t;
}

// Sums over items of one layer.
struct Statistics {
  i64 heads = 0, length = 0, items = 0;
  std::vector<double> by_distance;  // [H, 2L-1]
  std::vector<double> entropy;      // [H]

  void add(const Tensor& weights) {
    const Tensor w = contiguous(to(weights, kF64));
    if (heads == 0) {
      heads = w.size(1);
      length = w.size(2);
      by_distance.assign(static_cast<size_t>(heads * (2 * length - 1)), 0);
      entropy.assign(static_cast<size_t>(heads), 0);
    }
    const double* p = w.data<double>();
    for (i64 b = 0; b < w.size(0); ++b)
      for (i64 h = 0; h < heads; ++h)
        for (i64 i = 0; i < length; ++i)
          for (i64 j = 0; j < length; ++j, ++p) {
            by_distance[static_cast<size_t>(h * (2 * length - 1) + j - i + length - 1)] += *p;
            if (*p > 0) entropy[static_cast<size_t>(h)] -= *p * std::log(*p);
          }
    items += w.size(0);
  }

  void write(NamedTensors& out) const {
    const i64 distances = 2 * length - 1;
    std::vector<i64> delta, count;
    for (i64 d = 1 - length; d < length; ++d) {
      delta.push_back(d);
      count.push_back(length - std::abs(d));
    }
    const Tensor mean = zeros_f64({heads, distances}), within = zeros_f64({heads, std::ssize(kWithin)}),
                 distance = zeros_f64({heads}), uncertainty = zeros_f64({heads});
    const double queries = static_cast<double>(items * length);
    for (i64 h = 0; h < heads; ++h) {
      for (i64 d = 0; d < distances; ++d) {
        const double mass = by_distance[static_cast<size_t>(h * distances + d)];
        const i64 far = std::abs(delta[static_cast<size_t>(d)]);
        mean.data<double>()[h * distances + d] = mass / static_cast<double>(items * count[static_cast<size_t>(d)]);
        for (i64 k = 0; k < std::ssize(kWithin); ++k)
          if (far <= kWithin[k]) within.data<double>()[h * std::ssize(kWithin) + k] += mass / queries;
        distance.data<double>()[h] += mass / queries * static_cast<double>(far);
      }
      uncertainty.data<double>()[h] = entropy[static_cast<size_t>(h)] / queries;
    }
    out.emplace_back("delta", list_of(delta));
    out.emplace_back("attention_mean", mean);
    out.emplace_back("count", list_of(count));
    out.emplace_back("within", within);
    out.emplace_back("mean_distance", distance);
    out.emplace_back("entropy", uncertainty);
  }
};

// [R] lengths of rows, mean over heads; scalars count by their absolute value.
Tensor row_norms(const PositionTable& table) {
  const Tensor t = contiguous(to(table.rows, kF64));
  const i64 rows = static_cast<i64>(table.delta.size());
  const bool scalars = t.dim() == 2 && t.size(0) != rows;
  const i64 width = scalars ? 1 : t.size(-1), heads = t.numel() / (rows * width);
  const Tensor norm = zeros_f64({rows});
  for (i64 h = 0; h < heads; ++h)
    for (i64 r = 0; r < rows; ++r) {
      double sum = 0;
      for (i64 c = 0; c < width; ++c) {
        const double v = t.data<double>()[(h * rows + r) * width + c];
        sum += v * v;
      }
      norm.data<double>()[r] += std::sqrt(sum) / static_cast<double>(heads);
    }
  return norm;
}

}  // namespace

void write_analysis(const std::filesystem::path& folder, TaskModel& model, const Task& task, i64 items) {
  const NoGrad no_grad;
  const ReplayScope no_stream_advances{RandomSnapshot()};
  const std::string_view split = task.has_split("val") ? "val" : "test";
  if (!task.has_split(split)) return;
  const bool training = model.module().training();
  model.module().eval();
  std::vector<Statistics> layers;
  const i64 count = std::min(items, task.split(split).size);
  for (i64 item = 0; item < count; ++item) {  // one by one: the weights of a batch would need much memory
    const i64 one[] = {item};
    const std::vector<Tensor> weights = model.attention_weights(task.evaluation_batch(split, one));
    layers.resize(weights.size());
    for (size_t l = 0; l < weights.size(); ++l)
      if (weights[l].defined()) layers[l].add(weights[l]);
  }
  model.module().train(training);
  if (layers.empty()) return;
  std::filesystem::create_directories(folder / "position");
  for (size_t l = 0; l < layers.size(); ++l) {
    NamedTensors arrays;
    if (layers[l].items > 0) layers[l].write(arrays);
    for (const PositionTable& table : model.position_tables(static_cast<i64>(l))) {
      const std::string suffix = arrays.empty() || std::none_of(arrays.begin(), arrays.end(), [](const auto& a) {
        return a.first == "table";
      }) ? "" : "." + table.name;
      arrays.emplace_back("table_delta" + suffix, list_of(table.delta));
      arrays.emplace_back("table" + suffix, table.rows.detach());
      arrays.emplace_back("norm" + suffix, row_norms(table));
    }
    save_npz(folder / "position" / fmt::format("{}.npz", l), arrays);
  }
}

}  // namespace waymark::train
