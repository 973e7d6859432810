#include "train/inspect/layer_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autograd/state.h"
#include "core/io/npz.h"
#include "core/ops/convert.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "nn/attention/registry.h"

namespace waymark::train {

namespace {

// Sums of the weights of item 0, 64 queries at a time.
void draw_map(const nn::Attention& attention, nn::AttentionInput in, const LookOptions& options, LayerReport& layer) {
  const i64 length = in.x.size(1), keys = in.context.defined() ? in.context.size(1) : length;
  AttentionMap& map = layer.map;
  for (i64 first = 0; first < length;) {
    in.rows = {first, std::min(DistanceStatistics::kBlock, length - first)};
    const Tensor weights = attention.implied_weights(in);
    if (weights.dim() != 4 || weights.size(3) != keys || (weights.size(2) != in.rows.count && weights.size(2) != length)) return;
    if (weights.size(2) == length) in.rows = {0, length};
    const i64 heads = weights.size(1);
    if (map.heads == 0) {
      map.heads = heads;
      map.queries = length;
      map.keys = keys;
      map.block = (std::max(length, keys) + options.most_cells - 1) / options.most_cells;
      map.rows = (length + map.block - 1) / map.block;
      map.cols = (keys + map.block - 1) / map.block;
      map.cells.assign(static_cast<size_t>(heads * map.rows * map.cols), 0);
      if (options.weights) layer.weights = make_empty({heads, length, keys}, kF64);
    }
    const Tensor w = contiguous(to(narrow(weights, 0, 0, 1), kF64));
    const double* p = w.data<double>();
    for (i64 h = 0; h < heads; ++h)
      for (i64 i = 0; i < in.rows.count; ++i) {
        const i64 query = in.rows.first + i;
        if (options.weights) std::copy_n(p, keys, layer.weights.data<double>() + (h * length + query) * keys);
        double* row = map.cells.data() + (h * map.rows + query / map.block) * map.cols;
        for (i64 j = 0; j < keys; ++j, ++p) row[j / map.block] += *p;
      }
    first = in.rows.first + in.rows.count;
  }
  // Padded queries and keys are grey: a cell is if all behind it are.
  const Tensor query_keep = in.query_keep.defined() ? in.query_keep : in.context.defined() ? Tensor() : in.key_keep;
  const auto kept = [](const Tensor& keep, i64 first, i64 end) {
    i64 n = 0;
    for (i64 i = first; i < end; ++i) n += !keep.defined() || keep.at<bool>({0, i});
    return n;
  };
  for (i64 r = 0; r < map.rows; ++r)
    for (i64 c = 0; c < map.cols; ++c) {
      const i64 pairs = kept(query_keep, r * map.block, std::min(length, (r + 1) * map.block)) *
                        kept(in.key_keep, c * map.block, std::min(keys, (c + 1) * map.block));
      for (i64 h = 0; h < map.heads; ++h) {
        double& cell = map.cells[static_cast<size_t>((h * map.rows + r) * map.cols + c)];
        cell = pairs > 0 ? cell / static_cast<double>(pairs) : std::numeric_limits<double>::quiet_NaN();
      }
    }
}

class EvalScope {
 public:
  explicit EvalScope(nn::ModuleBase& module) : module_(module), training_(module.training()) { module_.eval(); }
  ~EvalScope() { module_.train(training_); }
  EvalScope(const EvalScope&) = delete;
  EvalScope& operator=(const EvalScope&) = delete;

 private:
  nn::ModuleBase& module_;
  bool training_;
};

}  // namespace

ModelReport look_at_model(TaskModel& model, i64 count, const std::function<Batch(i64)>& batch, const LookOptions& options) {
  const NoGrad no_grad;
  const ReplayScope no_stream_advances{RandomSnapshot()};
  const EvalScope mode(model.module());
  ModelReport report;
  i64 width = 0;
  for (i64 item = 0; item < count; ++item) {  // one by one: the weights of a batch would need much memory
    const Batch one = batch(item);
    const bool first = item == 0;
    model.visit_attentions(one, [&](i64 number, const nn::Attention& attention, const nn::AttentionInput& in) {
      if (first) {
        LayerReport& layer = report.layers.emplace_back();
        const bool causal = attention.setup().causal || in.causal || in.mask.implies_causal();
        report.length = in.x.size(1);
        width = in.x.size(2);
        layer.attention = attention.options().short_form();
        layer.position = attention.encodings().empty() ? "none" : nn::sum_text(attention.encodings(), false);
        layer.pictures = encoding_pictures(attention, report.length, causal, layer.notes);
        if (options.maps && nn::facts_of_attention(attention.options(), causal, attention.setup().cross).forms_weights)
          draw_map(attention, in, options, layer);
      }
      report.layers[static_cast<size_t>(number)].statistics.add(attention, in);
    });
    ++report.items;
    if (options.progress) options.progress(item + 1, count);
  }
  for (LayerReport& layer : report.layers)
    for (const std::string& text : layer.statistics.notes()) layer.notes.push_back(text);
  model.module().visit([&](nn::ModuleBase& module, const std::string&) {
    if (const auto* position = dynamic_cast<const nn::PositionModule*>(&module); position && report.input.empty() && width > 0)
      report.input = input_pictures(*position, width, report.length);
  });
  return report;
}

NamedTensors arrays_of(const LayerReport& layer) {
  NamedTensors out = layer.statistics.arrays();
  append_arrays(layer.pictures, out);
  if (layer.weights.defined()) out.emplace_back("weights", layer.weights);
  return out;
}

std::vector<std::filesystem::path> write_arrays(const std::filesystem::path& folder, const ModelReport& report) {
  std::vector<std::filesystem::path> files;
  const auto save = [&](const std::string& name, const NamedTensors& arrays) {
    if (arrays.empty()) return;
    std::filesystem::create_directories(folder / "position");
    files.push_back(folder / "position" / (name + ".npz"));
    save_npz(files.back(), arrays);
  };
  for (size_t l = 0; l < report.layers.size(); ++l) save(fmt::to_string(l), arrays_of(report.layers[l]));
  NamedTensors input;
  append_arrays(report.input, input);
  save("input", input);
  return files;
}

}  // namespace waymark::train
