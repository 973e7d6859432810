// Case files and specs of cases by someone who means no good: every one is refused with a reason that names what is
// wrong, none passes unseen, and none takes other files with it.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/io/safetensors.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "nn/loss/loss.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/tensors.h"
#include "train/verify/verify.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

Metadata meta_of(const std::string& module, const std::string& config, const std::string& rtol = "1e-9", const std::string& atol = "0") {
  return {{"format", "waymark-case-1"}, {"module", module}, {"config", config}, {"rtol", rtol}, {"atol", atol}};
}

CaseReport report_of(const NamedTensors& tensors, const Metadata& meta, const VerifyOptions& options = {}) {
  const TemporaryFolder folder;
  save_safetensors(folder / "case.safetensors", tensors, meta);
  return verify_file(folder / "case.safetensors", options);
}

// All reasons why a file is refused, one a line.
std::string refusal(const NamedTensors& tensors, const Metadata& meta) {
  const CaseReport report = report_of(tensors, meta);
  CHECK(!report.pass());
  return fmt::format("{}", fmt::join(report.problems, "\n"));
}

Tensor ones64(const Shape& shape) { return ones(shape, kF64); }

}  // namespace

TEST_CASE("the places of a list's tensors are counted, and nothing else is a place") {
  const std::string cat = R"({"op":"cat","args":{"dim":0}})";
  const auto tried = [&](const std::string& place) {
    return refusal({{"input.tensors.0", ones64({2})}, {"input.tensors." + place, ones64({2})}, {"output", ones64({4})}}, meta_of("op", cat));
  };
  for (const char* place : {"-1", "18446744073709551616", "99999999999999999999999", ".5", " 1", "1x", "+1", "01", "1.5", "00", "", "0x1", "1e0"}) {
    INFO(std::string(place));
    CHECK(tried(place) == fmt::format("the tensor input.tensors.{}: {} is no place in a list; they are 0, 1, 2, ...", place, *place ? place : "\"\""));
  }
  for (const char* place : {"2", "4611686018427387904", "18446744073709551615"})
    CHECK(tried(place) == fmt::format("there is a tensor input.tensors.{}, but none input.tensors.1; a list is numbered 0, 1, 2, ... without gaps", place));
  // As it should be, also beyond 9 and in any order of the file.
  NamedTensors many;
  for (int i = 11; i >= 0; --i) many.emplace_back(fmt::format("input.tensors.{}", i), full({1}, i, {.dtype = kF64}));
  many.emplace_back("output", arange(0, 12, 1, {.dtype = kF64}));
  CHECK(report_of(many, meta_of("op", cat)).pass());
  // A list that may leave tensors out may have gaps, but none that the file could not fill.
  const auto packed = [&](const std::string& place) {
    return report_of({{"input.input", ones64({2, 3})},
                      {"input.weights.0", ones64({4, 3})},
                      {"input.weights.1", ones64({4, 3})},
                      {"input.biases." + place, ones64({4})},
                      {"output.0", full({2, 4}, 3, {.dtype = kF64})},
                      {"output.1", full({2, 4}, 4, {.dtype = kF64})}},
                     meta_of("op", R"({"op":"linear_packed","args":{}})"));
  };
  CHECK(packed("1").pass());
  CHECK(!packed("4611686018427387904").usable());
}

TEST_CASE("an argument is given once") {
  const Metadata meta = meta_of("op", R"({"op":"add","args":{"other":1}})");
  CHECK(refusal({{"input.input", ones64({2})}, {"input.other", ones64({2})}, {"output", full({2}, 2, {.dtype = kF64})}}, meta) ==
        "the argument other is given twice: in args, and as the tensor input.other");
  CHECK(refusal({{"input.tensors", ones64({2})}, {"input.tensors.0", ones64({2})}, {"output", ones64({2})}},
                meta_of("op", R"({"op":"cat","args":{"dim":0}})")) ==
        "the argument tensors is given twice: as the tensors input.tensors and input.tensors.0");
  CHECK(has(draft_problem("op(op=relu(input=[2]), input=[3])"), "relu: input is given twice"));
}

TEST_CASE("tolerances are finite numbers that are not negative") {
  const NamedTensors tensors = {{"input.input", ones64({2})}, {"output", full({2}, 7, {.dtype = kF64})}};
  const std::string relu = R"({"op":"relu","args":{}})";
  for (const char* bad : {"inf", "nan", "-1", "-inf", "infinity", "1e999", "", "1 "}) {
    INFO(std::string(bad));
    CHECK(refusal(tensors, meta_of("op", relu, bad, "0")) == fmt::format("rtol = \"{}\" is no number that is finite and >= 0", bad));
    CHECK(refusal(tensors, meta_of("op", relu, "0", bad)) == fmt::format("atol = \"{}\" is no number that is finite and >= 0", bad));
  }
  for (const double bad : {static_cast<double>(INFINITY), static_cast<double>(NAN), -1.0}) {
    CHECK(!report_of(tensors, meta_of("op", relu), {.rtol = bad, .atol = {}, .only = {}}).usable());
    CHECK(!report_of(tensors, meta_of("op", relu), {.rtol = {}, .atol = bad, .only = {}}).usable());
  }
}

TEST_CASE("integers are compared as integers") {
  constexpr i64 kOdd = (i64{1} << 53) + 1;  // no double
  const std::string clone_of = R"({"op":"clone","args":{}})";
  const auto tried = [&](i64 ours, i64 theirs, const char* atol) {
    return report_of({{"input.input", full({1}, ours, {.dtype = kI64})}, {"output", full({1}, theirs, {.dtype = kI64})}},
                     meta_of("op", clone_of, "0", atol));
  };
  CHECK(tried(kOdd, kOdd, "0").pass());
  const CaseReport off = tried(kOdd, kOdd - 1, "0");
  CHECK(off.usable());
  CHECK(!off.pass());
  CHECK(off.checks.at(0).max_abs == 1);
  CHECK(off.checks.at(0).where == "[0] ours 9007199254740993 theirs 9007199254740992");
  CHECK(tried(kOdd, kOdd - 1, "1").pass());
  CHECK(!tried(kOdd, kOdd - 2, "1").pass());
  CHECK(!tried(INT64_MIN, INT64_MAX, "1").pass());
  CHECK(!tried(INT64_MAX - 1, INT64_MAX, "0").pass());
}

TEST_CASE("options of an optimizer's case are values, never text") {
  const NamedTensors tensors = {{"param.w", ones64({2})}, {"input.grad.1", ones64({2})}, {"output", ones64({2})}};
  const auto tried = [&](const std::string& keys) { return refusal(tensors, meta_of("optimizer", R"({"optimizer":"adamw","steps":1,)" + keys + "}")); };
  CHECK(has(tried(R"("lr":"1,weight_decay=0.5")"), "adamw: option lr must be float"));
  CHECK(has(tried(R"("lr":"0.1")"), "adamw: option lr must be float"));
  CHECK(has(tried(R"("lr=1,eps":1e-8)"), "lr=1,eps"));
  CHECK(has(tried(R"("betas":["0.9, 0.5",0.9])"), "betas"));
  CHECK(tried(R"("lr":[])") == "config.lr has 0 rates for 1 steps");
  CHECK(tried(R"("lr":[0.1,0.1])") == "config.lr has 2 rates for 1 steps");
  CHECK(tried(R"("lr":["x"])") == "config.lr[0] is \"x\"; it must be a number >= 0");
  CHECK(tried(R"("lr":[-1])") == "config.lr[0] is -1; it must be a number >= 0");
  CHECK(tried(R"("clip_norm":-5)") == "config.clip_norm is -5; it must be >= 0, 0 = off");
  CHECK(has(tried(R"("eps":{"a":1})"), "config.eps is an object"));
  CHECK(has(refusal(tensors, meta_of("optimizer", R"x({"optimizer":"sgd(lr=3)","steps":1})x")), "sgd(lr=3)"));
  CHECK(refusal({{"param.w", ones64({2})}, {"input.grad.1", ones64({3})}, {"output", ones64({2})}},
                meta_of("optimizer", R"({"optimizer":"sgd","steps":1,"lr":1})")) == "input.grad.1 is f64 [3], but param.w is f64 [2]");
  // A word where it is one.
  CHECK(report_of({{"param.w", ones64({2})}, {"input.grad.1", zeros({2}, kF64)}, {"output", ones64({2})}},
                  meta_of("optimizer", R"({"optimizer":"adafactor","steps":1,"lr":"relative"})"))
            .pass());
}

TEST_CASE("a training's keys: rates replace the optimizer's own, limits are not negative") {
  const TemporaryFolder folder;
  const WrittenCase written = write_case(folder.path(), "training(optimizer=\"sgd(lr=0.1)\", steps=2)");
  const SafeTensors file = load_safetensors(written.file);
  const std::string config = file.metadata().at("config");
  NamedTensors tensors;
  for (const std::string& name : file.names()) tensors.emplace_back(name, file.get(name));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = config;
    const size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return report_of(tensors, meta_of("training", text.replace(at, from.size(), to)));
  };
  CHECK(with(R"("clip_norm":1)", R"("clip_norm":1,"lr":[0.1,0.1])").pass());
  CHECK(!with(R"("clip_norm":1)", R"("clip_norm":1,"lr":[0.1,0.2])").pass());
  CHECK(with(R"("clip_norm":1)", R"("clip_norm":1,"lr":[])").problems == std::vector<std::string>{"config.lr has 0 rates for 2 steps"});
  CHECK(with(R"("clip_norm":1)", R"("clip_norm":-1)").problems == std::vector<std::string>{"config.clip_norm is -1; it must be >= 0, 0 = off"});
  CHECK(has(with(R"("name":"sgd")", R"("name":3)").problems.at(0), "optimizer.name"));
  CHECK(has(with(R"("decay":"all")", R"("decay":1)").problems.at(0), "optimizer.decay"));
}

TEST_CASE("the first cause is told, not what follows from it") {
  const Tensor x = ones64({2});
  const auto alone = [](const std::string& text, const std::string& start) {
    CHECK_MESSAGE(text.rfind(start, 0) == 0, text);
    CHECK_MESSAGE(text.find("has no meaning") == std::string::npos, text);
  };
  alone(refusal({{"input.input", x}, {"output", x}}, meta_of("op", R"({"op":"relux","args":{}})")), "op \"relux\" is unknown");
  alone(refusal({{"input.input", x}, {"output", x}}, meta_of("op", R"({"op":"relu","args":{"dim":1}})")), "relu has no argument dim");
  alone(refusal({{"param.w", x}, {"input.grad.1", x}, {"output", x}}, meta_of("optimizer", R"({"optimizer":"sgd","steps":0,"lr":1})")),
        "config.steps is 0");
  // Where there is no other cause, it is told.
  CHECK(has(refusal({{"input.input", x}, {"input.indices.0", x}, {"output", x}}, meta_of("op", R"({"op":"relu","args":{}})")),
            "the tensor input.indices.0 has no meaning"));
}

TEST_CASE("a message names the key or the tensor that is wrong") {
  const Tensor x = ones64({2, 3});
  const auto op = [&](const std::string& args) { return refusal({{"input.input", x}, {"output", x}}, meta_of("op", R"({"op":"sum","args":)" + args + "}")); };
  CHECK(has(op(R"({"dim":{}})"), "args.dim"));
  CHECK(has(op(R"({"dim":[1,"x"]})"), "args.dim"));
  CHECK(has(op(R"({"dim":[[1],["x"]]})"), "args.dim"));
  const auto index = [&](const std::string& list) {
    return refusal({{"input.input", x}, {"output", x}}, meta_of("op", R"({"op":"index","args":{"indices":)" + list + "}}"));
  };
  for (const char* list : {R"([{"slice":[0,"x",1]}])", R"([{"slice":1}])", R"([{"slice":[1,2]}])", R"([true])", R"([{"slice":[0,1,1],"more":1}])"})
    CHECK_MESSAGE(has(index(list), "args.indices[0] is no index"), std::string(list));
  const auto attention = [&](const std::string& keys, const Shape& shape) {
    return refusal({{"input.x", ones64(shape)}, {"output", ones64(shape)}}, meta_of("attention", R"({"embed_dim":4,"num_heads":2)" + keys + "}"));
  };
  CHECK(has(attention(R"(,"position":"none","scale":true)", {1, 2, 4}), "scale: must be \"default\", \"none\" or a number"));
  CHECK(has(attention(R"(,"position":"rope(")", {1, 2, 4}), "config: position: spec: expected an option name"));
  CHECK(has(attention(R"(,"position":"none","attention":"dense(")", {1, 2, 4}), "config: attention: spec: expected an option name"));
  CHECK(has(attention(R"(,"position":"none")", {2, 4}), "input.x must be [B, L, E], not [2, 4]"));
  CHECK(has(refusal({{"input.q", x}, {"input.k", x}, {"input.v", x}, {"output", x}},
                    meta_of("attention_core", R"({"num_heads":2,"head_dim":4,"position":"none"})")),
            "input.q must be [B, H, L, d], not [2, 3]"));
}

TEST_CASE("weights of classes are finite and not negative, in a loss; the op takes any, as PyTorch does") {
  const Tensor logits = ones64({2, 2}), target = zeros({2}, kI64);
  for (const double bad : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const Tensor weight = tensor({1.0, bad});
    CHECK(has(refusal({{"input.logits", logits}, {"input.target", target}, {"input.weight", weight}, {"output", full({}, 1, {.dtype = kF64})}},
                      meta_of("loss", R"({"loss":"cross_entropy"})")),
              fmt::format("weight has {}; weights of classes are finite and >= 0", bad)));
    CHECK(has(error_text([&] { (void)nn::loss::cross_entropy(logits, target, {.weight = weight}); }), "weights of classes"));
  }
}

TEST_CASE("the passes of R-Drop for spans and for numbers are those of SAR, options included") {
  const TemporaryFolder folder;
  for (const char* task : {"span", "regress"}) {
    for (const char* option : {"alpha=3", "ce=first", "detach=first"}) {
      INFO(std::string(task) << " " << option);
      std::vector<double> values;
      for (const char* loss : {"sar", "r_drop"}) {
        const WrittenCase w = write_case(folder.path(), fmt::format("loss(loss={}, task={}, {})", loss, task, option));
        CHECK(w.report.pass());
        values.push_back(load_safetensors(w.file).get("output").item<double>());
      }
      const WrittenCase plain = write_case(folder.path(), fmt::format("loss(loss=r_drop, task={})", task));
      CHECK(values[0] == values[1]);
      if (std::string(option) != "detach=first") CHECK(values[1] != load_safetensors(plain.file).get("output").item<double>());
    }
  }
  // An option that a loss does not have is not dropped.
  CHECK(has(draft_problem("loss(loss=cross_entropy, alpha=3)"), "the loss cross_entropy has no option alpha"));
  CHECK(has(draft_problem("loss(loss=kl_div, task=span)"), "the loss kl_div has no option task"));
  CHECK(has(draft_problem("loss(loss=r_drop, task=regress, classes=3)"), "has no option classes"));
}

TEST_CASE("specs of random values name their own words, and ranges that there are") {
  CHECK(has(draft_problem("relu(input=[2], seed=-1)"), "relu: seed must be an integer >= 0, not -1"));
  CHECK(has(draft_problem("relu(input=[2], seed=x)"), "seed must be an integer >= 0"));
  CHECK(has(draft_problem("relu(input=[2], dtype=f16)"), "relu: dtype must be f64 or f32, not f16"));
  CHECK(draft_problem("relu(input=[2], dtype=f64)") == "");
  CHECK(draft_problem("to(input=[2], dtype=i64)") == "");  // the op's own
  CHECK(has(draft_problem("relu(input=float(shape=[2], low=5, high=1))"), "input: low = 5 is above high = 1"));
  CHECK(has(draft_problem("relu(input=float(shape=[2], low=-1e308, high=1e308))"), "input: low = -1e+308, high = 1e+308: a range is at most"));
  CHECK(has(draft_problem("relu(input=float(shape=[2], high=1e39), dtype=f32)"), "wide in f32"));
  CHECK(draft_problem("relu(input=float(shape=[2], low=1, high=1))") == "");
  CHECK(has(draft_problem("relu(input=int(shape=[2], low=3, high=3))"), "high must be above low"));
}

TEST_CASE("two specs never share a file") {
  const TemporaryFolder folder;
  const char* const alike[] = {"relu(input=values(of=[[1.5,2],[3,4]]))", "relu(input=values(of=[1.5,2,3,4]))", "relu(input=values(of=[[1.5],[2],[3],[4]]))"};
  std::vector<std::string> names;
  for (int again = 0; again < 2; ++again)
    for (const char* spec : alike) {
      const WrittenCase w = write_case(folder.path(), spec);
      CHECK(w.report.pass());
      names.push_back(w.file.filename().string());
    }
  CHECK(names[0] == "op_relu_input_values_of_1.5_2_3_4.safetensors");
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(names[i] == names[i + 3]);  // its own is written over
  // Nor is a stranger's file written over.
  save_safetensors(folder / "op_exp_input_2.safetensors", {{"x", ones64({1})}}, {});
  CHECK(write_case(folder.path(), "exp(input=[2])").file.filename() != "op_exp_input_2.safetensors");
}
