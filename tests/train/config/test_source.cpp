// Sources: TOML files, --set, duplicates, hostile files.
#include <doctest/doctest.h>

#include <unistd.h>
#include <cstdio>

#include <filesystem>

#include "tests/train/config/fixture.h"

using namespace waymark;
using namespace waymark::train;
using nn::SpecValue;

namespace {

std::string entries_of(const std::string& toml) {
  Problems problems;
  const Source source = read_toml_text(toml, "a.toml", problems);
  std::string out;
  for (const RawEntry& e : source.entries) out += fmt::format("{}={}@{};", e.key, to_string(e.value.value), e.origin);
  for (const Problem& p : problems) out += fmt::format("!{}|{};", p.origin, p.text);
  return out;
}

}  // namespace

TEST_CASE("a TOML file becomes keys with their lines") {
  CHECK(entries_of("seed = 3\n[model]\nembed_dim = 8\nposition = 'rope'\n\n[train]\n'batch_size' = 4\n") ==
        "seed=3@a.toml:1;model.embed_dim=8@a.toml:3;model.position=\"rope\"@a.toml:4;train.batch_size=4@a.toml:7;");
  CHECK(entries_of("model.dropout = 0.5\noptim.no_decay = ['a', 'b']\n") ==
        "model.dropout=0.5@a.toml:1;optim.no_decay=[\"a\", \"b\"]@a.toml:2;");
  CHECK(entries_of("").empty());
  CHECK(entries_of("[model]\n").empty());
}

TEST_CASE("a key given twice is an error that names both places") {
  const std::string toml = entries_of("seed = 3\nseed = 4\n");
  CHECK(toml.rfind("!a.toml:2|", 0) == 0);
  CHECK(toml.find("seed") != std::string::npos);
  const std::string quoted = entries_of("\"model.embed_dim\" = 3\n[model]\nembed_dim = 4\n");
  CHECK(quoted.find("model.embed_dim is given twice, here and at a.toml:") != std::string::npos);

  Problems problems;
  command_line_source({{"model.position", "rope", "--position"},
                       {"model.position", "none", "--set"},
                       {"seed", "1", "--set"},
                       {"seed", "2", "--set"}},
                      problems);
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].text == "model.position is given twice, by --position and by --set");
  CHECK(problems[1].text == "seed is given twice by --set");
}

TEST_CASE("values of --set are TOML, and strings where they are not") {
  auto value = [](const char* text) { return to_string(parse_setting_value(text).value); };
  CHECK(value("64") == "64");
  CHECK(value("1e3") == "1000.0");
  CHECK(value("true") == "true");
  CHECK(value("relu") == "\"relu\"");
  CHECK(value("\"64\"") == "\"64\"");
  CHECK(value("t5(buckets=32, max_distance=64)") == "\"t5(buckets=32, max_distance=64)\"");
  CHECK(value("[rope]*3, none") == "\"[rope]*3, none\"");
  CHECK(value("['*.bias', \"x\"]") == "[\"*.bias\", \"x\"]");
  CHECK(value("") == "\"\"");
  CHECK(value("1\nseed = 2") == "\"1\\nseed = 2\"");  // one setting cannot smuggle in another
  CHECK(parse_setting_value("[{match = '*.bias'}]").is_table_list);
  CHECK(parse_setting_value("2024-01-02").unusable == "a date or a time");

  Problems problems;
  Override o;
  CHECK(split_setting(" model.norm = a=b ", "--set", o, problems));
  CHECK(o.key == "model.norm");
  CHECK(o.text == "a=b");
  CHECK_FALSE(split_setting("model.norm", "--set", o, problems));
  CHECK_FALSE(split_setting("=3", "--set", o, problems));
  CHECK(problems.size() == 2);
  CHECK(problems[0].text == "model.norm is not KEY=VALUE");
}

TEST_CASE("commas inside brackets and quotes do not separate values") {
  using Parts = std::vector<std::string>;
  CHECK(split_top_level("none,sinusoid,t5(buckets=32, max_distance=64)") ==
        Parts{"none", "sinusoid", "t5(buckets=32, max_distance=64)"});
  CHECK(split_top_level("\"[rope]*3, none\" , [a,b]*2") == Parts{"\"[rope]*3, none\"", "[a,b]*2"});
  CHECK(split_top_level("'a,b',{x=1,y=2}") == Parts{"'a,b'", "{x=1,y=2}"});
  CHECK(split_top_level("a,,b,") == Parts{"a", "", "b", ""});
  CHECK(split_top_level("") == Parts{""});
  CHECK(split_top_level("a),b") == Parts{"a)", "b"});
  CHECK(split_top_level("\"a,b") == Parts{"\"a,b"});
  CHECK(split_top_level("\"a\\\",b\",c") == Parts{"\"a\\\",b\"", "c"});
}

TEST_CASE("[sweep] is kept apart") {
  Problems problems;
  const Source s = read_toml_text(
      "seed = 1\n[sweep]\nseeds = '0..4'\n[sweep.grid]\n\"model.position\" = ['none', 'rope']\nmodel.attention = "
      "['dense']\n"
      "[[sweep.case]]\n\"model.position\" = 'learned'\n[[sweep.case]]\n\"model.position\" = 'rope'\n"
      "[[sweep.exclude]]\nmodel.position = 'r*'\nmodel.attention = 'd*'\n",
      "a.toml", problems);
  for (const Problem& p : problems) FAIL_CHECK(p.origin << " " << p.text);
  CHECK(s.entries.size() == 1);
  CHECK(s.sweep.present);
  REQUIRE(s.sweep.settings.size() == 3);
  CHECK(s.sweep.settings[0].key == "sweep.seeds");
  CHECK(s.sweep.settings[1].key == "sweep.grid.model.position");
  CHECK(s.sweep.settings[1].origin == "a.toml:5");
  CHECK(s.sweep.settings[2].key == "sweep.grid.model.attention");
  REQUIRE(s.sweep.cases.size() == 2);
  CHECK(s.sweep.cases[1][0].key == "model.position");
  REQUIRE(s.sweep.excludes.size() == 1);
  CHECK(s.sweep.excludes[0].size() == 2);
  CHECK_FALSE(read_toml_text("seed = 1", "a.toml", problems).sweep.present);
  read_toml_text("sweep = 3\n", "a.toml", problems);
  read_toml_text("[sweep]\ncase = 3\n", "a.toml", problems);
  REQUIRE(problems.size() == 2);
  CHECK(problems[0].text == "sweep must be a table: [sweep]");
  CHECK(problems[1].text == "sweep.case must be a list of tables: [[sweep.case]]");
}

TEST_CASE("files that cannot be read are problems with their path") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / fmt::format("waymark-config-{}", ::getpid());
  fs::create_directories(folder);
  Problems problems;
  auto last = [&](const fs::path& path) {
    problems.clear();
    read_toml_file(path.string(), problems);
    REQUIRE(problems.size() == 1);
    return problems[0].text;
  };
  CHECK(last(folder / "missing.toml") == "no such file");
  CHECK(last(folder) == "is a folder, not a TOML file");
  CHECK(last(folder / "x\n\x1b[2J.toml") == "no such file");
  CHECK(problems[0].origin.find('\n') == std::string::npos);
  fs::create_symlink(folder / "loop", folder / "loop");
  CHECK(last(folder / "loop") == "no such file");
  CHECK(last("/dev/zero") == "longer than 4 MiB: this is no config");
  std::ofstream(folder / "broken.toml") << "seed = 1\nmodel = [\n";
  CHECK(last(folder / "broken.toml").find("(column ") != std::string::npos);
  CHECK(problems[0].origin == (folder / "broken.toml").string() + ":2");
  std::ofstream(folder / "bytes.toml") << std::string("seed = 1\n\xff\xfe\0", 12);
  last(folder / "bytes.toml");
  std::ofstream(folder / "good.toml") << "seed = 7\n";
  problems.clear();
  CHECK(read_toml_file((folder / "good.toml").string(), problems).entries.size() == 1);
  CHECK(problems.empty());
  fs::remove_all(folder);
}

TEST_CASE("hostile files end in a problem or in entries, never in a crash") {
  const std::string megabyte(1 << 20, 'k');
  CHECK(entries_of(megabyte + " = 1").find("kkk=1@a.toml:1") != std::string::npos);
  CHECK(test::problems_of("task='toy'\n" + megabyte + " = 1").size() < 400);
  std::string dotted = "a";
  for (int i = 0; i < 300000; ++i) dotted += ".a";
  CHECK(entries_of(dotted + " = 1") == "!a.toml:1|a key of more than 64 parts;");
  CHECK(entries_of("x = '...' # " + std::string(200, '.') + "\n[" + dotted + "]\n") ==
        "!a.toml:2|a key of more than 64 parts;");
  CHECK(entries_of("x = {y = 1, " + dotted + " = 1}") == "!a.toml:1|a key of more than 64 parts;");
  CHECK(entries_of("x = \"" + std::string(200, '.') + "\"\ny = '''\n" + std::string(200, '.') + "\n'''\n").find("!") ==
        std::string::npos);
  for (const char open : {'[', '{'}) {
    std::string deep = "x = ";
    for (int i = 0; i < 100000; ++i) deep += open == '[' ? "[" : "{a=";
    CHECK(entries_of(deep).rfind("!a.toml:1|", 0) == 0);
  }
  std::string fifty = "x = ", closing;
  for (int i = 0; i < 200; ++i) {
    fifty += "[";
    closing += "]";
  }
  CHECK(test::problems_of("task='toy'\n" + fifty + closing).find("unknown key") != std::string::npos);
  std::string many;
  for (int i = 0; i < 20000; ++i) many += fmt::format("k{} = 1\n", i);
  CHECK(test::attempt("task='toy'\n" + many).problems.size() == 20000);
  CHECK(problems_text(test::attempt(many).problems).find("\n  ... and 19001 more") != std::string::npos);
}
