#include "train/inspect/encoding_pictures.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>
#include <variant>

#include "core/autograd/state.h"
#include "core/ops/convert.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"

namespace waymark::train {

namespace {

using Kind = EncodingPicture::Kind;

Tensor f64_of(const Tensor& t) { return contiguous(to(t.detach(), kF64)); }

// Rows of [1|H, R, ...] for δ = lo ... hi of an index, as f64.
struct IndexedRows {
  std::vector<i64> delta;
  Tensor values;
};
IndexedRows rows_by_distance(const Tensor& table, const PairIndex& index) {
  const Tensor t = f64_of(table);
  const i64 heads = t.size(0), rows = t.size(1), width = t.numel() / std::max<i64>(1, heads * rows);
  IndexedRows out;
  for (i64 d = index.lo; d <= index.hi; ++d) out.delta.push_back(d);
  const i64 count = static_cast<i64>(out.delta.size());
  out.values = make_empty(t.dim() == 3 ? Shape{heads, count, width} : Shape{heads, count}, kF64);
  double* to = out.values.data<double>();
  for (i64 h = 0; h < heads; ++h)
    for (i64 r = 0; r < count; ++r, to += width) {
      const i64 row = index.row.empty() ? r : index.row[static_cast<size_t>(r)];
      if (row < 0 || row >= rows) std::fill_n(to, width, std::nan(""));
      else std::copy_n(t.data<double>() + (h * rows + row) * width, width, to);
    }
  return out;
}

// What a term holds by distance: by the members of its family, so that a family without rows for distances (it is seen
// in the score against distance) needs no line here.
struct FamilyRows {
  Tensor table;
  PairIndex index;
};
template <class Family> std::optional<FamilyRows> family_rows(const Family& f) {
  if constexpr (requires { f.index; f.w; }) return FamilyRows{f.w, f.index};
  else if constexpr (requires { f.index; f.u; }) return FamilyRows{f.u, f.index};
  else if constexpr (requires { f.index; f.beta; }) return FamilyRows{f.beta, f.index};
  else return std::nullopt;
}

// By which the scale of scores counts, content among them.
double extra_terms(const nn::Attention& attention) {
  i64 terms = 1;
  for (const nn::Options& o : attention.encodings()) terms += nn::facts_of(o).extra_terms;
  return static_cast<double>(terms);
}

// The logits of a term that is a product of a vector for each query and one for each key, where its encoding reads
// positions alone: [H, L, L].
std::optional<Tensor> position_products(const std::string& encoding, const ScoreTerm& term, const nn::Attention& attention, i64 length) {
  const auto* f = std::get_if<RowProduct>(&term.family);
  if (!f || f->left.defined() || f->right.defined()) return std::nullopt;
  for (const nn::Options& o : attention.encodings())
    if (o.name() == encoding && !nn::facts_of(o).terms_of_positions) return std::nullopt;
  const nn::AttentionSetup& s = attention.setup();
  const double of_tables = s.scale.value_or(1 / std::sqrt(static_cast<double>(s.sizes.head_dim) * extra_terms(attention)));
  const double scale = term.stage == Stage::table ? of_tables : 1;
  const Tensor logits = mul(matmul(f64_of(f->x), f64_of(f->y).mT()), scale);  // [1, 1|H, L, L]
  return contiguous(logits.squeeze(0).expand({s.sizes.num_heads, length, length}));
}

void add_terms(const nn::Attention& attention, const nn::PositionModule& position, const nn::EncodingCall& call, DType dtype,
               std::vector<EncodingPicture>& out) {
  const nn::AttentionSetup& s = attention.setup();
  const i64 length = call.queries.length();
  const Tensor q = zeros({1, s.sizes.num_heads, length, s.sizes.head_dim}, dtype),
               k = zeros({1, s.kv_heads, length, s.sizes.head_dim}, dtype);
  for (const auto& [encoding, term] : position.prepare(call, q, k)) {
    if (auto logits = position_products(encoding, term, attention, length)) {
      EncodingPicture p;
      p.kind = Kind::position_pairs;
      p.name = encoding + "." + term.name;
      for (i64 i = 0; i < length; ++i) p.delta.push_back(i);
      p.values = std::move(*logits);
      out.push_back(std::move(p));
      continue;
    }
    const auto rows = std::visit([](const auto& family) { return family_rows(family); }, term.family);
    if (!rows || !rows->table.defined() || rows->index.hi < rows->index.lo || rows->index.hi - rows->index.lo > (1 << 14)) continue;
    IndexedRows by_distance = rows_by_distance(rows->table, rows->index);
    EncodingPicture p;
    p.name = encoding + "." + term.name;
    p.delta = std::move(by_distance.delta);
    p.values = by_distance.values;
    if (p.values.dim() == 3) {
      p.kind = Kind::vectors;
      if (p.values.size(0) == 1) p.values = p.values.squeeze(0);
    } else {
      p.kind = term.stage == Stage::multiply ? Kind::multiplier : Kind::bias;
    }
    out.push_back(std::move(p));
  }
}

void add_kernel(const nn::Attention& attention, const nn::PositionModule& position, const nn::EncodingCall& call, DType dtype,
                std::vector<EncodingPicture>& out) {
  const nn::AttentionSetup& s = attention.setup();
  const i64 length = call.queries.length(), width = s.sizes.head_dim;
  const auto [q, k] = position.map_query_key(ones({1, s.sizes.num_heads, length, width}, dtype), ones({1, s.kv_heads, length, width}, dtype), call);
  const Tensor a = f64_of(q), b = f64_of(k);
  const i64 mapped = a.size(3);
  std::vector<double> sum(static_cast<size_t>(2 * length - 1));
  for (i64 h = 0; h < s.sizes.num_heads; ++h) {
    const double* rows_q = a.data<double>() + h * length * mapped;
    const double* rows_k = b.data<double>() + h * s.kv_heads / s.sizes.num_heads * length * mapped;
    for (i64 i = 0; i < length; ++i)
      for (i64 j = 0; j < length; ++j) {
        double dot = 0;
        for (i64 c = 0; c < mapped; ++c) dot += rows_q[i * mapped + c] * rows_k[j * mapped + c];
        const i64 pairs = (length - std::abs(j - i)) * s.sizes.num_heads;
        sum[static_cast<size_t>(j - i + length - 1)] += dot / static_cast<double>(width * pairs);
      }
  }
  EncodingPicture p;
  p.kind = Kind::kernel;
  for (const nn::Options& o : position.encodings())
    if (nn::facts_of(o).site == nn::Site::query_key) p.name += (p.name.empty() ? "" : " + ") + o.name();
  for (i64 d = 1 - length; d < length; ++d) p.delta.push_back(d);
  p.values = make_empty({2 * length - 1}, kF64);
  std::copy(sum.begin(), sum.end(), p.values.data<double>());
  out.push_back(std::move(p));
}

}  // namespace

std::vector<EncodingPicture> encoding_pictures(const nn::Attention& attention, i64 length, bool causal,
                                               std::vector<std::string>& notes) {
  std::vector<EncodingPicture> out;
  if (length < 1 || attention.encodings().empty()) return out;
  const NoGrad off;
  const nn::PositionModule* position = nullptr;
  for (const auto& [name, child] : attention.children())
    if (const auto* module = dynamic_cast<const nn::PositionModule*>(child)) position = module;
  if (!position) return out;
  const nn::Positions positions = nn::Positions::range(length);
  const nn::EncodingCall call{.queries = positions, .keys = positions, .causal = causal};
  const auto parameters = attention.parameters();
  const DType dtype = parameters.empty() ? kF32 : parameters.front().dtype();
  try {
    add_terms(attention, *position, call, dtype, out);
    if (position->maps_query_key()) add_kernel(attention, *position, call, dtype, out);
  } catch (const Error& e) {
    notes.push_back(fmt::format("the encodings have no picture of their own: {}", e.what()));
  }
  return out;
}

std::vector<EncodingPicture> input_pictures(const nn::PositionModule& position, i64 width, i64 length) {
  std::vector<EncodingPicture> out;
  std::string names;
  for (const nn::Options& o : position.encodings())
    if (nn::facts_of(o).site == nn::Site::input) names += (names.empty() ? "" : " + ") + o.name();
  if (names.empty() || length < 1) return out;
  const NoGrad off;
  const auto parameters = position.parameters();
  EncodingPicture p;
  p.kind = Kind::added;
  p.name = names;
  for (i64 i = 0; i < length; ++i) p.delta.push_back(i);
  p.values = f64_of(position.add_to_input(zeros({1, length, width}, parameters.empty() ? kF32 : parameters.front().dtype()),
                                          nn::Positions::range(length)))
                 .squeeze(0);
  out.push_back(std::move(p));
  return out;
}

Tensor row_products(const Tensor& rows, bool cosine) {
  const i64 n = rows.size(0), width = rows.size(1);
  const Tensor out = make_empty({n, n}, kF64);
  const double* x = rows.data<double>();
  std::vector<double> length(static_cast<size_t>(n), 1);
  const auto dot = [&](i64 a, i64 b) {
    double sum = 0;
    for (i64 c = 0; c < width; ++c) sum += x[a * width + c] * x[b * width + c];
    return sum;
  };
  if (cosine)
    for (i64 a = 0; a < n; ++a) length[static_cast<size_t>(a)] = std::sqrt(dot(a, a));
  for (i64 a = 0; a < n; ++a)
    for (i64 b = 0; b < n; ++b) {
      const double scale = length[static_cast<size_t>(a)] * length[static_cast<size_t>(b)];
      out.data<double>()[a * n + b] = scale > 0 ? dot(a, b) / scale : 0;
    }
  return out;
}

std::vector<double> diagonal_means(const Tensor& square) {
  const i64 n = square.size(0);
  std::vector<double> out(static_cast<size_t>(std::max<i64>(0, 2 * n - 1)));
  for (i64 a = 0; a < n; ++a)
    for (i64 b = 0; b < n; ++b)
      out[static_cast<size_t>(b - a + n - 1)] += square.data<double>()[a * n + b] / static_cast<double>(n - std::abs(b - a));
  return out;
}

std::vector<double> row_lengths(const Tensor& rows) {
  const i64 width = rows.size(-1), count = rows.size(-2), heads = rows.numel() / std::max<i64>(1, width * count);
  std::vector<double> out(static_cast<size_t>(count));
  const double* x = rows.data<double>();
  for (i64 h = 0; h < heads; ++h)
    for (i64 r = 0; r < count; ++r, x += width) {
      double sum = 0;
      for (i64 c = 0; c < width; ++c) sum += x[c] * x[c];
      out[static_cast<size_t>(r)] += std::sqrt(sum) / static_cast<double>(heads);
    }
  return out;
}

void append_arrays(const std::vector<EncodingPicture>& pictures, NamedTensors& out) {
  std::set<std::string> taken;
  for (const auto& [name, tensor] : out) taken.insert(name);
  const auto vector_of = [](const std::vector<double>& v) {
    const Tensor t = make_empty({static_cast<i64>(v.size())}, kF64);
    std::copy(v.begin(), v.end(), t.data<double>());
    return t;
  };
  for (const EncodingPicture& p : pictures) {
    static constexpr const char* kNames[] = {"table", "bias", "bias", "kernel", "table", "pairs"};
    const std::string kind = kNames[static_cast<size_t>(p.kind)];
    const std::string suffix = taken.count(kind) ? "." + p.name : "";
    const auto add = [&](const std::string& name, const Tensor& t) {
      if (taken.insert(name + suffix).second) out.emplace_back(name + suffix, t);
    };
    const Tensor delta = make_empty({static_cast<i64>(p.delta.size())}, kI64);
    std::copy(p.delta.begin(), p.delta.end(), delta.data<i64>());
    add(kind + "_delta", delta);
    add(kind, p.values);
    if (p.kind == Kind::vectors || p.kind == Kind::added) {
      add("norm", vector_of(row_lengths(p.values)));
      if (p.kind == Kind::vectors && p.values.dim() == 2) add("cosine", row_products(p.values, true));
    }
    if (p.kind == Kind::multiplier) add("norm", vector_of(row_lengths(p.values.unsqueeze(-1))));
    if (p.kind == Kind::added) {
      const Tensor gram = row_products(p.values, false);
      add("gram", gram);
      add("gram_mean", vector_of(diagonal_means(gram)));
    }
  }
}

}  // namespace waymark::train
