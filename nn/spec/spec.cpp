#include "nn/spec/spec.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/tensor/error.h"
#include "nn/spec/suggest.h"
#include "nn/spec/text_error.h"

namespace waymark::nn {

SpecValue::SpecValue(std::vector<SpecValue> v) : kind_(Kind::list), list_(std::move(v)) {}
SpecValue::SpecValue(Spec v) : kind_(Kind::spec), spec_(std::make_shared<const Spec>(std::move(v))) {}

SpecValue SpecValue::quoted(std::string text) {
  SpecValue v(std::move(text));
  v.kind_ = Kind::text;
  return v;
}

const SpecValue* Spec::find(std::string_view key) const {
  for (const SpecArg& arg : args)
    if (arg.key == key) return &arg.value;
  return nullptr;
}

bool operator==(const SpecValue& a, const SpecValue& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case SpecValue::Kind::integer: return a.integer() == b.integer();
    case SpecValue::Kind::real: return a.real() == b.real();
    case SpecValue::Kind::boolean: return a.boolean() == b.boolean();
    case SpecValue::Kind::list: return a.list() == b.list();
    case SpecValue::Kind::spec: return a.spec() == b.spec();
    default: return a.text() == b.text();
  }
}
bool operator==(const SpecArg& a, const SpecArg& b) { return a.key == b.key && a.value == b.value; }
bool operator==(const Spec& a, const Spec& b) { return a.name == b.name && a.args == b.args; }

namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxLayers = 65536;
constexpr size_t kMaxText = size_t{1} << 20, kMaxOptions = 256;
constexpr size_t kMaxExpanded = size_t{4} << 20;  // bytes of text that the repetitions of a pattern stand for

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_name_char(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.' || c == '/'; }
bool is_word_char(char c) { return is_name_char(c) || c == '+'; }

// [+-]digits
bool looks_integer(std::string_view s) {
  if (!s.empty() && (s[0] == '+' || s[0] == '-')) s.remove_prefix(1);
  if (s.empty()) return false;
  for (char c : s)
    if (!is_digit(c)) return false;
  return true;
}

// [+-](digits[.digits]|.digits)[e[+-]digits]; no infinities or NaN: those are words.
bool looks_real(std::string_view s) {
  size_t i = 0;
  auto digits = [&] {
    const size_t start = i;
    while (i < s.size() && is_digit(s[i])) ++i;
    return i - start;
  };
  if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
  size_t count = digits();
  if (i < s.size() && s[i] == '.') {
    ++i;
    count += digits();
  }
  if (count == 0) return false;
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    ++i;
    if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
    if (digits() == 0) return false;
  }
  return i == s.size();
}

// Would this text be read as something else than a word?
bool is_bare_word(std::string_view s) {
  if (s.empty() || s == "true" || s == "false" || looks_real(s)) return false;
  for (char c : s)
    if (!is_word_char(c)) return false;
  return true;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kMaxText) fail("spec", "a text of {} bytes is no spec (at most {})", text.size(), kMaxText);
  }

  Spec whole_spec() {
    Spec spec = parse_spec();
    end("'+' joins encodings only where a sum is allowed");
    return spec;
  }
  SpecSum whole_sum() {
    SpecSum sum = parse_sum();
    end("expected '+' or the end");
    return sum;
  }
  SpecPattern whole_pattern() {
    size_t expanded = 0;
    SpecPattern pattern = parse_pattern(expanded);
    end("expected ',' or the end");
    return pattern;
  }
  SpecValue whole_value() {
    SpecValue value = parse_value();
    end("expected the end");
    return value;
  }

 private:
  // Errors ----------------------------------------------------------------------------------------------------------
  [[noreturn]] void error(size_t at, const std::string& what) const { fail_at("spec", text_, at, what); }
  std::string found() const {
    return at_ < text_.size() ? fmt::format(", found '{}'", printable(text_.substr(at_, 1))) : ", found the end";
  }
  [[noreturn]] void expected(const std::string& what) const { error(at_, "expected " + what + found()); }

  // Letters ---------------------------------------------------------------------------------------------------------
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool at_end() {
    skip_space();
    return at_ >= text_.size();
  }
  bool accept(char c) {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void end(const char* otherwise) {
    if (!at_end()) error(at_, otherwise + found());
  }
  template <class Pred> std::string_view take(Pred pred) {
    const size_t start = at_;
    while (at_ < text_.size() && pred(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }
  // Brackets recurse; the limit keeps hostile input from using up the stack.
  struct Level {
    Parser& parser;
    explicit Level(Parser& p) : parser(p) {
      if (++parser.depth_ > kMaxDepth)
        parser.error(parser.at_, fmt::format("brackets are nested deeper than {} levels", kMaxDepth));
    }
    ~Level() { --parser.depth_; }
  };

  // Grammar ---------------------------------------------------------------------------------------------------------
  std::string parse_name(const char* what) {
    if (!is_letter(peek())) expected(what);
    return std::string(take(is_name_char));
  }

  // Positions in a text are found for every spec and value; columns are counted forward, not from the start.
  i64 column() {
    for (; counted_ < at_; ++counted_)
      if ((static_cast<unsigned char>(text_[counted_]) & 0xC0u) != 0x80u) ++characters_;
    return characters_ + 1;
  }

  Spec parse_spec() {
    skip_space();
    Spec spec;
    spec.column = column();
    spec.name = parse_name("a name");
    if (accept('(')) parse_args(spec);
    return spec;
  }

  void parse_args(Spec& spec) {
    Level level(*this);
    if (accept(')')) return;
    while (true) {
      skip_space();
      const size_t start = at_;
      if (spec.args.size() == kMaxOptions) error(start, fmt::format("more than {} options", kMaxOptions));
      SpecArg arg;
      arg.column = column();
      arg.key = parse_name("an option name");
      if (peek() != '=')
        error(start, fmt::format("expected option=value, found '{}'{}", printable_part(arg.key),
                                 at_end() || peek() == ')' || peek() == ',' ? ": arguments are named" : ""));
      ++at_;
      if (spec.find(arg.key)) error(start, fmt::format("option {} is given twice", printable(arg.key)));
      arg.value = parse_value();
      spec.args.push_back(std::move(arg));
      if (accept(')')) return;
      if (!accept(',')) expected("')' or ','");
      if (accept(')')) return;  // a comma may stand before the bracket
    }
  }

  SpecValue parse_value() {
    skip_space();
    const i64 place = column();
    SpecValue value = parse_value_here();
    value.column = place;
    return value;
  }

  SpecValue parse_value_here() {
    const char c = peek();
    if (c == '"') return SpecValue::quoted(parse_quoted());
    if (c == '[') {
      Level level(*this);
      ++at_;
      std::vector<SpecValue> list;
      if (accept(']')) return list;
      while (true) {
        list.push_back(parse_value());
        if (accept(']')) return list;
        if (!accept(',')) expected("']' or ','");
      }
    }
    if (at_end() || !is_word_char(c)) expected("a value");
    const size_t start = at_;
    const i64 place = column();
    const std::string_view word = take(is_word_char);
    if (peek() == '(') {
      if (!is_letter(word.front()) || word.find('+') != std::string_view::npos)
        error(start, fmt::format("'{}' is no name of a spec", printable_part(word)));
      ++at_;
      Spec spec;
      spec.name = std::string(word);
      spec.column = place;
      parse_args(spec);
      return spec;
    }
    return number_or_word(word, start);
  }

  SpecValue number_or_word(std::string_view word, size_t start) const {
    if (word == "true") return true;
    if (word == "false") return false;
    std::string_view number = word;
    if (!number.empty() && number[0] == '+') number.remove_prefix(1);  // from_chars takes no plus sign
    const char* last = number.data() + number.size();
    if (looks_integer(word)) {
      i64 v = 0;
      const auto [end, code] = std::from_chars(number.data(), last, v);
      if (code != std::errc() || end != last)
        error(start, fmt::format("'{}' does not fit into 64 bits", printable(word)));
      return v;
    }
    if (looks_real(word)) {
      double v = 0;
      const auto [end, code] = std::from_chars(number.data(), last, v);
      if (code != std::errc() || end != last || !std::isfinite(v))
        error(start, fmt::format("'{}' is outside the range of a double", printable(word)));
      return v;
    }
    return std::string(word);
  }

  std::string parse_quoted() {
    const size_t start = at_++;
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      const char escaped = at_ < text_.size() ? text_[at_++] : '\0';
      if (escaped == '"' || escaped == '\\')
        out += escaped;
      else if (escaped == 'n')
        out += '\n';
      else if (escaped == 't')
        out += '\t';
      else
        error(at_ - 1, R"(in quotes a backslash stands before " \ n or t only)");
    }
    error(start, "the quote is not closed");
  }

  SpecSum parse_sum() {
    SpecSum sum{parse_spec()};
    while (accept('+')) sum.push_back(parse_spec());
    return sum;
  }

  // `expanded` gets the bytes of text that the pattern stands for.
  SpecPattern parse_pattern(size_t& expanded) {
    Level level(*this);
    SpecPattern pattern;
    while (true) {
      parse_item(pattern, expanded);
      if (!accept(',')) return pattern;
    }
  }

  void parse_item(SpecPattern& pattern, size_t& expanded) {
    skip_space();
    const size_t start = at_;
    if (!accept('[')) {
      pattern.push_back(parse_sum());
      expanded += at_ - start;
      check_size(pattern.size(), expanded, start);
      return;
    }
    size_t once = 0;
    const SpecPattern inner = parse_pattern(once);
    if (!accept(']')) expected("']' or ','");
    if (!accept('*')) expected("'*' and how often the bracket repeats: [rope]*3");
    skip_space();
    const size_t number = at_;
    const std::string_view digits = take(is_digit);
    u32 times = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), times);
    if (digits.empty() || code != std::errc() || times < 1 || times > kMaxLayers)
      error(number, fmt::format("expected a number from 1 to {}", kMaxLayers));
    expanded += once * times;
    check_size(pattern.size() + inner.size() * times, expanded, start);
    for (u32 i = 0; i < times; ++i) pattern.insert(pattern.end(), inner.begin(), inner.end());
  }
  void check_size(size_t layers, size_t expanded, size_t at) const {
    if (layers > kMaxLayers) error(at, fmt::format("the pattern has more than {} layers", kMaxLayers));
    if (expanded > kMaxExpanded) error(at, "the repetitions of the pattern are too long");
  }

  std::string_view text_;
  size_t at_ = 0, counted_ = 0;
  i64 characters_ = 0;
  int depth_ = 0;
};

}  // namespace

Spec parse_spec(std::string_view text) { return Parser(text).whole_spec(); }
SpecSum parse_sum(std::string_view text) { return Parser(text).whole_sum(); }
SpecPattern parse_pattern(std::string_view text) { return Parser(text).whole_pattern(); }
SpecValue parse_value(std::string_view text) { return Parser(text).whole_value(); }

namespace {

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + "\"";
}

// Shortest digits that give the same double, always with a sign of being a float.
std::string real_text(double v) {
  std::string text = fmt::format("{}", v);
  return looks_integer(text) ? text + ".0" : text;
}

}  // namespace

std::string to_string(const SpecValue& value) {
  switch (value.kind()) {
    case SpecValue::Kind::integer: return fmt::format("{}", value.integer());
    case SpecValue::Kind::real: return real_text(value.real());
    case SpecValue::Kind::boolean: return value.boolean() ? "true" : "false";
    case SpecValue::Kind::word: return is_bare_word(value.text()) ? value.text() : quote(value.text());
    case SpecValue::Kind::text: return quote(value.text());
    case SpecValue::Kind::spec: {
      // Without brackets it would read as a word.
      std::string text = to_string(value.spec());
      return value.spec().args.empty() ? text + "()" : text;
    }
    default: break;
  }
  std::string out = "[";
  for (const SpecValue& v : value.list()) {
    if (out.size() > 1) out += ", ";
    out += to_string(v);
  }
  return out + "]";
}

std::string to_string(const Spec& spec) {
  if (spec.args.empty()) return spec.name;
  std::string out = spec.name + "(";
  for (size_t i = 0; i < spec.args.size(); ++i)
    out += fmt::format("{}{}={}", i ? ", " : "", spec.args[i].key, to_string(spec.args[i].value));
  return out + ")";
}

std::string to_string(const SpecSum& sum) {
  std::string out;
  for (const Spec& spec : sum) {
    if (!out.empty()) out += " + ";
    out += to_string(spec);
  }
  return out;
}

std::string pattern_to_string(const std::vector<std::string>& items) {
  std::string out;
  for (size_t i = 0; i < items.size();) {
    size_t n = 1;
    while (i + n < items.size() && items[i + n] == items[i]) ++n;
    if (n == items.size()) return items[i];
    if (!out.empty()) out += ", ";
    out += n == 1 ? items[i] : fmt::format("[{}]*{}", items[i], n);
    i += n;
  }
  return out;
}

}  // namespace waymark::nn
