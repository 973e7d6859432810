#include "tests/core/io/exercise.h"

#include <cstdlib>

#include "core/io/npz.h"
#include "core/io/safetensors.h"

namespace waymark::test {
namespace {

// Not a doctest check: the fuzz targets are built without doctest.
void require(bool ok) {
  if (!ok) std::abort();
}

void read_all(const SafeTensors& file) {
  size_t found = 0;
  for (const SafeTensors::Entry& e : file.entries()) {
    require(file.find(e.name) == &e);
    const Tensor t = file.get(e.name);
    require(t.shape() == e.shape && t.dtype() == tensor_dtype(e.dtype) && t.is_contiguous());
    ++found;
  }
  require(found == file.size());
}

void read_all(const Npz& file, i64 file_bytes) {
  for (const std::string& name : file.names()) {
    const Npz::Info info = file.info(name);
    const i64 bytes = checked_numel("exercise", info.shape) * size_of(tensor_dtype(info.dtype));
    if (bytes > 2 * file_bytes + (1 << 20)) continue;
    const Tensor t = file.get(name);
    require(t.shape() == info.shape && t.dtype() == tensor_dtype(info.dtype) && t.nbytes() == bytes);
  }
}

template <class F> std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

std::string safetensors_error(std::string bytes) {
  return message_of([&] { read_all(load_safetensors(memory_bytes(std::move(bytes), "f"))); });
}
bool exercise_safetensors(std::string bytes) { return safetensors_error(std::move(bytes)).empty(); }


std::string npy_error(std::string bytes) {
  return message_of([&] { require(load_npy(memory_bytes(std::move(bytes), "f")).defined()); });
}
bool exercise_npy(std::string bytes) { return npy_error(std::move(bytes)).empty(); }

std::string npz_error(std::string bytes) {
  const auto size = static_cast<i64>(bytes.size());
  return message_of([&] { read_all(load_npz(memory_bytes(std::move(bytes), "f")), size); });
}
bool exercise_npz(std::string bytes) { return npz_error(std::move(bytes)).empty(); }

}  // namespace waymark::test
