#include "tests/core/io/exercise.h"

#include <cstdlib>

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

}  // namespace waymark::test
