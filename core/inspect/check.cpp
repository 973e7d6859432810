#include "core/inspect/check.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/engine/notes.h"
#include "core/inspect/replay.h"
#include "core/ops/elementwise.h"
#include "core/tensor/strided.h"

namespace waymark::inspect {
namespace {

constexpr double kStep = 1e-3;

struct Interrupted {};

// Own memory, row by row, in f64; other dtypes stay.
Tensor own_copy(const Tensor& t) {
  const DType dtype = t.is_floating_point() ? kF64 : t.dtype();
  Tensor out = make_empty(t.shape(), dtype);
  ops::copy_into(out, t);
  return out;
}

std::vector<double> entries_of(const NodeCard::Outgoing& o, const Tensor& input) {
  if (!o.window) return o.after.value.to_vector<double>();
  // The window's gradient in a tensor of zeros; windows of an unfold overlap and add up.
  const Tensor full = make_empty(input.shape(), kF64);
  ops::fill_into(full, 0);
  const Tensor hole = o.window->of(full);
  const std::vector<double> values = o.after.value.to_vector<double>();
  double* const base = hole.data<double>();
  size_t i = 0;
  for_each_offset(hole, [&](i64 at) { base[at] += values[i++]; });
  return full.to_vector<double>();
}

class Checker {
 public:
  Checker(const NodeCard& card, const CheckOptions& options) : card_(card), options_(options), rng_(options.seed + 1) {
    result_.possible = true;
    result_.passed = true;
  }

  NodeCheck run() {
    try {
      prepare();
      for (const NodeCard::Outgoing& o : card_.outgoing)
        if (o.after.computed) check_input(o);
      result_.passed = result_.max_error <= result_.tolerance;
    } catch (const Error& e) {
      refuse(e.what());
    } catch (const Interrupted&) {
      refuse("interrupted");
    }
    return result_;
  }

 private:
  void refuse(std::string reason) {
    result_.possible = result_.passed = false;
    result_.reason = std::move(reason);
  }

  void prepare() {
    if (!card_.info || !card_.info->apply) fail("", "{} cannot be called by its name", card_.op);
    if (!card_.recorded) fail("", "the forward pass was not recorded; keep an inspect::Recorder with Keep::values while it runs");
    for (const NodeCard::SavedItem& s : card_.saved)
      if (s.what == "random key") fail("", "{} draws random numbers, and would draw others when called again", card_.op);
    for (size_t i = 0; i < card_.inputs.size(); ++i) {
      const CardTensor& t = card_.inputs[i];
      if (t.known && !t.value.defined()) fail("", "the values of input {} ({}) were not kept", i, t.name);
      inputs_.push_back(t.known ? own_copy(t.value) : Tensor());
      f32_ |= t.known && t.dtype == kF32;
    }
    bool any = false;
    for (const NodeCard::Incoming& in : card_.incoming) {
      if (in.gradient.computed && !in.gradient.value.defined()) fail("", "the values of the incoming gradient were not kept");
      gradients_.push_back(in.gradient.computed ? own_copy(in.gradient.value) : Tensor());
      any |= in.gradient.computed;
    }
    if (!any) fail("", "no gradient arrived");
    for (const NodeCard::Outgoing& o : card_.outgoing)
      if (o.after.computed && !o.after.value.defined()) fail("", "the values of the gradient for {} were not kept", o.to);
    result_.tolerance = f32_ ? 1e-4 : 1e-6;
    kinks_ = kinks_of(*card_.info, card_.attributes);
    compare_forward();
  }

  // The op called again must be the op that ran.
  void compare_forward() {
    const std::vector<Tensor> again = call_again(*card_.info, inputs_, card_.attributes);
    for (size_t k = 0; k < again.size() && k < card_.outputs.size(); ++k)
      if (card_.outputs[k].known && again[k].shape() != card_.outputs[k].shape)
        fail("", "called again, the op gives {}, not {}: an argument that it does not record", again[k].shape(), card_.outputs[k].shape);
  }

  double value() {
    if ((++calls_ & 63) == 0 && options_.stop && options_.stop()) throw Interrupted{};
    const std::vector<Tensor> y = call_again(*card_.info, inputs_, card_.attributes);
    double total = 0;
    for (size_t k = 0; k < y.size() && k < gradients_.size(); ++k)
      if (gradients_[k].defined()) total += alignment_of(gradients_[k], y[k]).dot;
    return total;
  }

  // d/dt along a direction given as (element, component).
  double numeric(double* x, const std::vector<std::pair<i64, double>>& direction, double h) {
    std::vector<double> before;
    for (const auto& d : direction) before.push_back(x[d.first]);
    const auto at = [&](double t) {
      for (size_t n = 0; n < direction.size(); ++n) x[direction[n].first] = before[n] + t * direction[n].second;
      return value();
    };
    const double f1 = at(h), f2 = at(2 * h), b1 = at(-h), b2 = at(-2 * h);
    for (size_t n = 0; n < direction.size(); ++n) x[direction[n].first] = before[n];
    return (8 * (f1 - b1) - (f2 - b2)) / (12 * h);
  }

  static double step_at(double v) { return kStep * std::max(1.0, std::abs(v)); }

  // Element k of input i lies within 10 steps of a place where the derivative jumps.
  bool near_kink(size_t i, i64 k) {
    const double v = inputs_[i].data<double>()[k], reach = 10 * step_at(v);
    for (const Kink& kink : kinks_) {
      switch (kink.kind) {
        case Kink::Kind::value:
          if (i == 0 && std::abs(v - kink.value) < reach) return true;
          break;
        case Kink::Kind::integer:
          if (i == 0 && std::abs(v - std::round(v)) < reach) return true;
          break;
        case Kink::Kind::operands: {
          if (i > 1 || inputs_.size() < 2 || !inputs_[1 - i].defined()) break;
          // The other operand at all places where this element meets it; cheap only for equal shapes, else its range.
          const Tensor& other = inputs_[1 - i];
          if (other.shape() == inputs_[i].shape()) {
            if (std::abs(v - other.data<double>()[k]) < reach) return true;
          } else {
            for (i64 j = 0; j < other.numel(); ++j)
              if (std::abs(v - other.data<double>()[j]) < reach) return true;
          }
          break;
        }
        case Kink::Kind::ties:
          if (i == 0 && near_tie(k, reach)) return true;
          break;
      }
    }
    return false;
  }

  // Another element of the same slice is as near to the slice's best as this one.
  bool near_tie(i64 k, double reach) {
    const Tensor& x = inputs_[0];
    i64 n = x.numel(), inner = 1;
    if (const int axis = axis_of(card_.attributes, x.dim()); axis >= 0) {
      n = x.shape()[axis];
      for (int d = axis + 1; d < x.dim(); ++d) inner *= x.shape()[d];
    }
    const i64 first = k / (inner * n) * (inner * n) + k % inner;
    const double* p = x.data<double>();
    i64 close = 0;
    for (i64 j = 0; j < n; ++j) close += std::abs(p[first + j * inner] - p[k]) < 2 * reach;
    return close > 1;
  }

  void compare(size_t input, std::string where, double analytic, double found, double scale) {
    ++result_.compared;
    const double error = scale > 0 ? std::abs(analytic - found) / scale : std::abs(found);
    const double judged = std::isnan(error) ? INFINITY : error;
    if (result_.where.empty() || judged > result_.max_error) {
      result_.max_error = judged;
      result_.where = fmt::format("input {} {}", input, where);
      result_.analytic = analytic;
      result_.numeric = found;
    }
  }

  std::vector<i64> chosen(const std::vector<double>& entries) {
    const i64 n = static_cast<i64>(entries.size());
    std::vector<i64> order(entries.size());
    std::iota(order.begin(), order.end(), i64{0});
    if (n <= options_.all_elements) return order;
    const i64 top = std::min(n, options_.largest);
    std::partial_sort(order.begin(), order.begin() + top, order.end(), [&](i64 a, i64 b) {
      const double x = std::abs(entries[static_cast<size_t>(a)]), y = std::abs(entries[static_cast<size_t>(b)]);
      return x != y ? x > y : a < b;
    });
    order.resize(static_cast<size_t>(top));
    for (i64 r = 0; r < options_.random; ++r) order.push_back(static_cast<i64>(rng_() % static_cast<u64>(n)));
    return order;
  }

  void check_input(const NodeCard::Outgoing& o) {
    const size_t i = static_cast<size_t>(o.input);
    if (i >= inputs_.size() || !inputs_[i].defined()) fail("", "input {} is not known", i);
    const std::vector<double> entries = entries_of(o, inputs_[i]);
    double* const x = inputs_[i].data<double>();
    double scale = 0;
    for (double e : entries) scale = std::max(scale, std::abs(e));
    for (i64 k : chosen(entries)) {
      if (near_kink(i, k)) {
        ++result_.near_kinks;
        continue;
      }
      const double found = numeric(x, {{k, 1.0}}, step_at(x[k]));
      compare(i, position_text(inputs_[i].shape(), k), entries[static_cast<size_t>(k)], found, std::max(scale, scale > 0 ? 0 : std::abs(found)));
    }
    if (static_cast<i64>(entries.size()) <= options_.all_elements) return;
    for (i64 d = 0; d < options_.directions; ++d) {
      std::normal_distribution<double> normal;
      std::vector<std::pair<i64, double>> direction;
      double length = 0, inner = 0;
      for (i64 k = 0; k < static_cast<i64>(entries.size()); ++k) {
        const double v = normal(rng_);
        if (near_kink(i, k)) continue;
        direction.emplace_back(k, v);
        length += v * v;
      }
      if (length == 0) continue;
      for (auto& [k, v] : direction) {
        v /= std::sqrt(length);
        inner += v * entries[static_cast<size_t>(k)];
      }
      compare(i, fmt::format("along random direction {}", d), inner, numeric(x, direction, kStep), std::max(scale, std::abs(inner)));
    }
  }

  const NodeCard& card_;
  const CheckOptions& options_;
  std::mt19937_64 rng_;
  NodeCheck result_;
  std::vector<Tensor> inputs_, gradients_;
  std::vector<Kink> kinks_;
  bool f32_ = false;
  u64 calls_ = 0;
};

}  // namespace

NodeCheck check_node(const NodeCard& card, const CheckOptions& options) {
  const ops::Unrecorded values_only;
  return Checker(card, options).run();
}

}  // namespace waymark::inspect
