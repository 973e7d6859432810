#include "core/random/playback.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/tensor/error.h"
#include "core/tensor/shape.h"

namespace waymark {

namespace {

std::string describe(DType dtype, std::span<const i64> shape) {
  return fmt::format("{} {}", Shape(shape), name_of(dtype));
}

bool same_form(const DrawBuffer& buffer, DType dtype, std::span<const i64> shape) {
  return buffer.dtype == dtype && std::equal(shape.begin(), shape.end(), buffer.shape.begin(), buffer.shape.end());
}

void check_form(const std::string& name, const DrawBuffer& buffer) {
  i64 bytes = size_of(buffer.dtype);
  bool bad = false;
  for (i64 size : buffer.shape) bad |= size < 0 || __builtin_mul_overflow(bytes, size, &bytes);
  if (bad || static_cast<u64>(bytes) != buffer.bytes.size())
    fail(name, "{} does not take {} bytes", describe(buffer.dtype, buffer.shape), buffer.bytes.size());
  const auto no_bool = [](std::byte b) { return b > std::byte{1}; };
  if (buffer.dtype == kB8 && std::any_of(buffer.bytes.begin(), buffer.bytes.end(), no_bool))
    fail(name, "a b8 draw holds bytes other than 0 and 1");
}

}  // namespace

std::string draw_name(std::string_view stream, std::size_t index) {
  return index == 0 ? fmt::format("rng.{}", stream) : fmt::format("rng.{}.{}", stream, index);
}

const DrawBuffer* injected_buffer(const Draw& draw) { return draw.tap ? draw.tap->injected.get() : nullptr; }

void check_injected(const Draw& draw, DType dtype, std::span<const i64> shape) {
  const DrawBuffer* buffer = injected_buffer(draw);
  if (buffer && !same_form(*buffer, dtype, shape))
    fail(draw_name(draw.tap->stream, draw.tap->injected_index), "need {}, got {}", describe(dtype, shape),
         describe(buffer->dtype, buffer->shape));
}

bool play_draw(const Draw& draw, DType dtype, std::span<const i64> shape, void* out) {
  const DrawBuffer* buffer = injected_buffer(draw);
  if (!buffer) return false;
  check_injected(draw, dtype, shape);
  if (!buffer->bytes.empty()) std::memcpy(out, buffer->bytes.data(), buffer->bytes.size());
  return true;
}

void capture_draw(const Draw& draw, DType dtype, std::span<const i64> shape, const void* data) {
  if (!is_captured(draw)) return;
  DrawBuffer buffer{dtype, {shape.begin(), shape.end()}, {}};
  i64 bytes = size_of(dtype);
  for (i64 size : shape) bytes *= size;
  buffer.bytes.resize(static_cast<std::size_t>(bytes));
  if (bytes > 0) std::memcpy(buffer.bytes.data(), data, buffer.bytes.size());
  draw.tap->log->record(draw.tap->stream, draw.tap->log_index, std::move(buffer));
}

// ---- Capture --------------------------------------------------------------------------------------------------------

bool CaptureLog::wants(std::string_view stream) const {
  return streams_.empty() || std::find(streams_.begin(), streams_.end(), stream) != streams_.end();
}

std::size_t CaptureLog::ask(const std::string& stream, u32 number, u64 first) {
  const std::lock_guard lock(mutex_);
  std::vector<Entry>& entries = entries_[stream];
  for (std::size_t i = entries.size(); i-- > 0;)
    if (entries[i].number == number && entries[i].first == first) return i;
  entries.push_back({number, first, false, {}});
  return entries.size() - 1;
}

void CaptureLog::record(const std::string& stream, std::size_t index, DrawBuffer buffer) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_.find(stream)->second[index];
  if (!entry.filled) {
    entry.buffer = std::move(buffer);
    entry.filled = true;
  } else if (!same_form(entry.buffer, buffer.dtype, buffer.shape)) {
    fail("capture", "{} (draw number {}) was {} and is now asked for as {}: one draw of a case file has one shape",
         draw_name(stream, index), entry.number, describe(entry.buffer.dtype, entry.buffer.shape),
         describe(buffer.dtype, buffer.shape));
  }
}

std::vector<NamedDraw> CaptureLog::draws() const {
  const std::lock_guard lock(mutex_);
  std::vector<NamedDraw> all;
  for (const auto& [stream, entries] : entries_)
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (!entries[i].filled)
        fail("capture", "{} was asked for, but its values were never drawn", draw_name(stream, i));
      all.push_back({draw_name(stream, i), entries[i].buffer});
    }
  return all;
}

// ---- Injection ------------------------------------------------------------------------------------------------------

InjectedStream::InjectedStream(std::string stream, std::vector<DrawBuffer> draws, InjectMode mode)
    : stream_(std::move(stream)), mode_(mode) {
  if (draws.empty()) fail("inject", "no draw is given for stream '{}'", stream_);
  for (DrawBuffer& draw : draws) {
    check_form(draw_name(stream_, buffers_.size()), draw);
    buffers_.push_back(std::make_shared<const DrawBuffer>(std::move(draw)));
  }
}

std::pair<std::shared_ptr<const DrawBuffer>, std::size_t> InjectedStream::ask(u32 number, u64 first) {
  const auto known = asked_.find({number, first});
  if (known != asked_.end()) return {buffers_[known->second], known->second};
  if (next_ >= buffers_.size() && mode_ == InjectMode::once)
    fail(draw_name(stream_, next_), "this draw is missing: {} {} injected for stream '{}', and one more is asked for",
         buffers_.size(), buffers_.size() == 1 ? "draw was" : "draws were", stream_);
  const std::size_t index = next_ % buffers_.size();
  asked_[{number, first}] = index;
  ++next_;
  return {buffers_[index], index};
}

std::size_t InjectedStream::left_over() const {
  return mode_ == InjectMode::cycle || next_ >= buffers_.size() ? 0 : buffers_.size() - next_;
}

std::map<std::string, std::vector<DrawBuffer>> draws_by_stream(std::vector<NamedDraw> draws) {
  constexpr std::string_view kPrefix = "rng.";
  std::map<std::string, DrawBuffer*, std::less<>> by_name;  // without the prefix
  for (NamedDraw& draw : draws) {
    const std::string_view name = draw.name;
    if (name.substr(0, kPrefix.size()) != kPrefix || name.size() == kPrefix.size())
      fail("inject", "'{}' is no name of a draw; it must be rng.<stream> or rng.<stream>.<n>", name);
    if (!by_name.emplace(name.substr(kPrefix.size()), &draw.buffer).second) fail("inject", "'{}' is given twice", name);
  }
  std::map<std::string, std::map<std::size_t, DrawBuffer*>> found;
  for (const auto& [name, buffer] : by_name) {
    // "a.b.2" is the third draw of "a.b" if that is there, else the first one of a stream of that name.
    const std::size_t dot = name.rfind('.');
    std::size_t index = 0;
    std::string stream = name;
    if (dot != std::string::npos && dot + 1 < name.size() && name[dot + 1] != '0') {
      const char *begin = name.data() + dot + 1, *end = name.data() + name.size();
      std::size_t value = 0;
      const auto [stop, problem] = std::from_chars(begin, end, value);
      if (problem == std::errc() && stop == end && by_name.count(name.substr(0, dot)) > 0) {
        index = value;
        stream = name.substr(0, dot);
      }
    }
    found[stream][index] = buffer;
  }
  std::map<std::string, std::vector<DrawBuffer>> result;
  for (auto& [stream, buffers] : found) {
    std::vector<DrawBuffer>& list = result[stream];
    for (auto& [index, buffer] : buffers) {
      if (index != list.size())
        fail("inject", "{} is there, but {} is missing", draw_name(stream, index), draw_name(stream, list.size()));
      list.push_back(std::move(*buffer));
    }
  }
  return result;
}

}  // namespace waymark
