// The judge: verdicts, texts with alternatives, whole models, the matrix.
#include "nn/attention/judge.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "tests/nn/rig.h"

using namespace waymark;
using namespace waymark::nn;
using test::has;
using test::sum_of;

namespace {

Options encoding(const std::string& spec) { return sum_of(spec)[0]; }
Options attention(const std::string& spec) {
  std::vector<std::string> problems;
  const auto list = resolve_attentions(spec, 1, problems);
  REQUIRE(problems.empty());
  return list[0];
}

// Attentions that lack something, as later ones will.
void add_test_attentions() {
  if (find_attention("test-pooled")) return;
  const auto add = [](const char* name, Capabilities gives, bool causal, bool cross) {
    register_attention({.options = {name, {}, "for tests"},
                        .facts = [=](const Options&, bool, bool) {
                          AttentionFacts f;
                          f.gives = gives;
                          f.causal_exact = causal;
                          f.cross = cross;
                          f.why_not_inner_prod = "elu(x)+1 is not a function of inner products";
                          return f;
                        },
                        .make = [](ModuleBase*, std::string_view, AttentionSetup) { return std::unique_ptr<Attention>(); }});
  };
  add("test-pooled", {Capability::query_key, Capability::free_qk, Capability::any_dim, Capability::inner_prod}, false, true);
  add("test-linear", {Capability::query_key, Capability::free_qk, Capability::token_qk, Capability::any_dim}, true, false);
  add("test-mixer", {}, false, false);
}

}  // namespace

TEST_CASE("judge: verdicts from the facts") {
  add_test_attentions();
  for (const std::string& spec : test::encoding_specs())
    for (const Options& o : sum_of(spec)) CHECK(judge(o, attention("dense"), facts_of(o).needs_causal_call).ruling == Ruling::accept);
  const auto ruling = [](const char* e, const char* a, bool causal = false, bool cross = false) {
    return judge(encoding(e), attention(a), causal, cross).ruling;
  };
  for (const char* e : {"none", "sinusoid", "learned"})
    for (const char* a : {"test-pooled", "test-linear", "test-mixer"}) CHECK(ruling(e, a) == Ruling::accept);
  CHECK(ruling("rope", "test-pooled") == Ruling::warn);
  CHECK(ruling("rope", "test-linear") == Ruling::warn);
  CHECK(ruling("rope", "test-mixer") == Ruling::refuse);
  for (const char* e : {"shaw", "huang-m1", "huang-m2", "huang-m3", "huang-m4"})
    for (const char* a : {"test-pooled", "test-linear", "test-mixer"}) CHECK(ruling(e, a) == Ruling::refuse);
  CHECK(ruling("none", "test-pooled", true) == Ruling::refuse);
  CHECK(ruling("none", "test-linear", true) == Ruling::accept);
  CHECK(ruling("none", "test-linear", false, true) == Ruling::refuse);
  CHECK(ruling("shaw", "dense", false, true) == Ruling::warn);
  CHECK(ruling("sinusoid", "dense", false, true) == Ruling::accept);
  CHECK(ruling("rope(apply=features)", "dense") == Ruling::refuse);
}

TEST_CASE("judge: texts name the reason and what works instead") {
  add_test_attentions();
  const Verdict v = judge(encoding("huang-m4(clip=8)"), attention("test-linear"));
  CHECK(v.text().find("huang-m4(clip=8) cannot run on test-linear: it never forms a score for one (query, key) pair\n"
                      "  works on test-linear: none, sinusoid, learned, fourier, rope") == 0);
  CHECK(has(v.text(), "\n  huang-m4(clip=8) works on: dense"));
  CHECK(judge(encoding("rope"), attention("test-mixer")).reasons[0] == "it has no queries and keys to map");
  CHECK(judge(encoding("rope"), attention("test-linear")).text() ==
        "rope on test-linear: scores no longer depend on distance alone (elu(x)+1 is not a function of inner products)");
  CHECK(judge(encoding("rope"), attention("test-pooled")).text() ==
        "rope on test-pooled: scores no longer depend on distance alone (its scores are not of single tokens)");
  CHECK(judge(encoding("rope"), attention("dense"), false, true).text() ==
        "rope on dense: distances between two sequences mean something only on a common time axis");
  CHECK(judge(encoding("rope"), attention("dense")).text() == "");
  CHECK(judge(encoding("none"), attention("test-pooled"), true).text().find("none cannot run on test-pooled: it cannot be causal") == 0);
  // What a refusal recommends, the judge accepts.
  for (const char* a : {"test-pooled", "test-linear", "test-mixer"})
    for (const EncodingInfo* info : all_encodings()) {
      const Verdict refused = judge(encoding(info->name()), attention(a));
      if (refused.ruling != Ruling::refuse) continue;
      CHECK(!refused.works_here.empty());
      CHECK(!refused.works_there.empty());
      // "xpos (causal)": in a causal call.
      const auto ruling = [](const std::string& e, const std::string& to) {
        const auto plain = [](const std::string& name) { return name.substr(0, name.find(" (causal)")); };
        return judge(encoding(plain(e)), attention(plain(to)), (e + to).find(" (causal)") != std::string::npos).ruling;
      };
      for (const std::string& name : refused.works_here) CHECK(ruling(name, a) != Ruling::refuse);
      for (const std::string& name : refused.works_there) CHECK(ruling(info->name(), name) != Ruling::refuse);
    }
}

TEST_CASE("judge: a whole model, all problems at once") {
  add_test_attentions();
  ModelSpecs model{.encodings = {sum_of("sinusoid(layout=concat) + rope + huang-m4"), sum_of("rope + shaw")},
                   .attentions = {attention("test-linear"), attention("dense")}, .sizes = {7, 1, 7}, .kv_heads = 0};
  std::vector<std::string> problems, warnings;
  judge_model(model, problems, warnings);
  const std::string text = fmt::format("{}", fmt::join(problems, "\n"));
  CHECK(has(text, "the input-site part must be the same in every layer"));
  CHECK(has(text, "sinusoid: layout=concat needs an even width, not 7"));
  CHECK(has(text, "rope: fraction=1 of a head width of 7 is 7 channels"));
  CHECK(has(text, "huang-m4 cannot run on test-linear: it never forms a score"));
  CHECK(problems.size() == 4);
  CHECK(warnings.size() == 1);
  model = {.encodings = {sum_of("none"), sum_of("none")}, .attentions = {attention("test-mixer"), attention("test-mixer")},
           .sizes = {8, 4, 2}, .kv_heads = 2, .causal = true, .cross = true};
  problems.clear();
  judge_model(model, problems, warnings);
  CHECK(problems[0] == "test-mixer cannot be causal");
  CHECK(problems[1] == "test-mixer has no cross-attention");
  CHECK(problems[2] == "test-mixer cannot share key heads");
}

// What the matrix must be: a row of encodings, a column of attentions, a mark. * only in a causal call, where the attention
// can be causal.
struct ExpectedRow {
  std::vector<std::string> encodings;
  std::vector<const char*> marks;  // of the columns below
};
const std::vector<std::vector<std::string>>& expected_columns() {
  static const std::vector<std::vector<std::string>> columns = {
      {"dense"}, {"local", "strided", "fixed", "longformer", "bigbird", "hst", "routing"}, {"reformer"}, {"sinkhorn"}, {"synthesizer"},
      {"linformer", "nystrom", "luna"}, {"linear", "cosformer"}, {"performer"}, {"fnet"}};
  return columns;
}
const std::vector<ExpectedRow>& expected_rows() {
  static const std::vector<ExpectedRow> rows = {
      {{"none", "sinusoid", "learned", "fourier"}, {"yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes", "yes"}},
      {{"rope"}, {"yes", "yes", "yes", "w", "-", "w", "w", "yes", "-"}},
      {{"xpos"}, {"yes*", "yes*", "-", "w*", "-", "w*", "w*", "yes*", "-"}},
      {{"t5", "alibi", "kerple-log", "kerple-power", "sandwich", "fire", "huang-m1", "huang-m2"},
       {"yes", "yes", "yes", "-", "yes", "-", "-", "-", "-"}},
      {{"huang-m3", "huang-m4", "shaw", "transformer-xl", "deberta", "tupe"}, {"yes", "yes", "yes", "-", "-", "-", "-", "-", "-"}},
      {{"cope"}, {"yes*", "-", "-", "-", "-", "-", "-", "-", "-"}}};
  return rows;
}

TEST_CASE("judge: property 14, the matrix is the stored one, and every refusal names a way out") {
  const JudgeMatrix m = judge_matrix();
  const auto place = [](const std::vector<std::string>& list, const std::string& name) {
    return static_cast<size_t>(std::find(list.begin(), list.end(), name) - list.begin());
  };
  i64 cells = 0;
  for (const ExpectedRow& row : expected_rows())
    for (const std::string& e : row.encodings)
      for (size_t column = 0; column < expected_columns().size(); ++column)
        for (const std::string& a : expected_columns()[column]) {
          CAPTURE(e);
          CAPTURE(a);
          const size_t at = place(m.encodings, e), to = place(m.attentions, a);
          REQUIRE(at < m.encodings.size());
          REQUIRE(to < m.attentions.size());
          if (!find_encoding(e) || !find_attention(a)) continue;
          std::string mark = row.marks[column];
          if (mark.ends_with('*') && !facts_of_attention(attention(a), true).causal_exact) mark = "-";
          CHECK(m.cells[at][to].mark() == mark);
          ++cells;
        }
  CHECK(cells >= 16);
  // Every encoding and attention that is built has its place above, but those of tests and of a specification of their own.
  for (const EncodingInfo* info : all_encodings()) {
    const auto& rows = expected_rows();
    CAPTURE(info->name());
    if (info->name().starts_with("test-") || info->name().starts_with("spe-")) continue;
    CHECK(std::any_of(rows.begin(), rows.end(), [&](const ExpectedRow& r) { return place(r.encodings, info->name()) < r.encodings.size(); }));
  }
  // What a refusal recommends is accepted, as it is recommended.
  for (const AttentionInfo* to : all_attentions())
    for (const EncodingInfo* info : all_encodings())
      for (const bool causal : {false, true}) {
        const Verdict v = judge(encoding(info->name()), attention(to->name()), causal);
        if (v.ruling != Ruling::refuse || (causal && !facts_of_attention(attention(to->name()), true).causal_exact)) continue;
        CAPTURE(info->name());
        CAPTURE(to->name());
        CHECK(!v.works_here.empty());
        const auto accepted = [&](std::string e, std::string a) {
          bool is_causal = causal;
          for (std::string* name : {&e, &a})
            if (const size_t mark = name->find(" (causal)"); mark != std::string::npos) {
              name->resize(mark);
              is_causal = true;
            }
          return judge(encoding(e), attention(a), is_causal).ruling != Ruling::refuse;
        };
        for (const std::string& name : v.works_here) CHECK(accepted(name, to->name()));
        for (const std::string& name : v.works_there) CHECK(accepted(info->name(), name));
      }
}

TEST_CASE("judge: the matrix") {
  add_test_attentions();
  const JudgeMatrix m = judge_matrix();
  const auto cell = [&](const std::string& e, const std::string& a) -> const JudgeMatrix::Cell& {
    const auto row = std::find(m.encodings.begin(), m.encodings.end(), e), column = std::find(m.attentions.begin(), m.attentions.end(), a);
    REQUIRE(row != m.encodings.end());
    REQUIRE(column != m.attentions.end());
    return m.cells[static_cast<size_t>(row - m.encodings.begin())][static_cast<size_t>(column - m.attentions.begin())];
  };
  CHECK(cell("spe-sine", "dense").mark() == "?");
  CHECK(cell("rope", "test-pooled").mark() == "w");
  CHECK(cell("shaw", "test-pooled").mark() == "-");
  CHECK(cell("shaw", "test-pooled").notes[0] == "it never forms a score for one (query, key) pair");
  CHECK(m.encodings[0] == "none");
  CHECK(m.attentions[0] == "dense");
  // Every name of the design is there.
  for (const char* e : {"fourier", "transformer-xl", "t5", "alibi", "kerple-log", "kerple-power", "sandwich", "fire", "cope", "deberta", "tupe",
                        "xpos", "spe-sine", "spe-conv"})
    (void)cell(e, "dense");
  for (const char* a : {"local", "strided", "fixed", "longformer", "bigbird", "hst", "linformer", "reformer", "sinkhorn", "routing",
                        "synthesizer", "linear", "cosformer", "nystrom", "luna", "fnet"})
    (void)cell("none", a);
}
