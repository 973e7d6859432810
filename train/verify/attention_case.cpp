// Kinds `attention`, `attention_core`, `score_bias`, `embedding_position`, `query_key_map`.
#include <algorithm>

#include "core/ops/create.h"
#include "core/ops/convert.h"
#include "core/ops/shape.h"
#include "nn/attention/projected.h"
#include "train/verify/kinds.h"

namespace waymark::train {

DefaultDType::DefaultDType(DType t) : before_(default_dtype()) { set_default_dtype(t); }
DefaultDType::~DefaultDType() { set_default_dtype(before_); }

i64 size_key(JsonReader& r, std::string_view name, i64 least, std::optional<i64> otherwise) {
  if (otherwise && !r.get(name)) return *otherwise;
  const i64 value = r.integer(name);
  constexpr i64 kMost = i64{1} << 24;
  if (value < least || value > kMost) r.refuse(name, fmt::format("is {}; it must be {} to {}", value, least, kMost));
  return value;
}

namespace {
constexpr i64 kHarmless = i64{1} << 20;  // elements that may be made on a stranger's word
}

void need_axes(CaseContext& c, const std::string& name, std::string_view text) {
  if (!c.has(name)) return;
  const Shape shape = c.get(name).shape();
  if (shape.size() != 1 + std::count(text.begin(), text.end(), ','))
    fail("verify", "{} must be {}, not {}", name, text, shape);
}

bool need_shape(CaseContext& c, const std::string& name, const Shape& wanted) {
  if (c.writing() || !c.has(name)) return true;
  const Shape shape = c.get(name).shape();
  Shape least = wanted;
  bool fits = shape.size() == wanted.size();
  for (int d = 0; d < wanted.size(); ++d) {
    fits = fits && (wanted[d] < 0 || shape[d] == wanted[d]);
    if (wanted[d] < 0) least[d] = 1;
  }
  if (fits || checked_numel("verify", least) <= kHarmless) return true;
  c.problem(fmt::format("{} is {}, the config says {} (-1: any)", name, shape, wanted));
  return false;
}

bool need_parameters(CaseContext& c, const nn::EncodingSum& sum, const nn::EncodingSizes& sizes) {
  if (c.writing()) return true;
  i64 room = kHarmless;
  for (const std::string& name : c.with_prefix("param.")) room += c.get("param." + name).numel();
  bool fits = true;
  for (const nn::Options& encoding : sum)
    for (const nn::ParameterSpec& p : nn::parameters_of(encoding, sizes))
      if (checked_numel("verify", p.shape) > room) {
        c.problem(fmt::format("position.{} of {} is {}, more than all parameters of the file", p.name, encoding.short_form(), p.shape));
        fits = false;
      }
  return fits;
}

AttentionKeys::AttentionKeys(JsonReader& r, bool cross) {
  nn::AttentionConfig& a = config;
  a.num_heads = size_key(r, "num_heads", 1);
  a.head_dim = size_key(r, "head_dim", 1, 0);
  a.embed_dim = size_key(r, "embed_dim", 1, a.num_heads * a.head_dim);
  a.num_kv_heads = size_key(r, "num_kv_heads", 1, 0);
  a.position = r.text("position");
  a.attention = r.maybe_text("attention").value_or("dense");
  // The grammar's messages do not know which key they are about.
  for (const auto& [key, text] : {std::pair("position", a.position), std::pair("attention", a.attention)}) try {
      (void)nn::parse_pattern(text);
    } catch (const Error& e) { r.refuse(key, e.what()); }
  a.causal = r.maybe_flag("causal").value_or(false);
  a.bias = r.maybe_flag("bias").value_or(true);
  a.out_proj = r.maybe_flag("out_proj").value_or(true);
  a.cross = cross;
  if (const Json* scale = r.get("scale")) {
    if (scale->is_number()) a.scale = scale->as_double();
    else if (scale->is_string() && scale->as_string() == "none") a.scale = 1;
    else if (!scale->is_string() || scale->as_string() != "default") r.refuse("scale", "must be \"default\", \"none\" or a number");
  }
  const bool reformer = a.attention.rfind("reformer", 0) == 0;
  if (const auto shared = r.maybe_flag("shared_qk"); shared && *shared != reformer)
    r.refuse("shared_qk", reformer ? "must be true: queries and keys of reformer are one vector" : "must be false: only reformer has one vector for queries and keys");
  if (const auto text = r.maybe_text("mask"); text && !text->empty()) {
    try {
      mask = nn::Mask::parse(*text);
    } catch (const Error& e) {
      r.refuse("mask", e.what());
    }
  }
  shift = r.maybe_integer("shift").value_or(0);
}

nn::MaskArrays mask_arrays(CaseContext& c) {
  nn::MaskArrays a;
  const auto bits = [&](const char* name) { return keep_of(c, fmt::format("input.{}", name)); };
  if (c.has("input.documents")) a.documents = c.get("input.documents");
  if (c.has("input.lengths")) a.lengths = c.get("input.lengths");
  a.keys = bits("keys");
  a.global = bits("global");
  a.dense = bits("dense");
  return a;
}

nn::Positions positions_or_range(CaseContext& c, const std::string& name, i64 length) {
  return c.has(name) ? nn::Positions(c.get(name)) : nn::Positions::range(length);
}
Tensor keep_of(CaseContext& c, const std::string& name) { return c.has(name) ? to(c.get(name), kB8) : Tensor(); }
Tensor leaf_of(CaseContext& c, const std::string& name) {
  const Tensor t = c.get(name);
  return c.wants("grad_" + name) ? t.requires_grad_() : t;
}

void compare_gradients(CaseContext& c, const std::vector<CaseOutput>& outputs,
                       const std::vector<std::pair<std::string, Tensor>>& inputs, const nn::ModuleBase* module) {
  std::vector<Tensor> roots;
  RunOptions run;
  for (const CaseOutput& o : outputs)
    if (Tensor g = c.seed("grad_" + o.name, o.value, o.keep); g.defined()) {
      roots.push_back(o.value);
      run.seeds.push_back(std::move(g));
    }
  if (roots.empty()) return;
  BackwardRun(roots, run).finish();
  // Nothing arrived is zero for another framework.
  const auto gradient = [](const Tensor& t) { return t.grad().defined() ? t.grad() : zeros_like(t); };
  for (const auto& [name, t] : inputs)
    if (t.defined() && c.wants("grad_input." + name)) c.compare("grad_input." + name, gradient(t));
  if (!module) return;
  for (const nn::NamedParameter& p : module->named_parameters())
    if (c.wants("grad_param." + p.name)) c.compare("grad_param." + p.name, gradient(p.tensor));
}

void run_attention_case(CaseContext& c) {
  const DefaultDType dtype(c.dtype());
  JsonReader r(c.config(), "config");
  const AttentionKeys keys_of_config(r, c.has("input.context"));
  const nn::AttentionConfig& config = keys_of_config.config;
  r.finish();
  need_axes(c, "input.x", "[B, L, E]");
  need_axes(c, "input.context", "[B, M, E]");
  nn::AttentionSetup setup = nn::resolve_attention(config);
  const i64 width = setup.sizes.num_heads * setup.sizes.head_dim;
  if (!need_shape(c, "input.x", {-1, -1, config.embed_dim}) || !need_shape(c, "param.q_proj.weight", {width, config.embed_dim}) ||
      !need_parameters(c, setup.encodings, setup.sizes))
    return;
  const auto attention = nn::make_attention(nullptr, "", std::move(setup));
  c.parameters(*attention);
  const Tensor x = leaf_of(c, "input.x"), context = config.cross ? leaf_of(c, "input.context") : Tensor();
  const i64 keys = config.cross ? context.size(1) : x.size(1);
  nn::AttentionInput in{.x = x, .context = context, .positions = positions_or_range(c, "input.positions", x.size(1)),
                        .key_keep = keep_of(c, "input.mask"), .mask = keys_of_config.mask, .arrays = mask_arrays(c),
                        .segments = c.has("input.segments") ? c.get("input.segments") : Tensor(),
                        .shift = keys_of_config.shift, .want_weights = c.wants("weights")};
  if (config.cross) in.context_positions = positions_or_range(c, "input.key_positions", keys);
  const nn::AttentionOutput out = (*attention)(in);
  const Tensor rows = config.cross ? Tensor() : in.key_keep;
  if (rows.defined()) c.compare_rows("output", out.y, rows);
  else c.compare("output", out.y);
  if (c.wants("weights")) c.compare("weights", out.weights);
  compare_gradients(c, {{"output", out.y, rows}}, {{"x", x}, {"context", context}}, &*attention);
}

void run_attention_core_case(CaseContext& c) {
  const DefaultDType dtype(c.dtype());
  JsonReader r(c.config(), "config");
  const AttentionKeys keys_of_config(r, false);
  nn::AttentionConfig config = keys_of_config.config;
  r.finish();
  config.out_proj = false;
  // Without tokens, what has their width is a parameter of an encoding.
  if (!r.get("embed_dim"))
    for (const char* name : {"param.position.r_proj.weight", "param.position.key_proj.weight", "param.position.query_proj.weight"})
      if (c.has(name) && c.get(name).dim() == 2) config.embed_dim = std::max<i64>(1, c.get(name).size(1));
  for (const char* name : {"input.q", "input.k", "input.v"}) need_axes(c, name, "[B, H, L, d]");
  const nn::AttentionSetup setup = nn::resolve_attention(config);
  if (!nn::at_input(setup.encodings).empty()) return c.problem("config.position: an input-site encoding has no meaning without tokens");
  if (!need_shape(c, "input.q", {-1, config.num_heads, -1, setup.sizes.head_dim}) || !need_parameters(c, setup.encodings, setup.sizes))
    return;
  const auto made = nn::make_attention(nullptr, "", setup);
  const auto* attention = dynamic_cast<const nn::ProjectedAttention*>(made.get());
  if (!attention) return c.problem(setup.attention.short_form() + " has no part without projections");
  const bool one_vector = !attention->k_proj;  // input.q is the queries and the keys
  if (!one_vector && !c.has("input.k")) return c.problem(no_tensor("input.k"));
  c.parameters(*made, "?_proj.*");  // the projections of tokens stay out
  const Tensor q = leaf_of(c, "input.q"), k = one_vector ? Tensor() : leaf_of(c, "input.k"), v = leaf_of(c, "input.v");
  nn::AttentionInput in{.positions = positions_or_range(c, "input.positions", q.size(2)), .key_keep = keep_of(c, "input.mask"),
                        .mask = keys_of_config.mask, .arrays = mask_arrays(c), .shift = keys_of_config.shift};
  if (c.has("input.key_positions")) in.context_positions = nn::Positions(c.get("input.key_positions"));
  const auto [z, weights] = attention->core(q, k, v, in);
  Tensor rows;
  if (in.key_keep.defined()) rows = in.key_keep.unsqueeze(1).expand({q.size(0), q.size(1), q.size(2)});
  if (rows.defined()) c.compare_rows("output", z, rows);
  else c.compare("output", z);
  if (c.wants("weights")) c.compare("weights", weights);
  compare_gradients(c, {{"output", z, rows}}, {{"q", q}, {"k", k}, {"v", v}}, &*made);
}

namespace {

// Encodings alone.
struct EncodingsOnly : nn::Module<EncodingsOnly> {
  EncodingsOnly(const nn::EncodingSum& sum, const nn::EncodingSizes& sizes) : position(*this, sum, sizes) {}
  nn::PositionModule position;
};

}  // namespace

void run_embedding_position_case(CaseContext& c) {
  const DefaultDType dtype(c.dtype());
  JsonReader r(c.config(), "config");
  const i64 width = size_key(r, "embed_dim", 1), length = size_key(r, "length", 1);
  const nn::EncodingSum sum = nn::resolve_encodings(r.text("position"), 1)[0];
  r.finish();
  if (!need_shape(c, "output", {length, width}) || !need_parameters(c, sum, {width, 1, width})) return;
  EncodingsOnly root(sum, {width, 1, width});
  c.parameters(root);
  const Tensor y = root.position.add_to_input(zeros({1, length, width}), positions_or_range(c, "input.positions", length)).squeeze(0);
  c.compare("output", y);
  compare_gradients(c, {{"output", y, {}}}, {}, &root);
}

void run_query_key_map_case(CaseContext& c) {
  const DefaultDType dtype(c.dtype());
  JsonReader r(c.config(), "config");
  const i64 heads = size_key(r, "num_heads", 1), width = size_key(r, "head_dim", 1);
  const nn::EncodingSum sum = nn::resolve_encodings(r.text("position"), 1)[0];
  r.finish();
  for (const char* name : {"input.q", "input.k"}) need_axes(c, name, "[B, H, L, d]");
  if (!need_shape(c, "input.q", {-1, heads, -1, width}) || !need_parameters(c, sum, {heads * width, heads, width})) return;
  EncodingsOnly root(sum, {heads * width, heads, width});
  c.parameters(root);
  const Tensor q = leaf_of(c, "input.q"), k = leaf_of(c, "input.k");
  const nn::Positions p = positions_or_range(c, "input.positions", q.size(2));
  const nn::Positions pk = c.has("input.key_positions") ? nn::Positions(c.get("input.key_positions")) : p;
  const auto [mq, mk] = root.position.map_query_key(q, k, {.queries = p, .keys = pk});
  c.compare("output.q", mq);
  c.compare("output.k", mk);
  compare_gradients(c, {{"output.q", mq, {}}, {"output.k", mk, {}}}, {{"q", q}, {"k", k}}, &root);
}

void run_score_bias_case(CaseContext& c) {
  const DefaultDType dtype(c.dtype());
  JsonReader r(c.config(), "config");
  const i64 heads = size_key(r, "num_heads", 1), queries = size_key(r, "query_length", 1);
  const i64 keys = size_key(r, "key_length", 1), offset = size_key(r, "query_offset", 0, 0);
  const bool causal = r.maybe_flag("causal").value_or(false);
  const nn::EncodingSum sum = nn::resolve_encodings(r.text("position"), 1)[0];
  r.finish();
  if (!need_shape(c, "output", {heads, queries, keys}) || !need_parameters(c, sum, {heads, heads, 1})) return;
  EncodingsOnly root(sum, {heads, heads, 1});
  c.parameters(root);
  // Without content, what is left of a score is the bias.
  const Tensor q = zeros({1, heads, queries, 1}), k = zeros({1, heads, keys, 1});
  const nn::EncodingCall call{.queries = nn::Positions::range(queries, offset), .keys = nn::Positions::range(keys), .causal = causal};
  ReferenceAttention attention{.query = q, .key = k, .value = k};
  for (auto& [name, term] : root.position.prepare(call, q, k)) attention.terms.push_back(std::move(term));
  attention.query_positions = call.queries.tensor();
  attention.key_positions = call.keys.tensor();
  const Tensor bias = score_parts_reference(attention).back().value.squeeze(0);
  c.compare("output", bias);
  compare_gradients(c, {{"output", bias, {}}}, {}, &root);
}

}  // namespace waymark::train
