#include "core/io/npz.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <limits>
#include <set>
#include <thread>

#include "tests/core/io/exercise.h"
#include "tests/core/io/hostile_files.h"
#include "tests/core/io/mutations.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/tensors.h"
#include "tests/test_level.h"

using namespace waymark;
using namespace waymark::test;

namespace {

// Zeros as a deflated member that promises `promised` bytes and has `given`.
std::string zeros_archive(i64 promised, i64 given) {
  const std::string text =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}\n", promised / 4);
  std::string bytes = zip_bytes({{"z.npy", npy_bytes(text, std::string(static_cast<size_t>(given), '\0')), true}});
  const auto size = static_cast<u32>(10 + static_cast<i64>(text.size()) + promised);
  std::memcpy(bytes.data() + 22, &size, 4);
  std::memcpy(bytes.data() + bytes.find("PK\1\2") + 24, &size, 4);
  return bytes;
}

}  // namespace

TEST_CASE("npz: what is written is read, stored and deflated") {
  TemporaryFolder folder;
  const auto path = folder / "t.npz";
  const Tensor matrix = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor large = make_empty({300, 401}, kF32);
  for (i64 i = 0; i < large.numel(); ++i) large.data<float>()[i] = static_cast<float>(i % 1000);
  const NamedTensors tensors = {{"f32", matrix},
                                {"f64", make<double>({2, 1}, {1e300, -5e-324})},
                                {"i64", make<i64>({3}, {INT64_MIN, -1, INT64_MAX})},
                                {"b8", make<bool>({2, 2}, {true, false, false, true})},
                                {"0-d", make<float>({}, {3})},
                                {"empty", make<i64>({2, 0}, {})},
                                {"layers/0/näme", alias(matrix, {3, 2}, {1, 3}, 0)},
                                {"large", large},
                                {"across", alias(large, {401, 300}, {1, 401}, 0)}};
  for (const bool compress : {false, true}) {
    CAPTURE(compress);
    save_npz(path, tensors, {.compress = compress});
    const Npz file = load_npz(path);
    CHECK(file.size() == tensors.size());
    CHECK(file.origin() == path.string());
    for (size_t i = 0; i < tensors.size(); ++i) {
      const std::string& name = tensors[i].first;
      CAPTURE(name);
      CHECK(file.names()[i] == name);
      CHECK(difference(file.get(name), tensors[i].second) == "");
      CHECK(file.info(name).shape == tensors[i].second.shape());
    }
    CHECK(file.info("b8").dtype == FileDType::BOOL);
    CHECK(file.contains("large"));
    CHECK_FALSE(file.contains("large.npy"));
    CHECK((std::filesystem::file_size(path) < 700000) == compress);
    const std::string bytes = read_file(path);
    save_npz(path, tensors, {.compress = compress});
    CHECK(read_file(path) == bytes);  // the same tensors, the same bytes, whatever the clock says
  }
  save_npz(path, {});
  CHECK(load_npz(path).size() == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("npz: what cannot be written is refused, and the old file stays") {
  TemporaryFolder folder;
  const auto path = folder / "t";
  const Tensor one = make<float>({1}, {1});
  save_npz(path, {{"old", one}});
  const std::string before = read_file(path);
  const auto refused = [&](const NamedTensors& tensors, const NpzOptions& options = {}) {
    std::string text = error_text([&] { save_npz(path, tensors, options); });
    const std::string prefix = fmt::format("npz: {}: ", path.string());
    REQUIRE(text.starts_with(prefix));
    CHECK(read_file(path) == before);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
    return text.substr(prefix.size());
  };
  CHECK(refused({{"a", one}, {"b", one}, {"a", one}}) == "two arrays have the name \"a\"");
  CHECK(refused({{"", one}}) == "an array needs a name");
  CHECK(refused({{std::string("a\0", 2), one}}) == "the name \"a\\x00.npy\" has a NUL character");
  CHECK(refused({{std::string(4093, 'x'), one}}).ends_with("has 4097 bytes; at most 4096 are allowed"));
  CHECK(refused({{"a\xff", one}}) == "array \"a\\xff\" cannot be added: Invalid argument");
  CHECK(refused({{"a", Tensor()}}) == "array \"a\": the tensor is undefined");
  CHECK(refused({{"a", one}, {"b", make<i64>({1}, {1L << 40})}}, {.arrays = {.integers = FileDType::I32}}) ==
        "array \"b\": the value 1099511627776 at [0] does not fit I32");
}

TEST_CASE("npz: data is read when it is asked for, from several threads too") {
  TemporaryFolder folder;
  const auto path = folder / "t";
  save_npz(path, {{"a", make<i64>({2}, {1, 2})}, {"b", make<i64>({2}, {3, 4})}}, {.compress = true});
  const Npz file = load_npz(path);
  CHECK(error_text([&] { file.get("c"); }) ==
        fmt::format("npz: {}: there is no array \"c\" among its 2", path.string()));
  std::vector<std::string> found(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round)
        found[i] += difference(file.get(i % 2 ? "a" : "b"), i % 2 ? make<i64>({2}, {1, 2}) : make<i64>({2}, {3, 4}));
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : found) CHECK(text == "");
  std::filesystem::resize_file(path, 60);
  CHECK(has(error_text([&] { file.get("b"); }), "while it was read"));
}

TEST_CASE("npz: a small member that promises much has to prove it before memory is taken") {
  const i64 bytes = 8 << 20;
  const std::string honest = zeros_archive(bytes, bytes);
  REQUIRE(honest.size() < 20000);
  const Tensor t = load_npz(memory_bytes(honest, "f")).get("z");
  CHECK(t.numel() == bytes / 4);
  CHECK(t.at<float>({-1}) == 0);

  const auto refused = [&](i64 given) {
    const Npz file = load_npz(memory_bytes(zeros_archive(bytes, given), "f"));
    reset_peak();
    const i64 before = memory_counters().bytes_peak;
    std::string text = error_text([&] { file.get("z"); });
    CHECK(memory_counters().bytes_peak == before);
    return text;
  };
  CHECK(refused(bytes - 1) == "npz: f: array \"z\": its data in the archive ends too early");
  CHECK(refused(bytes + 1) ==
        fmt::format("npz: f: array \"z\": its deflated data has more than the {} bytes of the directory", bytes + 74));
}

TEST_CASE("npz: every fault has its message") {
  std::set<std::string> names;
  for (const SampleFile& file : npz_samples()) {
    CAPTURE(file.name);
    CHECK(names.insert(file.name).second);
    CHECK(npz_error(file.bytes) == file.message);
  }
}

TEST_CASE("npz: a file cut anywhere, or with a byte more, is refused") {
  for (const SampleFile& file : npz_samples()) {
    if (!file.message.empty()) continue;
    CAPTURE(file.name);
    for (size_t n = 0; n < file.bytes.size(); ++n) {
      CAPTURE(n);
      CHECK_FALSE(exercise_npz(file.bytes.substr(0, n)));
    }
    CHECK_FALSE(exercise_npz(file.bytes + '\0'));
  }
}

TEST_CASE("npz: flipped bits are refused or read, nothing else") {
  check_bit_flips(npz_samples(), by_level(500, 2000, 100000), exercise_npz);
}
