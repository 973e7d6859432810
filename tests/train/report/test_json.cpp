#include "train/report/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "tests/error_text.h"

using namespace waymark;
using namespace waymark::train;
using waymark::test::error_text;
using waymark::test::has;

TEST_CASE("json: reads and writes in order") {
  const std::string text = R"({"b":1,"a":[true,null,-2.5,"x\ny"],"o":{"k":1e+300},"e":[],"f":{}})";
  const Json value = parse_json(text, "t");
  CHECK(value.as_object()[0].first == "b");
  CHECK(value.find("a")->as_array()[2].as_double() == -2.5);
  CHECK(value.find("b")->is_int());
  CHECK_FALSE(value.find("zz"));
  CHECK(write_json(value) == text);
  CHECK(write_json(parse_json(R"({"a":[1,{"b":2}],"c":{}})", "t"), 2) ==
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {}\n}");
}

TEST_CASE("json: numbers keep every bit") {
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(1e-7) == "1e-07");
  CHECK(shortest(3) == "3");
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    const u64 bits = random();
    double value;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    const Json back = parse_json(write_json(Json(value)), "t");
    const double read = back.as_double();
    if (__builtin_memcmp(&read, &value, sizeof value) != 0) FAIL(shortest(value));
  }
  for (double value : {0.0, -0.0, 5e-324, 1.7976931348623157e308, 123456789012345680.0, 1e18, 1e19}) {
    const double read = parse_json(write_json(Json(value)), "t").as_double();
    CHECK(read == value);
    CHECK(std::signbit(read) == std::signbit(value));
  }
  CHECK(parse_json("9223372036854775807", "t").as_int() == INT64_MAX);
  CHECK(parse_json("-9223372036854775808", "t").as_int() == INT64_MIN);
  CHECK_FALSE(parse_json("9223372036854775808", "t").is_int());
  CHECK(has(error_text([] { write_json(Json(std::nan(""))); }), "JSON has no number nan"));
}

TEST_CASE("json: nothing but JSON is read") {
  for (const char* bad : {"", "{", "[1,]", "{\"a\":NaN}", "{\"a\":Infinity}", "nul", "{a:1}", "[1] 2", "'x'",
                          "{\"a\":1 // c\n}", "\"\xff\"", "1e999", "01", "[\"a\nb\"]"}) {
    CAPTURE(bad);
    const std::string text = error_text([&] { parse_json(bad, "file.json:3"); });
    CHECK(has(text, "file.json:3: no JSON: "));
    CHECK_FALSE(has(text, "json.exception"));
  }
  CHECK(error_text([] { parse_json("{\"a\":1,\"a\":2}", "f"); }) == "f: the member \"a\" stands there twice");
  const std::string deep = std::string(100000, '[');
  CHECK(error_text([&] { parse_json(deep, "f"); }) == "f: nested deeper than 64 levels");
  CHECK(parse_json(std::string(64, '[') + std::string(64, ']'), "f").is_array());
}

TEST_CASE("json: the reader names path and problem") {
  const Json value = parse_json(R"({"a":1,"b":"x","c":{"d":true},"e":null})", "f");
  JsonReader r(value, "run/result.json", "data");
  CHECK(r.integer("a") == 1);
  CHECK(r.number("a") == 1.0);
  CHECK(r.maybe_text("zz") == std::nullopt);
  CHECK(error_text([&] { r.text("a"); }) == "run/result.json: data.a: expected a string, found an integer");
  CHECK(error_text([&] { r.integer("b"); }) == "run/result.json: data.b: expected an integer, found a string");
  CHECK(error_text([&] { r.integer("zz"); }) == "run/result.json: data.zz: is missing");
  CHECK(error_text([&] { r.maybe_number("e"); }) == "run/result.json: data.e: expected a number, found null");
  CHECK(has(error_text([&] { r.finish(); }), "data.c: unknown member"));
  r.object("c");
  r.finish();
  CHECK(error_text([&] { JsonReader(Json(3), "f"); }) == "f: expected an object, found an integer");
}
