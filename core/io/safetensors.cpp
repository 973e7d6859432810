#include "core/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/io/safetensors_header.h"

namespace waymark {
namespace {

constexpr i64 kPadding = 8;  // the header's length is a multiple of it

using Entry = SafeTensors::Entry;

ArrayPlace place_of(const std::string& origin, std::string_view name) {
  return {"safetensors", fmt::format("{}: tensor {}", origin, quoted_name(name))};
}

std::string read_header(const ByteSource& source) {
  const i64 size = source.size();
  if (size < kHeaderStart)
    fail("safetensors", "{}: the file has {} bytes, fewer than the {} of the header's length", source.name(), size,
         kHeaderStart);
  u64 length = 0;
  source.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length < 2 || length > u64{kHeaderLimit})
    fail("safetensors", "{} at byte 0: the header's length is {}; it must lie in [2, {}]", source.name(), length,
         kHeaderLimit);
  if (static_cast<i64>(length) > size - kHeaderStart)
    fail("safetensors", "{} at byte 0: the header's length is {}, but only {} bytes follow", source.name(), length,
         size - kHeaderStart);
  std::string text(static_cast<size_t>(length), '\0');
  source.read(kHeaderStart, std::as_writable_bytes(std::span(text)));
  if (text.front() != '{')
    fail("safetensors", "{} at byte {}: the header begins with {}, not with an opening brace", source.name(),
         kHeaderStart, quoted_name(text.substr(0, 1)));
  const size_t last = text.find_last_not_of(' ');
  if (text[last] != '}')
    fail("safetensors", "{} at byte {}: the header ends with {}, not with a closing brace and spaces", source.name(),
         kHeaderStart + static_cast<i64>(last), quoted_name(text.substr(last, 1)));
  return text;
}

// Each tensor's bytes fit its shape, and all of them together are exactly the data.
void check_layout(const std::string& origin, const std::vector<Entry>& entries, i64 data_begin, i64 data_bytes) {
  std::vector<u32> order(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  for (const Entry& e : entries) {
    const ArrayPlace place = place_of(origin, e.name);
    if (e.begin > e.end) fail(place.op, "{}: data_offsets [{}, {}] end before they begin", place.what, e.begin, e.end);
    if (e.end > data_bytes)
      fail(place.op, "{}: data_offsets [{}, {}] end beyond the data of {} bytes (from byte {} of the file)", place.what,
           e.begin, e.end, data_bytes, data_begin);
    const i64 bytes = checked_bytes(place, e.dtype, e.shape);
    if (bytes != e.end - e.begin)
      fail(place.op, "{}: {} {} needs {} bytes, but data_offsets [{}, {}] hold {}", place.what, e.shape,
           name_of(e.dtype), bytes, e.begin, e.end, e.end - e.begin);
  }
  std::sort(order.begin(), order.end(), [&](u32 a, u32 b) {
    return std::pair(entries[a].begin, entries[a].end) < std::pair(entries[b].begin, entries[b].end);
  });
  i64 covered = 0;
  for (const u32 i : order) {
    const Entry& e = entries[i];
    if (e.begin > covered)
      fail("safetensors", "{} at byte {}: no tensor covers the data before {}, which begins at data byte {}", origin,
           data_begin + covered, quoted_name(e.name), e.begin);
    if (e.begin < covered)
      fail("safetensors", "{} at byte {}: tensor {} overlaps another one, which ends at data byte {}", origin,
           data_begin + e.begin, quoted_name(e.name), covered);
    covered = e.end;
  }
  if (covered != data_bytes)
    fail("safetensors", "{} at byte {}: {} bytes follow the last tensor; none may", origin, data_begin + covered,
         data_bytes - covered);
}

}  // namespace

// ---- Reading -------------------------------------------------------------------------------------------------------

SafeTensors load_safetensors(Bytes source) {
  auto contents = std::make_shared<SafeTensors::Contents>();
  const std::string& origin = source->name();
  {
    const std::string text = read_header(*source);
    SafeTensorsHeader header = parse_safetensors_header(text, origin);
    contents->data_begin = kHeaderStart + static_cast<i64>(text.size());
    contents->entries = std::move(header.entries);
    contents->metadata = std::move(header.metadata);
  }
  const std::vector<Entry>& entries = contents->entries;
  // Sorted, not hashed: names chosen to collide would make a hash table slow.
  std::vector<u32>& by_name = contents->by_name;
  by_name.resize(entries.size());
  std::iota(by_name.begin(), by_name.end(), 0u);
  std::sort(by_name.begin(), by_name.end(), [&](u32 a, u32 b) { return entries[a].name < entries[b].name; });
  for (size_t i = 1; i < by_name.size(); ++i)
    if (entries[by_name[i - 1]].name == entries[by_name[i]].name)
      fail("safetensors", "{}: the header has the tensor {} twice", origin, quoted_name(entries[by_name[i]].name));
  check_layout(origin, entries, contents->data_begin, source->size() - contents->data_begin);
  contents->source = std::move(source);
  return SafeTensors(std::move(contents));
}

SafeTensors load_safetensors(const std::filesystem::path& path) { return load_safetensors(open_file(path)); }

std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> out;
  out.reserve(size());
  for (const Entry& e : entries()) out.push_back(e.name);
  return out;
}

const SafeTensors::Entry* SafeTensors::find(std::string_view name) const {
  const auto& by_name = contents_->by_name;
  const auto it = std::lower_bound(by_name.begin(), by_name.end(), name,
                                   [&](u32 i, std::string_view wanted) { return entries()[i].name < wanted; });
  return it != by_name.end() && entries()[*it].name == name ? &entries()[*it] : nullptr;
}

Tensor SafeTensors::get(std::string_view name) const {
  const Entry* e = find(name);
  if (!e) fail("safetensors", "{}: there is no tensor {} among its {}", origin(), quoted_name(name), size());
  i64 at = contents_->data_begin + e->begin;
  return read_elements(place_of(origin(), name), e->dtype, e->shape, false, [&](std::span<std::byte> to) {
    contents_->source->read(at, to);
    at += static_cast<i64>(to.size());
  });
}

// ---- Writing -------------------------------------------------------------------------------------------------------

void save_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, const Metadata& metadata,
                      const SafeTensorsOptions& options) {
  const std::string origin = path.string();
  struct Item {
    Entry entry;
    Tensor tensor;
  };
  std::vector<Item> items;
  items.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    check_array_name({"safetensors", origin}, name);
    if (name == kMetadataName) fail("safetensors", "{}: no tensor can have the name {}", origin, kMetadataName);
    if (!tensor.defined()) fail("safetensors", "{}: tensor {} is undefined", origin, quoted_name(name));
    const FileDType type = options.floats && tensor.is_floating_point() ? *options.floats : file_dtype(tensor.dtype());
    items.push_back({{.name = name, .dtype = type, .shape = tensor.shape()}, tensor});
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    const int x = size_of(a.entry.dtype), y = size_of(b.entry.dtype);
    return x != y ? x > y : a.entry.name < b.entry.name;
  });
  std::vector<Entry> entries;
  i64 covered = 0;
  for (Item& item : items) {
    Entry& e = item.entry;
    e.begin = covered;
    if (__builtin_add_overflow(covered, checked_bytes(place_of(origin, e.name), e.dtype, e.shape), &covered))
      fail("safetensors", "{}: the tensors have more than 2^63-1 bytes", origin);
    e.end = covered;
    entries.push_back(e);
  }
  std::vector<std::string_view> names;
  for (const Entry& e : entries) names.push_back(e.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    fail("safetensors", "{}: two tensors have the name {}", origin, quoted_name(*twice));

  std::string header = write_safetensors_header(entries, metadata, origin);
  header.append(static_cast<size_t>(-static_cast<i64>(header.size()) & (kPadding - 1)), ' ');
  if (static_cast<i64>(header.size()) > kHeaderLimit)
    fail("safetensors", "{}: the header has {} bytes; at most {} are allowed", origin, header.size(), kHeaderLimit);

  AtomicFile file(path);
  const u64 length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const Item& item : items)
    write_elements(place_of(origin, item.entry.name), item.tensor, item.entry.dtype,
                   [&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace waymark
