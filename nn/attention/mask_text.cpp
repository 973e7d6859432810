// Masks as text: the parser of the grammar in mask.h, and canonical printing.
#include <fmt/ranges.h>

#include <charconv>

#include "nn/attention/mask_node.h"
#include "nn/spec/suggest.h"
#include "nn/spec/text_error.h"

namespace waymark::nn {

namespace {

constexpr int kDeepestMask = 32;
constexpr size_t kLongestMask = size_t{1} << 20, kMostParts = 16384;

bool mask_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool mask_digit(char c) { return c >= '0' && c <= '9'; }

class MaskParser {
 public:
  explicit MaskParser(std::string_view text) : text_(text) {
    if (text.size() > kLongestMask) fail("mask", "a text of {} bytes is no mask expression (at most {})", text.size(), kLongestMask);
  }

  Mask whole() {
    Mask m = alternatives();
    skip_space();
    if (at_ < text_.size()) expected("'|', '&' or the end");
    return m;
  }

 private:
  [[noreturn]] void error(size_t at, const std::string& what) const { fail_at("mask", text_, at, what); }
  [[noreturn]] void expected(const std::string& what) const {
    error(at_, fmt::format("expected {}, found {}", what,
                           at_ < text_.size() ? "'" + printable(text_.substr(at_, 1)) + "'" : std::string("the end")));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void need(char c, const char* what) {
    if (!accept(c)) expected(what);
  }
  // Numbers and primitives: a limit that canonical text, which may be longer, keeps.
  void count() {
    if (++parts_ > kMostParts) error(at_, fmt::format("more than {} numbers and masks", kMostParts));
  }
  struct Level {
    MaskParser& parser;
    explicit Level(MaskParser& p) : parser(p) {
      if (++parser.depth_ > kDeepestMask) parser.error(parser.at_, fmt::format("nested deeper than {} levels", kDeepestMask));
    }
    ~Level() { --parser.depth_; }
  };

  Mask alternatives() {
    Mask m = conjunction();
    while (accept('|')) m = m | conjunction();
    return m;
  }
  Mask conjunction() {
    Mask m = negation();
    while (accept('&')) m = m & negation();
    return m;
  }
  Mask negation() {
    const Level level(*this);
    if (accept('~')) return ~negation();
    if (accept('(')) {
      Mask m = alternatives();
      need(')', "')', '|' or '&'");
      return m;
    }
    return primitive();
  }

  std::string name(const char* what) {
    if (!mask_letter(peek())) expected(what);
    const size_t from = at_;
    while (at_ < text_.size() && (mask_letter(text_[at_]) || mask_digit(text_[at_]))) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  i64 integer() {
    count();
    skip_space();
    const size_t from = at_;
    i64 value = 0;
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (problem == std::errc::result_out_of_range) error(from, "this number is too large");
    if (problem != std::errc()) expected("a number");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  // One argument: its name if it has one, and one of the kinds of value.
  struct Argument {
    size_t at = 0;
    std::string key;
    bool is_set = false, is_input = false;
    i64 number = 0;
    std::vector<i64> numbers;
    std::vector<Mask> masks;
  };
  Argument argument(const MaskPrimitive& p) {
    Argument a;
    skip_space();
    a.at = at_;
    if (mask_letter(peek())) {
      std::string word = name("an argument");
      if (accept('=')) {
        a.key = std::move(word);
      } else if (word == "input") {
        a.is_input = true;
        return a;
      } else {
        error(a.at, fmt::format("expected a number, input, {{...}} or name=value, found {}", printable(word)));
      }
    }
    if (mask_letter(peek())) {
      const size_t at = at_;
      if (name("a value") != "input") error(at, "expected a number, input or {...}");
      a.is_input = true;
    } else if (accept('{')) {
      a.is_set = true;
      if (!accept('}')) {
        do {
          if (p.takes_masks) a.masks.push_back(alternatives());
          else a.numbers.push_back(integer());
        } while (accept(','));
        need('}', "',' or '}'");
      }
    } else {
      a.number = integer();
    }
    return a;
  }

  Mask primitive() {
    count();
    skip_space();
    const size_t at = at_;
    const std::string word = name("a mask");
    const MaskPrimitive* p = nullptr;
    std::vector<std::string> names = {"all"};
    for (const MaskPrimitive& one : mask_primitives()) {
      names.emplace_back(one.name);
      if (word == one.name) p = &one;
    }
    if (!p && word != "all") error(at, fmt::format("unknown mask {}.{}", printable(word), did_you_mean(word, names)));
    need('(', "'('");
    std::vector<Argument> arguments;
    static const MaskPrimitive kAll{.name = "all", .kind = MaskKind::none};
    if (!accept(')')) {
      do arguments.push_back(argument(p ? *p : kAll));
      while (accept(','));
      need(')', "',' or ')'");
    }
    return build(p ? *p : kAll, p == nullptr, at, arguments);
  }

  Mask build(const MaskPrimitive& p, bool is_all, size_t at, const std::vector<Argument>& arguments) {
    // global(3): the set comes first in the table, its count by name only.
    std::vector<std::string> order;
    if (p.set) order.emplace_back(p.set);
    for (const MaskNumber& n : p.numbers) order.emplace_back(n.name);
    std::vector<const Argument*> given(order.size());
    bool named = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      size_t place = i;
      if (a.key.empty()) {
        if (named) error(a.at, "a positional argument behind a named one");
        if (i >= order.size()) error(a.at, fmt::format("{} takes {} arguments", p.name, order.size()));
      } else {
        named = true;
        place = static_cast<size_t>(std::find(order.begin(), order.end(), a.key) - order.begin());
        if (place == order.size())
          error(a.at, fmt::format("{} has no argument {}.{}", p.name, printable(a.key), did_you_mean(a.key, order)));
      }
      if (given[place]) error(a.at, fmt::format("{} is given twice", order[place]));
      given[place] = &a;
    }
    if (is_all) return {};
    MaskNode node{.kind = p.kind};
    size_t next = 0;
    bool has_set = false;
    if (p.set) {
      if (const Argument* a = given[next++]) {
        has_set = true;
        if (a->is_input && !p.takes_input) error(a->at, fmt::format("{} takes no input", p.name));
        if (a->is_set && !p.takes_set && !p.takes_masks) error(a->at, fmt::format("{} takes an array: {}(input)", p.name, p.name));
        if (!a->is_set && !a->is_input) error(a->at, fmt::format("{} must be {}", p.set, p.takes_set || p.takes_masks ? "a set, {...}" : "input"));
        node.from_input = a->is_input;
        node.numbers = a->numbers;
        node.parts = a->masks;
      } else if (p.numbers.empty()) {
        error(at, fmt::format("{} needs {}", p.name, p.set));
      }
    }
    for (const MaskNumber& n : p.numbers) {
      const Argument* a = given[next++];
      if (a && (a->is_set || a->is_input)) error(a->at, fmt::format("{} must be a number", n.name));
      if (p.set) {  // either the set or the count
        if (!a == !has_set) error(at, fmt::format("{} needs {} or {}, not {}", p.name, p.set, n.name, a ? "both" : "neither"));
        if (a) {
          node.counted = true;
          node.numbers = {a->number};
        }
        continue;
      }
      if (!a && !n.otherwise) error(at, fmt::format("{} needs {}", p.name, n.name));
      node.numbers.push_back(a ? a->number : *n.otherwise);
    }
    try {
      return make_mask(std::move(node));
    } catch (const Error& e) {
      std::string what = e.what();
      if (what.rfind("mask: ", 0) == 0) what.erase(0, 6);
      error(at, what);
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t parts_ = 0;
};

std::string primitive_text(const MaskNode& n, bool brief) {
  const MaskPrimitive& p = mask_primitive(n.kind);
  std::vector<std::string> arguments;
  if (n.kind == MaskKind::heads) {
    if (brief) return fmt::format("heads({} entries)", n.parts.size());
    std::vector<std::string> masks;
    for (const Mask& m : n.parts) masks.push_back(m.to_string());
    arguments.push_back(fmt::format("{{{}}}", fmt::join(masks, ", ")));
  } else if (n.from_input || n.array.defined() || n.source) {
    arguments.emplace_back("input");
  } else if (p.set && !n.counted) {
    arguments.push_back(fmt::format("{{{}}}", fmt::join(n.numbers, ", ")));
  } else {
    bool named = p.set != nullptr;
    for (size_t i = 0; i < n.numbers.size(); ++i) {
      const MaskNumber& number = p.numbers[i];
      if (number.otherwise) named = true;
      if (number.otherwise == n.numbers[i]) continue;
      arguments.push_back(named ? fmt::format("{}={}", number.name, n.numbers[i]) : fmt::format("{}", n.numbers[i]));
    }
  }
  return fmt::format("{}({})", p.name, fmt::join(arguments, ", "));
}

// Binds at least as strongly as `least`: 0 |, 1 &, 2 ~.
std::string mask_text(const Mask& m, int least, bool brief) {
  const MaskNode* n = m.node();
  if (!n) return "all()";
  std::string text;
  int strength = 2;
  switch (n->kind) {
    case MaskKind::conjunction:
    case MaskKind::disjunction: {
      strength = n->kind == MaskKind::conjunction ? 1 : 0;
      std::vector<std::string> parts;
      for (const Mask& part : n->parts) parts.push_back(mask_text(part, strength + 1, brief));
      text = fmt::format("{}", fmt::join(parts, strength == 1 ? " & " : " | "));
      break;
    }
    case MaskKind::negation: text = "~" + mask_text(n->parts[0], 2, brief); break;
    default: text = primitive_text(*n, brief);
  }
  return strength < least ? "(" + text + ")" : text;
}

}  // namespace

Mask Mask::parse(std::string_view text) { return MaskParser(text).whole(); }
std::string Mask::to_string(bool brief) const { return mask_text(*this, 0, brief); }

}  // namespace waymark::nn
