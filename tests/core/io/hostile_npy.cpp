#include <fmt/format.h>

#include <cstring>

#include "core/tensor/types.h"
#include "tests/core/io/hostile_files.h"

namespace waymark::test {

std::string npy_bytes(std::string_view text, std::string_view data, int version) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  const auto length = static_cast<u32>(text.size());
  out.append(reinterpret_cast<const char*>(&length), version == 1 ? 2 : 4);
  return out + std::string(text) + std::string(data);
}

std::vector<SampleFile> npy_samples() {
  const std::string four(4, '\0'), eight(8, '\0');
  const std::string f4 = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  std::vector<SampleFile> files;
  const auto good = [&](std::string name, std::string bytes) {
    files.push_back({std::move(name), std::move(bytes), ""});
  };
  const auto bad = [&](std::string name, std::string bytes, std::string message) {
    files.push_back({std::move(name), std::move(bytes), "npy: f" + std::move(message)});
  };
  const auto header = [&](std::string name, std::string text, std::string data, std::string message) {
    bad(std::move(name), npy_bytes(text, data), std::move(message));
  };
  const auto descr = [](std::string_view d) {
    return fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': (1,), }}", d);
  };
  const auto shape = [](std::string_view s) {
    return fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", s);
  };

  good("version 1", npy_bytes(f4 + "    \n", four));
  good("version 2", npy_bytes(f4, four, 2));
  good("version 3", npy_bytes(f4 + "\n", four, 3));
  good("any order, any quotes, no comma at the end",
       npy_bytes("{\"shape\":(2,1),'fortran_order':True,\"descr\":'>f4'}", eight));
  good("0-d", npy_bytes("{'descr': '|b1', 'fortran_order': False, 'shape': ()}", "\1"));
  good("empty", npy_bytes("{'descr': '<i8', 'fortran_order': True, 'shape': (3, 0, 2)}"));
  good("native order", npy_bytes("{'descr': '=u2', 'fortran_order': False, 'shape': (2, 2,), }", eight));
  good("f2", npy_bytes("{'descr': '>f2', 'fortran_order': False, 'shape': (2,), }", four));

  bad("empty file", "", ": 0 bytes are too few for an npy array, whose header has 10 at least");
  bad("magic alone", "\x93NUMPY", ": 6 bytes are too few for an npy array, whose header has 10 at least");
  bad("other magic", "\x93NUMPZ" + npy_bytes(f4, four).substr(6),
      " at byte 0: this is no npy array: it begins with \"\\x93NUMPZ\", not with \"\\x93NUMPY\"");
  bad("version 0", npy_bytes(f4, four, 0), " at byte 6: version 0.0 of npy; known are 1.0, 2.0 and 3.0");
  bad("version 4", npy_bytes(f4, four, 4), " at byte 6: version 4.0 of npy; known are 1.0, 2.0 and 3.0");
  bad("version 1.1", [&] {
        std::string bytes = npy_bytes(f4, four);
        bytes[7] = 1;
        return bytes;
      }(), " at byte 6: version 1.1 of npy; known are 1.0, 2.0 and 3.0");
  bad("version 2 without a length", std::string("\x93NUMPY\2\0\0\0\0", 11),
      ": 11 bytes are too few for an npy array of version 2.0");
  bad("header beyond the file", std::string("\x93NUMPY\1\0\x10\0{}", 12),
      " at byte 8: the header's length is 16, but only 2 bytes follow");
  bad("header over 1 MiB", npy_bytes(std::string((1 << 20) + 1, ' '), "", 2),
      " at byte 8: the header's length is 1048577; at most 1048576 are allowed");
  bad("header of 4 GiB", std::string("\x93NUMPY\3\0\xff\xff\xff\xff", 12),
      " at byte 8: the header's length is 4294967295; at most 1048576 are allowed");

  header("no dict", "", "", " at byte 10: an opening brace was expected, not the end of the header");
  header("a list", "[]", "", " at byte 10: an opening brace was expected, not \"[\"");
  header("no descr", "{'fortran_order': False, 'shape': ()}", "", " at byte 47: the header has no descr");
  header("no order", "{'descr': '<f4', 'shape': ()}", four, " at byte 39: the header has no fortran_order");
  header("no shape", "{'descr': '<f4', 'fortran_order': False}", four, " at byte 50: the header has no shape");
  header("key twice", "{'descr': '<f4', 'descr': '<f4'}", four, " at byte 34: the key \"descr\" appears twice");
  header("unknown key", "{'descr': '<f4', 'strides': (1,)}", four,
         " at byte 36: the key \"strides\" is none of descr, fortran_order, shape");
  header("key without quotes", "{descr: '<f4'}", four, " at byte 11: a key in quotes was expected, not \"d\"");
  header("key without a closing quote", "{'descr", "", " at byte 11: this text has no closing quote");
  header("no colon", "{'descr' '<f4'}", four, " at byte 19: a colon was expected, not \"'\"");
  header("no comma", "{'descr': '<f4' 'shape': ()}", four,
         " at byte 26: a comma or the closing brace was expected, not \"'\"");
  header("not closed", f4.substr(0, f4.size() - 1), four,
         " at byte 66: a key in quotes was expected, not the end of the header");
  header("text behind", f4 + "x", four,
         " at byte 67: \"x\" follows the closing brace; only spaces and a line break may");
  header("second dict", f4 + f4, four,
         " at byte 67: \"{\" follows the closing brace; only spaces and a line break may");
  header("order a number", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}", four,
         " at byte 44: fortran_order must be True or False");
  header("a call", "{'descr': __import__('os'), 'shape': ()}", "",
         " at byte 20: descr in quotes was expected, not \"_\"");
  header("a sum", shape("(1+1,)"), eight, " at byte 62: a comma was expected, not \"+\"");

  header("pickle", descr("'|O'"), eight,
         " at byte 24: descr is \"|O\": an array of Python objects is a pickle, a program that is not run here");
  header("text", descr("'<U3'"), "", " at byte 25: descr is \"<U3\": arrays of text are not read");
  header("bytes", descr("'|S3'"), "", " at byte 25: descr is \"|S3\": arrays of text are not read");
  header("raw", descr("'|V4'"), four, " at byte 25: descr is \"|V4\": arrays of records are not read");
  header("records", descr("[('a', '<f4')]"), four,
         " at byte 20: descr is a list: arrays of records are not read; save each field as an array of its own");
  header("complex", descr("'<c8'"), eight,
         " at byte 25: descr is \"<c8\": there are no complex tensors; save the real and the imaginary part");
  header("date", descr("'<M8[D]'"), eight,
         " at byte 28: descr is \"<M8[D]\": dates are not read; save them as integers");
  const std::string known = "it must be one of < > = | and one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1";
  header("no order of bytes", descr("'f4'"), four, " at byte 24: descr is \"f4\": " + known);
  header("empty descr", descr("''"), four, " at byte 22: descr is \"\": " + known);
  header("f16 bytes", descr("'<f16'"), "", " at byte 26: descr is \"<f16\": " + known);
  header("b2", descr("'<b2'"), "", " at byte 25: descr is \"<b2\": " + known);

  header("shape a number", shape("1"), four, " at byte 60: a tuple was expected, not \"1\"");
  header("shape in parentheses only", shape("(1)"), four, " at byte 62: a comma was expected, not \")\"");
  header("shape a list", shape("[1]"), four, " at byte 60: a tuple was expected, not \"[\"");
  header("comma alone", shape("(,)"), four, " at byte 61: an extent was expected, not \",\"");
  header("two commas", shape("(1,,)"), four, " at byte 63: an extent was expected, not \",\"");
  header("no comma in the shape", shape("(1, 1 1)"), four, " at byte 66: a comma was expected, not \"1\"");
  header("negative extent", shape("(-1,)"), four, " at byte 61: an extent was expected, not \"-\"");
  header("fractional extent", shape("(1.0,)"), four, " at byte 62: a comma was expected, not \".\"");
  header("long of Python 2", shape("(1L,)"), four, " at byte 62: a comma was expected, not \"L\"");
  header("leading zero", shape("(01,)"), four,
         " at byte 63: the extent 01 is not an integer from 0 to 2^63-1 without leading zeros");
  header("extent 2^63", shape("(9223372036854775808,)"), four,
         " at byte 80: the extent 9223372036854775808 is not an integer from 0 to 2^63-1 without leading zeros");
  header("extent that wraps to 1", shape("(18446744073709551617,)"), four,
         " at byte 81: the extent 18446744073709551617 is not an integer from 0 to 2^63-1 without leading zeros");
  header("bytes overflow", shape("(4294967296, 4294967296)"), four,
         ": [4294967296, 4294967296] F32 has more than 2^63-1 bytes");
  header("65 axes", shape("(" + [] {
           std::string ones;
           for (int i = 0; i < 65; ++i) ones += "1,";
           return ones;
         }() + ")"), four, " at byte 189: the shape has more than 64 axes");
  header("far too large", shape("(1099511627776,)"), four,
         " at byte 79: [1099511627776] F32 needs 4398046511104 bytes, but 4 follow the header");
  header("too little data", shape("(2,)"), four, " at byte 67: [2] F32 needs 8 bytes, but 4 follow the header");
  header("too much data", shape("(2,)"), eight + "\1", " at byte 67: [2] F32 needs 8 bytes, but 9 follow the header");

  header("boolean 2", "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string("\1\0\2", 3),
         ": the byte of the boolean at [2] is 2; it must be 0 or 1");
  header("U64 of 2^63, big-endian", "{'descr': '>u8', 'fortran_order': False, 'shape': ()}",
         std::string("\x80\0\0\0\0\0\0\0", 8),
         ": the U64 at [] is 9223372036854775808; tensors hold integers up to 2^63-1");
  return files;
}

}  // namespace waymark::test
