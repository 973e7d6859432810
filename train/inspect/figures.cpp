#include "train/inspect/figures.h"

#include <algorithm>
#include <cmath>

#include "train/report/chart.h"

namespace waymark::train {

namespace {

using PictureKind = EncodingPicture::Kind;

constexpr i64 kMostHeads = 8;    // lines or maps in one drawing; the arrays hold all
constexpr i64 kMostCells = 64;   // of a table, a side
constexpr const char* kDistance = "distance: key position - query position (tokens)";

std::vector<double> doubles(const std::vector<i64>& v) { return {v.begin(), v.end()}; }

// Rows of a [H, D] array as curves.
struct ByHead {
  std::vector<double> x;
  std::vector<std::vector<double>> y;
};
ByHead by_head(const NamedTensors& arrays, const std::string& name) {
  ByHead out;
  for (const auto& [key, t] : arrays) {
    if (key == "delta") out.x = t.to_vector<double>();
    if (key != name) continue;
    const auto flat = t.to_vector<double>();
    for (i64 h = 0; h < t.size(0); ++h) out.y.emplace_back(flat.begin() + h * t.size(1), flat.begin() + (h + 1) * t.size(1));
  }
  // A distance between others that no pair has is a gap in the lines.
  for (size_t i = 0; i + 1 < out.x.size(); ++i) {
    if (out.x[i + 1] <= out.x[i] + 1) continue;
    const auto at = static_cast<std::ptrdiff_t>(++i);
    out.x.insert(out.x.begin() + at, out.x[i - 1] + 1);
    for (auto& y : out.y) y.insert(y.begin() + at, std::nan(""));
  }
  return out;
}
std::vector<double> flat_of(const NamedTensors& arrays, const std::string& name) {
  for (const auto& [key, t] : arrays)
    if (key == name) return t.to_vector<double>();
  return {};
}

std::string shown_heads(i64 heads) {
  return heads > kMostHeads ? fmt::format(" The first {} of {} heads are drawn.", kMostHeads, heads) : "";
}

Series named_series(std::string name, std::vector<double> x, std::vector<double> y) {
  Series s;
  s.name = std::move(name);
  s.curve = {std::move(x), std::move(y)};
  return s;
}
Series head_series(i64 h, std::vector<double> x, std::vector<double> y) {
  return named_series(fmt::format("head {}", h), std::move(x), std::move(y));
}

LineChart line_chart(std::string title, std::string y_label, std::string description = "") {
  LineChart c;
  c.title = std::move(title);
  c.description = std::move(description);
  c.x_label = kDistance;
  c.y_label = std::move(y_label);
  return c;
}

// Means over blocks, so that no side has more than kMostCells.
struct Reduced {
  i64 rows, cols, row_block, col_block;
  std::vector<double> values;
};
Reduced reduced(const double* values, i64 rows, i64 cols) {
  Reduced out{0, 0, (rows + kMostCells - 1) / kMostCells, (cols + kMostCells - 1) / kMostCells, {}};
  out.rows = (rows + out.row_block - 1) / out.row_block;
  out.cols = (cols + out.col_block - 1) / out.col_block;
  for (i64 r = 0; r < out.rows; ++r)
    for (i64 c = 0; c < out.cols; ++c) {
      double sum = 0;
      i64 n = 0;
      for (i64 i = r * out.row_block; i < std::min(rows, (r + 1) * out.row_block); ++i)
        for (i64 j = c * out.col_block; j < std::min(cols, (c + 1) * out.col_block); ++j, ++n) sum += values[i * cols + j];
      out.values.push_back(sum / static_cast<double>(n));
    }
  return out;
}

Figure heat_figure(std::string name, std::string title, std::string text, const double* values, i64 rows, i64 cols,
                   std::string x_label, std::string y_label, double x_first, double y_first) {
  const Reduced r = reduced(values, rows, cols);
  HeatMap map;
  map.title = title;
  map.description = text;
  if (r.row_block > 1 || r.col_block > 1) map.description += fmt::format(" Means over blocks of {} x {}.", r.row_block, r.col_block);
  // A tick counts cells; where one stands for several values its label says so.
  map.x_label = r.col_block > 1 ? fmt::format("{} / {}", x_label, r.col_block) : std::move(x_label);
  map.y_label = r.row_block > 1 ? fmt::format("{} / {}", y_label, r.row_block) : std::move(y_label);
  map.rows = r.rows;
  map.cols = r.cols;
  map.values = r.values;
  map.x_first = r.col_block > 1 ? 0 : x_first;
  map.y_first = r.row_block > 1 ? 0 : y_first;
  return {-1, std::move(name), std::move(title), std::move(text), draw(map)};
}

// A square for each head, cells of at most kMostCells a side.
void add_head_maps(MapGrid grid, std::string name, const double* values, i64 heads, i64 side, std::vector<Figure>& out) {
  for (i64 h = 0; h < std::min(kMostHeads, heads); ++h) {
    const Reduced r = reduced(values + h * side * side, side, side);
    grid.step = r.row_block;
    grid.maps.push_back({fmt::format("head {}", h), r.rows, r.cols, r.values});
  }
  out.push_back({-1, std::move(name), grid.title, grid.description, draw(grid)});
}

void add_map(const LayerReport& layer, std::vector<Figure>& out) {
  const AttentionMap& map = layer.map;
  if (map.heads == 0) return;
  MapGrid grid;
  grid.title = "Attention weights of the item";
  grid.description = "Rows are queries, columns keys; the colour grows with the root of the weight, padding is grey." + shown_heads(map.heads);
  grid.x_label = "key";
  grid.y_label = "query";
  grid.step = map.block;
  for (i64 h = 0; h < std::min(kMostHeads, map.heads); ++h) {
    SmallMap small;
    small.rows = map.rows;
    small.cols = map.cols;
    const auto first = map.cells.begin() + h * map.rows * map.cols;
    small.values.assign(first, first + map.rows * map.cols);
    double most = 0;
    for (const double v : small.values)
      if (std::isfinite(v)) most = std::max(most, v);
    small.title = fmt::format("head {} (most {:.2g})", h, most);
    grid.maps.push_back(std::move(small));
  }
  out.push_back({-1, "attention-map", grid.title, grid.description, draw(grid)});
}

void add_attention_by_distance(const NamedTensors& arrays, i64 heads, std::vector<Figure>& out) {
  const ByHead mean = by_head(arrays, "attention_mean");
  if (mean.y.empty()) return;
  LineChart c = line_chart("Mean attention by distance", "mean weight of a pair",
                           "Mean weight over all allowed pairs at a distance." + shown_heads(heads));
  for (i64 h = 0; h < std::min(kMostHeads, heads); ++h) c.series.push_back(head_series(h, mean.x, mean.y[static_cast<size_t>(h)]));
  out.push_back({-1, "attention-distance", c.title, c.description, draw(c)});

  const auto within = flat_of(arrays, "within"), uniform = flat_of(arrays, "within_uniform"), reach = flat_of(arrays, "within_distance");
  LineChart w;
  w.title = "How local the attention is";
  w.description = "Share of the attention that goes to keys at most so far away; uniform: if every allowed key got the same." + shown_heads(heads);
  w.x_label = "at most this far away (tokens)";
  w.y_label = "share of the attention";
  w.markers = true;
  w.x_ticks = reach;
  w.log_x = true;
  for (i64 h = 0; h < std::min(kMostHeads, heads); ++h) {
    const auto first = within.begin() + h * static_cast<i64>(reach.size());
    w.series.push_back(head_series(h, reach, {first, first + static_cast<i64>(reach.size())}));
  }
  Series reference;
  reference.name = "uniform";
  reference.curve = {reach, uniform};
  reference.color = 6;
  reference.dash = 2;
  w.series.push_back(std::move(reference));
  out.push_back({-1, "locality", w.title, w.description, draw(w)});
}

void add_scores(const LayerReport& layer, const NamedTensors& arrays, std::vector<Figure>& out) {
  if (layer.statistics.parts().empty()) return;
  PanelChart panels;
  panels.title = "Parts of the score by distance";
  const i64 heads = layer.statistics.heads();
  panels.description =
      "Left the mean over all allowed pairs at a distance, right their standard deviation, in logits. The summands add up "
      "to total; a multiplier is a factor that content contains." + shown_heads(heads);
  panels.columns = 2;
  for (const std::string& part : layer.statistics.parts())
    for (const bool mean : {true, false}) {
      const ByHead values = by_head(arrays, "score_" + part + (mean ? "_mean" : "_sd"));
      LineChart c = line_chart(part + (mean ? ": mean" : ": s.d."), layer.statistics.is_multiplier(part) ? "factor" : "logits");
      c.width = 520;
      c.height = 300;
      c.x_label = "key - query position (tokens)";
      for (i64 h = 0; h < std::min(kMostHeads, heads); ++h) c.series.push_back(head_series(h, values.x, values.y[static_cast<size_t>(h)]));
      panels.panels.push_back(std::move(c));
    }
  out.push_back({-1, "score-distance", panels.title, panels.description, draw(panels)});
}

// Drawings of what an encoding holds, by the kind of what it is: one function for each.
void add_vectors(const EncodingPicture& p, std::vector<Figure>& out) {
  const i64 heads = p.values.dim() == 3 ? p.values.size(0) : 1, rows = p.values.size(-2), width = p.values.size(-1);
  const double first = static_cast<double>(p.delta.front());
  const std::string per_head = heads > 1 ? " The mean over the heads is drawn." : "";
  std::vector<double> mean(static_cast<size_t>(rows * width));
  for (i64 h = 0; h < heads; ++h)
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] += p.values.data<double>()[h * rows * width + static_cast<i64>(i)] / static_cast<double>(heads);
  out.push_back(heat_figure("table", p.name + ": rows", "A row of numbers for each distance between key and query." + per_head,
                            mean.data(), rows, width, "channel", "distance (tokens)", 0, first));
  LineChart norm = line_chart(p.name + ": length of the rows", "norm", "Euclidean length of the row at each distance, mean over heads.");
  norm.markers = rows <= 64;
  norm.series.push_back(named_series("norm", doubles(p.delta), row_lengths(p.values)));
  out.push_back({-1, "norm", norm.title, norm.description, draw(norm)});
  const Tensor rows_of_mean = make_empty({rows, width}, kF64);
  std::copy(mean.begin(), mean.end(), rows_of_mean.data<double>());
  const Tensor cosine = row_products(rows_of_mean, true);
  out.push_back(heat_figure("cosine", p.name + ": cosine of the rows", "How alike the rows of two distances are: 1 the same direction, 0 unrelated, -1 opposite." + per_head,
                            cosine.data<double>(), rows, rows, "distance (tokens)", "distance (tokens)", first, first));
}

void add_lines(const EncodingPicture& p, std::vector<Figure>& out) {
  const bool factor = p.kind == PictureKind::multiplier;
  const i64 heads = p.values.size(0), count = p.values.size(1);
  const auto flat = p.values.to_vector<double>();
  PanelChart panels;
  panels.title = p.name + (factor ? ": factor on the content score" : ": summand of the score");
  panels.description = fmt::format("For each head and distance{}. Right panel: the same on a logarithmic axis, keys behind the query whole, before it dashed.{}",
                                   factor ? ", 1 leaves the score as it is" : ", in logits", shown_heads(heads));
  panels.columns = 2;
  LineChart linear = line_chart("all distances", factor ? "factor" : "logits"), log = line_chart("by absolute distance", factor ? "factor" : "logits");
  linear.width = log.width = 520;
  linear.height = log.height = 320;
  linear.x_label = "key - query position (tokens)";
  log.x_label = "absolute distance (tokens)";
  log.log_x = true;
  for (i64 h = 0; h < std::min(kMostHeads, heads); ++h) {
    const auto first = flat.begin() + h * count;
    linear.series.push_back(head_series(h, doubles(p.delta), {first, first + count}));
    for (const bool before : {false, true}) {
      Series s = head_series(h, {}, {});
      s.name += before ? ", key before" : ", key behind";
      s.color = h;
      s.dash = before ? 1 : 0;
      for (i64 r = 0; r < count; ++r) {
        const i64 at = before ? count - 1 - r : r;
        const i64 d = before ? -p.delta[static_cast<size_t>(at)] : p.delta[static_cast<size_t>(at)];
        if (d < 1) continue;
        s.curve.x.push_back(static_cast<double>(d));
        s.curve.y.push_back(first[at]);
      }
      if (!s.curve.x.empty()) log.series.push_back(std::move(s));
    }
  }
  for (LineChart* c : {&linear, &log})
    if (!c->series.empty()) panels.panels.push_back(std::move(*c));
  out.push_back({-1, factor ? "scale" : "bias", panels.title, panels.description, draw(panels)});
}

void add_kernel_line(const EncodingPicture& p, std::vector<Figure>& out) {
  LineChart c = line_chart(p.name + ": kernel", "<q', k'> / <q, k>",
                           "What the map makes of the product of a query and a key that are both all ones; for rotations the mean cosine over the pairs of channels.");
  c.series.push_back(named_series(p.name, doubles(p.delta), p.values.to_vector<double>()));
  out.push_back({-1, "kernel", c.title, c.description, draw(c)});
}

void add_added(const EncodingPicture& p, std::vector<Figure>& out) {
  const i64 n = p.values.size(0), width = p.values.size(1);
  out.push_back(heat_figure("added", p.name + ": vectors", "What is added to the embedding of the token at each position.", p.values.data<double>(), n,
                            width, "channel", "position", 0, 0));
  const Tensor gram = row_products(p.values, false);
  out.push_back(heat_figure("gram", p.name + ": products of the vectors", "The product of the vectors of each two positions.", gram.data<double>(), n, n,
                            "position", "position", 0, 0));
  LineChart c = line_chart(p.name + ": mean product by distance", "product", "Mean over all pairs of positions that far apart.");
  std::vector<double> x;
  for (i64 d = 1 - n; d < n; ++d) x.push_back(static_cast<double>(d));
  c.x_label = "distance of two positions (tokens)";
  c.series.push_back(named_series(p.name, std::move(x), diagonal_means(gram)));
  out.push_back({-1, "gram-distance", c.title, c.description, draw(c)});
}

void add_position_pairs(const EncodingPicture& p, std::vector<Figure>& out) {
  const i64 heads = p.values.size(0), n = p.values.size(1);
  MapGrid grid;
  grid.title = p.name + ": summand of the score by positions";
  grid.description = "Rows are positions of queries, columns positions of keys; in logits, the colour grows with the root of the value, "
                     "negative ones are orange." + shown_heads(heads);
  grid.x_label = "position of the key";
  grid.y_label = "position of the query";
  add_head_maps(std::move(grid), "position-pairs", p.values.data<double>(), heads, n, out);
}

struct Drawer {
  PictureKind kind;
  void (*add)(const EncodingPicture&, std::vector<Figure>&);
};
constexpr Drawer kDrawers[] = {{PictureKind::vectors, add_vectors}, {PictureKind::multiplier, add_lines}, {PictureKind::bias, add_lines},
                               {PictureKind::kernel, add_kernel_line}, {PictureKind::added, add_added},
                               {PictureKind::position_pairs, add_position_pairs}};

void add_pictures(const std::vector<EncodingPicture>& pictures, std::vector<Figure>& out) {
  for (size_t i = 0; i < pictures.size(); ++i) {
    const size_t before = out.size();
    for (const Drawer& drawer : kDrawers)
      if (drawer.kind == pictures[i].kind) drawer.add(pictures[i], out);
    if (i > 0)
      for (size_t f = before; f < out.size(); ++f) out[f].name += fmt::format("-{}", i + 1);
  }
}

}  // namespace

std::vector<Figure> figures_of(const ModelReport& report) {
  std::vector<Figure> all;
  add_pictures(report.input, all);
  for (size_t l = 0; l < report.layers.size(); ++l) {
    const LayerReport& layer = report.layers[l];
    std::vector<Figure> own;
    const NamedTensors arrays = layer.statistics.arrays();
    add_map(layer, own);
    add_attention_by_distance(arrays, layer.statistics.heads(), own);
    add_scores(layer, arrays, own);
    add_pictures(layer.pictures, own);
    for (Figure& f : own) {
      f.layer = static_cast<i64>(l);
      all.push_back(std::move(f));
    }
  }
  return all;
}

}  // namespace waymark::train
