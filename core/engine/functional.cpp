#include "core/engine/functional.h"

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"

namespace waymark {
namespace {

Tensor zeros_like_value(const Tensor& t) {
  Tensor z = make_empty(t.shape(), t.dtype());
  ops::fill_into(z, 0);
  return z;
}

// The inputs as leaves (create_graph: with their history, so that the result is differentiable).
std::vector<Tensor> as_leaves(const char* op, const std::vector<Tensor>& inputs, bool create_graph) {
  if (inputs.empty()) fail(op, "there is no input");
  std::vector<Tensor> out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = inputs[i];
    if (!t.defined() || !t.is_floating_point()) fail(op, "input {} is no float tensor", i);
    // A view of the caller's tensor keeps its history and is a tensor of its own.
    out.push_back(create_graph && t.requires_grad() ? view(t, t.shape()) : clone(detach(t)).requires_grad_());
  }
  return out;
}

std::vector<Tensor> call(const char* op, const TupleFunction& f, const std::vector<Tensor>& x) {
  const EnableGrad on;
  std::vector<Tensor> y = f(x);
  if (y.empty()) fail(op, "the function returned nothing");
  for (size_t k = 0; k < y.size(); ++k)
    if (!y[k].defined() || !y[k].is_floating_point()) fail(op, "output {} is no float tensor", k);
  return y;
}

void check_like(const char* op, const char* what, const std::vector<Tensor>& v, const std::vector<Tensor>& like) {
  if (v.size() != like.size()) fail(op, "{} vectors for {} {}s", v.size(), like.size(), what);
  for (size_t i = 0; i < v.size(); ++i)
    if (!v[i].defined() || v[i].shape() != like[i].shape() || v[i].dtype() != like[i].dtype())
      fail(op, "vector {} must be {} {} like {} {}", i, like[i].shape(), name_of(like[i].dtype()), what, i);
}

// Σ seeds · ∂roots/∂wanted, zeros where there is no path.
std::vector<Tensor> gradients(const std::vector<Tensor>& roots, const std::vector<Tensor>& seeds, const std::vector<Tensor>& wanted,
                              bool create_graph, bool retain) {
  std::vector<Tensor> r;
  RunOptions options{.retain_graph = retain, .create_graph = create_graph, .allow_unused = true};
  for (size_t k = 0; k < roots.size(); ++k) {
    if (!roots[k].requires_grad()) continue;
    r.push_back(roots[k]);
    options.seeds.push_back(seeds[k]);
  }
  std::vector<Tensor> out;
  if (r.empty()) {
    for (const Tensor& t : wanted) out.push_back(zeros_like_value(t));
    return out;
  }
  const GradMap map = grad(r, wanted, options);
  for (const Tensor& t : wanted) out.push_back(map.contains(t) ? map[t] : zeros_like_value(t));
  return out;
}

std::vector<Tensor> settled(std::vector<Tensor> v, bool create_graph) {
  if (!create_graph)
    for (Tensor& t : v) t = detach(t);
  return v;
}

Tensor ones_like_value(const Tensor& t) {
  Tensor one = make_empty(t.shape(), t.dtype());
  ops::fill_into(one, 1);
  return one;
}

void check_scalar(const char* op, const std::vector<Tensor>& y) {
  if (y.size() != 1 || y[0].numel() != 1)
    fail(op, "the function must return one element, it returned {} tensor{} ({})", y.size(), y.size() == 1 ? "" : "s", y[0].shape());
}

TupleFunction tuple_of(const SingleFunction& f) {
  return [f](const std::vector<Tensor>& v) { return std::vector<Tensor>{f(v[0])}; };
}

// Rows of the Jacobian of y with respect to x, for x with history.
std::vector<std::vector<Tensor>> jacobian_of(const std::vector<Tensor>& y, const std::vector<Tensor>& x, bool create_graph) {
  std::vector<std::vector<Tensor>> out;
  for (const Tensor& root : y) {
    std::vector<std::vector<Tensor>> rows(x.size());  // per input: one gradient per element of the output
    for (i64 e = 0; e < root.numel(); ++e) {
      Tensor seed = make_empty({root.numel()}, root.dtype());
      ops::fill_into(seed, 0);
      visit_float(seed.dtype(), [&](auto zero) { seed.data<decltype(zero)>()[e] = 1; });
      const auto g = gradients({root}, {view(seed, root.shape())}, x, create_graph, true);
      for (size_t i = 0; i < x.size(); ++i) rows[i].push_back(unsqueeze(g[i], 0));
    }
    out.emplace_back();
    for (size_t i = 0; i < x.size(); ++i) {
      Shape shape = root.shape();
      for (i64 extent : x[i].shape()) shape.push_back(extent);
      Tensor j;
      if (rows[i].empty()) {
        j = make_empty(shape, x[i].dtype());
      } else if (create_graph) {  // differentiable: each row lies in its window of zeros
        Shape flat = x[i].shape();
        flat.insert(0, root.numel());
        for (i64 e = 0; e < root.numel(); ++e) {
          const Window w{.kind = Window::Kind::slice, .dim = 0, .start = e, .length = 1};
          const Tensor part = ops::embed_window(rows[i][static_cast<size_t>(e)], flat, w);
          j = j.defined() ? j + part : part;
        }
        j = reshape(j, shape);
      } else {
        Shape flat = x[i].shape();
        flat.insert(0, root.numel());
        j = make_empty(flat, x[i].dtype());
        for (i64 e = 0; e < root.numel(); ++e)
          ops::copy_into(Window{.kind = Window::Kind::slice, .dim = 0, .start = e, .length = 1}.of(j), rows[i][static_cast<size_t>(e)]);
        j = reshape(j, shape);
      }
      out.back().push_back(std::move(j));
    }
  }
  return out;
}

}  // namespace

std::vector<std::vector<Tensor>> jacobian(const TupleFunction& f, const std::vector<Tensor>& inputs, bool create_graph) {
  const std::vector<Tensor> x = as_leaves("jacobian", inputs, create_graph);
  return jacobian_of(call("jacobian", f, x), x, create_graph);
}
Tensor jacobian(const SingleFunction& f, const Tensor& input, bool create_graph) {
  return jacobian(tuple_of(f), {input}, create_graph)[0][0];
}

std::vector<std::vector<Tensor>> hessian(const TupleFunction& f, const std::vector<Tensor>& inputs, bool create_graph) {
  const std::vector<Tensor> x = as_leaves("hessian", inputs, create_graph);
  const std::vector<Tensor> y = call("hessian", f, x);
  check_scalar("hessian", y);
  const std::vector<Tensor> g = gradients(y, {ones_like_value(y[0])}, x, true, true);
  return jacobian_of(g, x, create_graph);
}
Tensor hessian(const SingleFunction& f, const Tensor& input, bool create_graph) {
  return hessian(tuple_of(f), {input}, create_graph)[0][0];
}

FunctionAndProduct vjp(const TupleFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v, bool create_graph) {
  const std::vector<Tensor> x = as_leaves("vjp", inputs, create_graph);
  const std::vector<Tensor> y = call("vjp", f, x);
  std::vector<Tensor> seeds = v;
  if (seeds.empty()) {
    check_scalar("vjp", y);
    seeds.push_back(ones_like_value(y[0]));
  }
  check_like("vjp", "output", seeds, y);
  return {settled(y, create_graph), settled(gradients(y, seeds, x, create_graph, create_graph), create_graph)};
}

FunctionAndProduct jvp(const TupleFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v, bool create_graph) {
  const std::vector<Tensor> x = as_leaves("jvp", inputs, create_graph);
  check_like("jvp", "input", v, x);
  const std::vector<Tensor> y = call("jvp", f, x);
  // u ↦ uᵀ·J is linear in u; its derivative along v is J·v.
  std::vector<Tensor> u;
  for (const Tensor& t : y) u.push_back(zeros_like_value(t).requires_grad_());
  const std::vector<Tensor> g = gradients(y, u, x, true, true);
  return {settled(y, create_graph), settled(gradients(g, v, u, create_graph, create_graph), create_graph)};
}

FunctionAndProduct hvp(const TupleFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v, bool create_graph) {
  const std::vector<Tensor> x = as_leaves("hvp", inputs, create_graph);
  check_like("hvp", "input", v, x);
  const std::vector<Tensor> y = call("hvp", f, x);
  check_scalar("hvp", y);
  const std::vector<Tensor> g = gradients(y, {ones_like_value(y[0])}, x, true, true);
  return {settled(y, create_graph), settled(gradients(g, v, x, create_graph, create_graph), create_graph)};
}

}  // namespace waymark
