#include "core/io/npy.h"

#include "core/io/npy_header.h"

namespace waymark {

Tensor load_npy(const Bytes& source) {
  const ArrayPlace place{"npy", source->name()};
  i64 at = 0;
  const auto next = [&](std::span<std::byte> to) {
    source->read(at, to);
    at += static_cast<i64>(to.size());
  };
  const NpyHeader header = read_npy_header(place, source->size(), next);
  return read_npy_data(place, header, next);
}

Tensor load_npy(const std::filesystem::path& path) { return load_npy(open_file(path)); }

void save_npy(const std::filesystem::path& path, const Tensor& t, const NpyOptions& options) {
  const ArrayPlace place{"npy", path.string()};
  const FileDType type = npy_dtype(place, t, options);
  AtomicFile file(path);
  file.write(write_npy_header(type, t.shape()));
  write_elements(place, t, type, [&](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace waymark
