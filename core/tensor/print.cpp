// Tensor::to_string: the text that PyTorch's defaults give, with dtypes and ops by our names.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/tensor/tensor.h"

namespace waymark {
namespace {

constexpr int kPrecision = 4;          // digits after the point
constexpr i64 kThreshold = 1000;       // more elements than this are summarised
constexpr i64 kEdge = 3;               // to so many at each end of an axis
constexpr i64 kLineWidth = 80;
constexpr std::string_view kPrefix = "tensor(";
constexpr i64 kIndent = static_cast<i64>(kPrefix.size());

// Not printf, whose decimal point depends on the locale; to_chars rounds the exact value half to even.
std::string digits(double v, std::chars_format form, int precision) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[400];  // 1.8e308 in fixed form with 4 digits has 314 characters
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v, form, precision).ptr;
  return {buffer, end};
}

class Printer {
 public:
  explicit Printer(const Tensor& t) : t_(t), summarise_(t.numel() > kThreshold) {
    if (is_float(t.dtype())) choose_form();
    visit(0, 0, [&](i64 at) { width_ = std::max(width_, width_of(at)); });
  }

  std::string text() {
    if (t_.numel() == 0) return "[]";
    if (t_.dim() == 0) return element(0);
    append(0, 0, kIndent);
    return std::move(out_);
  }

 private:
  enum class Form { plain, whole, fixed, scientific };  // plain: i64 and b8; whole: floats without fractions, "3."

  double number(i64 at) const {
    return t_.dtype() == kF32 ? double{t_.data<float>()[at]} : t_.data<double>()[at];
  }

  // The indices of an axis that are shown; -1 stands for the dots.
  template <class F> void shown(int axis, F&& f) const {
    const i64 n = t_.shape()[axis];
    if (!summarise_ || n <= 2 * kEdge) {
      for (i64 i = 0; i < n; ++i) f(i);
      return;
    }
    for (i64 i = 0; i < kEdge; ++i) f(i);
    f(-1);
    for (i64 i = n - kEdge; i < n; ++i) f(i);
  }
  template <class F> void visit(int axis, i64 at, const F& f) const {
    if (axis == t_.dim()) return f(at);
    shown(axis, [&](i64 i) {
      if (i >= 0) visit(axis + 1, at + i * t_.strides()[axis], f);
    });
  }

  void choose_form() {
    double least = 0, greatest = 0;
    bool any = false, whole = true;
    visit(0, 0, [&](i64 at) {
      const double v = number(at), size = std::fabs(v);
      if (!std::isfinite(v) || v == 0) return;
      least = any ? std::min(least, size) : size;
      greatest = std::max(greatest, size);
      whole &= v == std::ceil(v);
      any = true;
    });
    form_ = Form::whole;
    if (!any) return;
    if (greatest / least > 1000 || greatest > 1e8 || least < 1e-4) form_ = Form::scientific;
    else if (!whole) form_ = Form::fixed;
  }

  std::string element(i64 at) const {
    switch (form_) {
      case Form::plain:
        if (t_.dtype() == kB8) return t_.data<bool>()[at] ? "True" : "False";
        return fmt::format("{}", t_.data<i64>()[at]);
      case Form::whole: {
        const double v = number(at);
        return digits(v, std::chars_format::fixed, 0) + (std::isfinite(v) ? "." : "");
      }
      case Form::fixed: return digits(number(at), std::chars_format::fixed, kPrecision);
      default: return digits(number(at), std::chars_format::scientific, kPrecision);
    }
  }
  // Zeros, NaN and infinities do not widen the column, as in PyTorch.
  size_t width_of(i64 at) const {
    if (form_ != Form::plain && (!std::isfinite(number(at)) || number(at) == 0)) return 0;
    return element(at).size();
  }

  void append(int axis, i64 at, i64 indent) {
    out_ += '[';
    if (axis == t_.dim() - 1) {
      const i64 per_line = std::max<i64>(1, (kLineWidth - indent) / (static_cast<i64>(width_) + 2));
      i64 n = 0;
      shown(axis, [&](i64 i) {
        if (n > 0) out_ += n % per_line == 0 ? ",\n" + std::string(static_cast<size_t>(indent) + 1, ' ') : ", ";
        ++n;
        if (i < 0) {
          out_ += " ...";
          return;
        }
        const std::string value = element(at + i * t_.strides()[axis]);
        out_.append(width_ - std::min(width_, value.size()), ' ');
        out_ += value;
      });
    } else {
      bool first = true;
      shown(axis, [&](i64 i) {
        if (!first) {
          out_ += ',';
          out_.append(static_cast<size_t>(t_.dim() - 1 - axis), '\n');
          out_.append(static_cast<size_t>(indent) + 1, ' ');
        }
        first = false;
        if (i < 0) out_ += "...";
        else append(axis + 1, at + i * t_.strides()[axis], indent + 1);
      });
    }
    out_ += ']';
  }

  const Tensor& t_;
  bool summarise_;
  Form form_ = Form::plain;
  size_t width_ = 1;
  std::string out_;
};

std::string size_text(const Shape& shape) {
  return fmt::format("size=({}{})", fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
}

}  // namespace

std::string Tensor::to_string() const {
  if (!defined()) return "tensor(undefined)";
  std::string out = std::string(kPrefix) + Printer(*this).text();

  std::vector<std::string> footer;
  const bool empty = numel() == 0;
  if (empty && dim() != 1) footer.push_back(size_text(shape()));
  // Elements show that they are integers or booleans; an empty tensor has none to show it.
  if (dtype() != default_dtype() && (empty || is_float(dtype())))
    footer.push_back(fmt::format("dtype={}", name_of(dtype())));
  if (impl_->meta)
    if (std::string grad = impl_->meta->footer(); !grad.empty()) footer.push_back(std::move(grad));

  size_t column = out.size() - (out.rfind('\n') + 1) + 2;  // rfind + 1 is 0 without a line break; 2 as PyTorch counts
  for (const std::string& item : footer) {
    if (column + item.size() + 2 > static_cast<size_t>(kLineWidth)) {
      out += ",\n" + std::string(static_cast<size_t>(kIndent), ' ') + item;
      column = static_cast<size_t>(kIndent) + item.size();
    } else {
      out += ", " + item;
      column += item.size() + 2;
    }
  }
  return out + ")";
}

}  // namespace waymark

fmt::appender fmt::formatter<waymark::Tensor>::format(const waymark::Tensor& value, fmt::format_context& c) const {
  return fmt::format_to(c.out(), "{}", value.to_string());
}
