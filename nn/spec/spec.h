// Spec strings: `name(option=value, ...)`, the one grammar of Waymark for code, TOML and the command line.
//
//   sum     = spec { "+" spec }
//   pattern = item { "," item } ;  item = sum | "[" pattern "]" "*" int          one item per layer
//   spec    = name [ "(" [ arg { "," arg } [","] ] ")" ] ;  arg = key "=" value
//   value   = int | float | true | false | bare-word | "quoted" | "[" [ value { "," value } ] "]" | spec
//
// White space is free. A bare word consists of letters, digits and _ - . / +; outside brackets "+" joins specs.
// This file knows syntax only; options.h says which names, options and types exist.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::nn {

class SpecValue;
struct SpecArg;

struct WAYMARK_API Spec {
  std::string name = {};
  std::vector<SpecArg> args;  // incomplete here, so without = {}; in the order written; a key at most once
  i64 column = 0;             // 1-based place in the text that was parsed; 0 if made by a program. Not compared.

  const SpecValue* find(std::string_view key) const;
};

class WAYMARK_API SpecValue {
 public:
  enum class Kind : u8 { integer, real, boolean, word, text, list, spec };  // text = "quoted"

  SpecValue() : SpecValue(i64{0}) {}
  SpecValue(i64 v) : kind_(Kind::integer), integer_(v) {}                     // NOLINT: implicit on purpose
  SpecValue(int v) : SpecValue(i64{v}) {}                                     // NOLINT
  SpecValue(double v) : kind_(Kind::real), real_(v) {}                        // NOLINT
  SpecValue(bool v) : kind_(Kind::boolean), boolean_(v) {}                    // NOLINT
  SpecValue(std::vector<SpecValue> v);                                        // NOLINT
  SpecValue(Spec v);                                                          // NOLINT
  SpecValue(const char* word) : SpecValue(std::string(word)) {}               // NOLINT
  SpecValue(std::string word) : kind_(Kind::word), text_(std::move(word)) {}  // NOLINT
  static SpecValue quoted(std::string text);

  Kind kind() const { return kind_; }
  // The parts; each is meaningful for its kind only.
  i64 integer() const { return integer_; }
  double real() const { return real_; }
  bool boolean() const { return boolean_; }
  const std::string& text() const { return text_; }  // word and text
  const std::vector<SpecValue>& list() const { return list_; }
  const Spec& spec() const { return *spec_; }

  i64 column = 0;  // as Spec::column

 private:
  Kind kind_;
  bool boolean_ = false;
  i64 integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<SpecValue> list_;
  std::shared_ptr<const Spec> spec_;
};

struct SpecArg {
  std::string key = {};
  SpecValue value = {};
  i64 column = 0;
};

WAYMARK_API bool operator==(const SpecValue& a, const SpecValue& b);  // same kind, same content; columns do not count
WAYMARK_API bool operator==(const SpecArg& a, const SpecArg& b);
WAYMARK_API bool operator==(const Spec& a, const Spec& b);

using SpecSum = std::vector<Spec>;         // never empty
using SpecPattern = std::vector<SpecSum>;  // repetitions written out; one entry stands for every layer

// Parse the whole of `text`. Errors name the column and show the place with a caret:
//   spec: expected ')' or ',' at column 17
//     huang-m4(clip=16
//                     ^
// Limits, against hostile input: 32 levels of brackets, 65,536 layers.
WAYMARK_API Spec parse_spec(std::string_view text);
WAYMARK_API SpecSum parse_sum(std::string_view text);
WAYMARK_API SpecPattern parse_pattern(std::string_view text);
WAYMARK_API SpecValue parse_value(std::string_view text);  // as inside the brackets of a spec

// Text that parses back to the same thing; floats in the shortest form that does.
WAYMARK_API std::string to_string(const SpecValue& value);
WAYMARK_API std::string to_string(const Spec& spec);
WAYMARK_API std::string to_string(const SpecSum& sum);
// Runs of equal items as [a]*3; a pattern whose items are all equal as one item.
WAYMARK_API std::string pattern_to_string(const std::vector<std::string>& items);

}  // namespace waymark::nn
