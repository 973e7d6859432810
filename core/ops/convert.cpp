#include "core/ops/convert.h"

#include "core/ops/elementwise.h"

namespace waymark {

using namespace ops;

extern constexpr OpInfo kTo{
    .name = "to", .family = "convert", .doc = "conversion to another dtype", .schema = "to(Tensor input, dtype dtype) -> Tensor",
    .formula = "y = (dtype) x", .rule = "dx = g, cast back to x's dtype",
    .apply = [](OpCall& c) { c.result(to(c.tensor("input"), c.dtype("dtype").value_or(default_dtype()))); }};

Tensor to(Arg x, DType dtype) {
  check_defined("to", x);
  if (x->dtype() == dtype) return *x;
  return record(kTo, cast_value(*x, dtype), {x}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; };  // the edge casts
  }, [&](Attrs& at) { at("dtype", std::string(name_of(dtype))); });
}

extern constexpr OpInfo kClone{
    .name = "clone", .family = "convert", .doc = "copy in new memory", .schema = "clone(Tensor input) -> Tensor",
    .formula = "y = x", .rule = "dx = g", .apply = [](OpCall& c) { c.result(clone(c.tensor("input"))); }};

Tensor clone(Arg x) {
  check_defined("clone", x);
  Tensor y = make_empty_like(*x, x->dtype());
  copy_into(y, *x);
  return record(kClone, std::move(y), {x}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; };
  });
}

extern constexpr OpInfo kContiguous{
    .name = "contiguous", .family = "convert", .doc = "row-major layout; the tensor itself if it has it",
    .schema = "contiguous(Tensor input) -> Tensor", .formula = "y = x", .rule = "dx = g",
    .apply = [](OpCall& c) { c.result(contiguous(c.tensor("input"))); }};

Tensor contiguous(Arg x) {
  check_defined("contiguous", x);
  if (x->is_contiguous()) return *x;
  return record(kContiguous, contiguous_value(*x), {x}, [](Saver&) {
    return [](Tensor g, const Need&) -> Grads { return {std::move(g)}; };
  });
}

extern constexpr OpInfo kDetach{
    .name = "detach", .family = "convert", .doc = "the same values without history", .schema = "detach(Tensor input) -> Tensor",
    .formula = "y = x", .rule = not_differentiable("detach cuts the history on purpose"), .view = true,
    .apply = [](OpCall& c) { c.result(detach(c.tensor("input"))); }};

Tensor detach(Arg x) {
  check_defined("detach", x);
  return record_nondiff(kDetach, alias(*x), {x});
}

}  // namespace waymark
