#include "train/report/files.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/train/report/error_text.h"
#include "tests/train/report/temporary_folder.h"

using namespace waymark;
using namespace waymark::train;
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
