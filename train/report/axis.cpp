#include "train/report/axis.h"

#include <algorithm>
#include <cmath>

#include "core/tensor/error.h"

namespace waymark::train {

namespace {

// Beyond these, differences and quotients of two values leave the range of f64.
constexpr double kLargest = 1e300, kSmallest = 1e-290;

// The smallest of 1, 2, 5 times a power of ten that is not below `x`.
double nice_step(double x) {
  const double power = std::pow(10, std::floor(std::log10(x)));
  for (double factor : {1.0, 2.0, 5.0})
    if (factor * power >= x * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<double> linear_ticks(double low, double high, double step) {
  std::vector<double> values;
  // Multiples, not sums: 3 * 0.1 is nearer to 0.3 than 0.1 + 0.1 + 0.1.
  const double first = std::ceil(low / step - 1e-6), last = std::floor(high / step + 1e-6);
  for (double k = first; k <= last && values.size() < 100; ++k) values.push_back(k == 0 ? 0 : k * step);
  return values;
}

std::vector<double> log_ticks(double low, double high, i64 wanted) {
  const double first = std::floor(std::log10(low) - 1e-9), last = std::ceil(std::log10(high) + 1e-9);
  const i64 decades = static_cast<i64>(last - first);
  std::vector<double> factors = {1, 2, 5};
  if (decades * 3 > 2 * wanted) factors = {1, 3};
  if (decades * 2 > 2 * wanted) factors = {1};
  const double every = std::max(1.0, std::ceil(static_cast<double>(decades) / (2.0 * static_cast<double>(wanted))));
  std::vector<double> values;
  for (double exponent = first; exponent <= last; exponent += every)
    for (double factor : factors) {
      const double value = factor * std::pow(10, exponent);
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) values.push_back(value);
    }
  return values;
}

}  // namespace

std::vector<std::string> tick_texts(const std::vector<double>& values) {
  double largest = 0;
  for (double v : values) largest = std::max(largest, std::abs(v));
  std::vector<std::string> texts;
  // Few decimals that tell all ticks apart from what they are.
  for (int decimals = 0; decimals <= 4 && largest < 10000; ++decimals) {
    const bool exact = std::all_of(values.begin(), values.end(), [&](double v) {
      return std::abs(std::stod(fmt::format("{:.{}f}", v, decimals)) - v) <= 1e-9 * std::max(largest, 1e-300);
    });
    if (!exact) continue;
    for (double v : values) texts.push_back(fmt::format("{:.{}f}", v, decimals));
    return texts;
  }
  for (double v : values) {
    const double size = std::abs(v);
    if (size >= 1e3 && size < 1e6) {
      texts.push_back(fmt::format("{:.4g}k", v / 1e3));
    } else if (size >= 1e6 && size < 1e9) {
      texts.push_back(fmt::format("{:.4g}M", v / 1e6));
    } else {
      std::string text = fmt::format("{:.4g}", v);
      if (const auto zero = text.find("e-0"); zero != std::string::npos) text.erase(zero + 2, 1);
      texts.push_back(std::move(text));
    }
  }
  return texts;
}

Axis::Axis(double low, double high, double from, double to, bool logarithmic, bool tight, i64 wanted_ticks,
           std::vector<double> ticks)
    : low_(std::min(low, high)), high_(std::max(low, high)), from_(from), to_(to), logarithmic_(logarithmic) {
  if (!drawable(low) || !drawable(high))
    fail("axis", "cannot cover {} to {}{}", low, high, logarithmic ? " on a logarithmic axis" : "");
  const double wanted = static_cast<double>(std::max<i64>(wanted_ticks, 2));
  if (logarithmic) {
    if (high_ <= low_ * (1 + 1e-9)) {
      low_ /= 2;
      high_ *= 2;
    }
    if (!tight) {
      const double room = std::pow(high_ / low_, 0.03);
      low_ /= room;
      high_ *= room;
    }
    if (ticks.empty()) ticks = log_ticks(low_, high_, wanted_ticks);
    // A range inside one step of the series has no tick of its own.
    if (ticks.size() < 2) ticks = linear_ticks(low_, high_, nice_step((high_ - low_) / wanted));
  } else {
    const double scale = std::max(std::abs(low_), std::abs(high_));
    if (high_ - low_ <= std::max(1e-9 * scale, kSmallest)) {
      const double half = scale > kSmallest ? 0.05 * scale : 0.5;
      low_ -= half;
      high_ += half;
    }
    const double step = nice_step((high_ - low_) / wanted);
    if (!tight) {
      low_ = step * std::floor(low_ / step + 1e-9);
      high_ = step * std::ceil(high_ / step - 1e-9);
    }
    if (ticks.empty()) ticks = linear_ticks(low_, high_, step);
  }
  std::vector<double> inside;
  const double slack = 1e-9 * (high_ - low_);  // a tick at the very end may be rounded past it
  for (double v : ticks)
    if (drawable(v) && v >= low_ - slack && v <= high_ + slack) inside.push_back(v);
  const std::vector<std::string> texts = tick_texts(inside);
  for (std::size_t i = 0; i < inside.size(); ++i) ticks_.push_back({inside[i], texts[i]});
}

double Axis::operator()(double value) const {
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
  return from_ + share * (to_ - from_);
}

bool Axis::drawable(double value) const {
  return std::abs(value) <= kLargest && (!logarithmic_ || value > kSmallest);  // false for NaN
}

std::vector<std::size_t> thin(const std::vector<double>& y, std::size_t limit) {
  if (limit < 4 || limit % 2 != 0) fail("thin", "limit must be even and at least 4, got {}", limit);
  std::vector<std::size_t> kept;
  if (y.size() <= limit) {
    for (std::size_t i = 0; i < y.size(); ++i) kept.push_back(i);
    return kept;
  }
  // The first and the last point are kept for themselves, the slices lie between them.
  const std::size_t slices = limit / 2 - 1, inner = y.size() - 2;
  kept.push_back(0);
  for (std::size_t s = 0; s < slices; ++s) {
    const std::size_t begin = 1 + inner * s / slices, end = 1 + inner * (s + 1) / slices;
    std::size_t least = begin, most = begin;
    bool any = std::isfinite(y[begin]);
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (!std::isfinite(y[i])) continue;
      if (!any || y[i] < y[least]) least = i;
      if (!any || y[i] > y[most]) most = i;
      any = true;
    }
    kept.push_back(std::min(least, most));
    if (least != most) kept.push_back(std::max(least, most));
  }
  kept.push_back(y.size() - 1);
  return kept;
}

}  // namespace waymark::train
