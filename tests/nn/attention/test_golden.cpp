// Attention and encodings against PyTorch and Hugging Face: values and all gradients of the case files.

#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/create.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "nn/attention/dense.h"
#include "tests/golden_case.h"

using namespace waymark;
using namespace waymark::nn;
using test::GoldenCase;

namespace {

const char* const kAttention[] = {
    "attention_dense_bert", "attention_dense_headdim", "attention_dense_mha", "attention_dense_mha_cross",
    "attention_dense_mha_f32", "attention_dense_mha_nobias", "position_none", "position_shaw_clip", "position_shaw_full",
    "position_shaw_per_head", "position_shaw_values", "position_shaw_zero", "position_m1", "position_m1_wide", "position_m2",
    "position_m2_causal_gaps", "position_m3", "position_m3_per_head_zero", "position_m4_clip", "position_m4_clip_zero",
    "position_m4_cross", "position_m4_full", "position_m4_per_head", "position_m4_zero", "position_rope_cross",
    "position_rope_llama_f32", "position_rope_roformer", "position_sum_rope_m4", "position_sum_m1_m2"};
const char* const kCore[] = {"attention_dense_scale_number", "position_shaw_core", "position_m4_core"};
const char* const kInput[] = {"position_learned", "position_sinusoid_base", "position_sinusoid_concat",
                              "position_sinusoid_interleaved", "position_sinusoid_odd", "position_sum_sinusoid_learned"};
const char* const kMap[] = {"position_rope_halves", "position_rope_interleaved", "position_rope_interpolation",
                            "position_rope_neox_partial", "position_rope_ntk", "position_rope_partial_interleaved"};

AttentionConfig config_of(const GoldenCase& c) {
  const auto& j = c.config();
  AttentionConfig a;
  a.num_heads = j.at("num_heads").get<i64>();
  a.head_dim = j.value("head_dim", i64{0});
  a.embed_dim = j.value("embed_dim", a.num_heads * a.head_dim);
  a.num_kv_heads = j.value("num_kv_heads", i64{0});
  a.position = j.at("position").get<std::string>();
  a.attention = j.value("attention", "dense");
  a.causal = j.value("causal", false);
  a.bias = j.value("bias", true);
  a.out_proj = j.value("out_proj", true);
  a.cross = c.has("input.context");
  if (j.contains("scale") && j["scale"].is_number()) a.scale = j["scale"].get<double>();
  return a;
}

Positions positions_of(const GoldenCase& c, const std::string& name, i64 length) {
  return c.has(name) ? Positions(c.get(name)) : Positions::range(length);
}

// Which rows of an output count: those of padded queries do not, in self-attention.
std::vector<bool> rows_that_count(const GoldenCase& c, i64 copies, bool cross) {
  std::vector<bool> counts;
  if (!c.has("input.mask") || cross) return counts;
  const Tensor keep = c.get("input.mask");
  const auto values = keep.to_vector<i64>();
  const i64 length = keep.size(1);
  for (i64 b = 0; b < keep.size(0); ++b)
    for (i64 h = 0; h < copies; ++h)
      for (i64 i = 0; i < length; ++i) counts.push_back(values[static_cast<size_t>(b * length + i)] != 0);
  return counts;
}

// The gradients of sum(output · grad_output) that the file has.
void compare_gradients(const GoldenCase& c, const Tensor& y, const std::vector<std::pair<std::string, Tensor>>& inputs,
                       const ModuleBase& m) {
  if (!c.has("grad_output")) return;
  y.backward(c.get("grad_output"));
  for (const auto& [name, t] : inputs)
    if (c.has("grad_input." + name)) c.compare("grad_input." + name, t.grad());
  for (const NamedParameter& p : m.named_parameters()) {
    CAPTURE(p.name);
    REQUIRE(c.has("grad_param." + p.name));
    c.compare("grad_param." + p.name, p.tensor.grad().defined() ? p.tensor.grad() : zeros_like(p.tensor));
  }
}

}  // namespace

TEST_CASE("golden: attention") {
  for (const char* name : kAttention) {
    CAPTURE(name);
    const GoldenCase c(name);
    const test::DefaultDType dtype(c.is_f32() ? kF32 : kF64);
    const MultiHeadAttention attention(config_of(c));
    attention->load_state_dict(c.with_prefix("param."));
    attention->eval();
    const Tensor x = c.get("input.x").requires_grad_(), context = c.find("input.context");
    if (context.defined()) context.requires_grad_();
    AttentionInput in{.x = x, .context = context, .positions = positions_of(c, "input.positions", x.size(1)),
                      .key_keep = c.mask("input.mask"), .want_weights = true};
    if (context.defined()) in.context_positions = positions_of(c, "input.key_positions", context.size(1));
    const AttentionOutput out = attention(in);
    const auto rows = rows_that_count(c, 1, context.defined());
    c.compare("output", out.y, rows.empty() ? nullptr : &rows);
    if (c.has("weights")) c.compare("weights", out.weights);
    CHECK(attention->implied_weights(in).shape() == out.weights.shape());
    compare_gradients(c, out.y, {{"x", x}, {"context", context}}, *attention);
  }
}

TEST_CASE("golden: attention without projections") {
  for (const char* name : kCore) {
    CAPTURE(name);
    const GoldenCase c(name);
    const test::DefaultDType dtype(c.is_f32() ? kF32 : kF64);
    const DenseAttention attention(nullptr, "", resolve_attention(config_of(c)));
    std::vector<std::pair<std::string, Tensor>> given = c.with_prefix("param.");
    CHECK(const_cast<DenseAttention&>(attention).load_state_dict(given, false).unexpected.empty());
    const Tensor q = c.get("input.q").requires_grad_(), k = c.get("input.k").requires_grad_(), v = c.get("input.v").requires_grad_();
    const auto r = attention.core(q, k, v, {.positions = Positions::range(q.size(2)), .key_keep = c.mask("input.mask")});
    const auto rows = rows_that_count(c, q.size(1), false);
    c.compare("output", r.z, rows.empty() ? nullptr : &rows);
    if (c.has("weights")) c.compare("weights", r.weights);
    if (c.has("grad_output")) {
      r.z.backward(c.get("grad_output"));
      c.compare("grad_input.q", q.grad());
      c.compare("grad_input.k", k.grad());
      c.compare("grad_input.v", v.grad());
      for (const NamedParameter& p : attention.position.named_parameters()) c.compare("grad_param.position." + p.name, p.tensor.grad());
    }
  }
}

TEST_CASE("golden: input-site encodings") {
  struct Root : Module<Root> {
    explicit Root(const GoldenCase& c)
        : position(*this, resolve_encodings(c.config().at("position").get<std::string>(), 1)[0],
                   EncodingSizes{c.config().at("embed_dim").get<i64>(), 1, c.config().at("embed_dim").get<i64>()}) {}
    PositionModule position;
  };
  for (const char* name : kInput) {
    CAPTURE(name);
    const GoldenCase c(name);
    const test::DefaultDType dtype(c.is_f32() ? kF32 : kF64);
    Root root(c);
    root.load_state_dict(c.with_prefix("param."));
    const i64 length = c.config().at("length").get<i64>();
    const Tensor x = zeros({1, length, c.config().at("embed_dim").get<i64>()});
    const Tensor y = root.position.add_to_input(x, positions_of(c, "input.positions", length)).squeeze(0);
    c.compare("output", y);
    compare_gradients(c, y, {}, root);
  }
}

TEST_CASE("golden: query-key maps") {
  struct Root : Module<Root> {
    explicit Root(const GoldenCase& c)
        : position(*this, resolve_encodings(c.config().at("position").get<std::string>(), 1)[0],
                   EncodingSizes{16, c.config().at("num_heads").get<i64>(), c.config().at("head_dim").get<i64>()}) {}
    PositionModule position;
  };
  for (const char* name : kMap) {
    CAPTURE(name);
    const GoldenCase c(name);
    const test::DefaultDType dtype(c.is_f32() ? kF32 : kF64);
    const Root root(c);
    const Tensor q = c.get("input.q").requires_grad_(), k = c.get("input.k").requires_grad_();
    const Positions p = positions_of(c, "input.positions", q.size(2));
    const Positions pk = c.has("input.key_positions") ? Positions(c.get("input.key_positions")) : p;
    const auto [mq, mk] = root.position.map_query_key(q, k, {.queries = p, .keys = pk});
    c.compare("output.q", mq);
    c.compare("output.k", mk);
    if (!c.has("grad_output.q")) continue;
    (sum(mq * c.get("grad_output.q")) + sum(mk * c.get("grad_output.k"))).backward();
    c.compare("grad_input.q", q.grad());
    c.compare("grad_input.k", k.grad());
  }
}
