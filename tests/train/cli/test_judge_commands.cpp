// waymark explain and waymark matrix.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "nn/attention/judge.h"
#include "core/io/files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/train/cli/program.h"
#include "train/report/json.h"

using namespace waymark;
using test::has;
using test::run_waymark;

TEST_CASE("explain prints verdict, facts, parameters and costs") {
  const auto o = run_waymark({"explain", "--position", "huang-m4(clip=8) + learned", "--lengths", "64", "--causal"});
  CHECK(o.code == 0);
  CHECK(o.err.empty());
  CHECK(o.out.rfind("learned(max_len=64) + huang-m4(clip=8) on dense, causal: accepted\n", 0) == 0);
  CHECK(has(o.out, "parameter        position.table [17, 16], 272 numbers per layer"));
  CHECK(has(o.out, "parameter        position.weight [64, 64], 4,096 numbers once"));
  CHECK(has(o.out, "formula"));
  // 8 L E Q = 2.1 M, 4 L Q keys = 4·64·64·32.5 = 532 k; huang-m4: per head 2·17·16·(64 + 32.5) + 2·64·32.5.
  CHECK(has(o.out, "projections 2.1 M, scores and mix 532 k, huang-m4 227 k"));
  CHECK(has(o.out, "density 0.51"));
  // The names that the model has: of two tables each carries its encoding.
  const auto two = run_waymark({"explain", "--position", "huang-m4 + cope", "--causal"});
  CHECK(has(two.out, "parameter        position.huang-m4.table [33, 16]"));
  CHECK(has(two.out, "parameter        position.cope.table [64, 16]"));
  const auto task = run_waymark({"explain", "--task", "char-mlm(source=kjv, context=48, test_lengths=[96])"});
  CHECK(has(task.out, "  L = 48  "));
  CHECK(has(task.out, "  L = 96  "));
}

TEST_CASE("explain and help show what a bias is") {
  const auto t5 = run_waymark({"explain", "--position", "t5 + kerple-power + fire"});
  CHECK(t5.code == 0);
  CHECK(has(t5.out, "b_ij = bias[bucket(p_j − p_i), h]"));
  CHECK(has(t5.out, "position.bias [32, 4], 128 numbers once, starts as N(0, 0.02^2), does not decay,"));
  CHECK(has(t5.out, "position.p [4], 4 numbers per layer, starts as U(0, 2), stays in [0.01, 2], "));
  CHECK(has(t5.out, "stays at or above 0.01"));
  CHECK(has(t5.out, "shift invariant  while p_i <= threshold"));
  const auto odd = run_waymark({"explain", "--position", "t5(buckets=31)"});
  CHECK(odd.code == 2);
  CHECK(has(odd.out, "buckets=31 must be even"));
  const auto list = run_waymark({"help", "encodings"});
  for (const nn::EncodingInfo* info : nn::all_encodings())
    if (!info->name().starts_with("test-")) CHECK(has(list.out, "  " + info->options.signature()));
  CHECK(has(list.out, "Not offered at all: logit softcap, attention sinks, YaRN and Llama-3 rope scaling, 2-D positions"));
  const auto one = run_waymark({"help", "alibi"});
  CHECK(has(one.out, "b_ij = −m_h·|p_j − p_i|"));
  CHECK(has(one.out, "symmetric"));
}

TEST_CASE("explain prints the pairs of a pattern, its report and its pictures") {
  const test::TemporaryFolder folder;
  const std::string svg = (folder.path() / "a.svg").string(), pgm = (folder.path() / "a.pgm").string();
  const auto o = run_waymark({"explain", "--attention", "local(window=2)", "--lengths", "16", "--svg", svg, "--pgm", pgm});
  CHECK(o.code == 0);
  CHECK(has(o.out, "\npairs: window(2, 2)\n"));
  CHECK(has(o.out, "  74 pairs; keys per query: 3 to 5, 4.625 on average; empty rows: 0\n"));
  CHECK(has(o.out, "all pairs are joined after 8"));
  CHECK(has(o.out, "\n███·············\n████············\n"));
  CHECK(has(o.out, "density 0.29"));
  CHECK(has(read_file(svg), "<svg"));
  CHECK(read_file(pgm).rfind("P2\n16 16\n", 0) == 0);
  const auto d = run_waymark({"explain", "--attention", "local(block=4)", "--mask", "~columns({0})", "--shift", "2", "--causal", "--against",
                              "dense", "--lengths", "8"});
  CHECK(d.code == 0);
  CHECK(has(d.out, "pairs: blocks(4) & ~columns({0})"));
  CHECK(has(d.out, "against dense: "));
  CHECK(has(d.out, "empty rows: 1"));
  const auto routing = run_waymark({"explain", "--attention", "routing", "--lengths", "8"});
  CHECK(has(routing.out, "which pairs of tokens meet depends on what they are"));
  CHECK(has(routing.out, "routing(clusters=8, window=auto, decay=0.999, commitment=0.0001)"));
  const auto wrong = run_waymark({"explain", "--mask", "windw(1, 1)", "--against", "nothing", "--shift", "x"});
  CHECK(wrong.code == 2);
  for (const char* part : {"unknown mask windw. Did you mean window?", "--shift", "nothing"}) CHECK(has(wrong.err, part));
}

TEST_CASE("explain says what it cannot do before it prints anything") {
  const test::TemporaryFolder folder;
  const auto refused = [](std::vector<std::string> words, const char* option, const std::string& part) {
    words.insert(words.begin(), "explain");
    const auto o = run_waymark(words);
    CAPTURE(o.err);
    CHECK(o.code == 2);
    CHECK(o.out.empty());
    CHECK(has(o.err, fmt::format("  {}  ", option)));
    CHECK(has(o.err, part));
  };
  const std::string here = folder.path().string(), nowhere = here + "/no/x.svg";
  for (const char* option : {"--svg", "--pgm"}) {
    refused({"--attention", "local", option, here}, option, "is a folder");
    refused({"--attention", "local", option, nowhere}, option, "there is no folder " + here + "/no");
    refused({"--attention", "local", option, ""}, option, "must name a file");
    refused({"--attention", "routing", option, here + "/x"}, option, "which pairs of tokens meet in routing depends on what they are");
    refused({"--attention", "local", "--lengths", "131073", option, here + "/x"}, option, "a picture is of at most 131072 tokens");
  }
  refused({"--attention", "local", "--lengths", "131073,8", "--against", "dense"}, "--against", "at most 131072");
  refused({"--mask", "lengths({3, 4})", "--lengths", "8"}, "--mask", "2 numbers for 1 rows");
  refused({"--mask", "documents({0, 1})", "--lengths", "2,3"}, "--mask", "2 ids for 3 tokens");
  refused({"--attention", "longformer(global=input)"}, "--attention", "needs the array `global`");
}

TEST_CASE("explain answers for lengths whose pairs nobody counts, in no time and memory") {
  const std::vector<std::string> dense = {"explain", "--lengths", "2147483648"};
  const auto all = run_waymark(dense);
  CHECK(all.code == 0);
  CHECK(has(all.out, "2,147,483,648 keys per query"));
  for (const char* attention : {"local", "bigbird(block=1)", "dense"}) {
    CAPTURE(attention);
    const auto o = run_waymark({"explain", "--attention", attention, "--mask", "~none() & window(3, 3)", "--lengths", "16,2000000000"});
    CHECK(o.code == 0);
    CHECK(has(o.out, "  L = 16  "));
    CHECK(has(o.out, "65.5 T flops forward; the pairs are not counted beyond 131,072 tokens"));
  }
  const auto routing = run_waymark({"explain", "--attention", "routing", "--lengths", "64,2000000000"});
  CHECK(routing.code == 0);
  CHECK(has(routing.out, "as if all met: which do"));
  const auto heads = run_waymark({"explain", "--lengths", "8", "--mask", "heads({all(), causal(), all(), all()})", "--against", "dense"});
  CHECK(has(heads.out, "against dense, head 0: "));
}

TEST_CASE("explain refuses with exit code 2, and reports what is wrong with the question") {
  const auto refused = run_waymark({"explain", "--position", "rope + huang-m3"});
  CHECK(refused.code == 2);
  CHECK(has(refused.out, "huang-m3 + rope on dense, bidirectional: refused\n"));
  CHECK(has(refused.out, "redefines the content product"));
  const auto width =
      run_waymark({"explain", "--position", "rope", "--set", "model.embed_dim=6", "--set", "model.num_heads=2"});
  CHECK(width.code == 2);
  CHECK(has(width.out, "needs an even number"));
  const auto wrong = run_waymark({"explain", "--position", "roep", "--attention", "fnet", "--task", "char-lmm", "--set",
                                  "model.norm=pre", "--set", "model.embed_dim=1.5", "--lengths", "0"});
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(has(wrong.err, "6 problems"));
  CHECK(has(wrong.err, "unknown position encoding roep. Did you mean rope or cope?"));
  CHECK(has(wrong.err, "the attention fnet is not part of this version"));
  CHECK(has(wrong.err, "Did you mean char-mlm?"));
}

TEST_CASE("matrix says for every pair what the judge says, in five formats") {
  nn::JudgeMatrix m = nn::judge_matrix();
  // Other tests of this process register methods of their own, which the program does not know.
  const auto of_a_test = [](const std::string& name) { return name.starts_with("test-"); };
  std::erase_if(m.encodings, of_a_test);
  std::erase_if(m.attentions, of_a_test);
  const auto planned = [](const std::vector<std::string>& list) {
    return [&list](const std::string& name) { return std::find(list.begin(), list.end(), name) != list.end(); };
  };
  std::erase_if(m.encodings, planned(nn::planned_encodings()));
  std::erase_if(m.attentions, planned(nn::planned_attentions()));
  const auto json = run_waymark({"matrix", "--format", "json"});
  CHECK(json.code == 0);
  const train::Json value = train::parse_json(json.out, "matrix");
  const auto& cells = value.find("cells")->as_array();
  CHECK(cells.size() == m.encodings.size() * m.attentions.size());
  CHECK(cells[0].find("encoding")->as_string() == m.encodings[0]);
  CHECK(cells[0].find("bidirectional")->as_string() == "yes");
  const auto text = run_waymark({"matrix"});
  for (const std::string& name : m.encodings) CHECK(has(text.out, "\n" + name + " "));
  for (const std::string& name : m.attentions) CHECK(has(text.out, name));
  // What later versions will have is named, and has no row.
  CHECK(has(text.out, "\nNot part of this version: the position encodings "));
  CHECK(has(text.out, "the attentions " + nn::planned_attentions().front() + ","));
  CHECK(!has(text.out, "?"));
  CHECK(value.find("not_in_this_version")->find("encodings")->as_array().size() == nn::planned_encodings().size());
  const auto markdown = run_waymark({"matrix", "--format", "md"});
  CHECK(has(markdown.out, "| rope | yes |"));
  const auto csv = run_waymark({"matrix", "--format", "csv"});
  CHECK(has(csv.out, "rope,dense,yes,yes,\r\n"));
  const auto html = run_waymark({"matrix", "--format", "html"});
  CHECK(has(html.out, "<th>rope</th><td>yes</td>"));
  CHECK_FALSE(has(html.out, "http"));
  CHECK(run_waymark({"matrix", "--format", "pdf"}).code == 2);
}
