// Case files of ours: what is written verifies, is complete, and fails when it is spoilt.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/io/safetensors.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/tensor/version.h"
#include "nn/position/registry.h"
#include "tests/error_text.h"
#include "tests/temporary_folder.h"
#include "tests/tensors.h"
#include "train/verify/verify.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

const char* const kSpecs[] = {
    "matmul(input=[2,3], other=[3,4])",
    "softmax(input=[3,5], dim=-1, dtype=f32)",
    "gather(input=[3,4], dim=1, index=int(shape=[3,2], high=4))",
    "op(op=cat, tensors=[[2,3],[1,3]], dim=0)",
    "where(condition=bool(shape=[2,3]), input=[2,3], other=[3])",
    "topk(input=[4,6], k=2)",
    "argmax(input=[3,4], dim=1)",
    "op(op=cross_entropy, input=[3,4], target=int(shape=[3], high=4), weight=float(shape=[4], low=1, grad=false))",
    "attention(embed_dim=8, num_heads=2, position=huang-m4(clip=3), causal=true, weights=true)",
    "attention(padding=true, batch=3, position=\"learned(max_len=7) + rope\", seed=5)",
    "attention(context=7, padding=true, num_heads=4, num_kv_heads=2)",
    "attention(scale=0.3, out_proj=false, bias=false, dtype=f32)",
    "shaw(clip=2, values=true)",
    "deberta(clip=3)",
    "tupe(max_len=9, relative=true, buckets=8, max_distance=9)",
    "cope(max_pos=3) + xpos",
    "attention(position=\"transformer-xl(segments=true)\", length=4, padding=true)",
    "attention_core(position=\"transformer-xl(clamp=2) + huang-m1(clip=2)\")",
    "dense",
    "attention_core(position=huang-m2(clip=2), padding=true, weights=true)",
    "attention_core(position=cope(max_pos=3), causal=true, padding=true)",
    "attention(position=\"huang-m4(clip=2) + xpos(scale_base=16)\", causal=true, dtype=f32)",
    "embedding_position(position=sinusoid, length=6)",
    "query_key_map(position=rope)",
    "score_bias(position=test-bias, query_offset=2)",
    "encoder_layer(position=huang-m1(clip=3), norm=post, activation=silu, padding=true)",
    "training(position=learned(max_len=5), padding=true, clip_norm=0.5, decay=matrices, num_layers=2)",
    "training(causal=true, tie_embeddings=true, optimizer=\"sgd(lr=0.1, momentum=0.9)\", dtype=f32)",
    "adamw(lr=0.1)",
    "optimizer(optimizer=lamb(lr=0.01), shape=[5], steps=2, clip_norm=1)",
    "adafactor",
    "loss(loss=cross_entropy, label_smoothing=0.1, item_weight=true)",
    "loss(loss=kl_div, kl=forward, length=3)",
    "loss(loss=sar, length=4, detach=first)",
    "loss(loss=r_drop, task=regress)",
    "loss(loss=sar, task=span, classes=7)",
    "loss(loss=span_qa, pad_logits=true)",
};

// A bias for each distance up to 2, beyond that the one of 2: position.bias [H, 5]. The library has no such encoding of
// its own yet that would do for kind score_bias.
struct TestBias final : nn::Encoding {
  explicit TestBias(Tensor bias) : bias_(std::move(bias)) {}
  void prepare(const nn::EncodingCall&, const Tensor&, const Tensor&, std::vector<ScoreTerm>& terms) const override {
    terms.push_back({"bias", Stage::bias, Distance{bias_, {-2, 2}}});
  }
  Tensor bias_;
};
void register_test_bias() {
  if (nn::find_encoding("test-bias")) return;
  nn::register_encoding(
      {.options = {"test-bias", {}, "a bias per distance"},
       .facts =
           [](const nn::Options&, bool, bool) {
             nn::EncodingFacts f;
             f.site = nn::Site::score;
             f.needs = {nn::Capability::pair};
             f.direction = "yes";
             f.sees_direction = true;
             f.shift_invariant = true;
             return f;
           },
       .parameters = [](const nn::Options&, const nn::EncodingSizes& s) -> std::vector<nn::ParameterSpec> {
         return {{"bias", {s.num_heads, 5}, nn::init::zeros()}};
       },
       .make = [](const nn::Options&, const nn::EncodingSizes&,
                  const nn::ParameterLookup& p) { return std::make_unique<TestBias>(p("bias")); }});
}

}  // namespace

TEST_CASE("a case of the biases of an encoding, by hand") {
  register_test_bias();
  const TemporaryFolder folder;
  const SafeTensors file = load_safetensors(
      write_case(folder.path(), "score_bias(position=test-bias, query_offset=2, query_length=2)").file);
  const auto bias = file.get("param.position.bias").to_vector<double>(),
             output = file.get("output").to_vector<double>();
  REQUIRE(output.size() == 2 * 2 * 5);
  for (i64 h = 0; h < 2; ++h)
    for (i64 i = 0; i < 2; ++i)
      for (i64 j = 0; j < 5; ++j) {
        const i64 row = std::clamp<i64>(j - (i + 2), -2, 2) + 2;
        CHECK(output[static_cast<size_t>((h * 2 + i) * 5 + j)] == bias[static_cast<size_t>(h * 5 + row)]);
      }
}

TEST_CASE("case files that we write verify") {
  register_test_bias();
  const TemporaryFolder folder;
  VerifySummary summary;
  for (const char* spec : kSpecs) {
    INFO(std::string(spec));
    CHECK(draft_problem(spec) == "");
    const WrittenCase written = write_case(folder.path(), spec);
    for (const std::string& p : written.report.problems) FAIL_CHECK(p);
    for (const TensorCheck& c : written.report.checks) CHECK_MESSAGE(c.pass, c.name << " at " << c.where);
    CHECK(written.report.pass());
    CHECK(written.report.source == std::string("waymark ") + version() + ", " + spec);
    summary.add(written.report);
    // Written again, it is the same file.
    const SafeTensors one = load_safetensors(written.file);
    CHECK(one.metadata().at("format") == "waymark-case-1");
    const WrittenCase again = write_case(folder / "again", spec);
    const SafeTensors two = load_safetensors(again.file);
    REQUIRE(one.names() == two.names());
    for (const std::string& name : one.names()) CHECK(difference(one.get(name), two.get(name)) == "");
  }
  CHECK(case_files(folder.path()).size() == std::size(kSpecs));  // every spec has a name of its own
  // Names that would differ only where they are cut off.
  const std::string long_spec =
      "attention(embed_dim=8, num_heads=2, position=huang-m4(clip=3, per_head=false, beyond=clip), causal=true, seed=";
  CHECK(write_case(folder / "long", long_spec + "1)").file != write_case(folder / "long", long_spec + "2)").file);
  CHECK(summary.kinds.size() == case_kinds().size());  // every kind can be written
  CHECK(summary.all.passed == summary.all.files);
}

TEST_CASE("what is written is complete: inputs, parameters, outputs and their gradients") {
  const TemporaryFolder folder;
  const auto names = [&](const char* spec) {
    std::vector<std::string> list = load_safetensors(write_case(folder.path(), spec).file).names();
    std::sort(list.begin(), list.end());
    return list;
  };
  using Names = std::vector<std::string>;
  CHECK(names("matmul(input=[2,3], other=[3,4])") ==
        Names{"grad_input.input", "grad_input.other", "grad_output", "input.input", "input.other", "output"});
  CHECK(names("argmax(input=[3,4], dim=1)") == Names{"input.input", "output"});
  CHECK(names("topk(input=[4,6], k=2)") ==
        Names{"grad_input.input", "grad_output.values", "input.input", "output.indices", "output.values"});
  CHECK(names("attention(bias=false, out_proj=false, weights=true)") ==
        Names{"grad_input.x", "grad_output", "grad_param.k_proj.weight", "grad_param.q_proj.weight",
              "grad_param.v_proj.weight", "input.x", "output", "param.k_proj.weight", "param.q_proj.weight",
              "param.v_proj.weight", "weights"});
  CHECK(names("attention_core(position=huang-m2(clip=2))") ==
        Names{"grad_input.k", "grad_input.q", "grad_input.v", "grad_output", "grad_param.position.scale", "input.k",
              "input.q", "input.v", "output", "param.position.scale"});
  CHECK(names("loss(loss=sar)") == Names{"grad_input.first", "grad_input.second", "grad_output", "input.first",
                                         "input.second", "input.target", "output"});
  CHECK(names("optimizer(optimizer=sgd(lr=1), steps=2)") == Names{"input.grad.1", "input.grad.2", "output", "param.w"});
  const Names training = names("training(num_layers=1, position=none)");
  for (const char* name :
       {"input.ids", "input.targets", "output.loss", "output.grad_norm", "param.head.bias", "output.param.head.bias"})
    CHECK(std::count(training.begin(), training.end(), name) == 1);
}

TEST_CASE("a file that was spoilt does not verify") {
  register_test_bias();
  const TemporaryFolder folder;
  for (const char* spec : kSpecs) {
    const WrittenCase written = write_case(folder.path(), spec);
    const SafeTensors file = load_safetensors(written.file);
    // One number of one result is wrong; each result in turn.
    for (const std::string& name : file.names()) {
      if (name.rfind("output", 0) != 0 && name.rfind("grad_input", 0) != 0 && name.rfind("grad_param", 0) != 0 &&
          name != "weights")
        continue;
      INFO(std::string(spec) << ": " << name);
      NamedTensors tensors;
      for (const std::string& n : file.names()) tensors.emplace_back(n, file.get(n));
      for (auto& [n, t] : tensors) {
        if (n != name) continue;
        if (t.dtype() == kI64)
          t.data<i64>()[0] += 1;
        else if (t.dtype() == kF64)
          t.data<double>()[0] += 1e-3;
        else
          t.data<float>()[0] += 1e-3f;
      }
      save_safetensors(folder / "spoilt.safetensors", tensors, file.metadata());
      const CaseReport report = verify_file(folder / "spoilt.safetensors");
      CHECK(report.usable());
      CHECK(!report.pass());
    }
  }
}

TEST_CASE("specs of cases that cannot be written") {
  CHECK(has(draft_problem("huang-m5"),
            "huang-m5 is no kind of case, encoding, attention, optimizer or op. Did you mean huang-m1, huang-m2 or "
            "huang-m3?"));
  CHECK(has(draft_problem("attention(heads=4)"), "heads"));
  CHECK(has(draft_problem("matmul(input=[2,3], otter=[3,4])"), "matmul has no argument otter; its schema is matmul("));
  CHECK(has(draft_problem("matmul(input=[2,-3], other=[3,4])"), "extents are integers >= 0"));
  CHECK(has(draft_problem("gather(input=[3], dim=0, index=int(shape=[3]))"), "high"));
  CHECK(has(draft_problem("op(op=matmull)"), "op matmull is unknown. Did you mean matmul"));
  CHECK(has(draft_problem("optimizer(optimizer=sgd)"), "lr"));
  CHECK(has(draft_problem("loss(loss=hinge)"), "cross_entropy"));
}

TEST_CASE("every reason why a case file cannot be used is listed") {
  const TemporaryFolder folder;
  const Tensor x = zeros({1, 2, 4}, kF64);
  const auto reasons = [&](const NamedTensors& tensors, const Metadata& meta) {
    save_safetensors(folder / "bad.safetensors", tensors, meta);
    const CaseReport report = verify_file(folder / "bad.safetensors");
    CHECK(!report.pass());
    CHECK(report.checks.empty());
    return report.problems;
  };
  const auto contains = [](const std::vector<std::string>& list, const std::string& part) {
    return std::count_if(list.begin(), list.end(), [&](const std::string& p) { return has(p, part); });
  };
  const auto a = reasons({{"input.x", x}, {"wieghts", x}},
                         {{"format", "waymark-case-2"},
                          {"module", "attention"},
                          {"rtol", "x"},
                          {"config", "{\"num_heads\":\"two\",\"positon\":\"none\",\"causal\":1}"}});
  for (const char* part : {"format is \"waymark-case-2\"", "rtol = \"x\" is no number", "the metadata have no atol",
                           "config.num_heads must be int", "config.positon is unknown", "Did you mean position",
                           "config.causal must be bool", "config has no position", "the tensor wieghts has no meaning",
                           "the file has no tensor output"})
    CHECK_MESSAGE(contains(a, part) == 1, std::string(part));
  CHECK(a.size() == 9);
  // Parameters, beside tensors that are missing.
  const auto b = reasons({{"input.x", x}, {"param.q_proj.weight", zeros({4, 3}, kF64)}, {"param.z", x}},
                         {{"format", "waymark-case-1"},
                          {"module", "attention"},
                          {"rtol", "0"},
                          {"atol", "0"},
                          {"config", "{\"num_heads\":2,\"embed_dim\":4,\"position\":\"none\",\"bias\":false}"}});
  for (const char* part : {"the file has no tensor output", "q_proj.weight", "k_proj.weight", "z"})
    CHECK_MESSAGE(contains(b, part) >= 1, std::string(part));
  const auto c =
      reasons({{"output", x}},
              {{"format", "waymark-case-1"}, {"module", "atention"}, {"rtol", "0"}, {"atol", "0"}, {"config", "[]"}});
  CHECK(contains(c, "module \"atention\" is unknown") == 1);
  CHECK(contains(c, "Did you mean attention") == 1);
  CHECK(contains(c, "config is no JSON object") == 1);
  // An op's own arguments.
  const auto d = reasons({{"input.input", x}, {"output", x}}, {{"format", "waymark-case-1"},
                                                               {"module", "op"},
                                                               {"rtol", "0"},
                                                               {"atol", "0"},
                                                               {"config", "{\"op\":\"exp\",\"args\":{\"dim\":1}}"}});
  CHECK(contains(d, "exp has no argument dim") == 1);
  // Sizes that the file's own tensors contradict: nothing of that size is made.
  const auto e = reasons({{"input.q", zeros({1, 1, 2, 4}, kF64)},
                          {"input.k", zeros({1, 1, 2, 4}, kF64)},
                          {"output.q", x},
                          {"output.k", x}},
                         {{"format", "waymark-case-1"},
                          {"module", "query_key_map"},
                          {"rtol", "0"},
                          {"atol", "0"},
                          {"config", "{\"num_heads\":1,\"head_dim\":16000000,\"position\":\"rope\"}"}});
  CHECK(contains(e, "input.q is [1, 1, 2, 4], the config says [-1, 1, -1, 16000000]") == 1);
  const auto f = reasons({{"output", zeros({3, 4}, kF64)}, {"param.position.weight", zeros({3, 4}, kF64)}},
                         {{"format", "waymark-case-1"},
                          {"module", "embedding_position"},
                          {"rtol", "0"},
                          {"atol", "0"},
                          {"config", "{\"embed_dim\":4,\"length\":3,\"position\":\"learned(max_len=16000000)\"}"}});
  CHECK(contains(
            f, "position.weight of learned(max_len=16000000) is [16000000, 4], more than all parameters of the file") ==
        1);
}
