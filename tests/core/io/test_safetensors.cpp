#include "core/io/safetensors.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/core/io/hostile_files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/tensors.h"

using namespace waymark;
using namespace waymark::test;

namespace {

std::string bytes_of(std::initializer_list<int> values) {
  std::string out;
  for (const int v : values) out += static_cast<char>(v);
  return out;
}

// Reads one array of a file in memory.
Tensor read_one(std::string_view dtype, i64 count, const std::string& data) {
  const std::string header = fmt::format(R"({{"a":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", dtype, count,
                                         data.size());
  return load_safetensors(memory_bytes(safetensors_bytes(header, data), "f")).get("a");
}

}  // namespace

TEST_CASE("safetensors: what is written is read, bit for bit, whatever the layout") {
  TemporaryFolder folder;
  const auto path = folder / "t.safetensors";
  const Tensor matrix = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const NamedTensors tensors = {
      {"f32", make<float>({5}, {1.5, -0.0, kNan, kInf, 1e-40})},
      {"f64", make<double>({2, 1}, {1e300, -5e-324})},
      {"i64", make<i64>({3}, {INT64_MIN, -1, INT64_MAX})},
      {"b8", make<bool>({2, 2}, {true, false, false, true})},
      {"0-d", make<float>({}, {3})},
      {"empty", make<i64>({2, 0, 3}, {})},
      {"transposed", alias(matrix, {3, 2}, {1, 3}, 0)},
      {"reversed", alias(matrix, {6}, {-1}, 5)},
      {"expanded", alias(matrix, {2, 2}, {0, 1}, 1)},
      {"part", alias(matrix, {3}, {1}, 2)},
      {"näme \"\\\n", make<float>({1}, {7})},
  };
  save_safetensors(path, tensors, {{"format", "pt"}, {"note", "ä \"quoted\"\n"}});
  const SafeTensors file = load_safetensors(path);
  CHECK(file.size() == tensors.size());
  for (const auto& item : tensors) {
    CAPTURE(item.first);
    CHECK(difference(file.get(item.first), item.second) == "");
  }
  CHECK(file.metadata() == Metadata{{"format", "pt"}, {"note", "ä \"quoted\"\n"}});
  CHECK(file.origin() == path.string());
}

TEST_CASE("safetensors: a large tensor of another layout goes through in pieces") {
  TemporaryFolder folder;
  const Tensor base = make_empty({300, 401}, kF32);
  for (i64 i = 0; i < base.numel(); ++i) base.data<float>()[i] = static_cast<float>(i);
  const Tensor across = alias(base, {401, 300}, {1, 401}, 0);
  save_safetensors(folder / "t", {{"a", across}, {"b", base}});
  const SafeTensors file = load_safetensors(folder / "t");
  CHECK(difference(file.get("a"), across) == "");
  CHECK(difference(file.get("b"), base) == "");
  save_safetensors(folder / "t", {{"a", across}}, {}, {.floats = FileDType::BF16});
  const Tensor rounded = load_safetensors(folder / "t").get("a");
  CHECK(rounded.at<float>({1, 0}) == 1.0f);
  CHECK(rounded.at<float>({400, 299}) == 120320.0f);  // 120,299 between multiples of 512
}

TEST_CASE("safetensors: the bytes of a file") {
  TemporaryFolder folder;
  const auto path = folder / "t";
  save_safetensors(path, {{"z", make<float>({1, 2}, {1.5, -2})},
                          {"b", make<bool>({1}, {true})},
                          {"a", make<float>({1}, {0})},
                          {"y", make<i64>({}, {3})},
                          {"x", make<double>({0}, {})}});
  // Larger elements first, then by name; padded to a multiple of 8; weights carry format = pt.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"x":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},)"
      R"("y":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
      R"("z":{"dtype":"F32","shape":[1,2],"data_offsets":[12,20]},)"
      R"("b":{"dtype":"BOOL","shape":[1],"data_offsets":[20,21]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(read_file(path) ==
        safetensors_bytes(padded, bytes_of({3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0, 1})));
  save_safetensors(path, {}, {});
  CHECK(read_file(path) == safetensors_bytes("{}      "));
}

TEST_CASE("safetensors: a file of the reference writer is read") {
  // Written by the Python package safetensors 0.8.0.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"z":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]},)"
      R"("s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
      R"("h":{"dtype":"F16","shape":[1],"data_offsets":[16,18]},"i":{"dtype":"I16","shape":[2],"data_offsets":[18,22]},)"
      R"("b":{"dtype":"BOOL","shape":[2],"data_offsets":[22,24]}}       )";
  REQUIRE(header.size() == 0x170);
  const std::string data =
      bytes_of({0, 0, 0, 0, 0, 0, 4, 0x40, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0, 0, 0x3e, 3, 0, 0xfc, 0xff, 1, 0});
  const SafeTensors file = load_safetensors(memory_bytes(safetensors_bytes(header, data)));
  CHECK(file.names() == std::vector<std::string>{"z", "s", "a", "h", "i", "b"});
  CHECK(difference(file.get("z"), make<i64>({0, 3}, {})) == "");
  CHECK(difference(file.get("s"), make<double>({}, {2.5})) == "");
  CHECK(difference(file.get("a"), make<float>({1, 2}, {1.5, -2})) == "");
  CHECK(difference(file.get("h"), make<float>({1}, {1.5})) == "");
  CHECK(difference(file.get("i"), make<i64>({2}, {3, -4})) == "");
  CHECK(difference(file.get("b"), make<bool>({2}, {true, false})) == "");
  CHECK(file.metadata().at("format") == "pt");
}

TEST_CASE("safetensors: every dtype of a file and the tensor it becomes") {
  CHECK(difference(read_one("F64", 1, bytes_of({0, 0, 0, 0, 0, 0, 0xf8, 0xbf})), make<double>({1}, {-1.5})) == "");
  CHECK(difference(read_one("F32", 1, bytes_of({0, 0, 0xc0, 0x3f})), make<float>({1}, {1.5})) == "");
  CHECK(difference(read_one("F16", 4, bytes_of({1, 0, 0xff, 0x7b, 0, 0xfc, 0, 0x80})),
                   make<float>({4}, {0x1p-24, 65504, -kInf, -0.0})) == "");
  CHECK(difference(read_one("BF16", 3, bytes_of({0x80, 0x3f, 1, 0, 0x7f, 0xff})),
                   make<float>({3}, {1, 0x1p-133, -0x1.fep127})) == "");
  CHECK(difference(read_one("I64", 1, bytes_of({0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})),
                   make<i64>({1}, {-2})) == "");
  CHECK(difference(read_one("I32", 2, bytes_of({0, 0, 0, 0x80, 0xff, 0xff, 0xff, 0x7f})),
                   make<i64>({2}, {INT32_MIN, INT32_MAX})) == "");
  CHECK(difference(read_one("I16", 2, bytes_of({0, 0x80, 0xff, 0x7f})), make<i64>({2}, {-32768, 32767})) == "");
  CHECK(difference(read_one("I8", 2, bytes_of({0x80, 0x7f})), make<i64>({2}, {-128, 127})) == "");
  CHECK(difference(read_one("U64", 1, bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})),
                   make<i64>({1}, {INT64_MAX})) == "");
  CHECK(difference(read_one("U32", 1, bytes_of({0xff, 0xff, 0xff, 0xff})), make<i64>({1}, {4294967295})) == "");
  CHECK(difference(read_one("U16", 1, bytes_of({0xff, 0xff})), make<i64>({1}, {65535})) == "");
  CHECK(difference(read_one("U8", 2, bytes_of({0, 0xff})), make<i64>({2}, {0, 255})) == "");
  CHECK(difference(read_one("BOOL", 2, bytes_of({0, 1})), make<bool>({2}, {false, true})) == "");
}

TEST_CASE("safetensors: f16 and bf16 on request") {
  TemporaryFolder folder;
  const NamedTensors tensors = {{"f", make<float>({3}, {65519, 65520, -1e-8})},
                                {"d", make<double>({2}, {1 + 0x1p-11 + 0x1p-40, kNan})},
                                {"i", make<i64>({1}, {7})},
                                {"b", make<bool>({1}, {true})}};
  save_safetensors(folder / "t", tensors, {}, {.floats = FileDType::F16});
  const SafeTensors f16 = load_safetensors(folder / "t");
  CHECK(f16.find("f")->dtype == FileDType::F16);
  CHECK(difference(f16.get("f"), make<float>({3}, {65504, kInf, -0.0})) == "");
  CHECK(f16.get("d").at<float>({0}) == 1 + 0x1p-10f);
  CHECK(std::isnan(f16.get("d").at<float>({1})));
  CHECK(difference(f16.get("i"), make<i64>({1}, {7})) == "");
  CHECK(f16.find("b")->dtype == FileDType::BOOL);
  save_safetensors(folder / "t", tensors, {}, {.floats = FileDType::BF16});
  CHECK(difference(load_safetensors(folder / "t").get("f"), make<float>({3}, {65536, 65536, -0x1.58p-27})) == "");
}

TEST_CASE("safetensors: what cannot be written is refused, and the old file stays") {
  TemporaryFolder folder;
  const auto path = folder / "t";
  save_safetensors(path, {{"old", make<float>({1}, {1})}});
  const std::string before = read_file(path);
  const Tensor one = make<float>({1}, {1});
  const auto refused = [&](const NamedTensors& tensors, const Metadata& metadata = {},
                           const SafeTensorsOptions& options = {}) {
    std::string text = error_text([&] { save_safetensors(path, tensors, metadata, options); });
    const std::string prefix = fmt::format("safetensors: {}: ", path.string());
    REQUIRE(text.starts_with(prefix));
    CHECK(read_file(path) == before);
    CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
    return text.substr(prefix.size());
  };
  CHECK(refused({{"a", one}, {"b", one}, {"a", one}}) == "two tensors have the name \"a\"");
  CHECK(refused({{"__metadata__", one}}) == "no tensor can have the name __metadata__");
  CHECK(refused({{std::string("a\0", 2), one}}) == "the name \"a\\x00\" has a NUL character");
  CHECK(refused({{std::string(4097, 'x'), one}}).ends_with("has 4097 bytes; at most 4096 are allowed"));
  CHECK(refused({{"a\xff", one}}) == "the name \"a\\xff\" is no UTF-8 text");
  CHECK(refused({{"a", one}}, {{"k", "\xc3"}}) == "the metadata \"k\" = \"\\xc3\" is no UTF-8 text");
  CHECK(refused({{"a", Tensor()}}) == "tensor \"a\" is undefined");
  CHECK(refused({{"a", one}}, {}, {.floats = FileDType::I32}) ==
        "tensor \"a\": f32 cannot be written as I32; float tensors can as F16 or BF16, i64 as I32");
}

TEST_CASE("safetensors: data is read when it is asked for") {
  TemporaryFolder folder;
  const auto path = folder / "t";
  save_safetensors(path, {{"a", make<i64>({2}, {1, 2})}, {"b", make<i64>({2}, {3, 4})}});
  const SafeTensors file = load_safetensors(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  CHECK(difference(file.get("a"), make<i64>({2}, {1, 2})) == "");
  CHECK(has(error_text([&] { file.get("b"); }), "while it was read"));
  CHECK(error_text([&] { file.get("c"); }) ==
        fmt::format("safetensors: {}: there is no tensor \"c\" among its 2", path.string()));
  CHECK(has(error_text([&] { load_safetensors(folder / "nowhere"); }), "No such file"));
}
