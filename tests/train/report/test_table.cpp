#include "train/report/table.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/tensor/error.h"
#include "tests/error_text.h"
#include "train/report/json.h"

using namespace waymark;
using namespace waymark::train;
using waymark::test::error_text;
using waymark::test::has;

namespace {

// A finished run of `position` on `task`; test loss and accuracy, val loss.
LoadedRun run(const std::string& position, i64 seed, double loss, double accuracy = 0.5,
              const std::string& task = "char-mlm") {
  LoadedRun r;
  r.state = RunState::finished;
  r.result.id = fmt::format("{}-{}-{}", task, position, seed);
  r.result.name = fmt::format("{}-s{}", position, seed);
  r.result.seed = seed;
  r.result.config = {{"task", task}, {"model.position", position}, {"seed", fmt::format("{}", seed)},
                     {"preset", "google"}, {"data.split", "own"}};
  r.result.data.fingerprints = {{"train", "aaaaaaaaaaaa"}, {"test", "bbbbbbbbbbbb"}};
  r.result.data.sizes = {{"train", 1000}, {"test", 100}};
  r.result.trained_length = 64;
  r.result.steps = 900;
  r.result.stopped_by = "steps";
  r.result.parameters = 100000;
  r.result.seconds = 10;
  r.result.tokens = 921600;
  r.result.main_metric = "accuracy";
  r.result.selection = "val.loss";
  Evaluation e;
  e.step = 900;
  SplitResult test;
  test.metrics = {{"loss", metric_value("loss", loss, 960)}, {"accuracy", metric_value("accuracy", accuracy, 960)}};
  e.splits = {{"test", test}};
  r.result.last = e;
  return r;
}

LoadedRun state(LoadedRun r, RunState s, const std::string& reason = "") {
  r.state = s;
  r.reason = reason;
  r.result.last.reset();
  return r;
}

const TableCell& cell(const Table& table, std::size_t row, std::size_t column = 0) {
  return table.groups.at(0).rows.at(row).cells.at(column);
}

TableOptions loss_options() {
  TableOptions options;
  options.metrics = {"test.loss"};
  return options;
}

// The line of a Markdown table that begins with this label, without padding.
std::string line(const std::string& text, const std::string& label) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    std::string part = text.substr(at, end - at);
    at = end + 1;
    if (part.rfind("| " + label + " ", 0) != 0) continue;
    std::string squeezed;
    for (char c : part)
      if (c != ' ' || (!squeezed.empty() && squeezed.back() != ' ')) squeezed += c;
    return squeezed;
  }
  return "(no line " + label + ")";
}

}  // namespace

TEST_CASE("table: mean, s.d., decimals, bold and paired dagger by hand") {
  std::vector<LoadedRun> runs;
  const double rope[] = {1.70, 1.73, 1.76}, shaw[] = {1.71, 1.72, 1.79}, none[] = {2.96, 2.98, 3.00};
  for (i64 s = 0; s < 3; ++s) {
    runs.push_back(run("none", s, none[s], 0.17));
    runs.push_back(run("rope", s, rope[s], 0.51));
    runs.push_back(run("shaw", s, shaw[s], 0.49));
  }
  const std::string text = make_table(runs, loss_options());
  // s.d. of rope: 0.03; of shaw sqrt((0.03^2 + 0.02^2 + 0.05^2) / 2) = 0.0436, so three decimals; of none 0.02.
  CHECK(line(text, "rope") == "| rope | **1.730** ± 0.030 (3) |");
  // shaw - rope = 0.01, -0.01, 0.03: mean 0.01, s.d. 0.02, interval 0.01 -+ 0.05.
  CHECK(line(text, "shaw") == "| shaw | 1.740 ± 0.044 (3) † |");
  CHECK(line(text, "none") == "| none | 2.980 ± 0.020 (3) |");
  CHECK(line(text, "model.position") == "| model.position | test.loss |");
  CHECK(has(text, "Mean ± sample s.d. over seeds 0–2 (n = 3). task: char-mlm. Last checkpoint; nothing was selected. "
                  "Test evaluated once, at the end of training. Data test bbbbbbbb, train aaaaaaaa; preset google; "
                  "split own; trained length 64; steps 900."));
  CHECK(has(text, "paired over common seeds"));
  CHECK_FALSE(has(text, "Warning"));
  // Rows stay in the order of the runs.
  CHECK(text.find("| none") < text.find("| rope"));

  TableOptions accuracy;
  accuracy.metrics = {"test.accuracy"};
  CHECK(line(make_table(runs, accuracy), "rope") == "| rope | **51.0** ± 0.0 (3) |");
  CHECK(line(make_table(runs, TableOptions()), "model.position") == "| model.position | test.accuracy % |");

  TableOptions ci = loss_options();
  ci.ci = true;
  CHECK(line(make_table(runs, ci), "rope") == "| rope | **1.730** ± 0.030 [1.655, 1.805] (3) |");
}

TEST_CASE("table: pooled dagger by hand, nine rows of three seeds") {
  // Each row has s.d. 0.1, so the pooled one is 0.1 with 18 degrees of freedom; the interval of a difference is
  // 2.1009 * 0.1 * sqrt(2 / 3) = 0.17154 wide on each side.
  std::vector<LoadedRun> runs;
  for (int m = 0; m < 9; ++m)
    for (i64 s = 0; s < 3; ++s) {
      const double middle = m == 0 ? 1.0 : m == 1 ? 1.171 : m == 2 ? 1.172 : 2.0 + m;
      // The pattern of the seeds differs from row to row, so pairing would say something else.
      runs.push_back(run("m" + std::to_string(m), s, middle + 0.1 * static_cast<double>((s + m) % 3 - 1)));
    }
  TableOptions options = loss_options();
  options.pooled = options.ci = true;
  const Table table = build_table(runs, options);
  REQUIRE(table.groups[0].columns[0].pooled.has_value());
  CHECK(table.groups[0].columns[0].pooled->sd == doctest::Approx(0.1));
  CHECK(table.groups[0].columns[0].pooled->df == 18);
  CHECK(cell(table, 0).best);
  CHECK_FALSE(cell(table, 0).indistinguishable);
  CHECK(cell(table, 1).indistinguishable);
  CHECK_FALSE(cell(table, 2).indistinguishable);
  CHECK_FALSE(cell(table, 3).indistinguishable);
  CHECK(cell(table, 0).interval->high == doctest::Approx(1 + 2.10092204 * 0.1 / std::sqrt(3.0)));
  const std::string text = write_table(table, options);
  CHECK(has(text, "pooled over the 9 rows of the column (18 degrees of freedom, t = 2.10)"));

}

TEST_CASE("table: two seeds are too few for a dagger, however near they are") {
  const std::vector<LoadedRun> near = {run("a", 0, 1.0), run("a", 1, 1.2), run("a", 2, 1.1), run("b", 0, 1.2),
                                       run("b", 1, 1.05)};
  const std::vector<LoadedRun> other = {run("b", 2, 1.16)};
  for (bool pooled : {false, true}) {
    CAPTURE(pooled);
    TableOptions options = loss_options();
    options.pooled = pooled;
    CHECK_FALSE(cell(build_table(near, options), 1).indistinguishable);
    std::vector<LoadedRun> three = near;
    three.insert(three.end(), other.begin(), other.end());
    CHECK(cell(build_table(three, options), 1).indistinguishable);
    // The best row has two seeds.
    std::vector<LoadedRun> best_few = {run("b", 0, 1.19), run("b", 1, 1.0)};
    best_few.insert(best_few.end(), near.begin(), near.begin() + 3);
    const Table table = build_table(best_few, options);
    CHECK(cell(table, 0).best);
    CHECK_FALSE(cell(table, 1).indistinguishable);
  }
}

TEST_CASE("table: direction of the metric") {
  std::vector<LoadedRun> runs = {run("a", 0, 1.0, 0.4), run("b", 0, 2.0, 0.6)};
  TableOptions options;
  options.metrics = {"test.*"};
  const Table table = build_table(runs, options);
  REQUIRE(table.groups[0].columns.size() == 2);
  CHECK(cell(table, 0, 0).best);
  CHECK_FALSE(cell(table, 1, 0).best);
  CHECK(cell(table, 1, 1).best);
  CHECK(line(make_table(runs, options), "a") == "| a | **1.000** (1) | 40.0 (1) |");
}

TEST_CASE("table: states are words and never enter a mean") {
  std::vector<LoadedRun> runs;
  for (i64 s = 0; s < 3; ++s) {
    runs.push_back(run("good", s, 2.0 + 0.01 * static_cast<double>(s)));
    runs.push_back(s == 0 ? run("part", 0, 3.0) : state(run("part", s, 0), RunState::failed, "diverged"));
    runs.push_back(state(run("broken", s, 0), RunState::failed));
    runs.push_back(state(run("gone", s, 0), RunState::missing));
    runs.push_back(state(run("t5", s, 0), RunState::refused, "no pairwise score"));
    runs.push_back(s < 2 ? state(run("going", s, 0), RunState::running) : state(run("going", s, 0), RunState::missing));
    runs.push_back(run("nan", s, s == 1 ? std::numeric_limits<double>::quiet_NaN() : 4.0));
    LoadedRun other = run("other", s, 0);
    other.result.last->splits[0].second.metrics.erase(other.result.last->splits[0].second.metrics.begin());
    runs.push_back(other);
  }
  const std::string text = make_table(runs, loss_options());
  CHECK(line(text, "good") == "| good | **2.010** ± 0.010 (3) |");
  CHECK(line(text, "part") == "| part | 3.000 (1 of 3, failed 2/3) |");
  CHECK(line(text, "broken") == "| broken | failed 3/3 |");
  CHECK(line(text, "gone") == "| gone | missing |");
  CHECK(line(text, "t5") == "| t5 | refused: no pairwise score |");
  CHECK(line(text, "going") == "| going | running 2/3, missing 1/3 |");
  CHECK(line(text, "nan") == "| nan | 4.000 ± 0.000 (2 of 3, nonfinite 1/3) |");
  CHECK(line(text, "other") == "| other | not measured |");
  CHECK(has(text, "(k of n): only k of n runs have a value."));
  CHECK(has(text, "seeds 0–2 (n in brackets)"));

  // Nothing finished at all is still a table.
  const std::string none = make_table({state(run("gone", 0, 0), RunState::missing)}, loss_options());
  CHECK(line(none, "gone") == "| gone | missing |");
  CHECK(has(none, "No run is finished."));
}

TEST_CASE("table: an average exists only for complete rows") {
  std::vector<LoadedRun> runs;
  for (i64 s = 0; s < 2; ++s) {
    const double x = 0.01 * static_cast<double>(s);
    runs.push_back(run("a", s, 1, 0.50 + x, "listops"));
    runs.push_back(run("a", s, 1, 0.70 + x, "text"));
    runs.push_back(run("b", s, 1, 0.90, "listops"));
    runs.push_back(state(run("b", s, 1, 0, "text"), RunState::failed));
  }
  runs.push_back(run("c", 0, 1, 0.20, "listops"));  // no run at all on text
  TableOptions options;
  options.average = true;
  const Table table = build_table(runs, options);
  REQUIRE(table.groups[0].columns.size() == 3);
  CHECK(table.groups[0].columns[2].label == "average");
  CHECK(cell(table, 0, 2).summary.mean == doctest::Approx(0.605));
  CHECK(cell(table, 0, 2).summary.sd.value() == doctest::Approx(0.01 / std::sqrt(2.0)));
  CHECK(cell(table, 1, 2).summary.n == 0);
  CHECK(cell(table, 2, 2).summary.n == 0);
  const std::string text = make_table(runs, options);
  CHECK(line(text, "model.position") == "| model.position | listops % | text % | average % |");
  CHECK(line(text, "b") == "| b | **90.00** ± 0.00 (2) | failed 2/2 | incomplete |");
  CHECK(line(text, "c") == "| c | 20.00 (1) | missing | incomplete |");
  CHECK(has(text, "Average over listops, text, only for rows"));
  CHECK_FALSE(has(text, "Warning"));
  options.cols = {"preset"};
  CHECK(has(error_text([&] { make_table(runs, options); }), "--average needs at least two columns"));
}

TEST_CASE("table: paired comparison of two rows") {
  std::vector<LoadedRun> runs = {run("a", 0, 3), run("a", 1, 5), run("a", 2, 7), run("a", 9, 1),
                                 run("b", 0, 1), run("b", 1, 5), run("b", 2, 8), run("b", 4, 1)};
  TableOptions options = loss_options();
  options.compare = {"a", "b"};
  const Table table = build_table(runs, options);
  const Comparison& c = table.groups[0].comparisons.at(0);
  CHECK(c.seeds == std::vector<i64>{0, 1, 2});
  CHECK(c.paired->difference.mean == doctest::Approx(1.0 / 3));
  CHECK(c.paired->difference.sd.value() == doctest::Approx(std::sqrt(14.0 / 6)));
  CHECK(c.paired->positive == 1);
  CHECK(c.paired->negative == 1);
  CHECK(c.paired->zero == 1);
  const std::string text = write_table(table, options);
  CHECK(has(text, "a minus b, paired over common seeds:"));
  CHECK(has(text, " 0.3 ± 1.5 (3) |"));
  CHECK(has(text, "1 1 1 |"));
  options.format = TableFormat::csv;
  const std::string csv = make_table(runs, options);
  CHECK(csv.substr(0, csv.find('\n')) ==
        "a,b,column,metric,n,mean,sd,ci_low,ci_high,positive,negative,zero,seeds");
  CHECK(has(csv, "a,b,char-mlm,test.loss,3,0.333333"));
  options.compare = {"a", "zz"};
  CHECK(error_text([&] { make_table(runs, options); }) == "table: --compare zz: no row has this label. Rows: a, b");
}

TEST_CASE("table: best checkpoint, chosen on validation for each seed") {
  LoadedRun with = run("a", 0, 2.0), without = run("b", 0, 3.0);
  with.result.best = with.result.last;
  with.result.best->step = 500;
  with.result.best->splits[0].second.metrics[0].second.value = 1.5;
  TableOptions options = loss_options();
  CHECK(line(make_table({with, without}, options), "a") == "| a | **2.000** (1) |");
  options.best = true;
  const std::string text = make_table({with, without}, options);
  CHECK(line(text, "a") == "| a | 1.500 (1) |");
  CHECK(line(text, "b") == "| b | no best checkpoint |");
  CHECK(has(text, "Checkpoint with the best val.loss, chosen for each seed."));
}

TEST_CASE("table: lengths, untrained rows, globs of metrics") {
  std::vector<LoadedRun> runs;
  for (const char* position : {"rope", "learned"})
    for (i64 s = 0; s < 3; ++s) {
      LoadedRun r = run(position, s, 1.7 + 0.01 * static_cast<double>(s));
      for (i64 length : {128, 256}) {
        SplitResult far = r.result.last->splits[0].second;
        far.length = length;
        far.untrained = std::string(position) == "learned";
        r.result.last->splits.emplace_back("test@" + std::to_string(length), far);
      }
      runs.push_back(r);
    }
  TableOptions options;
  options.metrics = {"test*.loss"};
  const std::string text = make_table(runs, options);
  CHECK(line(text, "model.position") == "| model.position | test.loss | test@128.loss | test@256.loss |");
  CHECK(line(text, "learned") == "| learned | **1.710** ± 0.010 (3) | **1.710** ± 0.010 (3, untrained) | "
                                 "**1.710** ± 0.010 (3, untrained) |");
  CHECK(has(text, "untrained = uses rows of a position table beyond the trained length"));
}

TEST_CASE("table: mixed runs are named") {
  std::vector<LoadedRun> runs = {run("a", 0, 1), run("a", 1, 1), run("b", 0, 1), run("b", 1, 1)};
  CHECK_FALSE(has(make_table(runs, loss_options()), "Warning"));
  runs[1].result.data.fingerprints["train"] = "cccccccccccc";
  runs[2].result.steps = 2000;
  runs[2].result.config["preset"] = "tiny";
  runs[3].result.trained_length = 128;
  runs[3].result.config["optim.optimizer"] = "sgd";
  runs[3].result.data.masking = "15 %";
  runs[0].result.stopped_by = "minutes";
  for (LoadedRun& r : runs) r.result.config["log.jsonl"] = r.result.name;
  const std::string text = make_table(runs, loss_options());
  CHECK(has(text, "Warning: the runs differ in data: test bbbbbbbb, train aaaaaaaa (a-s0, b-s0, b-s1); test bbbbbbbb, "
                  "train cccccccc (a-s1)"));
  CHECK(has(text, "differ in steps: 900 (a-s0, a-s1, b-s1); 2,000 (b-s0)"));
  CHECK(has(text, "differ in preset: google (a-s0, a-s1, b-s1); tiny (b-s0)"));
  CHECK(has(text, "differ in trained length: 64 (a-s0, a-s1, b-s0); 128 (b-s1)"));
  CHECK(has(text, "differ in masking: none (a-s0, a-s1, b-s0); 15 % (b-s1)"));
  CHECK(has(text, "differ in optim.optimizer: none (a-s0, a-s1, b-s0); sgd (b-s1)"));
  CHECK(has(text, "stopped by time, not by steps, so not comparable by steps: a-s0"));
  CHECK_FALSE(has(text, "log.jsonl"));
}

TEST_CASE("table: parameters, baselines and extra columns") {
  std::vector<LoadedRun> runs = {run("none", 0, 2), run("small", 0, 2.1), run("large", 0, 1.9)};
  runs[1].result.parameters = 109000;
  runs[2].result.parameters = 123456;
  for (LoadedRun& r : runs)
    r.result.baselines = {{"majority", "test", "loss", 3.25}, {"majority", "test", "accuracy", 0.1}};
  TableOptions options = loss_options();
  options.extra = {"parameters", "seconds", "tokens_per_s", "flops", "peak_memory"};
  const std::string text = make_table(runs, options);
  CHECK(line(text, "majority (baseline)") == "| majority (baseline) | 3.250 | | | | | |");
  CHECK(line(text, "none") == "| none | 2.000 (1) | 100,000 | 10.0 | 92,160 | - | - |");
  CHECK(line(text, "small") == "| small | 2.100 (1) | 109,000 | 10.0 | 92,160 | - | - |");
  CHECK(line(text, "large (+23 % parameters)") ==
        "| large (+23 % parameters) | **1.900** (1) | 123,456 | 10.0 | 92,160 | - | - |");
  CHECK(text.find("majority") < text.find("| none"));
  options.reference = "large";
  CHECK_FALSE(has(make_table(runs, options), "% parameters"));
  options.reference = "zz";
  CHECK(has(error_text([&] { make_table(runs, options); }), "--reference zz: no row"));
  options.reference.clear();
  options.baselines = false;
  CHECK_FALSE(has(make_table(runs, options), "majority"));
  options.extra = {"wings"};
  CHECK(has(error_text([&] { make_table(runs, options); }), "unknown extra column wings"));
}

TEST_CASE("table: rows and columns by any key, groups, filters, labels") {
  std::vector<LoadedRun> runs;
  for (const char* position : {"rope", "shaw(clip=16)"})
    for (const char* attention : {"dense", "performer(features=64)"})
      for (const char* task : {"listops", "text"}) {
        runs.push_back(run(position, 0, 2, 0.5, task));
        runs.back().result.id += attention;
        runs.back().result.config["model.attention"] = attention;
        if (attention[0] == 'p') runs.back().result.config_short["model.attention"] = "performer";
      }
  TableOptions options;
  options.rows = {"model.position", "model.attention"};
  std::string text = make_table(runs, options);
  CHECK(has(text, "| rope "));
  CHECK(line(text, "model.position") == "| model.position | model.attention | listops % | text % |");
  CHECK(has(text, "| performer "));
  CHECK_FALSE(has(text, "features"));

  options.rows = {"model.attention"};
  options.group_by = {"model.position"};
  text = make_table(runs, options);
  CHECK(has(text, "### model.position = rope\n"));
  CHECK(has(text, "### model.position = shaw(clip=16)\n"));

  options.group_by.clear();
  options.filters = {{"model.position", "shaw*"}, {"model.attention", "performer"}, {"task", "text"}, {"task", "l*"}};
  const Table table = build_table(runs, options);
  CHECK(table.groups[0].rows.size() == 1);
  CHECK(table.groups[0].columns.size() == 2);
  CHECK(table.groups[0].rows[0].cells[0].runs.size() == 1);

  // Two values with one short form are told apart by the canonical one.
  runs[0].result.config["model.attention"] = "performer(features=128)";
  runs[0].result.config_short["model.attention"] = "performer";
  options.filters.clear();
  text = make_table(runs, options);
  CHECK(has(text, "performer(features=64)"));
  CHECK(has(text, "performer(features=128)"));
}

TEST_CASE("table: requests that mean nothing are errors that help") {
  const std::vector<LoadedRun> runs = {run("a", 0, 1)};
  TableOptions options;
  const auto message = [&] { return error_text([&] { make_table(runs, options); }); };
  CHECK(error_text([] { make_table({}, TableOptions()); }) == "table: there are no runs");
  options.rows = {"model.positon"};
  CHECK(message() == "table: --rows model.positon: no run has this config key. Did you mean model.position?");
  options = {};
  options.metrics = {"test.acuracy"};
  CHECK(message() == "table: --metric test.acuracy: no run has it. There are: test.loss, test.accuracy");
  options = {};
  options.filters = {{"task", "zz*"}};
  CHECK(message() == "table: the filters leave none of 1 run");
  CHECK(has(error_text([] { table_format("html"); }), "there are md, csv, latex and json"));
}

TEST_CASE("table: the same run in two places counts once") {
  const std::vector<LoadedRun> runs = {run("a", 0, 1), run("a", 0, 1), run("a", 1, 2)};
  CHECK(cell(build_table(runs, loss_options()), 0).summary.n == 2);
}

TEST_CASE("table: hostile names") {
  const std::string evil = "<script>alert(1)</script>|\n../../x\"`[a](b)` & $\\input{x}$ % _";
  std::vector<LoadedRun> runs = {run("../etc", 0, 1), run(evil, 0, 2), run(std::string(10000, 'n'), 0, 3)};
  TableOptions options = loss_options();
  const std::string md = make_table(runs, options);
  CHECK_FALSE(has(md, "<script"));
  CHECK(has(md, "&lt;script&gt;"));
  CHECK(md.size() < 4000);
  // Every line of the table has the same number of unescaped bars.
  for (std::size_t at = 0; md[at] == '|';) {
    const std::size_t end = md.find('\n', at);
    i64 bars = 0;
    for (std::size_t i = at; i < end; ++i) bars += md[i] == '|' && md[i - (i > 0)] != '\\';
    CHECK(bars == 3);
    at = end + 1;
  }
  options.format = TableFormat::latex;
  const std::string latex = make_table(runs, options);
  CHECK(has(latex, "\\textbackslash{}input\\{x\\}\\$ \\% \\_"));
  CHECK(has(latex, "\\toprule"));
  options.format = TableFormat::csv;
  const std::string csv = make_table(runs, options);
  CHECK(has(csv, "\"<script>alert(1)</script>|\n../../x\"\"`[a](b)` & $\\input{x}$ % _\",runs,char-mlm,test.loss"));
  options.format = TableFormat::json;
  const Json json = parse_json(make_table(runs, options), "table");
  CHECK(json.find("groups")->as_array()[0].find("rows")->as_array()[1].find("labels")->find("model.position")
            ->as_string() == evil);
}

TEST_CASE("table: csv and json") {
  std::vector<LoadedRun> runs = {run("a,b", 0, 1.5, 0.25), run("a,b", 1, 2.5, 0.75), run("c", 0, 3),
                                 state(run("c", 1, 0), RunState::failed)};
  TableOptions options;
  options.metrics = {"test.loss", "test.accuracy"};
  options.extra = {"parameters"};
  options.format = TableFormat::csv;
  const std::string csv = make_table(runs, options);
  CHECK(has(csv, "model.position,kind,column,metric,checkpoint,mean,sd,n,planned,ci_low,ci_high,best,"
                 "indistinguishable,untrained,states,seeds,ids,parameters\n"));
  CHECK(has(csv, "\"a,b\",runs,char-mlm,test.loss,last,2,0.7071067811865476,2,2,,,yes,,,,0 1,"
                 "\"char-mlm-a,b-0 char-mlm-a,b-1\",100000\n"));
  CHECK(has(csv, "\"a,b\",runs,char-mlm,test.accuracy,last,0.5,"));
  CHECK(has(csv, "c,runs,char-mlm,test.loss,last,3,,1,2,,,,,,failed 1/2,0 1,char-mlm-c-0 char-mlm-c-1,100000\n"));

  options.format = TableFormat::json;
  options.pooled = true;
  const Json json = parse_json(make_table(runs, options), "table");
  const Json& group = json.find("groups")->as_array().at(0);
  const Json& first = group.find("rows")->as_array().at(0).find("cells")->as_array().at(0);
  CHECK(first.find("mean")->as_double() == 2);
  CHECK(first.find("runs")->as_array().at(1).find("value")->as_double() == 2.5);
  CHECK(first.find("runs")->as_array().at(1).find("seed")->as_int() == 1);
  const Json& failed = group.find("rows")->as_array().at(1).find("cells")->as_array().at(0).find("runs")->as_array()[1];
  CHECK(failed.find("state")->as_string() == "failed");
  CHECK_FALSE(failed.find("value"));
  CHECK(group.find("pooled")->as_array().at(0).find("df")->as_double() == 1);
}
