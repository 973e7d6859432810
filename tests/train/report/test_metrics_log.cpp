#include "train/report/metrics_log.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#include "core/io/files.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"

using namespace waymark;
using namespace waymark::train;
using waymark::test::error_text;
using waymark::test::has;
using waymark::test::TemporaryFolder;

namespace {

const MetricsHeader kHeader{"3f9a1c07d2e4", 0, "2025-01-31T12:00:00Z"};
constexpr const char* kHeaderLine =
    R"({"format":"waymark-metrics-1","id":"3f9a1c07d2e4","seed":0,"start":"2025-01-31T12:00:00Z"})";

MetricsRecord loss_at(i64 step, double loss) {
  return MetricsRecord{MetricsKind::train, step, {}}.set("loss", loss).set("time", 0.5 * static_cast<double>(step));
}

}  // namespace

TEST_CASE("metrics: the lines of the format") {
  TrainMetrics m{1200, 2.4, 1.4823, 0.00061, 0.83, 2457600, 112.4, 12400, 31.2};
  CHECK(metrics_line(train_record(m)) ==
        R"({"kind":"train","step":1200,"epoch":2.4,"loss":1.4823,"lr":0.00061,"grad_norm":0.83,"tokens":2457600,)"
        R"("time":112.4,"tokens_per_s":12400,"gflops":31.2})");
  CHECK(metrics_line(eval_record(1200, "val", 2000, {{"accuracy", 0.612}, {"loss", 1.402}}, 113.9)) ==
        R"({"kind":"eval","step":1200,"split":"val","n":2000,"accuracy":0.612,"loss":1.402,"time":113.9})");
  CHECK(metrics_line(event_record(1300, "checkpoint").set("path", std::string("checkpoints/step-00001300"))) ==
        R"({"kind":"event","step":1300,"event":"checkpoint","path":"checkpoints/step-00001300"})");
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(metrics_line(MetricsRecord{MetricsKind::train, 3, {}}
                         .set("loss", std::nan(""))
                         .set("lr", 0.1)
                         .set("grad_norm", -inf)) ==
        R"({"kind":"train","step":3,"loss":null,"lr":0.1,"grad_norm":null,"nonfinite":["loss","grad_norm"]})");
}

TEST_CASE("metrics: what is written is read back") {
  TemporaryFolder folder;
  {
    MetricsLog log = MetricsLog::create(folder / "metrics.jsonl", kHeader);
    log.write(loss_at(1, 0.1));
    log.write(loss_at(2, std::nan("")));
    log.write(eval_record(2, "val", 10, {{"loss", 1.0 / 3}}, 2.5, true));
    log.write(event_record(2, "name \"quoted\"\n"));
    // flushed per line: a reader sees it while the log is open
    CHECK(read_metrics(folder / "metrics.jsonl").records.size() == 4);
  }
  const MetricsFile file = read_metrics(folder / "metrics.jsonl");
  CHECK(file.header.id == kHeader.id);
  CHECK(file.header.seed == 0);
  CHECK_FALSE(file.cut_off);
  REQUIRE(file.records.size() == 4);
  CHECK(file.records[0].number("loss").value() == 0.1);
  CHECK(std::isnan(file.records[1].number("loss").value()));
  CHECK(file.records[2].number("loss").value() == 1.0 / 3);
  CHECK(file.records[2].number("n").value() == 10);
  CHECK(std::get<bool>(*file.records[2].find("approximate")));
  CHECK(file.records[3].text("event").value() == "name \"quoted\"\n");
  CHECK_FALSE(file.records[0].number("nowhere").has_value());

  const MetricsSeries curve = series(file, MetricsKind::train, "loss");
  REQUIRE(curve.step.size() == 2);
  CHECK(curve.step[1] == 2);
  CHECK(curve.time[1] == 1);
  CHECK(std::isnan(curve.value[1]));
  CHECK(series(file, MetricsKind::eval, "loss", "val").value.size() == 1);
  CHECK(series(file, MetricsKind::eval, "loss", "test").value.empty());
}

TEST_CASE("metrics: resume cuts behind the checkpoint and nothing doubles") {
  TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  const auto write_all = [&](MetricsLog& log, i64 from) {
    for (i64 step = from; step <= 6; ++step) {
      log.write(loss_at(step, 1.0 / static_cast<double>(step)));
      if (step % 2 == 0) log.write(eval_record(step, "val", 5, {{"loss", 0.7}}, 0.1));
    }
  };
  {
    MetricsLog log = MetricsLog::create(path, kHeader);
    write_all(log, 1);
  }
  const std::string whole = read_file(path);
  {
    std::ofstream(path, std::ios::app) << "{\"kind\":\"train\",\"st";  // killed inside a line
    CHECK(read_metrics(path).cut_off);
    MetricsLog log = MetricsLog::resume(path, kHeader, {.step = 4, .evaluated = true});
    write_all(log, 5);
  }
  CHECK(read_file(path) == whole);
  {
    MetricsLog log = MetricsLog::resume(path, kHeader, {.step = 4, .evaluated = false});
    log.write(eval_record(4, "val", 5, {{"loss", 0.7}}, 0.1));
    write_all(log, 5);
  }
  CHECK(read_file(path) == whole);
  {
    MetricsLog log = MetricsLog::resume(path, kHeader, {.step = 0});
    write_all(log, 1);
  }
  CHECK(read_file(path) == whole);

  MetricsHeader other = kHeader;
  other.id = "ffffffffffff";
  CHECK(has(error_text([&] { MetricsLog::resume(path, other, {}); }), "belongs to run 3f9a1c07d2e4"));
  CHECK(read_file(path) == whole);
  std::filesystem::remove(path);
  MetricsLog::resume(path, kHeader, {.step = 4});
  CHECK(read_file(path) == std::string(kHeaderLine) + "\n");
}

TEST_CASE("metrics: wrong records are not written") {
  TemporaryFolder folder;
  MetricsLog log = MetricsLog::create(folder / "m", kHeader);
  log.write(loss_at(5, 1));
  CHECK(error_text([&] { log.write(loss_at(4, 1)); }) == "metrics: step 4 after step 5");
  CHECK(has(error_text([&] { log.write(loss_at(6, 1).set("loss", 2.0)); }), "\"loss\" stands twice"));
  CHECK(has(error_text([&] { log.write(loss_at(6, 1).set("step", i64{2})); }), "\"step\" cannot be a field"));
  CHECK(has(error_text([&] { log.write(loss_at(-1, 1)); }), "after step"));
  CHECK(read_metrics(folder / "m").records.size() == 1);
}

TEST_CASE("metrics: a full disk is an error and spoils no line") {
  CHECK(has(error_text([] { MetricsLog::create("/nowhere/at/all/m", kHeader); }), "cannot write /nowhere/at/all/m"));
  TemporaryFolder folder;
  MetricsLog log = MetricsLog::create(folder / "m", kHeader);
  log.write(loss_at(1, 1));
  const std::string before = read_file(folder / "m");
  // A limit on the size of files acts like a full disk: the write stops in the middle of a line.
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto old_action = ::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = before.size() + 10;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string metrics = error_text([&] { log.write(loss_at(2, 1)); });
  const std::string atomic = error_text([&] { write_file_atomic(folder / "m", std::string(1000, 'x')); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
  ::signal(SIGXFSZ, old_action);
  CHECK(metrics == "cannot write " + (folder / "m").string() + ": File too large");
  CHECK(atomic == metrics);
  CHECK(read_file(folder / "m") == before);
  CHECK_FALSE(read_metrics(folder / "m").cut_off);
  log.write(loss_at(2, 1));
  CHECK(read_metrics(folder / "m").records.size() == 2);
  CHECK(remove_temporary_files(folder.path()) == 0);
}

TEST_CASE("metrics: the reader is strict") {
  TemporaryFolder folder;
  const auto path = folder / "m";
  const auto message = [&](const std::string& lines) {
    std::ofstream(path, std::ios::trunc) << lines;
    std::string text = error_text([&] { read_metrics(path); });
    if (text.rfind(path.string(), 0) == 0) text.erase(0, path.string().size());
    return text;
  };
  const std::string head = std::string(kHeaderLine) + "\n";
  CHECK(message(head) == "(no error)");
  CHECK(has(message(""), "no header line"));
  CHECK(has(message("{\"format\":\"waymark-metrics-2\",\"id\":\"\",\"seed\":0,\"start\":\"\"}\n"), ":1: format: is "));
  CHECK(has(message(head + "{\"kind\":\"trian\",\"step\":1}\n"), ":2: kind: must be train, eval or event"));
  CHECK(has(message(head + "{\"kind\":\"train\"}\n"), ":2: step: is missing"));
  CHECK(has(message(head + "{\"kind\":\"train\",\"step\":1.5}\n"), ":2: step: expected an integer"));
  CHECK(has(message(head + "{\"kind\":\"train\",\"step\":-1}\n"), "must not be negative"));
  CHECK(has(message(head + "{\"kind\":\"train\",\"step\":1,\"loss\":NaN}\n"), ":2: no JSON"));
  CHECK(has(message(head + "{\"kind\":\"train\",\"step\":1,\"loss\":null}\n"), "not listed in \"nonfinite\""));
  CHECK(has(message(head + "{\"kind\":\"train\",\"step\":1,\"nonfinite\":[\"loss\"]}\n"), "which is not null"));
  CHECK(has(message(head + "{\"kind\":\"train\",\"step\":1,\"loss\":[1]}\n"), "cannot be an array"));
  CHECK(has(message(head + "\n"), ":2: no JSON"));
  const std::string line = "{\"kind\":\"train\",\"step\":";
  CHECK(has(message(head + line + "2}\n" + line + "1}\n"), ":3: step 1 after step 2"));
}
