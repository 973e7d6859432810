#include "tests/core/io/hostile_files.h"

#include <fmt/format.h>

#include <cstring>

#include "core/tensor/types.h"

namespace waymark::test {
namespace {

std::string with_length(u64 length, std::string_view rest) {
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + std::string(rest);
}

// One tensor "a" described by these members.
std::string one(std::string_view members) { return fmt::format("{{\"a\":{{{}}}}}", members); }

}  // namespace

std::string safetensors_bytes(std::string_view header, std::string_view data) {
  return with_length(header.size(), std::string(header) + std::string(data));
}

std::vector<SampleFile> safetensors_samples() {
  const std::string four(4, '\0'), eight(8, '\0');
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string big = "9007199254740992";  // 2^53
  std::vector<SampleFile> files;
  const auto good = [&](std::string name, std::string bytes) {
    files.push_back({std::move(name), std::move(bytes), ""});
  };
  const auto bad = [&](std::string name, std::string bytes, std::string message) {
    files.push_back({std::move(name), std::move(bytes), "safetensors: f" + std::move(message)});
  };
  const auto header = [&](std::string name, std::string text, std::string data, std::string message) {
    bad(std::move(name), safetensors_bytes(text, data), std::move(message));
  };

  good("no tensors", safetensors_bytes("{}"));
  good("padding", safetensors_bytes("{}      "));
  good("metadata alone", safetensors_bytes(R"({"__metadata__":{"format":"pt","empty":""}})"));
  good("one tensor", safetensors_bytes("{" + a + "}", four));
  good("spaces inside",
       safetensors_bytes("{ " + a + " , \"b\" :\t{\"shape\":[ ],\"dtype\":\"U8\",\n\"data_offsets\":[4,5]}}",
                         four + "\7"));
  good("0-d and empty", safetensors_bytes(R"({"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                                          R"("e":{"dtype":"I64","shape":[3,0,2],"data_offsets":[8,8]},)"
                                          R"("f":{"dtype":"BF16","shape":[0],"data_offsets":[0,0]}})",
                                          eight));
  good("unaligned data", safetensors_bytes(R"({"b":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
                                           R"("d":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}})",
                                           "\1" + eight));
  good("order of the data unlike that of the header",
       safetensors_bytes(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                         R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                         eight));
  good("escaped name", safetensors_bytes(R"({"\u00e4\n\"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four));
  good("name of 4 KiB", safetensors_bytes("{\"" + std::string(4096, 'n') +
                                          R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  good("64 axes", safetensors_bytes(one("\"dtype\":\"U8\",\"shape\":[1" + [] {
                    std::string ones;
                    for (int i = 1; i < 64; ++i) ones += ",1";
                    return ones;
                  }() + "],\"data_offsets\":[0,1]"),
                  "\3"));

  bad("empty file", "", ": the file has 0 bytes, fewer than the 8 of the header's length");
  bad("seven bytes", std::string(7, '\1'), ": the file has 7 bytes, fewer than the 8 of the header's length");
  bad("length 0", with_length(0, "{}"), " at byte 0: the header's length is 0; it must lie in [2, 100000000]");
  bad("length 1", with_length(1, "{}"), " at byte 0: the header's length is 1; it must lie in [2, 100000000]");
  bad("length above the limit", with_length(100000001, "{}"),
      " at byte 0: the header's length is 100000001; it must lie in [2, 100000000]");
  bad("length 2^64-1", with_length(~u64{0}, "{}"),
      " at byte 0: the header's length is 18446744073709551615; it must lie in [2, 100000000]");
  bad("length beyond the file", with_length(3, "{}"), " at byte 0: the header's length is 3, but only 2 bytes follow");
  header("no brace", " {}", "", " at byte 8: the header begins with \" \", not with an opening brace");
  header("a list", "[]", "", " at byte 8: the header begins with \"[\", not with an opening brace");
  header("byte order mark", "\xef\xbb\xbf{}", "",
         " at byte 8: the header begins with \"\\xef\", not with an opening brace");
  header("padded with a line break", "{}\n", "",
         " at byte 10: the header ends with \"\\x0a\", not with a closing brace and spaces");
  header("padded with NUL", std::string("{}\0", 3), "",
         " at byte 10: the header ends with \"\\x00\", not with a closing brace and spaces");
  header("second object", "{}{}", "", " at byte 10: this is no JSON; last read: \"{}{\"");
  header("comment", "{/**/}", "", " at byte 9: this is no JSON; last read: \"{/\"");
  header("no JSON", "{\"a\":}", "", " at byte 13: this is no JSON; last read: \"\\\"a\\\":}\"");
  header("trailing comma", "{" + a + ",}", four, " at byte 62: this is no JSON; last read: \"4]},}\"");
  header("single quotes", "{'a':1}", "", " at byte 9: this is no JSON; last read: \"{'\"");
  header("cut short", one(R"("dtype":"U8","shape":[0],"data_offsets":[0,0])").substr(0, 52), "",
         " at byte 60: this is no JSON; last read: \"0]}\"");
  header("invalid UTF-8", "{\"\xff\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", "",
         " at byte 10: this is no JSON; last read: \"\\\"\\xff\"");
  header("lone surrogate", R"({"\ud800":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", "",
         " at byte 16: this is no JSON; last read: \"\\\"\\\\ud800\\\"\"");

  header("tensor twice", "{" + a + "," + a + "}", four, ": the header has the tensor \"a\" twice");
  header("tensor twice, one name escaped", "{" + a + R"(,"\u0061":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
         eight, ": the header has the tensor \"a\" twice");
  header("metadata twice", R"({"__metadata__":{},"__metadata__":{}})", "", " at byte 40: __metadata__ appears twice");
  header("metadata key twice", R"({"__metadata__":{"k":"1","k":"2"}})", "",
         " at byte 39: the metadata has \"k\" twice");
  header("member twice", one(R"("dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4])"), four,
         " at byte 34: tensor \"a\" has dtype twice");
  header("unknown member", one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4],"stride":[1])"), four,
         " at byte 68: tensor \"a\" has the key \"stride\"; known are dtype, shape, data_offsets");
  header("no dtype", one(R"("shape":[1],"data_offsets":[0,4])"), four, " at byte 46: tensor \"a\" has no dtype");
  header("no shape", one(R"("dtype":"F32","data_offsets":[0,4])"), four, " at byte 48: tensor \"a\" has no shape");
  header("no offsets", one(R"("dtype":"F32","shape":[1])"), four, " at byte 39: tensor \"a\" has no data_offsets");
  header("empty entry", one(""), "", " at byte 14: tensor \"a\" has no dtype");
  header("unknown dtype", one(R"("dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1])"), "\1",
         " at byte 30: tensor \"a\" has the dtype \"F8_E4M3\"; known are F64, F32, F16, BF16, I64, I32, I16, I8, U64, "
         "U32, U16, U8, BOOL");
  header("dtype in small letters", one(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])"), four,
         " at byte 26: tensor \"a\" has the dtype \"f32\"; known are F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, "
         "U16, U8, BOOL");
  header("dtype a number", one(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), four,
         " at byte 24: tensor \"a\" has a number as its dtype; it must be a string");
  header("dtype a list", one(R"("dtype":["F32"],"shape":[1],"data_offsets":[0,4])"), four,
         " at byte 22: tensor \"a\" has a list as its dtype; it must be a string");
  header("shape a number", one(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), four,
         " at byte 37: tensor \"a\" has a number as its shape; it must be a list of integers");
  header("shape an object", one(R"("dtype":"F32","shape":{},"data_offsets":[0,4])"), four,
         " at byte 36: tensor \"a\" has an object as its shape; it must be a list of integers");
  header("shape null", one(R"("dtype":"F32","shape":null,"data_offsets":[0,4])"), four,
         " at byte 39: tensor \"a\" has null as its shape; it must be a list of integers");
  header("extent negative", one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), four,
         " at byte 39: tensor \"a\" has -1 in its shape; it must be an integer from 0 to 2^53-1");
  header("extent fractional", one(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), four,
         " at byte 40: tensor \"a\" has 1.0 in its shape; it must be an integer from 0 to 2^53-1");
  header("extent 2^53", one("\"dtype\":\"U8\",\"shape\":[0," + big + "],\"data_offsets\":[0,0]"), "",
         " at byte 54: tensor \"a\" has " + big + " in its shape; it must be an integer from 0 to 2^53-1");
  header("extent 2^64", one("\"dtype\":\"U8\",\"shape\":[18446744073709551616],\"data_offsets\":[0,0]"), "",
         " at byte 56: tensor \"a\" has 18446744073709551616 in its shape; it must be an integer from 0 to 2^53-1");
  header("extent infinite", one(R"("dtype":"F32","shape":[1e999],"data_offsets":[0,4])"), four,
         " at byte 41: this is no JSON; last read: \"1e999\"");
  header("extent a string", one(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])"), four,
         " at byte 39: tensor \"a\" has a string in its shape; it must be an integer from 0 to 2^53-1");
  header("extent true", one(R"("dtype":"F32","shape":[true],"data_offsets":[0,4])"), four,
         " at byte 40: tensor \"a\" has a boolean in its shape; it must be an integer from 0 to 2^53-1");
  header("nested shape", one(R"("dtype":"F32","shape":[[1]],"data_offsets":[0,4])"), four,
         " at byte 37: tensor \"a\" has a list in its shape; it must be an integer from 0 to 2^53-1");
  header("65 axes", one("\"dtype\":\"U8\",\"shape\":[1" + [] {
           std::string ones;
           for (int i = 1; i < 65; ++i) ones += ",1";
           return ones;
         }() + "],\"data_offsets\":[0,1]"),
         "\3", " at byte 165: tensor \"a\" has a shape of more than 64 axes");
  header("bytes overflow", one(R"("dtype":"F32","shape":[4294967296,2147483648],"data_offsets":[0,4])"), four,
         ": tensor \"a\": [4294967296, 2147483648] F32 has more than 2^63-1 bytes");
  header("elements overflow to the right size",
         one(R"("dtype":"U8","shape":[4294967296,4294967296,4294967297],"data_offsets":[0,0])"), "",
         ": tensor \"a\": [4294967296, 4294967296, 4294967297] U8 has more than 2^63-1 bytes");
  header("overflow beside a 0", one(R"("dtype":"U8","shape":[4294967296,0,4294967296],"data_offsets":[0,0])"), "",
         ": tensor \"a\": [4294967296, 0, 4294967296] U8 has more than 2^63-1 bytes");
  header("tensor larger than what memory can count",
         one(R"("dtype":"U8","shape":[4294967296,536870912],"data_offsets":[0,4])"), four,
         ": tensor \"a\": [4294967296, 536870912] U8 has more than 2^63-1 bytes");
  header("one offset", one(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), four,
         " at byte 57: tensor \"a\" has 1 data_offsets, not two");
  header("three offsets", one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])"), four,
         " at byte 61: tensor \"a\" has more than two data_offsets");
  header("negative offset", one(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])"), four,
         " at byte 58: tensor \"a\" has -4 in its data_offsets; it must be an integer from 0 to 2^53-1");
  header("backwards", one(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), four,
         ": tensor \"a\": data_offsets [4, 0] end before they begin");
  header("beyond the data", one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), four,
         ": tensor \"a\": data_offsets [0, 8] end beyond the data of 4 bytes (from byte 62 of the file)");
  header("too few bytes for the shape", one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), four,
         ": tensor \"a\": [2] F32 needs 8 bytes, but data_offsets [0, 4] hold 4");
  header("too many bytes for the shape", one(R"("dtype":"F32","shape":[0],"data_offsets":[0,4])"), four,
         ": tensor \"a\": [0] F32 needs 0 bytes, but data_offsets [0, 4] hold 4");
  header("gap in front", one(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), eight,
         " at byte 62: no tensor covers the data before \"a\", which begins at data byte 4");
  header("gap between", "{" + a + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", four + "\1\2",
         " at byte 118: no tensor covers the data before \"b\", which begins at data byte 5");
  header("overlap", "{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", four + "\1\2",
         " at byte 117: tensor \"b\" overlaps another one, which ends at data byte 4");
  header("same bytes twice", "{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", four,
         " at byte 115: tensor \"b\" overlaps another one, which ends at data byte 4");
  header("empty tensor inside another", "{" + a + R"(,"b":{"dtype":"F32","shape":[0],"data_offsets":[2,2]}})", four,
         " at byte 117: tensor \"b\" overlaps another one, which ends at data byte 4");
  header("trailing byte", "{" + a + "}", four + "\1", " at byte 66: 1 bytes follow the last tensor; none may");
  header("data without a tensor", "{}", four, " at byte 10: 4 bytes follow the last tensor; none may");

  header("name with NUL", R"({"a\u0000b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", "",
         ": the name \"a\\x00b\" has a NUL character");
  header("name over 4 KiB", "{\"" + std::string(4097, 'n') + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", "",
         ": the name \"" + std::string(60, 'n') + "\"... has 4097 bytes; at most 4096 are allowed");
  header("metadata a string", R"({"__metadata__":"pt"})", "",
         " at byte 27: __metadata__ is a string; it must be an object");
  header("metadata value a number", R"({"__metadata__":{"step":3}})", "",
         " at byte 33: the metadata \"step\" is a number; it must be a string");
  header("metadata value null", R"({"__metadata__":{"step":null}})", "",
         " at byte 35: the metadata \"step\" is null; it must be a string");
  header("metadata value an object", R"({"__metadata__":{"step":{}}})", "",
         " at byte 32: the metadata \"step\" is an object; it must be a string");
  header("tensor a number", R"({"a":1})", "",
         " at byte 14: tensor \"a\" is a number; it must be an object with dtype, shape and data_offsets");
  header("tensor a list", R"({"a":[]})", "",
         " at byte 13: tensor \"a\" is a list; it must be an object with dtype, shape and data_offsets");
  header("deep nesting", "{\"a\":" + std::string(100000, '[') + "}", "",
         " at byte 13: tensor \"a\" is a list; it must be an object with dtype, shape and data_offsets");
  header("deep objects", [] {
           std::string text = "{";
           for (int i = 0; i < 20000; ++i) text += "\"a\":{";
           return text + "}";
         }(), "", " at byte 16: tensor \"a\" has the key \"a\"; known are dtype, shape, data_offsets");

  header("boolean 2", one(R"("dtype":"BOOL","shape":[2,2],"data_offsets":[0,4])"), std::string("\0\1\2\1", 4),
         ": tensor \"a\": the byte of the boolean at [1, 0] is 2; it must be 0 or 1");
  header("U64 of 2^63", one(R"("dtype":"U64","shape":[1],"data_offsets":[0,8])"), std::string("\0\0\0\0\0\0\0\x80", 8),
         ": tensor \"a\": the U64 at [0] is 9223372036854775808; tensors hold integers up to 2^63-1");
  return files;
}

}  // namespace waymark::test
