#include "core/io/safetensors_header.h"

#include <array>
#include <nlohmann/json.hpp>

namespace waymark {
namespace {

using Json = nlohmann::json;

constexpr i64 kNumberLimit = i64{1} << 53;  // above it, numbers are not exact in every reader of JSON

std::optional<FileDType> dtype_by_name(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(FileDType::BOOL); ++i)
    if (name_of(static_cast<FileDType>(i)) == name) return static_cast<FileDType>(i);
  return std::nullopt;
}
std::string dtype_names() {
  std::string out;
  for (int i = 0; i <= static_cast<int>(FileDType::BOOL); ++i)
    out += fmt::format("{}{}", i ? ", " : "", name_of(static_cast<FileDType>(i)));
  return out;
}

// Reads characters and counts them, so that messages have a place.
class CountedText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedText(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  const char& operator*() const { return *at_; }
  CountedText& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  CountedText operator++(int) {
    CountedText before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountedText& other) const { return at_ == other.at_; }
  bool operator!=(const CountedText& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Receives the header piece by piece; no document is built. What does not fit the place where the text stands is
// refused at once, so nothing can lie deeper than shape and data_offsets do (three levels).
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  SafeTensorsHeader run() {
    const char *begin = text_.data(), *end = begin + text_.size();
    furthest_ = begin;
    Json::sax_parse(CountedText(begin, &furthest_), CountedText(end, &furthest_), this);
    return std::move(header_);
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_float(number_float_t, const std::string& token) override {
    return in_numbers() ? bad_number(token) : unexpected("a number");
  }
  bool number_integer(number_integer_t value) override {
    return in_numbers() ? bad_number(fmt::format("{}", value)) : unexpected("a number");
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_numbers()) return unexpected("a number");
    if (value >= u64{kNumberLimit}) return bad_number(fmt::format("{}", value));
    if (state_ == State::shape) {
      if (entry_.shape.size() == Shape::kMaxAxes)
        refuse("{} has a shape of more than {} axes", subject(), Shape::kMaxAxes);
      entry_.shape.push_back(static_cast<i64>(value));
    } else {
      if (offsets_ == 2) refuse("{} has more than two data_offsets", subject());
      (offsets_++ == 0 ? entry_.begin : entry_.end) = static_cast<i64>(value);
    }
    return true;
  }
  bool string(std::string& value) override {
    if (state_ == State::metadata) {
      if (!header_.metadata.emplace(key_, std::move(value)).second)
        refuse("the metadata has {} twice", quoted_name(key_));
      return true;
    }
    if (state_ != State::entry || key_ != "dtype") return unexpected("a string");
    const auto type = dtype_by_name(value);
    if (!type) refuse("{} has the dtype {}; known are {}", subject(), quoted_name(value), dtype_names());
    entry_.dtype = *type;
    return true;
  }
  bool start_object(size_t) override {
    if (state_ == State::start) state_ = State::names;
    else if (state_ == State::names && key_ == kMetadataName) state_ = State::metadata;
    else if (state_ == State::names) state_ = State::entry;
    else return unexpected("an object");
    return true;
  }
  bool key(std::string& name) override {
    if (state_ == State::names) {
      if (name == kMetadataName) {
        if (has_metadata_) refuse("{} appears twice", kMetadataName);
        has_metadata_ = true;
      } else {
        check_array_name({"safetensors", origin_}, name);
        entry_ = {};
        entry_.name = name;
        seen_ = {};
        offsets_ = 0;
      }
    } else if (state_ == State::entry) {
      const int which = name == "dtype" ? 0 : name == "shape" ? 1 : name == "data_offsets" ? 2 : -1;
      if (which < 0) refuse("{} has the key {}; known are dtype, shape, data_offsets", subject(), quoted_name(name));
      bool& seen = seen_[static_cast<size_t>(which)];
      if (seen) refuse("{} has {} twice", subject(), name);
      seen = true;
    }
    key_ = std::move(name);
    return true;
  }
  bool end_object() override {
    if (state_ == State::entry) {
      for (size_t i = 0; i < seen_.size(); ++i)
        if (!seen_[i]) refuse("{} has no {}", subject(), std::array{"dtype", "shape", "data_offsets"}[i]);
      header_.entries.push_back(std::move(entry_));
    }
    state_ = state_ == State::names ? State::end : State::names;
    return true;
  }
  bool start_array(size_t) override {
    if (state_ != State::entry || key_ == "dtype") return unexpected("a list");
    state_ = key_ == "shape" ? State::shape : State::offsets;
    return true;
  }
  bool end_array() override {
    if (state_ == State::offsets && offsets_ != 2) refuse("{} has {} data_offsets, not two", subject(), offsets_);
    state_ = State::entry;
    return true;
  }
  bool parse_error(size_t position, const std::string& token, const Json::exception&) override {
    refuse_at(kHeaderStart + static_cast<i64>(position) - 1, "this is no JSON; last read: {}", quoted_name(token));
  }

 private:
  enum class State { start, names, metadata, entry, shape, offsets, end };

  bool in_numbers() const { return state_ == State::shape || state_ == State::offsets; }
  std::string subject() const { return fmt::format("tensor {}", quoted_name(entry_.name)); }

  bool bad_number(const std::string& token) {
    refuse("{} has {} in its {}; it must be an integer from 0 to 2^53-1", subject(), token.substr(0, 40),
           state_ == State::shape ? "shape" : "data_offsets");
  }
  [[noreturn]] bool unexpected(std::string_view found) {
    switch (state_) {
      case State::metadata:
        refuse("the metadata {} is {}; it must be a string", quoted_name(key_), found);
      case State::names:
        if (key_ == kMetadataName) refuse("{} is {}; it must be an object", kMetadataName, found);
        refuse("{} is {}; it must be an object with dtype, shape and data_offsets", subject(), found);
      case State::entry:
        refuse("{} has {} as its {}; it must be {}", subject(), found, key_,
               key_ == "dtype" ? "a string" : "a list of integers");
      case State::shape:
      case State::offsets:
        refuse("{} has {} in its {}; it must be an integer from 0 to 2^53-1", subject(), found, key_);
      default: refuse("the header is {}; it must be an object", found);
    }
  }
  template <class... Args> [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    refuse_at(kHeaderStart + (furthest_ - text_.data()) - 1, text, std::forward<Args>(args)...);  // the last one read
  }
  template <class... Args>
  [[noreturn]] void refuse_at(i64 offset, fmt::format_string<Args...> text, Args&&... args) const {
    fail("safetensors", "{} at byte {}: {}", origin_, offset, fmt::format(text, std::forward<Args>(args)...));
  }

  std::string_view text_;
  const std::string& origin_;
  const char* furthest_ = nullptr;
  SafeTensorsHeader header_;
  State state_ = State::start;
  std::string key_;
  bool has_metadata_ = false;
  SafeTensors::Entry entry_;     // the one that is being read
  std::array<bool, 3> seen_{};   // dtype, shape, data_offsets
  int offsets_ = 0;
};

std::string json_text(std::string_view text, std::string_view what, const std::string& origin) {
  try {
    return Json(text).dump();
  } catch (const Json::type_error&) {
    fail("safetensors", "{}: {} {} is no UTF-8 text", origin, what, quoted_name(text));
  }
}

}  // namespace

SafeTensorsHeader parse_safetensors_header(std::string_view text, const std::string& origin) {
  return HeaderReader(text, origin).run();
}

std::string write_safetensors_header(const std::vector<SafeTensors::Entry>& entries, const Metadata& metadata,
                                     const std::string& origin) {
  std::string out = "{";
  if (!metadata.empty()) {
    out += fmt::format("\"{}\":{{", kMetadataName);
    for (bool first = true; const auto& [key, value] : metadata) {
      out += fmt::format("{}{}:{}", first ? "" : ",", json_text(key, "the metadata key", origin),
                         json_text(value, fmt::format("the metadata {} =", quoted_name(key)), origin));
      first = false;
    }
    out += '}';
  }
  for (const SafeTensors::Entry& e : entries)
    out += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", out.size() > 1 ? "," : "",
                       json_text(e.name, "the name", origin), name_of(e.dtype),
                       fmt::join(e.shape.begin(), e.shape.end(), ","), e.begin, e.end);
  return out + "}";
}

}  // namespace waymark
