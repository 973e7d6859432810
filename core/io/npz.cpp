#include "core/io/npz.h"

#include <algorithm>
#include <array>

#include "core/io/npy_header.h"
#include "core/io/npz_names.h"
#include "core/io/zip_member.h"

namespace waymark {
namespace {

constexpr i64 kTrusted = 1 << 20;  // bytes that a small archive may promise without proof

}  // namespace

struct Npz::Contents {
  Bytes source;
  std::vector<ZipMember> members;
  std::vector<std::string> names;
};

Npz load_npz(Bytes source) {
  const std::string& origin = source->name();
  auto contents = std::make_shared<Npz::Contents>();
  contents->members = read_zip_directory("npz", *source);
  for (const ZipMember& member : contents->members) {
    check_array_name({"npz", origin}, member.name);
    contents->names.push_back(npz_label(member.name));
  }
  if (const std::string* name = repeated_name(contents->names))
    fail("npz", "{}: two members are called {}", origin, quoted_name(*name));
  contents->source = std::move(source);
  return Npz(std::move(contents));
}

Npz load_npz(const std::filesystem::path& path) { return load_npz(open_file(path)); }

const std::vector<std::string>& Npz::names() const { return contents_->names; }
const std::string& Npz::origin() const { return contents_->source->name(); }
bool Npz::contains(std::string_view name) const {
  return std::find(names().begin(), names().end(), name) != names().end();
}

// One array that is being read.
class Npz::Reading {
 public:
  Reading(const Contents& contents, std::string_view name)
      : source_(*contents.source), place_(npz_place(source_.name(), name)) {
    const auto it = std::find(contents.names.begin(), contents.names.end(), name);
    if (it == contents.names.end())
      fail("npz", "{}: there is no array {} among its {}", source_.name(), quoted_name(name), contents.names.size());
    member_ = &contents.members[static_cast<size_t>(it - contents.names.begin())];
  }

  ZipMemberReader open() const { return ZipMemberReader(source_, *member_, place_); }
  // A deflated member may promise 1,000 times its size. Before so much is allocated it has to prove that it is there.
  void prove_size() const {
    if (!member_->deflated || member_->size <= 2 * source_.size() + kTrusted) return;
    ZipMemberReader reader = open();
    std::array<std::byte, 1 << 16> buffer;
    for (i64 left = member_->size; left > 0;) {
      const i64 n = std::min(left, static_cast<i64>(buffer.size()));
      reader.read(std::span(buffer).first(static_cast<size_t>(n)));
      left -= n;
    }
    reader.finish();
  }
  NpyHeader header(ZipMemberReader& reader) const {
    return read_npy_header(place_, member_->size, [&](std::span<std::byte> to) { reader.read(to); });
  }
  Tensor data(ZipMemberReader& reader, const NpyHeader& header) const {
    return read_npy_data(place_, header, [&](std::span<std::byte> to) { reader.read(to); });
  }

 private:
  const ByteSource& source_;
  ArrayPlace place_;
  const ZipMember* member_ = nullptr;
};

Tensor Npz::get(std::string_view name) const {
  const Reading array(*contents_, name);
  array.prove_size();
  ZipMemberReader reader = array.open();
  Tensor out = array.data(reader, array.header(reader));
  reader.finish();
  return out;
}

Npz::Info Npz::info(std::string_view name) const {
  const Reading array(*contents_, name);
  ZipMemberReader reader = array.open();
  const NpyHeader header = array.header(reader);
  return {header.dtype, header.shape};
}

}  // namespace waymark
