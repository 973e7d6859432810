#include <fmt/format.h>
#include <zlib.h>

#include <cstring>
#include <stdexcept>

#include "core/tensor/types.h"
#include "tests/core/io/hostile_files.h"

namespace waymark::test {
namespace {

template <class T> void put(std::string& out, T value) { out.append(reinterpret_cast<const char*>(&value), sizeof(T)); }
template <class T> std::string patched(std::string bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
  return bytes;
}

std::string deflated(const std::string& bytes) {
  z_stream z{};
  if (deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  const bool done = deflate(&z, Z_FINISH) == Z_STREAM_END;
  out.resize(z.total_out);
  deflateEnd(&z);
  if (!done) throw std::runtime_error("deflate");
  return out;
}
u32 crc_of(const std::string& bytes) {
  return static_cast<u32>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

std::string end_record(size_t count, size_t directory_bytes, size_t directory_at) {
  std::string out;
  put<u32>(out, 0x06054b50);
  put<u32>(out, 0);
  put(out, static_cast<u16>(count));
  put(out, static_cast<u16>(count));
  put(out, static_cast<u32>(directory_bytes));
  put(out, static_cast<u32>(directory_at));
  put<u16>(out, 0);
  return out;
}
// The zip64 end of a directory that ends at byte `at`, its locator, and the plain end.
std::string end_records64(u64 count, u64 directory_bytes, u64 directory_at) {
  std::string out;
  put<u32>(out, 0x06064b50);
  put<u64>(out, 44);
  put<u32>(out, 45 | 45 << 16);
  put<u64>(out, 0);
  put(out, count);
  put(out, count);
  put(out, directory_bytes);
  put(out, directory_at);
  put<u32>(out, 0x07064b50);
  put<u32>(out, 0);
  put(out, directory_at + directory_bytes);
  put<u32>(out, 1);
  return out + end_record(0xffff, 0xffffffff, 0xffffffff);
}

}  // namespace

std::string zip_bytes(const std::vector<ZipPart>& parts) {
  std::string out, directory;
  for (const ZipPart& part : parts) {
    const std::string packed = (part.deflate ? deflated(part.bytes) : part.bytes) + part.behind;
    const auto header = [&](bool sizes_here) {  // what a local header and an entry of the directory share
      const u32 crc = sizes_here ? crc_of(part.bytes) : 0;
      const u64 packed_size = sizes_here ? packed.size() : 0, size = sizes_here ? part.bytes.size() : 0;
      std::string fields, extra;
      if (part.zip64) {
        put<u32>(extra, 1 | 16 << 16);
        put<u64>(extra, size);
        put<u64>(extra, packed_size);
      }
      put<u16>(fields, 45);
      put<u16>(fields, part.described ? 8 : 0);
      put<u16>(fields, part.deflate ? 8 : 0);
      put<u32>(fields, 1 << 21 | 1 << 16);
      put(fields, crc);
      put(fields, part.zip64 ? 0xffffffff : static_cast<u32>(packed_size));
      put(fields, part.zip64 ? 0xffffffff : static_cast<u32>(size));
      put(fields, static_cast<u16>(part.name.size()));
      put(fields, static_cast<u16>(extra.size()));
      return std::pair(fields, extra);
    };
    const auto [entry, entry_extra] = header(true);
    put<u32>(directory, 0x02014b50);
    put<u16>(directory, 45);
    directory += entry + std::string(10, '\0');
    put(directory, static_cast<u32>(out.size()));
    directory += part.name + entry_extra;
    const auto [local, local_extra] = header(!part.described);
    put<u32>(out, 0x04034b50);
    out += local + part.name + local_extra + packed;
    if (part.described) {
      put<u32>(out, 0x08074b50);
      put(out, crc_of(part.bytes));
      for (const size_t n : {packed.size(), part.bytes.size()}) {
        if (part.zip64) put(out, u64{n});
        else put(out, static_cast<u32>(n));
      }
    }
  }
  const size_t at = out.size();
  return out + directory + end_record(parts.size(), directory.size(), at);
}

std::vector<SampleFile> npz_samples() {
  const std::string four(4, '\0');
  const std::string array = npy_bytes("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", four);
  const std::string zeros =
      npy_bytes("{'descr': '|u1', 'fortran_order': False, 'shape': (1000,), }\n", std::string(1000, '\0'));
  const std::string stored = zip_bytes({{"a.npy", array}, {"b.npy", array}});
  const std::string packed = zip_bytes({{"a.npy", zeros, true}});
  // Places in `stored`: the local header of a, its entry, the end.
  const size_t local = 0, entry = stored.find("PK\1\2"), end = stored.size() - 22;
  const size_t packed_entry = packed.find("PK\1\2"), data = 35;  // of "a.npy"
  const std::string wide = zip_bytes({{.name = "a.npy", .bytes = array, .zip64 = true}});
  const std::string described = zip_bytes({{.name = "a.npy", .bytes = zeros, .deflate = true, .described = true}});
  const std::string members = stored.substr(0, entry), directory = stored.substr(entry, end - entry);
  const std::string stored64 = members + directory + end_records64(2, directory.size(), entry);

  std::vector<SampleFile> files;
  const auto good = [&](std::string name, std::string bytes) {
    files.push_back({std::move(name), std::move(bytes), ""});
  };
  const auto bad = [&](std::string name, std::string bytes, std::string message) {
    files.push_back({std::move(name), std::move(bytes), "npz: f" + std::move(message)});
  };
  good("no members", zip_bytes({}));
  good("stored", stored);
  good("deflated", packed);
  good("both", zip_bytes({{"a.npy", zeros, true}, {"folder/../b", array}}));
  good("zip64 end", stored64);
  good("zip64 sizes", wide);
  good("sizes behind the data", described);
  good("zip64 sizes behind the data",
       zip_bytes({{.name = "a.npy", .bytes = array, .zip64 = true, .described = true}, {"b.npy", array}}));
  const std::string scalar = npy_bytes("{'descr': '<i4', 'fortran_order': False, 'shape': ()}", four);
  const std::string nothing = npy_bytes("{'descr': '<i4', 'fortran_order': False, 'shape': (0, 3)}");
  good("0-d and empty", zip_bytes({{"s.npy", scalar}, {"e.npy", nothing, true}}));

  bad("empty file", "", ": 0 bytes are too few for a zip archive, which has 22 at least");
  bad("an npy file", array + std::string(22, '\0'),
      fmt::format(" at byte {}: this is no zip archive: its last 22 bytes are no end of a directory (or have a comment "
                  "behind it)", array.size()));
  bad("comment", patched(stored, end + 20, u16{1}) + "c",
      fmt::format(" at byte {}: this is no zip archive: its last 22 bytes are no end of a directory (or have a comment "
                  "behind it)", end + 1));
  bad("byte behind", stored + "x",
      fmt::format(" at byte {}: this is no zip archive: its last 22 bytes are no end of a directory (or have a comment "
                  "behind it)", end + 1));
  bad("bytes in front", "junk" + stored,
      fmt::format(" at byte {}: a directory of {} bytes from byte {} does not end where its end record begins, at "
                  "byte {}",
                  end + 4, directory.size(), entry, end + 4));
  bad("second disk", patched(stored, end + 4, u16{1}),
      fmt::format(" at byte {}: the archive is on several disks", end + 4));
  bad("directory on another disk", patched(stored, end + 6, u16{1}),
      fmt::format(" at byte {}: the archive is on several disks", end + 4));
  bad("fewer entries on this disk", patched(stored, end + 8, u16{1}),
      fmt::format(" at byte {}: the archive is on several disks", end + 4));
  bad("member on another disk", patched(stored, entry + 34, u16{1}),
      fmt::format(" at byte {}: member \"a.npy\" is on another disk", entry + 34));
  bad("one entry too many", patched(stored, end + 8, u32{3 | 3 << 16}),
      fmt::format(" at byte {}: 3 entries do not fit a directory of {} bytes", end, directory.size()));
  bad("one entry too few", patched(stored, end + 8, u32{1 | 1 << 16}),
      fmt::format(" at byte {}: {} bytes follow the last entry of the directory", entry + directory.size() / 2,
                  directory.size() / 2));
  bad("65,535 entries of nothing", end_record(0xffff, 0, 0),
      " at byte 0: 65535 entries do not fit a directory of 0 bytes");
  bad("2^40 entries of nothing", end_records64(u64{1} << 40, 0, 0),
      " at byte 76: 1099511627776 entries do not fit a directory of 0 bytes");
  bad("zip64 directory beyond the file", end_records64(0, 0, u64{1} << 62),
      " at byte 64: the zip64 end of the directory lies at byte 4611686018427387904, not right before its locator");
  bad("zip64 end on another disk", patched(stored64, stored64.size() - 22 - 20 - 56 + 16, u32{1}),
      fmt::format(" at byte {}: the archive is on several disks", end + 16));
  bad("no entry where one should be", patched(stored, entry, u32{0}),
      fmt::format(" at byte {}: entry 0 of the directory was expected", entry));
  bad("name beyond the directory", patched(stored, entry + 28, u16{60000}),
      fmt::format(" at byte {}: entry 0 reaches beyond the directory", entry));
  bad("encrypted", patched(patched(stored, entry + 8, u16{1}), local + 6, u16{1}),
      fmt::format(" at byte {}: member \"a.npy\" is encrypted", entry + 8));
  bad("bzip2", patched(patched(stored, entry + 10, u16{12}), local + 8, u16{12}),
      fmt::format(" at byte {}: member \"a.npy\" is compressed by method 12; known are 0 (stored) and 8 (deflated)",
                  entry + 10));
  bad("two of one name", zip_bytes({{"a.npy", array}, {"a.npy", array}}), ": two members are called \"a\"");
  bad("two of one label", zip_bytes({{"a.npy", array}, {"a", array}}), ": two members are called \"a\"");
  bad("name with NUL", zip_bytes({{std::string("a\0.npy", 6), array}}),
      ": the name \"a\\x00.npy\" has a NUL character");
  bad("name over 4 KiB", zip_bytes({{std::string(4097, 'n'), array}}),
      ": the name \"" + std::string(60, 'n') + "\"... has 4097 bytes; at most 4096 are allowed");

  bad("zip64 end unlike the plain end", patched(stored64, stored64.size() - 22 + 8, u32{1 | 1 << 16}),
      fmt::format(" at byte {}: the end of the directory differs from its zip64 end", stored64.size() - 22));
  bad("stored sizes that differ", patched(stored, entry + 24, u32{99}),
      fmt::format(" at byte {}: member \"a.npy\": 99 bytes cannot come out of {} in an archive of {}", entry + 20,
                  array.size(), stored.size()));
  bad("more than deflate can", patched(packed, packed_entry + 24, u32{1u << 31}),
      fmt::format(" at byte {}: member \"a.npy\": 2147483648 bytes cannot come out of {} in an archive of {}",
                  packed_entry + 20, packed_entry - data, packed.size()));
  bad("more than the file", patched(packed, packed_entry + 20, u32{1u << 31}),
      fmt::format(" at byte {}: member \"a.npy\": {} bytes cannot come out of 2147483648 in an archive of {}",
                  packed_entry + 20, zeros.size(), packed.size()));
  bad("local header behind the directory", patched(stored, entry + 42, u32{0x7fffffff}),
      fmt::format(" at byte {}: member \"a.npy\" begins at byte 2147483647, but the directory at {}", entry + 42,
                  entry));
  bad("local header elsewhere", patched(stored, entry + 42, u32{4}),
      " at byte 4: the local header of member \"a.npy\" was expected");
  bad("member into the directory", patched(stored, local + 26, u16{60000}),
      fmt::format(" at byte 0: member \"a.npy\" of {} bytes reaches into the directory at byte {}", array.size(),
                  entry));
  const size_t second = entry + directory.size() / 2;
  bad("two members in one place", patched(patched(stored, second + 42, u32{0}), second + 46, 'a'),
      " at byte 0: two members overlap");
  const std::string unlike = " at byte 0: the local header of member \"a.npy\" has another ";
  bad("local size", patched(packed, 22, u32{99}), unlike + "size than the directory");
  bad("local packed size", patched(packed, 18, u32{99}), unlike + "size than the directory");
  bad("local checksum", patched(stored, local + 14, u32{99}), unlike + "checksum than the directory");
  bad("local method", patched(stored, local + 8, u16{8}), unlike + "method than the directory");
  bad("local name", patched(stored, local + 30, 'x'), unlike + "name than the directory");
  bad("local encryption", patched(stored, local + 6, u16{1}), unlike + "set of flags than the directory");
  bad("local zip64 size", patched(wide, data + 4, u64{99}), unlike + "size than the directory");
  bad("local zip64 sizes cut short", patched(wide, data + 2, u16{8}),
      " at byte 0: the extra field of member \"a.npy\" is broken");
  bad("zip64 sizes that are not there", patched(wide, wide.find("PK\1\2") + 46 + 5, u16{2}),
      fmt::format(" at byte {}: the extra field of member \"a.npy\" is broken", wide.find("PK\1\2")));
  bad("2^63 bytes", patched(wide, wide.find("PK\1\2") + 46 + 5 + 4, u64{1} << 63),
      fmt::format(" at byte {}: member \"a.npy\": 9223372036854775808 bytes cannot come out of {} in an archive of {}",
                  wide.find("PK\1\2") + 20, array.size(), wide.size()));
  bad("sizes behind the data differ", patched(described, described.find("PK\7\10") + 12, u32{99}),
      fmt::format(" at byte {}: the checksum and sizes behind member \"a.npy\" differ from the directory's",
                  described.find("PK\7\10")));

  bad("checksum wrong in both", patched(patched(stored, entry + 16, u32{99}), local + 14, u32{99}),
      fmt::format(": array \"a\": its checksum is {:08x}, the directory says 00000063: the data was changed",
                  crc_of(array)));
  std::string changed = array;
  changed.back() = '\1';
  bad("flipped bit in the data", patched(stored, data + array.size() - 1, '\1'),
      fmt::format(": array \"a\": its checksum is {:08x}, the directory says {:08x}: the data was changed",
                  crc_of(changed), crc_of(array)));
  bad("deflated data broken", patched(packed, data, u32{0xffffffff}),
      fmt::format(": array \"a\": its deflated data is broken before byte {} of the archive (invalid block type)",
                  packed_entry));
  bad("bytes behind the deflated data",
      zip_bytes({{.name = "a.npy", .bytes = zeros, .deflate = true, .behind = "more"}}),
      ": array \"a\": 4 bytes follow its data in the archive");
  bad("size of the header alone", patched(patched(packed, packed_entry + 24, u32{71}), 22, u32{71}),
      ": array \"a\" at byte 71: [1000] U8 needs 1000 bytes, but 0 follow the header");
  bad("size too large", patched(patched(packed, packed_entry + 24, u32{2000}), 22, u32{2000}),
      ": array \"a\" at byte 71: [1000] U8 needs 1000 bytes, but 1929 follow the header");
  bad("npy header shorter than the member", zip_bytes({{"a.npy", array + "x"}}),
      ": array \"a\" at byte 68: [1] F32 needs 4 bytes, but 5 follow the header");
  bad("no npy", zip_bytes({{"readme.txt", "not an array, but a text"}}),
      ": array \"readme.txt\" at byte 0: this is no npy array: it begins with \"not an\", not with \"\\x93NUMPY\"");
  bad("pickle", zip_bytes({{"a.npy", npy_bytes("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "x")}}),
      ": array \"a\" at byte 24: descr is \"|O\": an array of Python objects is a pickle, a program that is not run "
      "here");
  return files;
}

}  // namespace waymark::test
