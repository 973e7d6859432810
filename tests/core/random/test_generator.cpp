// Streams and their counts, the scopes, snapshots, capture and injection.
#include <doctest/doctest.h>

#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/random/dropout_mask.h"
#include "core/random/generator.h"
#include "tests/error_text.h"

using namespace waymark;
using test::error_text;

namespace {

const std::vector<i64> kShape = {2, 3};

// What an op does: play or draw, then hand it to the capture.
std::vector<double> op_normals(const Draw& draw, const std::vector<i64>& shape = kShape) {
  const DrawGrid grid = draw_grid(draw, shape);
  std::vector<double> out(static_cast<std::size_t>(grid.numel()));
  if (!play_draw(draw, kF64, shape, out.data())) fill_normal(draw, grid, 0, grid.numel(), out.data());
  capture_draw(draw, kF64, shape, out.data());
  return out;
}

template <class T> DrawBuffer buffer_of(DType dtype, const std::vector<i64>& shape, const std::vector<T>& values) {
  DrawBuffer buffer{dtype, shape, std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(buffer.bytes.data(), values.data(), buffer.bytes.size());
  return buffer;
}
DrawBuffer buffer_of(double start) {
  return buffer_of<double>(kF64, kShape, {start, start + 1, start + 2, start + 3, start + 4, start + 5});
}


}  // namespace

TEST_CASE("a stream counts its draws, whatever other streams do") {
  Generator generator(42);
  const Draw first = generator.next_draw("a.init");
  CHECK(first.key == key64(42, "a.init"));
  CHECK(first.number == 0);
  CHECK(first.first == 0);
  CHECK(first.tap == nullptr);
  for (int i = 0; i < 5; ++i) generator.next_draw("b.init");
  CHECK(generator.next_draw("a.init").number == 1);
  CHECK(generator.count("a.init") == 2);
  CHECK(generator.count("b.init") == 5);
  CHECK(generator.count("never") == 0);
  generator.fixed_draw("data.order", 7);
  CHECK(generator.fixed_draw("data.order", 7).number == 7);
  CHECK(generator.state() == GeneratorState{42, {{"a.init", 2}, {"b.init", 5}}});
  generator.manual_seed(3);
  CHECK(generator.state() == GeneratorState{3, {}});
  CHECK(generator.next_draw("a.init").key == key64(3, "a.init"));
}

TEST_CASE("state continues in another process's generator") {
  Generator one(5), two;
  one.next_draw("user");
  one.next_draw("user");
  one.next_draw("sample");
  two.next_draw("other");
  two.set_state(one.state());
  CHECK(two.state() == one.state());
  CHECK(op_normals(one.next_draw("user")) == op_normals(two.next_draw("user")));
  CHECK(two.count("other") == 0);
}

TEST_CASE("the limits of draw numbers are errors") {
  Generator generator;
  generator.set_state({1, {{"user", (u64{1} << 32) - 1}}});
  CHECK(generator.next_draw("user").number == 0xffffffff);
  CHECK(error_text([&] { generator.next_draw("user"); }) ==
        "random: stream 'user' has given all its 2^32 draws; manual_seed() starts it again");
  CHECK(generator.state().counts.at("user") == u64{1} << 32);
  CHECK(error_text([&] { generator.set_state({1, {{"user", (u64{1} << 32) + 1}}}); }) ==
        "random: the state gives stream 'user' 4294967297 draws; at most 2^32 exist");
  CHECK(generator.fixed_draw("position.noise", 0xffffffff).number == 0xffffffff);
  CHECK(error_text([&] { generator.fixed_draw("position.noise", u64{1} << 32); }) ==
        "random: draw number 4294967296 of stream 'position.noise' must be below 2^32");
}

TEST_CASE("RandomScope replaces the process's generator on its thread") {
  const GeneratorState before = default_generator().state();
  {
    RandomScope scope(9);
    CHECK(next_draw("user").key == key64(9, "user"));
    CHECK(next_draw("user").number == 1);
    {
      Generator own(10);
      RandomScope inner(own);
      CHECK(next_draw("user").key == key64(10, "user"));
      CHECK(own.count("user") == 1);
      manual_seed(11);
      CHECK(own.seed() == 11);
    }
    CHECK(next_draw("user").number == 2);
    Generator* elsewhere = nullptr;
    std::thread([&] { elsewhere = &current_generator(); }).join();
    CHECK(elsewhere == &default_generator());
  }
  CHECK(default_generator().state() == before);
  CHECK(&current_generator() == &default_generator());
}

TEST_CASE("threads draw from one generator without repeating a number") {
  Generator generator;
  std::vector<std::vector<u32>> numbers(4);
  std::vector<std::thread> threads;
  for (std::vector<u32>& mine : numbers)
    threads.emplace_back([&generator, &mine] {
      for (int i = 0; i < 2000; ++i) mine.push_back(generator.next_draw("user").number);
    });
  for (std::thread& thread : threads) thread.join();
  std::set<u32> all;
  for (const std::vector<u32>& mine : numbers) all.insert(mine.begin(), mine.end());
  CHECK(all.size() == 8000);
  CHECK(*all.rbegin() == 7999);
}

TEST_CASE("DrawScope numbers dropout streams by step and leaves all others alone") {
  RandomScope random(1);
  CHECK(is_dropout_stream("dropout"));
  CHECK(is_dropout_stream("layers.0.dropout"));
  CHECK_FALSE(is_dropout_stream("layers.0.dropout.weight"));
  CHECK_FALSE(is_dropout_stream("my_dropout"));
  CHECK_FALSE(DrawScope::current().has_value());
  for (int pass = 0; pass < 2; ++pass) {  // the same step again: the same numbers
    DrawScope scope(5, 16);
    CHECK(DrawScope::current()->draw == 5);
    CHECK(DrawScope::current()->first == 16);
    const Draw draw = next_draw("layers.0.dropout");
    CHECK(draw.number == 5 * 1024);
    CHECK(draw.first == 16);
    CHECK(next_draw("layers.0.dropout").number == 5 * 1024 + 1);
    CHECK(next_draw("layers.1.dropout").number == 5 * 1024);
    CHECK(next_draw("user").number == static_cast<u32>(pass));
    CHECK(next_draw("user" + std::to_string(pass)).first == 0);
    CHECK(fixed_draw("attention.gumbel", 5, BatchAxis::yes).first == 16);
    CHECK(fixed_draw("position.noise", 5).first == 0);
    {
      DrawScope inner(6, 24);
      CHECK(next_draw("layers.0.dropout").number == 6 * 1024);
      CHECK(next_draw("layers.0.dropout").first == 24);
    }
    CHECK(next_draw("layers.0.dropout").number == 5 * 1024 + 2);
  }
  CHECK(current_generator().count("layers.0.dropout") == 0);
  CHECK(next_draw("layers.0.dropout").number == 0);
  CHECK(fixed_draw("attention.gumbel", 5, BatchAxis::yes).first == 0);
}

TEST_CASE("micro-batches have the masks of the whole batch") {
  RandomScope random(3);
  const auto mask = [](i64 items, u64 first, std::vector<i64> shape) {
    DrawScope scope(12, first);
    shape.insert(shape.begin(), items);
    const DropoutMask dropout(next_draw("layers.0.dropout"), shape, 0.4);
    std::vector<u8> keep(static_cast<std::size_t>(draw_grid(shape).numel()));
    dropout.range(0, static_cast<i64>(keep.size()), keep.data());
    return keep;
  };
  for (const std::vector<i64>& inner : {std::vector<i64>{}, {10}, {5, 10}, {2, 5, 10}}) {
    std::vector<u8> whole = mask(8, 0, inner), parts;
    for (u64 first = 0; first < 8; first += 2) {
      const std::vector<u8> part = mask(2, first, inner);
      parts.insert(parts.end(), part.begin(), part.end());
    }
    CHECK(whole == parts);
  }
  DrawScope scope(12);
  const std::vector<i64> shape = {4, 2, 5, 10};
  const DropoutMask dropout(next_draw("x.dropout"), shape, 0.4);
  std::vector<u8> all(400), row(7);
  dropout.range(0, 400, all.data());
  dropout.row(5, 3, 2, 7, row.data());
  CHECK(row == std::vector<u8>(all.begin() + 282, all.begin() + 289));
}

TEST_CASE("a DrawScope has room for 1024 draws of a stream and 2^22 steps") {
  RandomScope random(0);
  DrawScope scope((1 << 22) - 1, 0xffffffff);
  for (u32 i = 0; i < 1024; ++i) REQUIRE(next_draw("dropout").number == 0xfffffc00 + i);
  CHECK(error_text([] { next_draw("dropout"); }) ==
        "random: stream 'dropout' was asked 1024 times inside one DrawScope, which is the most it can number");
  CHECK(next_draw("other.dropout").number == 0xfffffc00);
  CHECK(error_text([] { DrawScope bad(1 << 22); }) ==
        "DrawScope: draw 4194304 must be below 4194304, so that 1024 draw numbers of it stay below 2^32");
  CHECK(error_text([] { DrawScope bad(0, u64{1} << 32); }) == "DrawScope: first item 4294967296 must be below 2^32");
  CHECK(DrawScope::current()->draw == (1 << 22) - 1);
}

TEST_CASE("a replay draws again what was drawn after the snapshot, and advances nothing") {
  RandomScope random(8);
  DrawScope step(3, 4);
  next_draw("user");
  next_draw("a.dropout");
  const RandomSnapshot snapshot;
  const auto three = [] {
    std::vector<double> all;
    for (const char* stream : {"user", "a.dropout", "a.dropout"})
      for (double v : op_normals(next_draw(stream))) all.push_back(v);
    return all;
  };
  const std::vector<double> forward = three();
  {
    DrawScope elsewhere(99, 99);
    ReplayScope replay(snapshot);
    CHECK(three() == forward);
    const RandomSnapshot nested;
    const std::vector<double> more = three();
    ReplayScope again(nested);
    CHECK(three() == more);
  }
  std::vector<double> other_thread;
  std::thread([&] {
    ReplayScope replay(snapshot);
    other_thread = three();
  }).join();
  CHECK(other_thread == forward);
  CHECK(next_draw("user").number == 2);
  CHECK(next_draw("a.dropout").number == 3 * 1024 + 3);
  CHECK(DrawScope::current()->draw == 3);
  {
    Generator plain(8);
    RandomScope scope(plain);
    ReplayScope replay(snapshot);
    CHECK(DrawScope::current()->first == 4);
  }
  std::unique_ptr<RandomSnapshot> outside;
  std::thread([&] { outside = std::make_unique<RandomSnapshot>(); }).join();
  {
    ReplayScope replay(*outside);
    CHECK_FALSE(DrawScope::current().has_value());
  }
  CHECK(DrawScope::current()->draw == 3);
}

TEST_CASE("what is captured can be injected and gives the same model") {
  RandomScope random(21);
  const auto model = [] {
    std::vector<double> all;
    for (const char* stream : {"position.noise", "position.noise", "b.dropout", "position.noise"})
      for (double v : op_normals(next_draw(stream))) all.push_back(v);
    return all;
  };
  current_generator().start_capture();
  const std::vector<double> drawn = model();
  const std::vector<NamedDraw> draws = current_generator().take_captured();
  std::vector<std::string> names;
  for (const NamedDraw& draw : draws) names.push_back(draw.name);
  CHECK(names == std::vector<std::string>{"rng.b.dropout", "rng.position.noise", "rng.position.noise.1",
                                          "rng.position.noise.2"});
  CHECK(draws[0].buffer.shape == kShape);
  CHECK(draws[0].buffer.dtype == kF64);
  CHECK(model() != drawn);  // later draws
  current_generator().inject(draws);
  const u64 count = current_generator().count("position.noise");
  CHECK(model() == drawn);
  CHECK(current_generator().count("position.noise") == count + 3);  // in step with an uninjected run
  current_generator().finish_injection();
  CHECK(model() != drawn);
  // Micro-batches are different draws of one number.
  current_generator().start_capture();
  for (u64 first : {0u, 2u, 0u}) {
    DrawScope scope(1, first);
    op_normals(next_draw("b.dropout"));
  }
  CHECK(current_generator().take_captured().size() == 2);
  // Only the named streams; a draw asked for again is recorded once.
  current_generator().start_capture({"position.noise"});
  op_normals(fixed_draw("position.noise", 4));
  op_normals(next_draw("b.dropout"));
  op_normals(fixed_draw("position.noise", 4));
  op_normals(fixed_draw("position.noise", 5));
  CHECK(current_generator().take_captured().size() == 2);
}

TEST_CASE("a draw with the same number plays the same injected buffer") {
  RandomScope random(0);
  current_generator().inject("dropout", {buffer_of(1.0), buffer_of(2.0)});
  for (int pass = 0; pass < 3; ++pass) {
    DrawScope scope(7);
    CHECK(op_normals(next_draw("dropout"))[0] == 1.0);
    CHECK(op_normals(next_draw("dropout"))[0] == 2.0);
  }
  current_generator().finish_injection();
  // Micro-batches are different draws of one number.
  current_generator().inject("dropout", {buffer_of(1.0), buffer_of(2.0)});
  for (u64 first : {0u, 2u}) {
    DrawScope scope(7, first);
    CHECK(op_normals(next_draw("dropout"))[0] == (first ? 2.0 : 1.0));
  }
  current_generator().finish_injection();
  // A rule keeps its draw, also after the injection has ended.
  current_generator().inject("position.noise", {buffer_of(5.0)}, InjectMode::cycle);
  const Draw kept = next_draw("position.noise");
  for (int i = 0; i < 4; ++i) CHECK(op_normals(next_draw("position.noise"))[0] == 5.0);
  current_generator().clear_injection();
  CHECK(op_normals(next_draw("position.noise"))[0] != 5.0);
  CHECK(op_normals(kept)[0] == 5.0);
  // A replay continues from the snapshot's place.
  current_generator().inject("user", {buffer_of(1.0), buffer_of(2.0), buffer_of(3.0)});
  op_normals(next_draw("user"));
  const RandomSnapshot snapshot;
  CHECK(op_normals(next_draw("user"))[0] == 2.0);
  {
    ReplayScope replay(snapshot);
    CHECK(op_normals(next_draw("user"))[0] == 2.0);
  }
  CHECK(op_normals(next_draw("user"))[0] == 3.0);
}

TEST_CASE("errors of injection name the draw") {
  RandomScope random(0);
  Generator& generator = current_generator();
  generator.inject("user", {buffer_of(1.0), buffer_of(2.0)});
  op_normals(next_draw("user"));
  CHECK(error_text([&] { generator.inject("user", {buffer_of(1.0)}); }) ==
        "inject: stream 'user' is injected already; finish_injection() or clear_injection() first");
  CHECK(error_text([&] { generator.inject({{"rng.user", buffer_of(1.0)}, {"rng.new", buffer_of(1.0)}}); }) ==
        "inject: stream 'user' is injected already; finish_injection() or clear_injection() first");
  CHECK(next_draw("new").tap == nullptr);
  CHECK(error_text([&] { generator.finish_injection(); }) ==
        "inject: these draws were injected and never asked for: rng.user.1");
  generator.finish_injection();  // nothing is left
  generator.inject("user", {buffer_of(1.0)});
  op_normals(next_draw("user"));
  CHECK(error_text([] { next_draw("user"); }) ==
        "rng.user.1: this draw is missing: 1 draw was injected for stream 'user', and one more is asked for");
  generator.clear_injection();
  generator.inject("user", {buffer_of(1.0)}, InjectMode::cycle);
  const Draw draw = next_draw("user");
  CHECK(error_text([&] { op_normals(draw, {3, 2}); }) == "rng.user: need [3, 2] f64, got [2, 3] f64");
  float f[6];
  CHECK(error_text([&] { play_draw(draw, kF32, kShape, f); }) == "rng.user: need [2, 3] f32, got [2, 3] f64");
  CHECK(injected_buffer(draw)->shape == kShape);
  generator.clear_injection();
  DrawBuffer cut = buffer_of(1.0), wild = buffer_of<u8>(kB8, {2}, {0, 2});
  cut.bytes.pop_back();
  CHECK(error_text([&] { generator.inject("user", {cut}); }) == "rng.user: [2, 3] f64 does not take 47 bytes");
  CHECK(error_text([&] { generator.inject("user", {wild}); }) == "rng.user: a b8 draw holds bytes other than 0 and 1");
  CHECK(error_text([&] { generator.inject("user", std::vector<DrawBuffer>{}); }) ==
        "inject: no draw is given for stream 'user'");
}

TEST_CASE("names of draws are sorted into streams") {
  const auto streams = [](std::vector<std::string> names) {
    std::vector<NamedDraw> draws;
    for (std::size_t i = 0; i < names.size(); ++i) draws.push_back({names[i], buffer_of(static_cast<double>(i))});
    std::string text;
    for (const auto& [stream, buffers] : draws_by_stream(std::move(draws))) {
      text += stream + ":";
      for (const DrawBuffer& buffer : buffers) {
        double v;
        std::memcpy(&v, buffer.bytes.data(), sizeof v);
        text += std::to_string(static_cast<int>(v));
      }
      text += " ";
    }
    return text;
  };
  CHECK(streams({"rng.a.noise.1", "rng.a.noise", "rng.b", "rng.a.noise.2"}) == "a.noise:103 b:2 ");
  std::vector<std::string> twelve = {"rng.a"};
  for (int i = 1; i < 12; ++i) twelve.push_back("rng.a." + std::to_string(i));
  CHECK(streams(twelve) == "a:01234567891011 ");
  CHECK(streams({"rng.layers.1"}) == "layers.1:0 ");  // no "rng.layers": a stream of that name
  CHECK(error_text([&] { streams({"rng.a", "rng.a.2"}); }) == "inject: rng.a.2 is there, but rng.a.1 is missing");
  CHECK(error_text([&] { streams({"rng.a", "rng.a"}); }) == "inject: 'rng.a' is given twice");
  CHECK(error_text([&] { streams({"noise"}); }) ==
        "inject: 'noise' is no name of a draw; it must be rng.<stream> or rng.<stream>.<n>");
  CHECK(error_text([&] { streams({"rng."}); }).find("is no name of a draw") != std::string::npos);
}

TEST_CASE("errors of capture") {
  RandomScope random(0);
  Generator& generator = current_generator();
  CHECK(error_text([&] { generator.take_captured(); }) ==
        "capture: nothing is being captured; call start_capture() before the draws");
  generator.start_capture();
  next_draw("user");
  CHECK(error_text([&] { generator.take_captured(); }) ==
        "capture: rng.user was asked for, but its values were never drawn");
  generator.start_capture();
  op_normals(fixed_draw("position.noise", 3), {2, 3});
  CHECK(error_text([&] { op_normals(fixed_draw("position.noise", 3), {2, 4}); }) ==
        "capture: rng.position.noise (draw number 3) was [2, 3] f64 and is now asked for as [2, 4] f64: one draw of a "
        "case file has one shape");
}

TEST_CASE("a dropout mask is captured and injected as b8, 1 = keep") {
  RandomScope random(6);
  Generator& generator = current_generator();
  const std::vector<i64> shape = {2, 2, 3, 5};
  generator.start_capture();
  const DropoutMask drawn(next_draw("dropout"), shape, 0.5);
  drawn.capture();
  std::vector<u8> keep(60), played(60), row(4);
  drawn.range(0, 60, keep.data());
  const std::vector<NamedDraw> draws = generator.take_captured();
  CHECK(draws[0].buffer.dtype == kB8);
  CHECK(std::memcmp(draws[0].buffer.bytes.data(), keep.data(), 60) == 0);
  generator.manual_seed(7);
  generator.inject(draws);
  const DropoutMask injected(next_draw("dropout"), shape, 0.5);
  injected.range(0, 60, played.data());
  CHECK(played == keep);
  injected.row(3, 1, 1, 4, row.data());
  CHECK(row == std::vector<u8>(keep.begin() + 51, keep.begin() + 55));
  generator.finish_injection();
  generator.inject(draws);
  CHECK(error_text([&] { DropoutMask(next_draw("dropout"), std::vector<i64>{60}, 0.5); }) ==
        "rng.dropout: need [60] b8, got [2, 2, 3, 5] b8");
  CHECK(error_text([&] { DropoutMask(next_draw("x.dropout"), shape, -0.5); }) ==
        "bernoulli: p = -0.5 must be in [0, 1]");
}
