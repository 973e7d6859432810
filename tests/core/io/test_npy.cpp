#include "core/io/npy.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

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

Tensor read(std::string_view descr, bool fortran, std::string_view shape, std::string_view data) {
  const std::string text = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr,
                                       fortran ? "True" : "False", shape);
  return load_npy(memory_bytes(npy_bytes(text, data), "f"));
}

}  // namespace

TEST_CASE("npy: what is written is read, bit for bit, whatever the layout") {
  TemporaryFolder folder;
  const Tensor matrix = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const Tensor& t : {make<float>({4}, {1.5, -0.0, kNan, kInf}), make<double>({2, 1}, {1e300, -5e-324}),
                          make<i64>({3}, {INT64_MIN, -1, INT64_MAX}), make<bool>({2, 2}, {true, false, false, true}),
                          make<float>({}, {3}), make<i64>({2, 0}, {}), alias(matrix, {3, 2}, {1, 3}, 0),
                          alias(matrix, {6}, {-1}, 5), alias(matrix, {2, 2}, {0, 1}, 1)}) {
    save_npy(folder / "t.npy", t);
    CHECK(difference(load_npy(folder / "t.npy"), t) == "");
  }
}

TEST_CASE("npy: the bytes of a file") {
  TemporaryFolder folder;
  save_npy(folder / "t", make<bool>({2, 1}, {true, false}));
  // As numpy.save of NumPy 2.4 writes it.
  std::string text = "{'descr': '|b1', 'fortran_order': False, 'shape': (2, 1), }";
  text.append(128 - 10 - text.size() - 1, ' ');
  CHECK(read_file(folder / "t") == npy_bytes(text + "\n", std::string("\1\0", 2)));
  save_npy(folder / "t", make<i64>({1}, {-2}));
  text = "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }";
  text.append(128 - 10 - text.size() - 1, ' ');
  CHECK(read_file(folder / "t") == npy_bytes(text + "\n", "\xfe\xff\xff\xff\xff\xff\xff\xff"));
}

TEST_CASE("npy: every dtype, in both orders of bytes") {
  const auto both = [](std::string_view kind, std::string little, const Tensor& expected) {
    CAPTURE(kind);
    for (const char order : {'<', '=', '|'})
      CHECK(difference(read(fmt::format("{}{}", order, kind), false, "()", little), expected) == "");
    const std::string big(little.rbegin(), little.rend());
    CHECK(difference(read(fmt::format(">{}", kind), false, "()", big), expected) == "");
  };
  both("f8", std::string("\0\0\0\0\0\0\xf8\xbf", 8), make<double>({}, {-1.5}));
  both("f4", std::string("\0\0\xc0\x3f", 4), make<float>({}, {1.5}));
  both("f2", std::string("\1\0", 2), make<float>({}, {0x1p-24}));
  both("i8", "\xfe\xff\xff\xff\xff\xff\xff\xff", make<i64>({}, {-2}));
  both("i4", std::string("\0\0\0\x80", 4), make<i64>({}, {INT32_MIN}));
  both("i2", std::string("\0\x80", 2), make<i64>({}, {-32768}));
  both("i1", "\x80", make<i64>({}, {-128}));
  both("u8", "\xff\xff\xff\xff\xff\xff\xff\x7f", make<i64>({}, {INT64_MAX}));
  both("u4", "\xff\xff\xff\xff", make<i64>({}, {4294967295}));
  both("u2", "\xfe\xff", make<i64>({}, {65534}));
  both("u1", "\xff", make<i64>({}, {255}));
  both("b1", "\1", make<bool>({}, {true}));
}

TEST_CASE("npy: Fortran order is the transposed view of what is stored") {
  const Tensor t = read("|i1", true, "(2, 3)", "\1\2\3\4\5\6");
  CHECK(difference(t, make<i64>({2, 3}, {1, 3, 5, 2, 4, 6})) == "");
  CHECK(t.strides() == Shape{1, 2});
}

TEST_CASE("npy: f16 and i32 on request") {
  TemporaryFolder folder;
  const auto path = folder / "t";
  save_npy(path, make<float>({3}, {65519, 65520, 5.97e-8}), {.floats = FileDType::F16});
  CHECK(read_file(path).find("'<f2'") != std::string::npos);
  CHECK(difference(load_npy(path), make<float>({3}, {65504, kInf, 0x1p-24})) == "");
  save_npy(path, make<i64>({2}, {INT32_MIN, INT32_MAX}), {.integers = FileDType::I32});
  CHECK(read_file(path).find("'<i4'") != std::string::npos);
  CHECK(difference(load_npy(path), make<i64>({2}, {INT32_MIN, INT32_MAX})) == "");
  const std::string before = read_file(path);
  const auto refused = [&](const Tensor& t, const NpyOptions& options) {
    std::string text = error_text([&] { save_npy(path, t, options); });
    CHECK(read_file(path) == before);
    const std::string prefix = fmt::format("npy: {}: ", path.string());
    REQUIRE(text.starts_with(prefix));
    return text.substr(prefix.size());
  };
  const i64 large = i64{1} << 31;
  CHECK(refused(make<i64>({2, 2}, {0, 1, large, 2}), {.integers = FileDType::I32}) ==
        "the value 2147483648 at [1, 0] does not fit I32");
  CHECK(refused(make<float>({1}, {1}), {.floats = FileDType::BF16}) == "npy has no type BF16");
  CHECK(refused(Tensor(), {}) == "the tensor is undefined");
}

TEST_CASE("npy: every fault has its message") {
  std::set<std::string> names;
  for (const SampleFile& file : npy_samples()) {
    CAPTURE(file.name);
    CHECK(names.insert(file.name).second);
    CHECK(npy_error(file.bytes) == file.message);
  }
}

TEST_CASE("npy: a file cut anywhere, or with a byte more, is refused") {
  for (const SampleFile& file : npy_samples()) {
    if (!file.message.empty()) continue;
    CAPTURE(file.name);
    for (size_t n = 0; n < file.bytes.size(); ++n) {
      CAPTURE(n);
      CHECK_FALSE(exercise_npy(file.bytes.substr(0, n)));
    }
    CHECK_FALSE(exercise_npy(file.bytes + '\0'));
  }
}

TEST_CASE("npy: flipped bits are refused or read, nothing else") {
  check_bit_flips(npy_samples(), by_level(500, 2000, 100000), exercise_npy);
}
