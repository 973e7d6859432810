// The page of an inspection: complete, escaped, without anything from outside.
#include <doctest/doctest.h>

#include "core/io/npz.h"
#include "core/ops/convert.h"
#include "core/random/generator.h"
#include "nn/position/registry.h"
#include "tests/test_level.h"
#include "tests/train/report/xml_check.h"
#include "tests/train/trainer/fixture.h"
#include "train/inspect/page.h"
#include "train/report/chart.h"
#include "train/tasks/registry.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

struct Made {
  TemporaryFolder folder;
  Config config;
  std::unique_ptr<Task> task;
  std::unique_ptr<TaskModel> model;
  explicit Made(const Settings& more) : config(small_config(small_text(folder), more)), task(make_task(task_request(config))) {
    const RandomScope random(u64{1});
    model = make_task_model(config, *task);
  }
  ModelReport look(i64 items, const LookOptions& options) {
    return look_at_model(*model, items, [&](i64 item) {
      const i64 one[] = {item};
      return task->evaluation_batch("val", one);
    }, options);
  }
};
size_t count_of(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
// The page as the check of drawings reads it.
std::string page_problem(std::string page) {
  const std::string head = "<!DOCTYPE html>\n";
  if (page.rfind(head, 0) != 0) return "no document type";
  return xml_problem("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + page.substr(head.size()));
}

}  // namespace

TEST_CASE("inspect: arrays, drawings and page of every encoding") {
  std::vector<std::string> positions = {"shaw(clip=3) + rope", "learned(max_len=32) + huang-m2(clip=4)"};
  for (const nn::EncodingInfo* info : nn::all_encodings()) positions.push_back(info->options.find("max_len") ? info->name() + "(max_len=32)" : info->name());
  if (level() == Level::quick) positions = {"learned(max_len=32) + huang-m2(clip=4)", "huang-m4(clip=4)", "rope"};
  for (const std::string& position : positions) {
    CAPTURE(position);
    std::optional<Made> made;
    try {
      made.emplace(Settings{{"model.position", position}, {"model.num_layers", "2"}});
    } catch (const ConfigError&) {
      continue;  // it needs a causal call
    }
    const ModelReport report = made->look(3, {.maps = true, .weights = true});
    REQUIRE(report.layers.size() == 2);
    CHECK(report.items == 3);
    // The weights of the first item are the attention's own.
    const i64 first[] = {0};
    made->model->module().eval();
    const RandomScope random(u64{1});
    made->model->visit_attentions(made->task->evaluation_batch("val", first), [&](i64 l, const nn::Attention& a, const nn::AttentionInput& in) {
      const LayerReport& layer = report.layers[static_cast<size_t>(l)];
      const Tensor w = a.implied_weights(in);
      CHECK(difference(layer.weights, contiguous(to(w, kF64)).squeeze(0)) == "");
      CHECK(layer.map.block == 1);
      CHECK(layer.map.cells == layer.weights.to_vector<double>());
    });
    made->model->module().train();
    const auto files = write_arrays(made->folder / "out", report);
    CHECK(files.size() == (report.input.empty() ? 2u : 3u));
    const Npz arrays = load_npz(made->folder / "out" / "position" / "1.npz");
    for (const char* name : {"delta", "count", "attention_mean", "within", "mean_distance", "entropy", "score_content_mean", "score_content_sd",
                             "score_total_mean", "weights"})
      CHECK_MESSAGE(arrays.contains(name), name);

    const std::vector<Figure> figures = figures_of(report);
    PageFacts facts{.title = "a <run> & \"more\"", .summary = {{"task", "<b>x</b>"}}, .item = "</pre><script>alert(1)</script>", .warnings = {"w & w"}, .command = "waymark inspect 'a b'"};
    const std::string page = inspection_page(facts, report, figures);
    CHECK(page_problem(page) == "");
    CHECK(count_of(page, "<svg ") == figures.size());
    CHECK(count_of(page, "<figcaption>") == figures.size());
    CHECK(count_of(page, "role=\"img\"") == figures.size());
    for (const Figure& f : figures) {
      CHECK(xml_problem(f.svg) == "");
      CHECK(has(f.svg, "<title>"));
      CHECK(has(f.svg, "<desc>"));
      CHECK(has(page, f.svg.substr(f.svg.find("<svg"))));
      CHECK_FALSE(f.text.empty());
    }
    for (const char* outside : {"src=", "url(", "@import", "fetch", "<script", "<link"}) CHECK_FALSE(has(page, outside));
    CHECK(count_of(page, "href=") == count_of(page, "href=\"#"));
    CHECK(page.size() < 5'000'000);
    // Every place that the page jumps to is there.
    CHECK(has(page, "id=\"layer-1\""));
    CHECK(has(page, "id=\"input\"") == !report.input.empty());
  }
}

TEST_CASE("inspect: looking changes nothing, and a long item is drawn by blocks") {
  Made made(Settings{{"model.position", "huang-m4(clip=4)"}, {"model.dropout", "0.3"}});
  manual_seed(11);
  const GeneratorState before = current_generator().state();
  nn::StateDict state;
  for (const auto& [name, t] : made.model->module().state_dict()) state.emplace_back(name, t.clone());
  CHECK(made.model->module().training());
  const ModelReport report = made.look(2, {.maps = true, .most_cells = 5});
  CHECK(current_generator().state() == before);
  CHECK(made.model->module().training());
  CHECK(difference(made.model->module().state_dict(), state) == "");
  const ModelReport again = made.look(2, {.maps = true, .most_cells = 100});
  const AttentionMap &coarse = report.layers[0].map, &fine = again.layers[0].map;
  CHECK(coarse.block == 4);
  CHECK(coarse.rows == 4);
  CHECK(fine.block == 1);
  CHECK(fine.rows == 16);
  CHECK_FALSE(report.layers[0].weights.defined());
  for (i64 h = 0; h < coarse.heads; ++h)
    for (i64 r = 0; r < 4; ++r)
      for (i64 c = 0; c < 4; ++c) {
        double sum = 0;
        for (i64 i = 0; i < 4; ++i)
          for (i64 j = 0; j < 4; ++j) sum += fine.cells[static_cast<size_t>((h * 16 + 4 * r + i) * 16 + 4 * c + j)];
        CHECK(coarse.cells[static_cast<size_t>((h * 4 + r) * 4 + c)] == doctest::Approx(sum / 16));
      }
}

TEST_CASE("map grid: one scale, padding grey, wrong sizes refused") {
  MapGrid grid;
  grid.title = "maps & more";
  grid.description = "of a test";
  grid.x_label = "key";
  grid.y_label = "query";
  grid.maps = {{"head 0", 2, 3, {0, 0.25, 1, std::nan(""), 1, 1}}, {"head <1>", 2, 3, {0, 0, 0, 0, 0, -0.5}}};
  const std::string svg = draw(grid);
  CHECK(xml_problem(svg) == "");
  CHECK(has(svg, "#c8c8c8"));
  CHECK(has(svg, "head &lt;1&gt;"));
  CHECK(has(svg, "M1 1h2v1h-2z"));  // neighbours of one colour are one piece
  CHECK(draw(grid) == svg);
  grid.maps[1].values.pop_back();
  CHECK(has(error_text([&] { (void)draw(grid); }), "with 5 values beside one of 2 x 3"));
  grid.maps.clear();
  CHECK(has(error_text([&] { (void)draw(grid); }), "there are no maps"));
}
