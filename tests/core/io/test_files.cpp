#include "core/io/files.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/error_text.h"
#include "tests/temporary_folder.h"

using namespace waymark;
using waymark::test::error_text;
using waymark::test::has;
using waymark::test::TemporaryFolder;

namespace {

i64 entries(const std::filesystem::path& folder) {
  i64 count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

TEST_CASE("files: atomic write replaces the whole file and leaves nothing else") {
  TemporaryFolder folder;
  write_file_atomic(folder / "a.json", "old, and longer");
  write_file_atomic(folder / "a.json", std::string("new\0\n", 5));
  CHECK(read_file(folder / "a.json") == std::string("new\0\n", 5));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("files: a failed write keeps the old file and names path and reason") {
  TemporaryFolder folder;
  const std::string path = (folder / "no/such/a.json").string();
  CHECK(error_text([&] { write_file_atomic(path, "x"); }) == "cannot write " + path + ": No such file or directory");
  std::filesystem::create_directory(folder / "d");
  std::ofstream(folder / "d/inside") << 1;
  CHECK(has(error_text([&] { write_file_atomic(folder / "d", "x"); }), "cannot write"));  // a folder stands there
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("files: kill -9 at any moment leaves the old or the new file") {
  TemporaryFolder folder;
  const std::string old(1 << 18, 'o'), fresh(1 << 18, 'n');
  i64 killed_inside = 0;
  for (int round = 0; round < 20; ++round) {
    write_file_atomic(folder / "f", old);
    int started[2];
    REQUIRE(::pipe(started) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const char go = 'g';
      if (::write(started[1], &go, 1) != 1) ::_exit(1);
      for (;;) write_file_atomic(folder / "f", fresh);
    }
    char go = 0;
    REQUIRE(::read(started[0], &go, 1) == 1);
    ::close(started[0]);
    ::close(started[1]);
    ::usleep(static_cast<useconds_t>(round * 150));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const std::string text = read_file(folder / "f");
    CHECK((text == old || text == fresh));
    killed_inside += entries(folder.path()) > 1;
    remove_temporary_files(folder.path());
    CHECK(entries(folder.path()) == 1);
  }
  CHECK(killed_inside > 0);  // otherwise the test looked at nothing
}

TEST_CASE("files: temporary names of a live process stay") {
  TemporaryFolder folder;
  const auto mine = folder / (std::string(kTemporaryPrefix) + std::to_string(::getpid()) + "-7");
  std::ofstream(mine) << 1;
  std::filesystem::create_directories(folder / ".tmp-step-00001200/inner");
  std::ofstream(folder / "keep") << 1;
  CHECK(remove_temporary_files(folder.path()) == 1);
  CHECK(std::filesystem::exists(mine));
  CHECK(std::filesystem::exists(folder / "keep"));
  CHECK(remove_temporary_files(folder / "nowhere") == 0);
}

TEST_CASE("files: reading refuses what is no file") {
  TemporaryFolder folder;
  CHECK(has(error_text([&] { read_file(folder.path()); }), "it is a folder"));
  CHECK(has(error_text([&] { read_file(folder / "nowhere"); }), "No such file"));
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(has(error_text([&] { read_file(folder / "fifo"); }), "no regular file"));
  std::ofstream(folder / "big") << "12345";
  CHECK(has(error_text([&] { read_file(folder / "big", 4); }), "it has 5 bytes, the limit is 4"));
}

TEST_CASE("files: without commit nothing is left; write_at fills in what comes first") {
  TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write("abc");
    CHECK(entries(folder.path()) == 1);
    CHECK_FALSE(std::filesystem::exists(folder / "a"));
  }
  CHECK(entries(folder.path()) == 0);
  AtomicFile file(folder / "a");
  file.write("....");
  file.write("data");
  file.write_at(0, std::as_bytes(std::span("head", 4)));
  CHECK(file.size() == 8);
  file.commit();
  CHECK(read_file(folder / "a") == "headdata");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("files: a source gives exactly the bytes asked for, or an Error") {
  TemporaryFolder folder;
  write_file_atomic(folder / "f", "0123456789");
  for (const Bytes& source : {open_file(folder / "f"), memory_bytes("0123456789", "f")}) {
    CHECK(source->size() == 10);
    char out[4] = {};
    const auto to = std::as_writable_bytes(std::span(out));
    source->read(6, to);
    CHECK(std::string(out, 4) == "6789");
    source->read(10, {});
    for (const i64 offset : {i64{7}, i64{-1}, i64{11}, INT64_MAX}) CHECK_THROWS_AS(source->read(offset, to), Error);
  }
  const Bytes source = open_file(folder / "f");
  std::filesystem::resize_file(folder / "f", 8);
  char out[4] = {};
  CHECK(error_text([&] { source->read(6, std::as_writable_bytes(std::span(out))); }) ==
        fmt::format("cannot read {}: it ended at byte 8 while it was read, and had 10 when it was opened",
                    (folder / "f").string()));
  CHECK(has(error_text([&] { open_file(folder.path()); }), "it is a folder"));
}

TEST_CASE("files: quoted text is short and plain") {
  CHECK(quoted_name("layers.0") == "\"layers.0\"");
  CHECK(quoted_name(std::string_view("a\"\\\n\x1b[2J\0\xc3\xa4", 11)) == "\"a\\\"\\\\\\x0a\\x1b[2J\\x00\\xc3\\xa4\"");
  CHECK(quoted_name(std::string(100, 'x')) == "\"" + std::string(60, 'x') + "\"...");
}
