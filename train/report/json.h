// Json: a small JSON value with ordered members, a strict reader and a deterministic writer, for the files of a run
// (metrics.jsonl, result.json, sweep.json). The heavy JSON header stays in json.cpp.
//
// Reading is strict: plain JSON (RFC 8259) and nothing else, no member twice, at most 64 levels deep. Numbers without
// fraction and exponent that fit are i64, all others f64. Writing gives the shortest text that reads back as the same
// number; a number that is not finite cannot be written (JSON has none): the caller says what it stands for.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor/types.h"

namespace waymark::train {

class WAYMARK_API Json {
 public:
  using Member = std::pair<std::string, Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;  // in the order of the text

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <class Int, std::enable_if_t<std::is_integral_v<Int> && !std::is_same_v<Int, bool>, int> = 0>
  Json(Int value) : value_(static_cast<i64>(value)) {
    static_assert(std::is_signed_v<Int> || sizeof(Int) < sizeof(i64), "this unsigned type does not fit i64");
  }
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<i64>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  // "null", "a boolean", "an integer", "a number", "a string", "an array", "an object": for messages.
  std::string_view kind() const;

  // Each is an Error that says what was found if the value is of another kind. as_double takes integers too.
  bool as_bool() const;
  i64 as_int() const;
  double as_double() const;
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;

  // The member of an object, or null if it has none of that name. Error if this is no object.
  const Json* find(std::string_view name) const;
  // Appends a member; the caller does not append one name twice. A null value becomes an object first.
  Json& set(std::string_view name, Json value);

 private:
  std::variant<std::monostate, bool, i64, double, std::string, Array, Object> value_;
};

// `origin` ("runs/a/result.json", "metrics.jsonl:12") begins every message.
WAYMARK_API Json parse_json(std::string_view text, std::string_view origin);

// indent = 0: one line without spaces; otherwise members on lines of their own, without a final line break.
// Error if a number is not finite.
WAYMARK_API std::string write_json(const Json& value, int indent = 0);

// Shortest text that reads back as the same f64 ("0.1", "1e-300", "3"): the form of all numbers in text files.
WAYMARK_API std::string shortest(double value);

// {"name":"text", ...}
WAYMARK_API Json texts_json(const std::map<std::string, std::string>& texts);

// Reads the members of one object strictly: a member of another kind and, at finish(), one that nobody asked for is
// an Error which names the file and the path.
class WAYMARK_API JsonReader {
 public:
  // `path` is the object's place in the file ("data.sizes"), empty at the top. Error if `value` is no object.
  JsonReader(const Json& value, std::string origin, std::string path = {});

  // The member, or null. Asking for a member marks it as known.
  const Json* get(std::string_view name);
  const Json& need(std::string_view name);

  std::string text(std::string_view name);  // all four: Error if it is missing
  i64 integer(std::string_view name);
  double number(std::string_view name);
  bool flag(std::string_view name);
  std::optional<std::string> maybe_text(std::string_view name);
  std::optional<i64> maybe_integer(std::string_view name);
  std::optional<double> maybe_number(std::string_view name);
  std::optional<bool> maybe_flag(std::string_view name);
  // The members of an object-valued member; empty if it is missing.
  Json::Object object(std::string_view name);
  Json::Array array(std::string_view name);
  // A map of texts ({"task":"listops", ...}); empty if it is missing.
  std::map<std::string, std::string> texts(std::string_view name);
  // Refuses the file unless its member "format" is this one.
  void check_format(std::string_view format);

  std::string path_of(std::string_view name) const;
  const std::string& origin() const { return origin_; }
  // Throws Error: "<origin>: <path of name>: <problem>".
  [[noreturn]] void refuse(std::string_view name, std::string_view problem) const;
  void finish() const;

 private:
  const Json::Object* members_;
  std::vector<bool> known_;
  std::string origin_, path_;
};

}  // namespace waymark::train
