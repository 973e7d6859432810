// Cases of size 0 and without axes for every op that has them; the other cases stand with the families.
#include "tests/ops/op_case.h"

namespace waymark::test {
namespace {

CaseArg within(CaseArg a, double low, double high) { return std::move(a).range(low, high); }

}  // namespace

OP_CASES(small_elementwise) {
  struct Domain {
    const char* op;
    double low, high;
  };
  const Domain one[] = {
      {"neg", -2, 2},        {"abs", 0.3, 2},      {"square", -2, 2},     {"reciprocal", 0.3, 2}, {"sqrt", 0.3, 2},
      {"rsqrt", 0.3, 2},     {"exp", -2, 2},       {"log", 0.3, 2},       {"sin", -2, 2},         {"cos", -2, 2},
      {"tanh", -2, 2},       {"sigmoid", -2, 2},   {"erf", -2, 2},        {"sign", 0.3, 2},       {"floor", 0.2, 0.8},
      {"ceil", 0.2, 0.8},    {"exp2", -2, 2},      {"expm1", -2, 2},      {"log2", 0.3, 2},       {"log10", 0.3, 2},
      {"log1p", -0.5, 2},    {"tan", -1, 1},       {"asin", -0.8, 0.8},   {"acos", -0.8, 0.8},    {"atan", -2, 2},
      {"sinh", -2, 2},       {"cosh", -2, 2},      {"asinh", -2, 2},      {"acosh", 1.3, 3},      {"atanh", -0.8, 0.8},
      {"erfc", -2, 2},       {"erfinv", -0.7, 0.7}, {"logit", 0.2, 0.8},  {"nan_to_num", -2, 2},  {"positive", -2, 2},
      {"trunc", 0.2, 0.8},   {"frac", 0.2, 0.8},   {"round", 0.1, 0.4},   {"clone", -2, 2},       {"contiguous", -2, 2},
      {"relu", 0.3, 2},      {"gelu", -2, 2},      {"silu", -2, 2},       {"hardtanh", -0.8, 0.8}, {"relu6", 0.3, 2},
      {"leaky_relu", -2, -0.3}, {"elu", -2, -0.3}, {"celu", -2, -0.3},    {"selu", -2, -0.3},     {"mish", -2, 2},
      {"softplus", -2, 2},   {"softsign", 0.3, 2}, {"tanhshrink", -2, 2}, {"hardsigmoid", -2, 2}, {"hardswish", -2, 2},
      {"logsigmoid", -2, 2}, {"dropout", -2, 2},
  };
  for (const Domain& d : one)
    for (const Shape& shape : {Shape{}, Shape{2, 0, 3}}) op_case(d.op, {within(input(shape), d.low, d.high)});
  for (const Shape& shape : {Shape{}, Shape{0, 2}}) {
    op_case("to", {input(shape), arg("dtype", "f64")});
    op_case("detach", {input(shape)});
    op_case("clamp", {within(input(shape), 0.2, 0.8), arg("min", 0.0), arg("max", 1.0)});
    op_case("threshold", {within(input(shape), 0.5, 2), arg("threshold", 0.1), arg("value", 7.0)});
    op_case("rsub", {input(shape), arg("other", 1.5)});
    op_case("prelu", {within(input(shape), -2, -0.3), tensor_arg("weight", {1})});
    op_case("masked_fill", {input(shape), mask("mask", shape), arg("value", 3.0)});
    op_case("masked_fill_tensor", {input(shape), mask("mask", shape), tensor_arg("value", {})});
  }
  const Domain two[] = {
      {"add", -2, 2},       {"sub", -2, 2},  {"mul", -2, 2},     {"div", 0.5, 2},      {"pow", 0.5, 2},
      {"maximum", 2.5, 3},  {"minimum", 2.5, 3}, {"atan2", 0.5, 2}, {"hypot", 0.5, 2},  {"logaddexp", -2, 2},
      {"xlogy", 0.5, 2},    {"xlog1py", 0.5, 2}, {"copysign", 0.5, 2}, {"fmax", 2.5, 3}, {"fmin", 2.5, 3},
      {"remainder", 2.5, 2.8}, {"fmod", 2.5, 2.8}, {"where", -2, 2},
  };
  for (const Domain& d : two)
    for (const auto& shapes : std::vector<std::pair<Shape, Shape>>{{{}, {}}, {{3, 0}, {1}}, {{4, 0}, {4, 1}}}) {
      const std::string op = d.op, second = op == "pow" ? "exponent" : "other";
      std::vector<CaseArg> args;
      if (op == "where") args.push_back(mask("condition", {}));
      // First and second operand in ranges that do not meet.
      args.push_back(within(input(shapes.first), 0.5, 2));
      args.push_back(within(tensor_arg(second, shapes.second), d.low, d.high));
      op_case(op, std::move(args));
    }
  for (const Shape& shape : {Shape{}, Shape{0}}) {
    op_case("div_rounded", {within(input(shape), 0.5, 2), within(other(shape), 2.5, 3), arg("rounding_mode", "floor")});
    op_case("lerp", {input(shape), tensor_arg("end", shape), tensor_arg("weight", shape)});
    op_case("addcmul", {input(shape), tensor_arg("tensor1", shape), tensor_arg("tensor2", shape)});
    op_case("addcdiv", {input(shape), tensor_arg("tensor1", shape), within(tensor_arg("tensor2", shape), 0.5, 2)});
    op_case("clamp_tensor", {within(input(shape), 0, 1), within(tensor_arg("min", shape), -2, -1),
                             within(tensor_arg("max", shape), 2, 3)});
    for (const char* op : {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
      op_case(op, {within(input(shape), 2, 3), within(tensor_arg("target", shape), 0, 0.5), arg("reduction", "sum")});
    op_case("kl_div", {input(shape), within(tensor_arg("target", shape), 0.2, 1), arg("reduction", "sum")});
    op_case("binary_cross_entropy", {within(input(shape), 0.2, 0.8), within(tensor_arg("target", shape), 0.1, 0.9),
                                     arg("reduction", "sum")});
    op_case("binary_cross_entropy_with_logits",
            {input(shape), within(tensor_arg("target", shape), 0.1, 0.9), arg("reduction", "sum")});
  }
}

OP_CASES(small_reductions) {
  for (const char* op : {"sum", "nansum", "mean", "nanmean", "norm", "logsumexp", "var", "std", "var_mean", "std_mean"}) {
    const bool spread = std::string(op).starts_with("var") || std::string(op).starts_with("std");
    std::vector<CaseArg> none = {within(input({}), 0.3, 2), arg("dim", 0)};
    if (spread) none.push_back(arg("correction", 0));
    op_case(op, none);
    op_case(op, {input({0, 3}), arg("dim", 1)});
  }
  for (const char* op : {"amax", "amin", "max", "min", "aminmax", "median", "nanmedian", "prod", "quantile"}) {
    std::vector<CaseArg> none = {input({}), arg("dim", 0)}, empty = {input({0, 3}), arg("dim", 1)};
    if (std::string(op) == "quantile") {
      none.push_back(arg("q", 0.5));
      empty.push_back(arg("q", 0.5));
    }
    op_case(op, none);
    op_case(op, empty);
  }
  for (const char* op : {"sort", "cumsum", "cumprod", "logcumsumexp", "cummax", "cummin", "softmax", "softmin", "log_softmax"})
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{3, 0}}) op_case(op, {input(shape).apart(), arg("dim", -1)});
  op_case("topk", {input({}), arg("k", 1)});
  op_case("topk", {input({0, 3}).apart(), arg("k", 2)});
  op_case("kthvalue", {input({}), arg("k", 1)});
  op_case("kthvalue", {input({0, 3}).apart(), arg("k", 2)});
  op_case("diff", {input({0, 3})});
  op_case("masked_softmax", {input({}), mask("keep", {}), arg("dim", 0)});
  op_case("masked_softmax", {input({0, 3}), mask("keep", {3}), arg("dim", 1)});
  op_case("sum_to_size", {input({}), arg("size", List{})});
  op_case("sum_to_size", {input({0, 3}), arg("size", List{1, 3})});
  op_case("trace", {input({0, 3})});
}

OP_CASES(small_shapes) {
  op_case("view", {input({}), arg("shape", List{1, 1})});
  op_case("view", {input({0, 3}), arg("shape", List{3, 0})});
  op_case("reshape", {input({}), arg("shape", List{1})});
  op_case("reshape", {input({0, 3}), arg("shape", List{0})});
  op_case("permute", {input({}), arg("dims", List{})});
  op_case("permute", {input({0, 3}), arg("dims", List{1, 0})});
  op_case("expand", {input({}), arg("size", List{2, 3})});
  op_case("expand", {input({1, 3}), arg("size", List{0, 3})});
  op_case("expand", {input({0, 1}), arg("size", List{0, 3})});
  op_case("broadcast_to", {input({}), arg("size", List{2, 3})});
  op_case("broadcast_to", {input({0, 1}), arg("size", List{0, 3})});
  op_case("expand_as", {input({}), other({2, 3}).no_grad()});
  op_case("expand_as", {input({0, 1}), other({0, 3}).no_grad()});
  op_case("slice", {input({0, 3}), arg("dim", 1), arg("start", 1)});
  op_case("select", {input({0, 3}), arg("dim", 1), arg("index", 1)});
  op_case("narrow", {input({0, 3}), arg("dim", 1), arg("start", 1), arg("length", 2)});
  op_case("diagonal", {input({0, 3})});
  op_case("unfold", {input({0, 3}), arg("dimension", 1), arg("size", 2), arg("step", 1)});
  op_case("as_strided", {input({}), arg("size", List{2}), arg("stride", List{0})}).first_order_only("one layout");
  op_case("as_strided", {input({0, 3}).as_is(), arg("size", List{0, 2}), arg("stride", List{3, 1})});
  op_case("flatten", {input({})});
  op_case("flatten", {input({0, 3})});
  op_case("ravel", {input({})});
  op_case("ravel", {input({0, 3})});
  op_case("t", {input({})});
  op_case("t", {input({0, 3})});
  op_case("mT", {input({0, 3})});
  op_case("squeeze", {input({})});
  op_case("squeeze", {input({1, 0})});
  op_case("unsqueeze", {input({}), arg("dim", 0)});
  op_case("unsqueeze", {input({0, 3}), arg("dim", 1)});
  for (const Shape& shape : {Shape{}, Shape{0}}) {
    op_case("transpose", {input(shape), arg("dim0", 0), arg("dim1", -1)});
    op_case("swapaxes", {input(shape), arg("axis0", 0), arg("axis1", -1)});
  }
  op_case("movedim", {input({0, 3}), arg("source", List{0}), arg("destination", List{1})});
  op_case("unflatten", {input({0, 4}), arg("dim", 1), arg("sizes", List{2, 2})});
  op_case("cat", {list_arg("tensors", 0, {0, 3}), list_arg("tensors", 1, {2, 3}), arg("dim", 0)});
  op_case("stack", {list_arg("tensors", 0, {}), list_arg("tensors", 1, {})});
  op_case("stack", {list_arg("tensors", 0, {0, 3}), list_arg("tensors", 1, {0, 3}), arg("dim", 1)});
  op_case("hstack", {list_arg("tensors", 0, {}), list_arg("tensors", 1, {})});
  op_case("hstack", {list_arg("tensors", 0, {0, 3}), list_arg("tensors", 1, {0, 2})});
  op_case("vstack", {list_arg("tensors", 0, {}), list_arg("tensors", 1, {})});
  op_case("vstack", {list_arg("tensors", 0, {0, 3}), list_arg("tensors", 1, {2, 3})});
  op_case("meshgrid", {list_arg("tensors", 0, {}), list_arg("tensors", 1, {2})});
  op_case("meshgrid", {list_arg("tensors", 0, {0}), list_arg("tensors", 1, {2})});
  op_case("split", {input({0, 3}), arg("split_size_or_sections", 2), arg("dim", 1)});
  op_case("chunk", {input({0, 3}), arg("chunks", 2), arg("dim", 1)});
  op_case("tensor_split", {input({0, 3}), arg("indices_or_sections", 2), arg("dim", 1)});
  op_case("unbind", {input({2, 0})});
  op_case("repeat", {input({}), arg("repeats", List{2, 2})});
  op_case("repeat", {input({0, 2}), arg("repeats", List{2, 2})});
  op_case("tile", {input({}), arg("dims", List{2, 2})});
  op_case("tile", {input({0, 2}), arg("dims", List{2})});
  op_case("repeat_interleave", {input({0, 2}), arg("repeats", 2), arg("dim", 1)});
  op_case("repeat_interleave", {input({}), arg("repeats", 3)});
  op_case("roll", {input({}), arg("shifts", List{1})});
  op_case("roll", {input({0, 2}), arg("shifts", List{1}), arg("dims", List{1})});
  op_case("flip", {input({}), arg("dims", List{})});
  op_case("flip", {input({0, 2}), arg("dims", List{0, 1})});
  op_case("rot90", {input({0, 2})});
  op_case("pad", {input({0, 2}), arg("pad", List{1, 1})});
  op_case("tril", {input({0, 2})});
  op_case("triu", {input({2, 0})});
  op_case("diag", {input({0})});
  op_case("diag_embed", {input({0, 2})});
}

OP_CASES(small_indexing) {
  op_case("gather", {input({}), arg("dim", 0), indices("index", {}, 1)});
  op_case("gather", {input({3}), arg("dim", 0), indices("index", {0}, 1)});
  op_case("gather", {input({0, 3}), arg("dim", 1), indices("index", {0, 2}, 3)});
  op_case("take", {input({}), indices("index", {2}, 1)});
  op_case("take", {input({0}), indices("index", {0}, 1)});
  op_case("take_along_dim", {input({0, 3}), indices("indices", {0, 2}, 3), arg("dim", 1)});
  op_case("index_select", {input({}), arg("dim", 0), indices("index", {1}, 1)});
  op_case("index_select", {input({0, 3}), arg("dim", 1), indices("index", {2}, 3)});
  op_case("index_add", {input({0, 3}), arg("dim", 1), indices("index", {2}, 3), tensor_arg("source", {0, 2})});
  op_case("index_copy", {input({0, 3}), arg("dim", 1), indices("index", {2}, 3), tensor_arg("source", {0, 2})});
  op_case("index_fill", {input({}), arg("dim", 0), indices("index", {1}, 1), arg("value", 2.0)});
  op_case("index_fill", {input({0, 3}), arg("dim", 1), indices("index", {2}, 3), tensor_arg("value", {})});
  op_case("scatter", {input({0, 3}), arg("dim", 1), indices("index", {0, 2}, 3), tensor_arg("src", {0, 2})});
  op_case("scatter_add", {input({0, 3}), arg("dim", 1), indices("index", {0, 2}, 3), tensor_arg("src", {0, 2})});
  op_case("scatter_reduce", {input({0, 3}), arg("dim", 1), indices("index", {0, 2}, 3), tensor_arg("src", {0, 2}),
                             arg("reduce", "mean")});
  op_case("scatter", {input({}), arg("dim", 0), indices("index", {}, 1), tensor_arg("src", {})});
  op_case("scatter_add", {input({}), arg("dim", 0), indices("index", {}, 1), tensor_arg("src", {})});
  op_case("index_add", {input({}), arg("dim", 0), indices("index", {1}, 1), tensor_arg("source", {})});
  op_case("index_copy", {input({}), arg("dim", 0), indices("index", {1}, 1), tensor_arg("source", {})});
  op_case("scatter_reduce", {input({}), arg("dim", 0), indices("index", {}, 1), tensor_arg("src", {}), arg("reduce", "sum")});
  op_case("take_along_dim", {input({}), indices("indices", {}, 1), arg("dim", 0)});
  op_case("index_put", {input({0, 3}), arg("indices", std::vector<IndexArgument>{Slice(), i64{1}}), tensor_arg("values", {})});
  op_case("pair_gather", {input({0, 3}), indices("rows", {2, 2}, 3), arg("side", "shared")});
  op_case("masked_scatter", {input({}), mask("mask", {}), tensor_arg("source", {1})});
  op_case("masked_select", {input({}), mask("mask", {})});
  op_case("masked_select", {input({0, 2}), mask("mask", {2})});
  op_case("masked_scatter", {input({0, 2}), mask("mask", {2}), tensor_arg("source", {3})});
  op_case("embedding", {indices("input", {0}, 3), tensor_arg("weight", {3, 2})});
  op_case("embedding", {indices("input", {2}, 3), tensor_arg("weight", {3, 0})});
}

OP_CASES(small_products) {
  op_case("matmul", {input({2, 0}), other({0, 3})});
  op_case("mm", {input({2, 0}), tensor_arg("mat2", {0, 3})});
  op_case("bmm", {input({2, 3, 0}), tensor_arg("mat2", {2, 0, 2})});
  op_case("mv", {input({2, 0}), tensor_arg("vec", {0})});
  op_case("dot", {input({0}), tensor_arg("tensor", {0})});
  op_case("outer", {input({0}), tensor_arg("vec2", {3})});
  op_case("addmm", {input({2, 3}), tensor_arg("mat1", {2, 0}), tensor_arg("mat2", {0, 3})});
  op_case("addmm", {input({}), tensor_arg("mat1", {2, 2}), tensor_arg("mat2", {2, 3})});
  op_case("baddbmm", {input({3}), tensor_arg("batch1", {2, 2, 0}), tensor_arg("batch2", {2, 0, 3})});
  op_case("linear", {input({0, 3}), tensor_arg("weight", {2, 3}), tensor_arg("bias", {2})});
  op_case("linear_packed", {input({0, 3}), list_arg("weights", 0, {2, 3}), list_arg("weights", 1, {1, 3})});
  op_case("tensordot", {tensor_arg("a", {}), tensor_arg("b", {2}), arg("dims", 0)});
  op_case("einsum", {arg("equation", ",a->a"), list_arg("operands", 0, {}), list_arg("operands", 1, {2})});
  op_case("normalize", {input({}), arg("dim", 0)});
  op_case("kron", {input({}), other({2})});
  op_case("kron", {input({0, 2}), other({2, 1})});
  op_case("tensordot", {tensor_arg("a", {2, 0}), tensor_arg("b", {0, 3}), arg("dims", 1)});
  op_case("layer_norm", {input({0, 3}), arg("normalized_shape", List{3})});
  op_case("rms_norm", {input({0, 3}), arg("normalized_shape", List{3})});
  op_case("pairwise_distance", {tensor_arg("x1", {0, 3}), tensor_arg("x2", {0, 3})});
  op_case("interpolate", {input({0, 2, 3}), arg("size", 5)});
  op_case("adaptive_avg_pool1d", {input({0, 2, 5}), arg("output_size", 2)});
  op_case("cosine_embedding_loss", {tensor_arg("input1", {0, 3}), tensor_arg("input2", {0, 3}),
                                    arg("target", Argument(make_empty({0}, kF64))), arg("reduction", "sum")});
}

}  // namespace waymark::test
