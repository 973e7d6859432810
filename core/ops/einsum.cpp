#include "core/ops/einsum.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "core/ops/arithmetic.h"
#include "core/ops/matmul.h"
#include "core/ops/products.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark {

using namespace ops;

namespace {

// A label names an axis: letters by their code, the axes of "..." by 256 + their place counted from the right.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;

std::string text_of(Label l) { return l >= kEllipsis ? "of ..." : std::string(1, static_cast<char>(l)); }
bool contains(const Labels& list, Label l) { return std::find(list.begin(), list.end(), l) != list.end(); }

struct Term {
  Labels letters;
  int ellipsis = -1;  // place among the letters; -1: none
};

Term parse_term(std::string_view text, Loc loc) {
  Term t;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.' && text.substr(i, 3) == "..." && t.ellipsis < 0) {
      t.ellipsis = static_cast<int>(t.letters.size());
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      t.letters.push_back(c);
    } else {
      fail_at(loc, "einsum", "'{}' in the term \"{}\" is no letter and no ellipsis", c, text);
    }
  }
  return t;
}

std::vector<std::string_view> split_at(std::string_view text, char c) {
  std::vector<std::string_view> out;
  for (size_t begin = 0;;) {
    const size_t end = text.find(c, begin);
    out.push_back(text.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return out;
    begin = end + 1;
  }
}

// An operand on its way: a tensor and the labels of its axes, each once.
struct Operand {
  Tensor t;
  Labels labels;
  i64 extent(Label l) const {
    for (size_t i = 0; i < labels.size(); ++i)
      if (labels[i] == l) return t.shape()[static_cast<int>(i)];
    return 1;
  }
};

// Axes in this order; labels that the operand lacks become axes of extent 1.
Tensor arranged(const Operand& x, const Labels& order, Loc loc) {
  std::vector<i64> dims;
  Shape shape;
  bool moves = false;
  for (const Label l : order) {
    const auto at = std::find(x.labels.begin(), x.labels.end(), l);
    shape.push_back(x.extent(l));
    if (at == x.labels.end()) continue;
    moves |= at - x.labels.begin() != static_cast<std::ptrdiff_t>(dims.size());
    dims.push_back(at - x.labels.begin());
  }
  const Tensor t = moves ? permute(Arg(x.t, loc), dims) : x.t;
  return t.shape() == shape ? t : reshape(Arg(t, loc), shape);
}

// Sums over the labels that nobody needs any more.
Operand without(Operand x, const Labels& needed, Loc loc) {
  std::vector<i64> gone;
  Labels kept;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    if (contains(needed, x.labels[i])) kept.push_back(x.labels[i]);
    else gone.push_back(static_cast<i64>(i));
  }
  if (!gone.empty()) x.t = sum(Arg(x.t, loc), gone);
  x.labels = kept;
  return x;
}

// An axis of extent 1 that meets a longer one contributes nothing but its value.
void drop_unit_axes(Operand& x, const Operand& other, Loc loc) {
  std::vector<i64> dims;
  Labels kept;
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const Label l = x.labels[i];
    if (contains(other.labels, l) && x.t.shape()[static_cast<int>(i)] == 1 && other.extent(l) != 1) dims.push_back(static_cast<i64>(i));
    else kept.push_back(l);
  }
  if (dims.empty()) return;
  x.t = squeeze(Arg(x.t, loc), dims);
  x.labels = kept;
}

i64 product_of(const Operand& x, const Labels& labels) {
  i64 n = 1;
  for (const Label l : labels) n *= x.extent(l);
  return n;
}

// One product of two operands; `needed`: labels of the result or of other operands.
Operand contract(Operand a, Operand b, const Labels& needed, Loc loc) {
  drop_unit_axes(a, b, loc);
  drop_unit_axes(b, a, loc);
  const auto with = [](Labels list, const Labels& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
  };
  a = without(std::move(a), with(needed, b.labels), loc);
  b = without(std::move(b), with(needed, a.labels), loc);
  Labels batch, rows, inner, columns;
  for (const Label l : a.labels) {
    if (!contains(b.labels, l)) rows.push_back(l);
    else if (contains(needed, l)) batch.push_back(l);
    else inner.push_back(l);
  }
  for (const Label l : b.labels)
    if (!contains(a.labels, l)) columns.push_back(l);
  if (inner.empty()) {  // nothing to sum: an elementwise product
    const Labels order = with(with(batch, rows), columns);
    return {mul(Arg(arranged(a, order, loc), loc), arranged(b, order, loc)), order};
  }
  Shape left, right, result;
  for (const Label l : batch) {
    left.push_back(a.extent(l));
    right.push_back(b.extent(l));
    result.push_back(a.extent(l));
  }
  const i64 m = product_of(a, rows), k = product_of(a, inner), n = product_of(b, columns);
  left.push_back(m);
  left.push_back(k);
  right.push_back(k);
  right.push_back(n);
  for (const Label l : rows) result.push_back(a.extent(l));
  for (const Label l : columns) result.push_back(b.extent(l));
  const Tensor x = reshape(Arg(arranged(a, with(with(batch, rows), inner), loc), loc), left);
  const Tensor y = reshape(Arg(arranged(b, with(with(batch, inner), columns), loc), loc), right);
  return {reshape(Arg(matmul(Arg(x, loc), y), loc), result), with(with(batch, rows), columns)};
}

// Elements of the result of contracting i with j.
double result_size(const Operand& a, const Operand& b, const Labels& needed) {
  double size = 1;
  for (const Operand* x : {&a, &b})
    for (const Label l : x->labels) {
      if (!contains(needed, l) || (x == &b && contains(a.labels, l))) continue;
      size *= static_cast<double>(std::max(a.extent(l), b.extent(l)));
    }
  return size;
}

// The diagonal of every repeated letter, and labels for the axes of "...".
Operand prepared(const Tensor& t, const Term& term, size_t number, std::string_view text, Loc loc) {
  const int letters = static_cast<int>(term.letters.size()), more = t.dim() - letters;
  if (more < 0 || (more > 0 && term.ellipsis < 0))
    fail_at(loc, "einsum", "operand {} has {} axes ({}), its term \"{}\" has {}", number, t.dim(), t.shape(), text, letters);
  Operand x{t, {}};
  for (int i = 0; i <= letters; ++i) {
    if (i == term.ellipsis)
      for (int e = more; e > 0; --e) x.labels.push_back(kEllipsis + e);
    if (i < letters) x.labels.push_back(term.letters[static_cast<size_t>(i)]);
  }
  for (size_t i = 0; i < x.labels.size(); ++i)
    for (size_t j = i + 1; j < x.labels.size(); ++j) {
      if (x.labels[i] != x.labels[j]) continue;
      const i64 n = x.t.shape()[static_cast<int>(i)], m = x.t.shape()[static_cast<int>(j)];
      if (n != m) fail_at(loc, "einsum", "letter {} has sizes {} and {} in operand {}", text_of(x.labels[i]), n, m, number);
      x.t = diagonal(Arg(x.t, loc), 0, static_cast<i64>(i), static_cast<i64>(j));
      const Label l = x.labels[i];
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(j));
      x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
      x.labels.push_back(l);
      i = static_cast<size_t>(-1);  // from the start: the axes have moved
      break;
    }
  return x;
}

void check_sizes(const std::vector<Operand>& list, Loc loc) {
  for (size_t i = 0; i < list.size(); ++i)
    for (const Label l : list[i].labels)
      for (size_t j = 0; j < i; ++j) {
        if (!contains(list[j].labels, l)) continue;
        const i64 a = list[j].extent(l), b = list[i].extent(l);
        if (a != b && a != 1 && b != 1)
          fail_at(loc, "einsum", "letter {} has size {} in operand {}, but {} in operand {}", text_of(l), a, j, b, i);
      }
}

// Labels of the result.
Labels output_labels(std::string_view equation, std::optional<std::string_view> given, const std::vector<Operand>& list,
                     const std::vector<Term>& terms, Loc loc) {
  int ellipsis_axes = 0;
  for (const Operand& x : list)
    for (const Label l : x.labels) ellipsis_axes = std::max(ellipsis_axes, l - kEllipsis);
  Labels out;
  const auto add_ellipsis = [&] {
    for (int e = ellipsis_axes; e > 0; --e) out.push_back(kEllipsis + e);
  };
  if (!given) {
    add_ellipsis();
    std::array<int, 256> count{};
    for (const Term& t : terms)
      for (const Label l : t.letters) ++count[static_cast<size_t>(l)];
    for (Label l = 0; l < kEllipsis; ++l)
      if (count[static_cast<size_t>(l)] == 1) out.push_back(l);
    return out;
  }
  const Term term = parse_term(*given, loc);
  for (size_t i = 0; i <= term.letters.size(); ++i) {
    if (static_cast<int>(i) == term.ellipsis) add_ellipsis();
    if (i == term.letters.size()) break;
    const Label l = term.letters[i];
    if (contains(out, l)) fail_at(loc, "einsum", "output letter {} appears twice in \"{}\"", text_of(l), equation);
    const bool known = std::any_of(list.begin(), list.end(), [&](const Operand& x) { return contains(x.labels, l); });
    if (!known) fail_at(loc, "einsum", "output letter {} of \"{}\" is in no operand", text_of(l), equation);
    out.push_back(l);
  }
  return out;
}

}  // namespace

extern constexpr OpInfo kEinsum{
    .name = "einsum", .family = "matmul", .doc = "sum of products, axes named by letters; by permute, sum, mul and matmul",
    .schema = "einsum(str equation, Tensor[] operands) -> Tensor", .formula = "y = Σ over the letters that are not in the result of Π xᵢ",
    .rule = "dxᵢ = einsum of g with the other operands; by the rules of its ops",
    .apply = [](OpCall& c) { c.result(einsum(c.word("equation"), c.tensors("operands"))); }};

Tensor einsum(std::string_view equation, TensorList operands) {
  const Loc loc = operands.loc();
  const size_t arrow = equation.find("->");
  const std::vector<std::string_view> texts = split_at(equation.substr(0, arrow), ',');
  if (texts.size() != operands.size())
    fail_at(loc, "einsum", "the equation \"{}\" names {} operands, got {}", equation, texts.size(), operands.size());
  std::vector<Term> terms;
  std::vector<Operand> list;
  for (size_t i = 0; i < texts.size(); ++i) {
    check_defined("einsum", Arg(operands[i], loc));
    check_product_dtypes("einsum", Arg(operands[0], loc), Arg(operands[i], loc));
    terms.push_back(parse_term(texts[i], loc));
  }
  for (size_t i = 0; i < texts.size(); ++i) list.push_back(prepared(operands[i], terms[i], i, texts[i], loc));
  check_sizes(list, loc);
  const std::optional<std::string_view> given =
      arrow == std::string_view::npos ? std::nullopt : std::optional(equation.substr(arrow + 2));
  const Labels out = output_labels(equation, given, list, terms, loc);

  // What must survive the contraction of i and j.
  const auto needed_beside = [&](size_t i, size_t j) {
    Labels needed = out;
    for (size_t k = 0; k < list.size(); ++k)
      if (k != i && k != j) needed.insert(needed.end(), list[k].labels.begin(), list[k].labels.end());
    return needed;
  };
  while (list.size() > 1) {
    size_t best_i = 0, best_j = 1;
    double best = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < list.size(); ++i)
      for (size_t j = i + 1; j < list.size(); ++j) {
        const double size = result_size(list[i], list[j], needed_beside(i, j));
        if (size < best) {
          best = size;
          best_i = i;
          best_j = j;
        }
      }
    list[best_i] = contract(list[best_i], list[best_j], needed_beside(best_i, best_j), loc);
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(best_j));
  }
  return arranged(without(list[0], out, loc), out, loc);
}

// ---- tensordot, kron ------------------------------------------------------------------------------------------------

extern constexpr OpInfo kTensordot{
    .name = "tensordot", .family = "matmul", .doc = "sum over pairs of axes; by permute, reshape and matmul",
    .schema = "tensordot(Tensor a, Tensor b, int|int[][] dims=2) -> Tensor", .formula = "y = Σ over the paired axes of a·b",
    .rule = "da = tensordot of g and b,  db = tensordot of a and g; by the rules of its ops",
    .apply = [](OpCall& c) {
      if (c.is_list("dims")) {
        const std::vector<std::vector<i64>> dims = c.lists("dims");
        if (dims.size() != 2) fail("tensordot", "dims is a number or two lists of axes");
        c.result(tensordot(c.tensor("a"), c.tensor("b"), dims[0], dims[1]));
      } else {
        c.result(tensordot(c.tensor("a"), c.tensor("b"), c.integer("dims", 2)));
      }
    }};

Tensor tensordot(Arg a, Arg b, const std::vector<i64>& dims_a, const std::vector<i64>& dims_b) {
  check_defined("tensordot", a);
  check_defined("tensordot", b);
  check_product_dtypes("tensordot", a, b);
  if (dims_a.size() != dims_b.size())
    fail_at(a.loc(), "tensordot", "{} axes of the first operand, but {} of the second", dims_a.size(), dims_b.size());
  const auto wrapped = [&](const std::vector<i64>& dims, int axes) {
    std::vector<i64> out;
    for (const i64 d : dims) {
      out.push_back(wrap_dim("tensordot", d, axes));
      if (std::count(out.begin(), out.end(), out.back()) > 1) fail_at(a.loc(), "tensordot", "axis {} appears twice", d);
    }
    return out;
  };
  const std::vector<i64> da = wrapped(dims_a, a->dim()), db = wrapped(dims_b, b->dim());
  i64 inner = 1;
  for (size_t i = 0; i < da.size(); ++i) {
    const i64 n = a->shape()[static_cast<int>(da[i])], m = b->shape()[static_cast<int>(db[i])];
    if (n != m) fail_at(a.loc(), "tensordot", "axis {} of {} and axis {} of {} differ ({} != {})", da[i], a->shape(), db[i], b->shape(), n, m);
    inner *= n;
  }
  Shape shape;
  const auto free_axes = [&](const Tensor& t, const std::vector<i64>& dims, i64& count) {
    std::vector<i64> out;
    count = 1;
    for (int i = 0; i < t.dim(); ++i)
      if (std::find(dims.begin(), dims.end(), i) == dims.end()) {
        out.push_back(i);
        shape.push_back(t.shape()[i]);
        count *= t.shape()[i];
      }
    return out;
  };
  i64 m = 1, n = 1;
  std::vector<i64> left = free_axes(*a, da, m), right = db;
  const std::vector<i64> free_b = free_axes(*b, db, n);
  left.insert(left.end(), da.begin(), da.end());
  right.insert(right.end(), free_b.begin(), free_b.end());
  const Tensor x = reshape(Arg(permute(a, left), a.loc()), {m, inner}), y = reshape(Arg(permute(b, right), a.loc()), {inner, n});
  return reshape(Arg(matmul(Arg(x, a.loc()), y), a.loc()), shape);
}

Tensor tensordot(Arg a, Arg b, i64 dims) {
  check_defined("tensordot", a);
  check_defined("tensordot", b);
  if (dims < 0 || dims > a->dim() || dims > b->dim())
    fail_at(a.loc(), "tensordot", "{} axes cannot be paired in {} and {}", dims, a->shape(), b->shape());
  std::vector<i64> da, db;
  for (i64 i = 0; i < dims; ++i) {
    da.push_back(a->dim() - dims + i);
    db.push_back(i);
  }
  return tensordot(a, b, da, db);
}

extern constexpr OpInfo kKron{
    .name = "kron", .family = "matmul", .doc = "Kronecker product; by reshape and mul", .schema = "kron(Tensor input, Tensor other) -> Tensor",
    .formula = "y[i·p + k, j·q + l] = a[i, j]·b[k, l]", .rule = "da = Σ of g⊙b over the blocks,  db = Σ of g⊙a; by the rules of its ops",
    .apply = [](OpCall& c) { c.result(kron(c.tensor("input"), c.tensor("other"))); }};

Tensor kron(Arg a, Arg b) {
  check_defined("kron", a);
  check_defined("kron", b);
  const int axes = std::max(a->dim(), b->dim());
  Shape left, right, shape;
  for (int i = 0; i < axes; ++i) {
    const auto extent = [&](const Tensor& t) { return i < axes - t.dim() ? i64{1} : t.shape()[i - (axes - t.dim())]; };
    const i64 n = extent(*a), m = extent(*b);
    for (const auto& [s, e, f] : {std::tuple{&left, n, i64{1}}, std::tuple{&right, i64{1}, m}}) {
      s->push_back(e);
      s->push_back(f);
    }
    shape.push_back(n * m);
  }
  const Tensor x = reshape(a, left), y = reshape(b, right);
  return reshape(Arg(mul(Arg(x, a.loc()), y), a.loc()), shape);
}

}  // namespace waymark
