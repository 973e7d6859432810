#include "core/ops/join.h"

#include <algorithm>

#include "core/ops/create.h"
#include "core/ops/elementwise.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kCat{.name = "cat",
                             .family = "join",
                             .doc = "tensors one after the other along an axis",
                             .schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
                             .formula = "y = [x₀; x₁; …]",
                             .rule = "dxᵢ = its part of g",
                             .apply = [](OpCall& c) { c.result(cat(c.tensors("tensors"), c.integer("dim", 0))); }};
extern constexpr OpInfo kStack{.name = "stack",
                               .family = "join",
                               .doc = "tensors of one shape along a new axis",
                               .schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
                               .formula = "y[i] = xᵢ",
                               .rule = "dxᵢ = g[i]",
                               .apply = [](OpCall& c) { c.result(stack(c.tensors("tensors"), c.integer("dim", 0))); }};
extern constexpr OpInfo kHstack{.name = "hstack",
                                .family = "join",
                                .doc = "cat on axis 1, of 1-d tensors on axis 0",
                                .schema = "hstack(Tensor[] tensors) -> Tensor",
                                .formula = "y = [x₀, x₁, …]",
                                .rule = "as cat",
                                .apply = [](OpCall& c) { c.result(hstack(c.tensors("tensors"))); }};
extern constexpr OpInfo kVstack{.name = "vstack",
                                .family = "join",
                                .doc = "cat on axis 0 of tensors with at least 2 axes",
                                .schema = "vstack(Tensor[] tensors) -> Tensor",
                                .formula = "y = [x₀; x₁; …]",
                                .rule = "as cat",
                                .apply = [](OpCall& c) { c.result(vstack(c.tensors("tensors"))); }};

static void list_results(OpCall& c, const std::vector<Tensor>& list) {
  for (size_t i = 0; i < list.size(); ++i) c.result(std::to_string(i), list[i]);
}

#define WAYMARK_PIECES(K, NAME, DOC, SCHEMA, FORMULA, RULE, ...) \
  extern constexpr OpInfo K{.name = NAME,                        \
                            .family = "join",                    \
                            .doc = DOC,                          \
                            .schema = SCHEMA,                    \
                            .formula = FORMULA,                  \
                            .rule = RULE,                        \
                            .saves = {{"shape", For{0}}},        \
                            .view = true,                        \
                            .apply = [](OpCall& c) { __VA_ARGS__ }};
WAYMARK_PIECES(kSplit, "split", "views of given lengths along an axis",
               "split(Tensor input, int[] split_size_or_sections, int dim=0) -> Tensor[]", "y₀, y₁, … = x in pieces",
               "dx = cat of the g's, zeros where none arrived",
               const std::vector<i64> sizes = c.list("split_size_or_sections");
               const i64 dim = c.integer("dim", 0);
               list_results(c, sizes.size() == 1 ? split(c.tensor("input"), sizes[0], dim)
                                                 : split(c.tensor("input"), sizes, dim));)
WAYMARK_PIECES(kChunk, "chunk", "views: pieces of ⌈n/chunks⌉ along an axis",
               "chunk(Tensor input, int chunks, int dim=0) -> Tensor[]", "y₀, y₁, … = x in pieces",
               "dx = cat of the g's, zeros where none arrived",
               list_results(c, chunk(c.tensor("input"), c.integer("chunks"), c.integer("dim", 0)));)
WAYMARK_PIECES(kTensorSplit, "tensor_split", "views: exactly so many pieces along an axis, or cut at given places",
               "tensor_split(Tensor input, int[] indices_or_sections, int dim=0) -> Tensor[]",
               "y₀, y₁, … = x in pieces", "dx = cat of the g's, zeros where none arrived",
               const std::vector<i64> at = c.list("indices_or_sections");
               const i64 dim = c.integer("dim", 0);
               list_results(c, at.size() == 1 ? tensor_split(c.tensor("input"), at[0], dim)
                                              : tensor_split(c.tensor("input"), at, dim));)
WAYMARK_PIECES(kUnbind, "unbind", "views: the slices of an axis", "unbind(Tensor input, int dim=0) -> Tensor[]",
               "yᵢ = x[i]", "dx = stack of the g's, zeros where none arrived",
               list_results(c, unbind(c.tensor("input"), c.integer("dim", 0)));)
WAYMARK_PIECES(kMeshgrid, "meshgrid", "coordinate grids", "meshgrid(Tensor[] tensors, str indexing=\"ij\") -> Tensor[]",
               "yᵢ[j₀, j₁, …] = xᵢ[jᵢ]", "dxᵢ = g summed over the other axes",
               list_results(c, meshgrid(c.tensors("tensors"), c.word("indexing", "ij")));)

namespace {

void check_list(std::string_view op, const TensorList& list) {
  if (list.size() == 0) fail_at(list.loc(), op, "needs at least one tensor");
  for (const Tensor& t : list) check_defined(op, Arg(t, list.loc()));
}

// Window [start, start + length) of axis d.
Tensor section_of(const Tensor& t, int d, i64 start, i64 length) {
  return Window{.kind = Window::Kind::slice, .dim = d, .start = start, .length = length, .step = 1}.of(t);
}

// 1-d tensors of extent 0 say nothing among tensors of another rank (a rule of PyTorch's that programs rely on).
bool skipped(const Tensor& t) { return t.dim() == 1 && t.shape()[0] == 0; }

}  // namespace

Tensor cat(TensorList list, i64 dim) {
  check_list("cat", list);
  size_t first = list.size();
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].dim() == 0) fail_at(list.loc(), "cat", "tensor {} is 0-d and has no axis; use stack", i);
    if (first == list.size() && !skipped(list[i])) first = i;
  }
  if (first == list.size()) first = 0;
  const Tensor& like = list[first];
  const int d = wrap_dim("cat", dim, like.dim());
  Shape shape = like.shape();
  shape[d] = 0;
  std::vector<i64> lengths;  // -1: skipped
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor& t = list[i];
    if (skipped(t) && like.dim() != 1) {
      lengths.push_back(-1);
      continue;
    }
    if (t.dim() != like.dim())
      fail_at(list.loc(), "cat", "tensor {} has {} axes ({}), tensor {} has {} ({})", i, t.dim(), t.shape(), first,
              like.dim(), like.shape());
    for (int a = 0; a < t.dim(); ++a)
      if (a != d && t.shape()[a] != like.shape()[a])
        fail_at(list.loc(), "cat",
                "tensor {} is {}, tensor {} is {}; they may differ on axis {} only (axis {}: {} vs {})", i, t.shape(),
                first, like.shape(), d, a, t.shape()[a], like.shape()[a]);
    lengths.push_back(t.shape()[d]);
    shape[d] += t.shape()[d];
  }
  const DType dtype = promote(list.span());
  checked_numel("cat", shape, size_of(dtype));
  Tensor y = make_empty(shape, dtype);
  i64 at = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (lengths[i] <= 0) continue;
    copy_into(section_of(y, d, at, lengths[i]), list[i]);
    at += lengths[i];
  }
  return record(
      kCat, std::move(y), Inputs(list.span(), list.loc()),
      [&](Saver&) {
        return [d, lengths](Tensor g, const Need& need) -> Grads {
          Grads out(lengths.size());
          i64 start = 0;
          for (size_t i = 0; i < lengths.size(); ++i) {
            if (need[i]) out[i] = lengths[i] < 0 ? zeros({0}, g.dtype()) : narrow(g, d, start, lengths[i]);
            start += std::max<i64>(lengths[i], 0);
          }
          return out;
        };
      },
      [&](Attrs& a) { a("dim", i64{d}); });
}

Tensor stack(TensorList list, i64 dim) {
  check_list("stack", list);
  const Tensor& like = list[0];
  const int d = wrap_dim("stack", dim, like.dim() + 1);
  for (size_t i = 1; i < list.size(); ++i)
    if (!(list[i].shape() == like.shape()))
      fail_at(list.loc(), "stack", "tensor {} is {}, tensor 0 is {}; all shapes must be equal", i, list[i].shape(),
              like.shape());
  Shape shape = like.shape();
  shape.insert(d, static_cast<i64>(list.size()));
  const DType dtype = promote(list.span());
  checked_numel("stack", shape, size_of(dtype));
  Tensor y = make_empty(shape, dtype);
  for (size_t i = 0; i < list.size(); ++i)
    copy_into(Window{.kind = Window::Kind::select, .dim = d, .start = static_cast<i64>(i)}.of(y), list[i]);
  return record(
      kStack, std::move(y), Inputs(list.span(), list.loc()),
      [&](Saver&) {
        return [d, n = list.size()](Tensor g, const Need& need) -> Grads {
          Grads out(n);
          for (size_t i = 0; i < n; ++i)
            if (need[i]) out[i] = select(g, d, static_cast<i64>(i));
          return out;
        };
      },
      [&](Attrs& a) { a("dim", i64{d}); });
}

static Tensor cat_of_rank(std::string_view op, const TensorList& list, int rank) {
  check_list(op, list);
  std::vector<Tensor> tensors;
  for (const Tensor& t : list) {
    if (t.dim() == 0)
      tensors.push_back(reshape(Arg(t, list.loc()), Shape(rank, 1)));
    else if (t.dim() < rank)
      tensors.push_back(unsqueeze(Arg(t, list.loc()), 0));
    else
      tensors.push_back(t);
  }
  return cat(TensorList(tensors, list.loc()), rank == 2 || tensors[0].dim() == 1 ? 0 : 1);
}
Tensor hstack(TensorList list) { return cat_of_rank("hstack", list, 1); }
Tensor vstack(TensorList list) { return cat_of_rank("vstack", list, 2); }

// ---- pieces ---------------------------------------------------------------------------------------------------------

namespace {

std::vector<Tensor> pieces(const OpInfo& op, const Arg& x, int d, const std::vector<i64>& lengths) {
  std::vector<Tensor> out;
  i64 start = 0;
  for (const i64 n : lengths) {
    out.push_back(section_of(*x, d, start, n));
    remember_base(out.back(), *x, true);
    start += n;
  }
  if (out.empty()) return out;
  record_many(
      op, out, {x},
      [&](Saver& s) {
        return [d, lengths, shape = s.shape(0), t = x->dtype()](std::span<Tensor> g, const Need&) -> Grads {
          std::vector<Tensor> parts;
          for (size_t i = 0; i < lengths.size(); ++i) {
            Shape piece = shape;
            piece[d] = lengths[i];
            parts.push_back(g[i].defined() ? g[i] : zeros(piece, t));
          }
          return {cat(parts, d)};
        };
      },
      [&](Attrs& a) {
        a("dim", i64{d});
        if (op.name == "chunk") {
          a("chunks", static_cast<i64>(lengths.size()));
        } else if (op.name == "split") {
          a("split_size_or_sections", lengths);
        } else {
          std::vector<i64> places;  // where the pieces after the first begin
          for (size_t i = 0; i + 1 < lengths.size(); ++i) places.push_back(lengths[i] + (i ? places.back() : 0));
          a("indices_or_sections", places);
        }
      });
  return out;
}

int check_axis(std::string_view op, const Arg& x, i64 dim) {
  check_defined(op, x);
  if (x->dim() == 0) fail_at(x.loc(), op, "a 0-d tensor has no axis to cut");
  return wrap_dim(op, dim, x->dim());
}

std::vector<Tensor> equal_pieces(const OpInfo& op, const Arg& x, int d, i64 size) {
  std::vector<i64> lengths;
  const i64 n = x->shape()[d];
  for (i64 at = 0; at < n; at += lengths.back()) lengths.push_back(std::min(size, n - at));
  if (lengths.empty()) lengths.push_back(0);
  return pieces(op, x, d, lengths);
}

}  // namespace

std::vector<Tensor> split(Arg x, i64 split_size, i64 dim) {
  const int d = check_axis("split", x, dim);
  if (split_size < 0 || (split_size == 0 && x->shape()[d] > 0))
    fail_at(x.loc(), "split", "split_size must be positive, got {}", split_size);
  return equal_pieces(kSplit, x, d, split_size);
}
std::vector<Tensor> split(Arg x, const std::vector<i64>& sizes, i64 dim) {
  const int d = check_axis("split", x, dim);
  i64 total = 0;
  for (const i64 n : sizes) {
    if (n < 0) fail_at(x.loc(), "split", "the sizes [{}] must not be negative", fmt::join(sizes, ", "));
    if (__builtin_add_overflow(total, n, &total))
      fail_at(x.loc(), "split", "the sizes [{}] are too large", fmt::join(sizes, ", "));
  }
  if (total != x->shape()[d])
    fail_at(x.loc(), "split", "the sizes [{}] add up to {}, but axis {} has extent {}", fmt::join(sizes, ", "), total,
            d, x->shape()[d]);
  return pieces(kSplit, x, d, sizes);
}
std::vector<Tensor> chunk(Arg x, i64 chunks, i64 dim) {
  const int d = check_axis("chunk", x, dim);
  if (chunks <= 0) fail_at(x.loc(), "chunk", "chunks must be positive, got {}", chunks);
  const i64 n = x->shape()[d];
  if (n == 0) return pieces(kChunk, x, d, std::vector<i64>(static_cast<size_t>(chunks), 0));
  return equal_pieces(kChunk, x, d, n / chunks + (n % chunks != 0));
}
std::vector<Tensor> tensor_split(Arg x, i64 sections, i64 dim) {
  const int d = check_axis("tensor_split", x, dim);
  if (sections <= 0) fail_at(x.loc(), "tensor_split", "sections must be positive, got {}", sections);
  const i64 n = x->shape()[d];
  std::vector<i64> lengths;
  for (i64 i = 0; i < sections; ++i) lengths.push_back(n / sections + (i < n % sections));
  return pieces(kTensorSplit, x, d, lengths);
}
std::vector<Tensor> tensor_split(Arg x, const std::vector<i64>& indices, i64 dim) {
  const int d = check_axis("tensor_split", x, dim);
  // Places as those of slices: clamped, negative ones from the end; a place before the last one gives an empty piece.
  const i64 n = x->shape()[d];
  std::vector<i64> ends;
  for (const i64 at : indices) ends.push_back(std::clamp<i64>(at < 0 ? at + n : at, 0, n));
  ends.push_back(n);
  const bool ascending = std::is_sorted(ends.begin(), ends.end());
  if (!ascending) fail_at(x.loc(), "tensor_split", "the places [{}] must not descend", fmt::join(indices, ", "));
  std::vector<i64> lengths;
  for (size_t i = 0; i < ends.size(); ++i) lengths.push_back(ends[i] - (i ? ends[i - 1] : 0));
  return pieces(kTensorSplit, x, d, lengths);
}

std::vector<Tensor> unbind(Arg x, i64 dim) {
  const int d = check_axis("unbind", x, dim);
  std::vector<Tensor> out;
  for (i64 i = 0; i < x->shape()[d]; ++i) {
    out.push_back(Window{.kind = Window::Kind::select, .dim = d, .start = i}.of(*x));
    remember_base(out.back(), *x, true);
  }
  if (out.empty()) return out;
  record_many(
      kUnbind, out, {x},
      [&](Saver& s) {
        return [d, shape = s.shape(0), t = x->dtype()](std::span<Tensor> g, const Need&) -> Grads {
          Shape one = shape;
          one.erase(d);
          std::vector<Tensor> parts;
          for (const Tensor& gi : g) parts.push_back(gi.defined() ? gi : zeros(one, t));
          return {stack(parts, d)};
        };
      },
      [&](Attrs& a) { a("dim", i64{d}); });
  return out;
}

std::vector<Tensor> meshgrid(TensorList list, std::string_view indexing) {
  check_list("meshgrid", list);
  if (indexing != "ij" && indexing != "xy")
    fail_at(list.loc(), "meshgrid", "indexing must be \"ij\" or \"xy\", got \"{}\"", indexing);
  Shape shape;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].dim() > 1) fail_at(list.loc(), "meshgrid", "tensor {} must have 1 axis, got {}", i, list[i].shape());
    shape.push_back(list[i].numel());
  }
  const bool swap = indexing == "xy" && list.size() > 1;
  if (swap) std::swap(shape[0], shape[1]);
  std::vector<Tensor> out;
  for (size_t i = 0; i < list.size(); ++i) {
    const int axis = static_cast<int>(swap && i < 2 ? 1 - i : i);
    Shape own(shape.size(), 1);
    own[axis] = list[i].numel();
    out.push_back(expand(Arg(reshape(Arg(list[i], list.loc()), own), list.loc()), shape));
  }
  return out;
}

}  // namespace waymark
