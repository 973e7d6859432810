#include "core/ops/pooling.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/kernels/pool.h"
#include "core/ops/index.h"
#include "core/ops/rows.h"

namespace waymark {

using kernels::Taps;
using namespace ops;

namespace {

i64 check_pool(std::string_view op, const Arg& x) {
  check_defined(op, x);
  need_float(op, *x);
  if (x->dim() == 0) fail_at(x.loc(), op, "a 0-d tensor has no axis to pool");
  return x->shape().back();
}

// Windows of pooling, as PyTorch counts them.
i64 window_count(std::string_view op, const Arg& x, i64 size, i64 stride, i64 padding, i64 dilation, bool ceil_mode) {
  if (size < 1 || stride < 1 || dilation < 1)
    fail_at(x.loc(), op, "kernel_size, stride and dilation must be at least 1, got {}, {} and {}", size, stride, dilation);
  if (padding < 0 || padding > size / 2)
    fail_at(x.loc(), op, "padding must be at least 0 and at most half of kernel_size, got {} for {}", padding, size);
  const i64 n = x->shape().back(), room = n + 2 * padding - dilation * (size - 1) - 1;
  if (room < 0 && !(ceil_mode && room + stride - 1 >= 0))
    fail_at(x.loc(), op, "the window spans {} positions, the padded input has only {}", dilation * (size - 1) + 1, n + 2 * padding);
  i64 count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= n + padding) --count;  // a window must begin inside the input or its left padding
  return count;
}

// y = A·x along the last axis, or Aᵀ·x.
Tensor taps_value(const Tensor& x, const Taps& taps, bool adjoint) {
  const Tensor in = contiguous_value(x);
  Shape shape = in.shape();
  shape[shape.size() - 1] = adjoint ? taps.inputs : taps.outputs;
  Tensor y = make_empty(shape, x.dtype());
  const i64 rows = row_count(in).rows;
  visit_float(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if (adjoint) kernels::apply_taps_adjoint<T>(taps, in.data<T>(), y.data<T>(), rows);
    else kernels::apply_taps<T>(taps, in.data<T>(), y.data<T>(), rows);
  });
  return y;
}

}  // namespace

extern constexpr OpInfo kWeightedWindows{
    .name = "weighted_windows", .family = "pooling", .doc = "weighted sums over windows of the last axis, or the adjoint of that",
    .schema = "weighted_windows(Tensor input, Taps taps, bool adjoint) -> Tensor", .formula = "y = A·x or Aᵀ·x",
    .rule = "dx = Aᵀ·g or A·g"};

namespace {

template <class AttrFn>
Tensor weighted_windows(const OpInfo& op, const Arg& x, std::shared_ptr<const Taps> taps, bool adjoint, AttrFn attributes) {
  return record(op, taps_value(*x, *taps, adjoint), {x}, [&](Saver&) {
    return [taps, adjoint](Tensor g, const Need&) -> Grads {
      return {weighted_windows(kWeightedWindows, g, taps, !adjoint, detail::NoAttrs{})};  // a type of its own would never end
    };
  }, attributes);
}

// add(first, weights) for each output j by window(j).
template <class Window> std::shared_ptr<const Taps> make_taps(i64 inputs, i64 outputs, Window window) {
  auto taps = std::make_shared<Taps>();
  taps->inputs = inputs;
  taps->outputs = outputs;
  taps->offset.push_back(0);
  for (i64 j = 0; j < outputs; ++j) {
    taps->first.push_back(window(j, taps->weight));
    taps->offset.push_back(static_cast<i64>(taps->weight.size()));
  }
  return taps;
}

}  // namespace

extern constexpr OpInfo kAvgPool1d{
    .name = "avg_pool1d", .family = "pooling", .doc = "means of windows",
    .schema = "avg_pool1d(Tensor input, int kernel_size, int? stride=None, int padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    .formula = "y_j = mean of the window j", .rule = "dx = Σ over the windows of g_j/size",
    .apply = [](OpCall& c) {
      std::optional<i64> stride;
      if (c.has("stride")) stride = c.integer("stride");
      c.result(avg_pool1d(c.tensor("input"), c.integer("kernel_size"), stride, c.integer("padding", 0), c.flag("ceil_mode", false),
                          c.flag("count_include_pad", true)));
    }};

Tensor avg_pool1d(Arg x, i64 size, std::optional<i64> stride_or_default, i64 padding, bool ceil_mode, bool count_include_pad) {
  const i64 n = check_pool("avg_pool1d", x), stride = stride_or_default.value_or(size);
  const i64 count = window_count("avg_pool1d", x, size, stride, padding, 1, ceil_mode);
  return weighted_windows(kAvgPool1d, x, make_taps(n, count, [&](i64 j, std::vector<double>& weight) {
    const i64 begin = j * stride - padding, end = std::min(begin + size, n + padding);
    const i64 low = std::max<i64>(begin, 0), high = std::min(end, n);
    const i64 divisor = count_include_pad ? end - begin : high - low;
    weight.insert(weight.end(), static_cast<size_t>(std::max<i64>(0, high - low)), 1 / static_cast<double>(divisor));
    return low;
  }), false, [&](Attrs& at) {
    at("kernel_size", size);
    at("stride", stride);
    at("padding", padding);
    at("ceil_mode", ceil_mode);
    at("count_include_pad", count_include_pad);
  });
}

extern constexpr OpInfo kAdaptiveAvgPool1d{
    .name = "adaptive_avg_pool1d", .family = "pooling", .doc = "means of a given number of windows",
    .schema = "adaptive_avg_pool1d(Tensor input, int output_size) -> Tensor", .formula = "y_j = mean x[⌊jL/m⌋ : ⌈(j+1)L/m⌉]",
    .rule = "dx = Σ over the windows of g_j/size",
    .apply = [](OpCall& c) { c.result(adaptive_avg_pool1d(c.tensor("input"), c.integer("output_size"))); }};

Tensor adaptive_avg_pool1d(Arg x, i64 output_size) {
  const i64 n = check_pool("adaptive_avg_pool1d", x);
  if (output_size < 1 || n < 1)
    fail_at(x.loc(), "adaptive_avg_pool1d", "output_size and the last axis must be at least 1, got {} for {}", output_size, x->shape());
  return weighted_windows(kAdaptiveAvgPool1d, x, make_taps(n, output_size, [&](i64 j, std::vector<double>& weight) {
    const i64 low = j * n / output_size, high = ((j + 1) * n + output_size - 1) / output_size;
    weight.insert(weight.end(), static_cast<size_t>(high - low), 1 / static_cast<double>(high - low));
    return low;
  }), false, [&](Attrs& at) { at("output_size", output_size); });
}

extern constexpr OpInfo kInterpolate{
    .name = "interpolate", .family = "pooling", .doc = "the last axis at another length",
    .schema = "interpolate(Tensor input, int size, str mode='nearest', bool align_corners=False) -> Tensor",
    .formula = "nearest: y_i = x[⌊i·L/size⌋];  linear: between the two neighbours", .rule = "dx = Σ of the weights times g",
    .apply = [](OpCall& c) {
      c.result(interpolate(c.tensor("input"), c.integer("size"), c.word("mode", "nearest"), c.flag("align_corners", false)));
    }};

Tensor interpolate(Arg x, i64 size, std::string_view mode, bool align_corners) {
  const i64 n = check_pool("interpolate", x);
  if (size < 1 || n < 1) fail_at(x.loc(), "interpolate", "size and the last axis must be at least 1, got {} for {}", size, x->shape());
  if (mode != "nearest" && mode != "linear") fail_at(x.loc(), "interpolate", "mode is \"nearest\" or \"linear\", not \"{}\"", mode);
  if (mode == "nearest" && align_corners) fail_at(x.loc(), "interpolate", "align_corners needs mode \"linear\"");
  return weighted_windows(kInterpolate, x, make_taps(n, size, [&](i64 i, std::vector<double>& weight) {
    if (mode == "nearest") {
      weight.push_back(1);
      return i * n / size;
    }
    const double place = align_corners
        ? (size == 1 ? 0 : static_cast<double>(i) * static_cast<double>(n - 1) / static_cast<double>(size - 1))
        : std::max(0.0, (static_cast<double>(i) + 0.5) * static_cast<double>(n) / static_cast<double>(size) - 0.5);
    const i64 low = std::min(static_cast<i64>(place), n - 1);
    const double share = place - static_cast<double>(low);
    if (low == n - 1 || share == 0) {
      weight.push_back(1);
    } else {
      weight.push_back(1 - share);
      weight.push_back(share);
    }
    return low;
  }), false, [&](Attrs& at) {
    at("size", size);
    at("mode", std::string(mode));
    at("align_corners", align_corners);
  });
}

extern constexpr OpInfo kMaxPool1d{
    .name = "max_pool1d", .family = "pooling", .doc = "largest elements of windows",
    .schema = "max_pool1d(Tensor input, int kernel_size, int? stride=None, int padding=0, int dilation=1, bool ceil_mode=False) -> Tensor",
    .formula = "y_j = max of the window j, −∞ outside", .rule = "dx = Σ g_j at the place of y_j (the first on a tie)",
    .saves = {{"indices", For{0}}, {"shape", For{0}}}, .kinks = "ties in a window",
    .apply = [](OpCall& c) {
      std::optional<i64> stride;
      if (c.has("stride")) stride = c.integer("stride");
      c.result(max_pool1d(c.tensor("input"), c.integer("kernel_size"), stride, c.integer("padding", 0), c.integer("dilation", 1),
                          c.flag("ceil_mode", false)));
    }};

Tensor max_pool1d(Arg x, i64 size, std::optional<i64> stride_or_default, i64 padding, i64 dilation, bool ceil_mode) {
  const i64 n = check_pool("max_pool1d", x), stride = stride_or_default.value_or(size);
  const i64 count = window_count("max_pool1d", x, size, stride, padding, dilation, ceil_mode);
  const Tensor in = contiguous_value(*x);
  Shape shape = in.shape();
  shape[shape.size() - 1] = count;
  Tensor y = make_empty(shape, x->dtype());
  const Tensor place = make_empty(shape, kI64);
  visit_float(x->dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::max_windows<T>({n, count, size, stride, padding, dilation}, in.data<T>(), y.data<T>(), place.data<i64>(), row_count(in).rows);
  });
  const i64* const places = place.data<i64>();
  if (std::find(places, places + place.numel(), i64{-1}) != places + place.numel())
    fail_at(x.loc(), "max_pool1d", "a window of {} with dilation {} lies in the padding alone: {} has nothing to offer it", size, dilation, x->shape());
  return record(kMaxPool1d, std::move(y), {x}, [&](Saver& s) {
    return [place = s.indices(place), shape = s.shape(0)](Tensor g, const Need&) -> Grads {
      const Tensor none = make_empty(shape, g.dtype());
      fill_into(none, 0);
      return {scatter_add(none, -1, *place, g)};
    };
  }, [&](Attrs& at) {
    at("kernel_size", size);
    at("stride", stride);
    at("padding", padding);
    at("dilation", dilation);
    at("ceil_mode", ceil_mode);
  });
}

}  // namespace waymark
