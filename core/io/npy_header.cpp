#include "core/io/npy_header.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace waymark {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr i64 kNpyHeaderLimit = 1 << 20;              // bytes of header text; version 1.0 cannot say more than 65,535
constexpr size_t kAlign = 64;                      // the data of files that we write begins at a multiple

struct Descr {
  std::string_view name;
  FileDType type;
};
constexpr std::array<Descr, 12> kDescrs = {{{"f8", FileDType::F64},
                                            {"f4", FileDType::F32},
                                            {"f2", FileDType::F16},
                                            {"i8", FileDType::I64},
                                            {"i4", FileDType::I32},
                                            {"i2", FileDType::I16},
                                            {"i1", FileDType::I8},
                                            {"u8", FileDType::U64},
                                            {"u4", FileDType::U32},
                                            {"u2", FileDType::U16},
                                            {"u1", FileDType::U8},
                                            {"b1", FileDType::BOOL}}};

// A strict reader of one Python dict literal with the three keys of npy; nothing else is understood.
class HeaderText {
 public:
  HeaderText(const ArrayPlace& place, std::string_view text, i64 start) : place_(place), text_(text), start_(start) {}

  void read(NpyHeader& header) {
    expect('{', "an opening brace");
    bool descr = false, order = false, shape = false;
    while (peek() != '}') {
      const std::string_view key = word("a key");
      bool* seen = key == "descr" ? &descr : key == "fortran_order" ? &order : key == "shape" ? &shape : nullptr;
      if (!seen) refuse("the key {} is none of descr, fortran_order, shape", quoted_name(key));
      if (*seen) refuse("the key {} appears twice", quoted_name(key));
      *seen = true;
      expect(':', "a colon");
      if (seen == &descr) read_descr(header);
      else if (seen == &order) header.fortran_order = truth();
      else read_shape(header.shape);
      if (peek() != '}') expect(',', "a comma or the closing brace");
    }
    ++at_;
    if (!descr) refuse("the header has no descr");
    if (!order) refuse("the header has no fortran_order");
    if (!shape) refuse("the header has no shape");
    if (const size_t rest = text_.find_first_not_of(" \n", at_); rest != std::string_view::npos) {
      at_ = rest;
      refuse("{} follows the closing brace; only spaces and a line break may", here());
    }
  }

 private:
  char peek() {
    at_ = std::min(text_.find_first_not_of(' ', at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::string here() const {
    return at_ < text_.size() ? quoted_name(text_.substr(at_, 1)) : std::string("the end of the header");
  }
  template <class... Args> [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail(place_.op, "{} at byte {}: {}", place_.what, start_ + static_cast<i64>(at_),
         fmt::format(text, std::forward<Args>(args)...));
  }
  void expect(char c, std::string_view what) {
    if (peek() != c) refuse("{} was expected, not {}", what, here());
    ++at_;
  }
  std::string_view word(std::string_view what) {
    const char quote = peek();
    if (quote != '\'' && quote != '"') refuse("{} in quotes was expected, not {}", what, here());
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) refuse("this text has no closing quote");
    const std::string_view out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return out;
  }
  bool truth() {
    peek();
    for (const bool value : {true, false}) {
      const std::string_view name = value ? "True" : "False";
      if (text_.substr(at_, name.size()) == name) {
        at_ += name.size();
        return value;
      }
    }
    refuse("fortran_order must be True or False");
  }
  void read_descr(NpyHeader& header) {
    if (peek() == '[' || peek() == '(')
      refuse("descr is a list: arrays of records are not read; save each field as an array of its own");
    const std::string_view text = word("descr");
    const char order = text.empty() ? '\0' : text[0];
    const std::string_view kind = text.substr(text.empty() ? 0 : 1);
    const auto* known = std::find_if(kDescrs.begin(), kDescrs.end(), [&](const Descr& d) { return d.name == kind; });
    if (std::string_view("<>=|").find(order) != std::string_view::npos && known != kDescrs.end()) {
      header.dtype = known->type;
      header.swapped = order == '>';
      return;
    }
    const char letter = kind.empty() ? '\0' : kind[0];
    std::string_view why = "it must be one of < > = | and one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1";
    if (letter == 'O') why = "an array of Python objects is a pickle, a program that is not run here";
    if (letter == 'U' || letter == 'S' || letter == 'a') why = "arrays of text are not read";
    if (letter == 'V') why = "arrays of records are not read";
    if (letter == 'c') why = "there are no complex tensors; save the real and the imaginary part";
    if (letter == 'M' || letter == 'm') why = "dates are not read; save them as integers";
    refuse("descr is {}: {}", quoted_name(text), why);
  }
  void read_shape(Shape& shape) {
    expect('(', "a tuple");
    while (peek() != ')') {
      if (shape.size() == Shape::kMaxAxes) refuse("the shape has more than {} axes", Shape::kMaxAxes);
      shape.push_back(extent());
      if (peek() == ',') ++at_;
      else if (shape.size() == 1 || peek() != ')') refuse("a comma was expected, not {}", here());
    }
    ++at_;
  }
  i64 extent() {
    const size_t begin = at_;
    i64 value = 0;
    bool overflow = false;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      overflow |= __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[at_] - '0', &value);
    const std::string_view digits = text_.substr(begin, at_ - begin);
    if (digits.empty()) refuse("an extent was expected, not {}", here());
    if (overflow || (digits.size() > 1 && digits[0] == '0'))
      refuse("the extent {} is not an integer from 0 to 2^63-1 without leading zeros", digits.substr(0, 40));
    return value;
  }

  const ArrayPlace& place_;
  std::string_view text_;
  i64 start_;  // of the text in the file
  size_t at_ = 0;
};

}  // namespace

NpyHeader read_npy_header(const ArrayPlace& place, i64 total, const std::function<void(std::span<std::byte>)>& next) {
  std::array<char, 12> start{};
  const auto bytes = std::as_writable_bytes(std::span(start));
  if (total < 10)
    fail(place.op, "{}: {} bytes are too few for an npy array, whose header has 10 at least", place.what, total);
  next(bytes.first(10));
  if (std::string_view(start.data(), kMagic.size()) != kMagic)
    fail(place.op, "{} at byte 0: this is no npy array: it begins with {}, not with \"\\x93NUMPY\"", place.what,
         quoted_name({start.data(), kMagic.size()}));
  const int major = static_cast<unsigned char>(start[6]), minor = static_cast<unsigned char>(start[7]);
  if (major < 1 || major > 3 || minor != 0)
    fail(place.op, "{} at byte 6: version {}.{} of npy; known are 1.0, 2.0 and 3.0", place.what, major, minor);
  NpyHeader header;
  i64 length = 0;
  i64 text_at = 10;
  if (major == 1) {
    u16 n = 0;
    std::memcpy(&n, start.data() + 8, 2);
    length = n;
  } else {
    if (total < 12)
      fail(place.op, "{}: {} bytes are too few for an npy array of version {}.0", place.what, total, major);
    next(bytes.subspan(10, 2));
    u32 n = 0;
    std::memcpy(&n, start.data() + 8, 4);
    length = n;
    text_at = 12;
  }
  if (length > kNpyHeaderLimit)
    fail(place.op, "{} at byte 8: the header's length is {}; at most {} are allowed", place.what, length, kNpyHeaderLimit);
  if (length > total - text_at)
    fail(place.op, "{} at byte 8: the header's length is {}, but only {} bytes follow", place.what, length,
         total - text_at);
  std::string text(static_cast<size_t>(length), '\0');
  next(std::as_writable_bytes(std::span(text)));
  HeaderText(place, text, text_at).read(header);
  header.header_bytes = text_at + length;
  header.data_bytes = checked_bytes(place, header.dtype, header.shape);
  if (header.data_bytes != total - header.header_bytes)
    fail(place.op, "{} at byte {}: {} {} needs {} bytes, but {} follow the header", place.what, header.header_bytes,
         header.shape, name_of(header.dtype), header.data_bytes, total - header.header_bytes);
  return header;
}

Tensor read_npy_data(const ArrayPlace& place, const NpyHeader& header,
                     const std::function<void(std::span<std::byte>)>& next) {
  if (!header.fortran_order) return read_elements(place, header.dtype, header.shape, header.swapped, next);
  // Stored column-major: row-major with the axes the other way round.
  const auto reversed = [](const Shape& shape) {
    Shape out = shape;
    std::reverse(out.begin(), out.end());
    return out;
  };
  const Tensor stored = read_elements(place, header.dtype, reversed(header.shape), header.swapped, next);
  return alias(stored, header.shape, reversed(stored.strides()), 0);
}

FileDType npy_dtype(const ArrayPlace& place, const Tensor& t, const NpyOptions& options) {
  if (!t.defined()) fail(place.op, "{}: the tensor is undefined", place.what);
  FileDType type = file_dtype(t.dtype());
  if (t.is_floating_point() && options.floats) type = *options.floats;
  if (t.dtype() == kI64 && options.integers) type = *options.integers;
  if (std::none_of(kDescrs.begin(), kDescrs.end(), [&](const Descr& d) { return d.type == type; }))
    fail(place.op, "{}: npy has no type {}", place.what, name_of(type));
  return type;
}

std::string write_npy_header(FileDType dtype, const Shape& shape) {
  const auto* descr = std::find_if(kDescrs.begin(), kDescrs.end(), [&](const Descr& d) { return d.type == dtype; });
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 size_of(dtype) == 1 ? '|' : '<', descr->name,
                                 fmt::join(shape.begin(), shape.end(), ", "), shape.size() == 1 ? "," : "");
  const size_t start = kMagic.size() + 4;
  text.append(kAlign - 1 - (start + text.size()) % kAlign, ' ');
  text += '\n';
  const auto length = static_cast<u16>(text.size());  // 64 axes of 19 digits fit
  std::string out(kMagic);
  out += '\1';
  out += '\0';
  out.append(reinterpret_cast<const char*>(&length), 2);
  return out + text;
}

}  // namespace waymark
