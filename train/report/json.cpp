#include "train/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/tensor/error.h"
#include "train/report/escape.h"

namespace waymark::train {

namespace {

// The value is destroyed and written by recursion, so its depth has a limit.
constexpr std::size_t kMaxDepth = 64;

// Builds a Json from the events of the parser.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(std::string_view origin) : origin_(origin) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(static_cast<i64>(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return add(static_cast<double>(value));
    return add(static_cast<i64>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return open(Json(Json::Object())); }
  bool start_array(std::size_t) override { return open(Json(Json::Array())); }
  bool key(string_t& name) override {
    for (const auto& [other, value] : std::get<Json::Object>(open_.back().content))
      if (other == name) fail("", "{}: the member {} stands there twice", origin_, json_string(shorten(name, 60)));
    open_.back().key = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..." without the library's own label
    std::string_view text = e.what();
    if (const auto end = text.find("] "); text.substr(0, 1) == "[" && end != text.npos) text.remove_prefix(end + 2);
    if (text.substr(0, 5) == "parse") fail("", "{}: no JSON: {}", origin_, shorten(text, 300));
    fail("", "{}: no JSON: {} (at byte {})", origin_, shorten(text, 300), position);
  }

 private:
  struct Open {
    std::variant<Json::Array, Json::Object> content;
    std::string key;  // of the object's next value
  };

  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = std::get_if<Json::Array>(&open_.back().content)) {
      array->push_back(std::move(value));
    } else {
      std::get<Json::Object>(open_.back().content).emplace_back(std::move(open_.back().key), std::move(value));
    }
    return true;
  }
  bool open(const Json& kind) {
    if (open_.size() == kMaxDepth) fail("", "{}: nested deeper than {} levels", origin_, kMaxDepth);
    if (kind.is_array()) {
      open_.push_back({Json::Array(), {}});
    } else {
      open_.push_back({Json::Object(), {}});
    }
    return true;
  }
  bool close() {
    auto content = std::move(open_.back().content);
    open_.pop_back();
    return std::visit([this](auto&& c) { return add(Json(std::move(c))); }, std::move(content));
  }

  std::string_view origin_;
  Json root_;
  std::vector<Open> open_;
};

void write(const Json& value, int indent, int depth, std::string& out) {
  const auto line = [&](int levels) {
    if (indent > 0) out.append("\n").append(static_cast<std::size_t>(indent * levels), ' ');
  };
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.as_bool() ? "true" : "false";
  } else if (value.is_int()) {
    out += fmt::format("{}", value.as_int());
  } else if (value.is_number()) {
    if (!std::isfinite(value.as_double())) fail("write_json", "JSON has no number {}", value.as_double());
    out += shortest(value.as_double());
  } else if (value.is_string()) {
    out += json_string(value.as_string());
  } else if (value.is_array()) {
    const auto& items = value.as_array();
    out += '[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += ',';
      line(depth + 1);
      write(items[i], indent, depth + 1, out);
    }
    if (!items.empty()) line(depth);
    out += ']';
  } else {
    const auto& members = value.as_object();
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ',';
      line(depth + 1);
      out += json_string(members[i].first);
      out += indent > 0 ? ": " : ":";
      write(members[i].second, indent, depth + 1, out);
    }
    if (!members.empty()) line(depth);
    out += '}';
  }
}

template <class T> const T& get(const std::variant<std::monostate, bool, i64, double, std::string, Json::Array,
                                                   Json::Object>& value, const Json& self, const char* wanted) {
  if (const T* found = std::get_if<T>(&value)) return *found;
  fail("", "expected {}, found {}", wanted, self.kind());
}

}  // namespace

std::string_view Json::kind() const {
  constexpr std::string_view kNames[] = {"null",     "a boolean", "an integer", "a number",
                                         "a string", "an array",  "an object"};
  return kNames[value_.index()];
}

bool Json::as_bool() const { return get<bool>(value_, *this, "a boolean"); }
i64 Json::as_int() const { return get<i64>(value_, *this, "an integer"); }
double Json::as_double() const {
  return is_int() ? static_cast<double>(std::get<i64>(value_)) : get<double>(value_, *this, "a number");
}
const std::string& Json::as_string() const { return get<std::string>(value_, *this, "a string"); }
const Json::Array& Json::as_array() const { return get<Array>(value_, *this, "an array"); }
const Json::Object& Json::as_object() const { return get<Object>(value_, *this, "an object"); }

const Json* Json::find(std::string_view name) const {
  for (const auto& [key, value] : as_object())
    if (key == name) return &value;
  return nullptr;
}

Json& Json::set(std::string_view name, Json value) {
  if (is_null()) value_ = Object();
  as_object();  // the error, if it is none
  std::get<Object>(value_).emplace_back(std::string(name), std::move(value));
  return *this;
}

Json parse_json(std::string_view text, std::string_view origin) {
  Builder builder(origin);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string write_json(const Json& value, int indent) {
  std::string out;
  write(value, indent, 0, out);
  return out;
}

std::string shortest(double value) {
  if (value == 0 && std::signbit(value)) return "-0.0";  // "-0" would be read as the integer 0
  return fmt::format("{}", value);
}

Json texts_json(const std::map<std::string, std::string>& texts) {
  Json object{Json::Object()};
  for (const auto& [name, text] : texts) object.set(name, text);
  return object;
}

JsonReader::JsonReader(const Json& value, std::string origin, std::string path)
    : members_(nullptr), origin_(std::move(origin)), path_(std::move(path)) {
  if (!value.is_object())
    fail("", "{}: {}expected an object, found {}", origin_, path_.empty() ? "" : path_ + ": ", value.kind());
  members_ = &value.as_object();
  known_.resize(members_->size());
}

const Json* JsonReader::get(std::string_view name) {
  for (std::size_t i = 0; i < members_->size(); ++i) {
    if ((*members_)[i].first != name) continue;
    known_[i] = true;
    return &(*members_)[i].second;
  }
  return nullptr;
}

const Json& JsonReader::need(std::string_view name) {
  if (const Json* value = get(name)) return *value;
  refuse(name, "is missing");
}

namespace {

template <class F> auto read(const JsonReader& reader, std::string_view name, const Json& value, F as) {
  try {
    return as(value);
  } catch (const Error& e) {
    reader.refuse(name, e.what());
  }
}

}  // namespace

std::string JsonReader::text(std::string_view name) {
  return read(*this, name, need(name), [](const Json& v) { return v.as_string(); });
}
i64 JsonReader::integer(std::string_view name) {
  return read(*this, name, need(name), [](const Json& v) { return v.as_int(); });
}
double JsonReader::number(std::string_view name) {
  return read(*this, name, need(name), [](const Json& v) { return v.as_double(); });
}
bool JsonReader::flag(std::string_view name) {
  return read(*this, name, need(name), [](const Json& v) { return v.as_bool(); });
}
std::optional<std::string> JsonReader::maybe_text(std::string_view name) {
  if (!get(name)) return std::nullopt;
  return text(name);
}
std::optional<i64> JsonReader::maybe_integer(std::string_view name) {
  if (!get(name)) return std::nullopt;
  return integer(name);
}
std::optional<double> JsonReader::maybe_number(std::string_view name) {
  if (!get(name)) return std::nullopt;
  return number(name);
}
std::optional<bool> JsonReader::maybe_flag(std::string_view name) {
  if (!get(name)) return std::nullopt;
  return flag(name);
}
Json::Object JsonReader::object(std::string_view name) {
  const Json* value = get(name);
  if (!value) return {};
  return read(*this, name, *value, [](const Json& v) { return v.as_object(); });
}
Json::Array JsonReader::array(std::string_view name) {
  const Json* value = get(name);
  if (!value) return {};
  return read(*this, name, *value, [](const Json& v) { return v.as_array(); });
}

std::map<std::string, std::string> JsonReader::texts(std::string_view name) {
  std::map<std::string, std::string> map;
  for (const auto& [key, value] : object(name)) {
    if (!value.is_string()) refuse(name, fmt::format("{} is {}, not a string", shorten(key, 60), value.kind()));
    map[key] = value.as_string();
  }
  return map;
}

void JsonReader::check_format(std::string_view format) {
  if (const std::string found = text("format"); found != format)
    refuse("format", fmt::format("is {}, this program reads {}", json_string(shorten(found, 60)), format));
}

std::string JsonReader::path_of(std::string_view name) const {
  const std::string clean = shorten(name, 60);
  return path_.empty() ? clean : path_ + "." + clean;
}

void JsonReader::refuse(std::string_view name, std::string_view problem) const {
  fail("", "{}: {}: {}", origin_, path_of(name), problem);
}

void JsonReader::finish() const {
  for (std::size_t i = 0; i < known_.size(); ++i)
    if (!known_[i]) refuse((*members_)[i].first, "unknown member; was the file written by another version?");
}

}  // namespace waymark::train
