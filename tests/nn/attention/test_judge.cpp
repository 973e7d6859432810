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
    for (const Options& o : sum_of(spec)) CHECK(judge(o, attention("dense"), !test::accepted(spec)).ruling == Ruling::accept);
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
  for (const char* e : {"cope", "xpos"}) {
    CHECK(ruling(e, "dense") == Ruling::refuse);
    CHECK(ruling(e, "dense", true) == Ruling::accept);
    CHECK(ruling(e, "dense", true, true) == Ruling::refuse);
  }
  CHECK(ruling("xpos", "test-linear", true) == Ruling::warn);
  CHECK(ruling("cope", "test-linear", true) == Ruling::refuse);
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
      // "xpos (causal)": only in a causal call.
      const auto works = [](std::string e, std::string a2) {
        bool causal = false;
        for (std::string* name : {&e, &a2})
          if (const size_t at = name->find(" (causal)"); at != std::string::npos) {
            name->resize(at);
            causal = true;
          }
        return judge(encoding(e), attention(a2), causal).ruling != Ruling::refuse;
      };
      for (const std::string& name : refused.works_here) CHECK(works(name, a));
      for (const std::string& name : refused.works_there) CHECK(works(info->name(), name));
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
  CHECK(problems[0].rfind("test-mixer cannot be causal; causal here: dense, local, strided, fixed, longformer, bigbird", 0) == 0);
  CHECK(problems[1].rfind("test-mixer has no cross-attention; use dense, routing", 0) == 0);
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

TEST_CASE("judge: refusals and warnings of attentions name the reason and what works") {
  const auto built = [](AttentionConfig c) { return test::error_text([&] { (void)resolve_attention(c); }); };
  const auto spec = [&](const char* text) { return built({.embed_dim = 8, .num_heads = 2, .attention = text}); };
  CHECK(spec("local(window=2, block=3)") == "attention: local: window and block exclude each other");
  CHECK(spec("local(before=1)") == "attention: local: before and after count blocks: give block");
  CHECK(spec("bigbird(window=2)") == "attention: bigbird: window=2 must be odd");
  CHECK(spec("reformer(buckets=5)") == "attention: reformer: buckets=5 must be even");
  CHECK(spec("fixed(stride=8, c=9)") == "attention: fixed: c=9 is larger than stride=8");
  CHECK(spec("longformer(dilation=[1,2,3])") == "attention: longformer: dilation has 3 numbers for 2 heads");
  CHECK(has(spec("local(block=0)"), "local: option block must be int 1..1073741824 or none, not int 0"));
  for (const char* text : {"strided(stride=0)", "reformer(chunk=0)", "routing(clusters=0)", "longformer(window=-1)", "bigbird(block=0)"})
    CHECK(has(spec(text), "must be int"));
  CHECK(built({.embed_dim = 8, .num_heads = 2, .attention = "routing", .causal = true})
            .rfind("attention: routing cannot be causal: cluster membership is chosen over the whole sequence; causal here: dense, local", 0) == 0);
  CHECK(has(built({.embed_dim = 8, .num_heads = 2, .num_kv_heads = 1, .attention = "reformer"}), "reformer cannot share key heads: it has no k_proj"));
  CHECK(has(built({.embed_dim = 8, .num_heads = 2, .num_kv_heads = 1, .attention = "routing"}), "routing cannot share key heads"));
  CHECK(built({.embed_dim = 8, .num_heads = 2, .num_kv_heads = 1, .attention = "bigbird"}) == "(no error)");
  // Two problems of a spec are told together.
  const std::string both = spec("bigbird(window=2, block=0)");
  CHECK(has(both, "block"));
  // A mask that an attention cannot take, by its facts.
  AttentionFacts pooled;
  pooled.key_padding = true;
  pooled.why_not_mask = "means would mix documents";
  const Options any = attention("dense");
  CHECK(mask_refusal(any, Mask::parse("documents(input)"), pooled).rfind("dense cannot take documents(input): means would mix documents; use dense, local", 0) == 0);
  CHECK(mask_refusal(any, Mask::parse("lengths({3})"), pooled).empty());
  pooled.documents = true;
  CHECK(mask_refusal(any, Mask::parse("documents(input)"), pooled).empty());
  CHECK_FALSE(mask_refusal(any, Mask::causal(), pooled).empty());
  // [CLS]
  ModelSpecs model{.encodings = {sum_of("none")}, .attentions = {attention("local")}, .sizes = {8, 2, 4}};
  std::vector<std::string> problems, warnings;
  judge_model(model, problems, warnings);
  CHECK(warnings.empty());
  model.cls_has_position = true;
  judge_model(model, problems, warnings);
  REQUIRE(warnings.size() == 1);
  CHECK(has(warnings[0], "local: [CLS] at position 0 sees its own neighbourhood only; model.cls_position=none makes it global, or use model.pooling=mean"));
  warnings.clear();
  model.attentions = {attention("longformer(global=1)")};
  judge_model(model, problems, warnings);
  CHECK(warnings.empty());
  CHECK(problems.empty());
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
  for (const char* e : {"cope", "xpos"}) CHECK(cell(e, "dense").mark() == "yes*");
  CHECK(cell("xpos", "test-linear").mark() == "w*");
  CHECK(cell("cope", "test-linear").mark() == "-");
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
