#include "models/encoder.h"

#include <fmt/ranges.h>

#include "core/ops/arithmetic.h"

namespace waymark::models {

namespace {

i64 head_dim(const EncoderConfig& c) { return c.head_dim ? c.head_dim : c.embed_dim / c.num_heads; }

// For member initialisers: anything that the plan does not hold.
void check_plain(const EncoderConfig& c, std::vector<std::string>& problems) {
  if (c.embed_dim < 1 || c.num_heads < 1 || c.num_layers < 1 || c.head_dim < 0 || c.num_kv_heads < 0 || c.ffn_dim < 0)
    problems.push_back(fmt::format("embed_dim = {}, num_heads = {}, num_layers = {} must be at least 1, head_dim = {}, "
                                   "num_kv_heads = {}, ffn_dim = {} at least 0",
                                   c.embed_dim, c.num_heads, c.num_layers, c.head_dim, c.num_kv_heads, c.ffn_dim));
  else if (c.head_dim == 0 && c.embed_dim % c.num_heads != 0)
    problems.push_back(fmt::format("embed_dim = {} is not divisible by num_heads = {}; set head_dim", c.embed_dim, c.num_heads));
  else if (c.num_kv_heads && c.num_heads % c.num_kv_heads != 0)
    problems.push_back(fmt::format("num_heads = {} is not divisible by num_kv_heads = {}", c.num_heads, c.num_kv_heads));
  if (c.norm != "pre" && c.norm != "post") problems.push_back(fmt::format("norm = {}: must be pre or post", c.norm));
  if (!(c.norm_eps > 0)) problems.push_back(fmt::format("norm_eps = {}: must be greater than 0", c.norm_eps));
  if (c.scale && !(*c.scale > 0)) problems.push_back(fmt::format("scale = {}: must be greater than 0", *c.scale));
  for (const auto& [name, p] : {std::pair("dropout", c.dropout), {"attention_dropout", c.attention_dropout},
                                {"embedding_dropout", c.embedding_dropout}})
    if (!(p >= 0 && p < 1)) problems.push_back(fmt::format("{} = {}: must be at least 0 and less than 1", name, p));
  try {
    nn::Activation{c.activation};
  } catch (const Error& e) {
    problems.emplace_back(e.what());
  }
  try {
    (void)nn::norm_type(c.norm_type);
  } catch (const Error& e) {
    problems.emplace_back(e.what());
  }
}

}  // namespace

EncoderPlan plan_encoder(const EncoderConfig& c) {
  std::vector<std::string> problems;
  EncoderPlan plan;
  check_plain(c, problems);
  nn::Defaults defaults;
  if (c.max_len > 0) defaults["model.max_len"] = nn::SpecValue(c.max_len);
  const i64 num_layers = std::max<i64>(1, c.num_layers);
  plan.specs.encodings = nn::resolve_encodings(c.position, num_layers, problems, defaults);
  plan.specs.attentions = nn::resolve_attentions(c.attention, num_layers, problems, defaults);
  try {
    plan.specs.mask = nn::Mask::parse(c.mask);
  } catch (const Error& e) {
    problems.emplace_back(e.what());
  }
  if (problems.empty()) {
    plan.specs.sizes = {c.embed_dim, c.num_heads, head_dim(c)};
    plan.specs.kv_heads = c.num_kv_heads ? c.num_kv_heads : c.num_heads;
    plan.specs.causal = c.causal;
    nn::judge_model(plan.specs, problems, plan.warnings);
  }
  if (!problems.empty()) fail("encoder", "{}", fmt::join(problems, "\n  "));
  return plan;
}

EncoderLayer::EncoderLayer(ModuleBase& parent, std::string_view name, const EncoderConfig& c, nn::AttentionSetup setup)
    : Module(parent, name),
      attention(*this, "attention", std::move(setup)),
      norm1(*this, "norm1", nn::norm_type(c.norm_type), c.embed_dim, c.norm_eps),
      ffn(*this, "ffn", c.embed_dim, c.ffn_dim ? c.ffn_dim : 4 * c.embed_dim, c.activation, c.ffn_bias),
      norm2(*this, "norm2", nn::norm_type(c.norm_type), c.embed_dim, c.norm_eps),
      dropout1(*this, "dropout1", c.dropout),
      dropout2(*this, "dropout2", c.dropout),
      pre_(c.norm == "pre") {}

Tensor EncoderLayer::forward(const Tensor& x, const EncoderCall& call, const See& see,
                             const std::shared_ptr<const nn::PreparedTerms>& prepared) const {
  const auto attend = [&](const Tensor& in) {
    const nn::AttentionInput input{.x = in, .positions = call.positions, .key_keep = call.keep, .mask = call.mask, .arrays = call.arrays,
                                   .segments = call.segments, .shift = call.shift, .redraw = call.redraw, .prepared = prepared};
    if (see) see(*attention, input);
    return dropout1(attention(input).y);
  };
  if (pre_) {
    const Tensor y = add(x, attend(norm1(x)));
    return add(y, dropout2(ffn(norm2(y))));
  }
  const Tensor y = norm1(add(x, attend(x)));
  return norm2(add(y, dropout2(ffn(y))));
}

Encoder::Encoder(ModuleBase* parent, std::string_view name, const EncoderConfig& c)
    : Module(parent, name),
      config_(c),
      plan_(plan_encoder(c)),
      position(*this, plan_.specs.encodings, plan_.specs.sizes),
      dropout(*this, "dropout", c.embedding_dropout),
      layers(*this, "layers") {
  for (size_t i = 0; i < plan_.specs.encodings.size(); ++i)
    layers.emplace_back(c, nn::AttentionSetup{.sizes = plan_.specs.sizes,
                                              .kv_heads = plan_.specs.kv_heads,
                                              .encodings = nn::not_at_input(plan_.specs.encodings[i]),
                                              .attention = plan_.specs.attentions[i],
                                              .causal = c.causal,
                                              .bias = c.attention_bias,
                                              .scale = c.scale,
                                              .dropout = c.attention_dropout,
                                              .stack = &position});
  if (c.norm == "pre") norm = std::make_unique<nn::Norm>(*this, "norm", nn::norm_type(c.norm_type), c.embed_dim, c.norm_eps);
}

EncoderCall Encoder::with_own_mask(EncoderCall call) const {
  call.mask = plan_.specs.mask & call.mask;
  return call;
}

Tensor Encoder::forward(const Tensor& x, const EncoderCall& call) const {
  if (const std::string reader = position.reader(); !reader.empty()) {
    if (!call.positions.defined()) fail("encoder", "positions are missing: {} reads them", reader);
    if (x.defined() && x.dim() == 3) call.positions.check_fits("encoder", "positions", x.size(0), x.size(1));
  }
  const Tensor y = through_layers(x, call, {});
  return norm ? (*norm)(y) : y;
}

Tensor Encoder::through_layers(const Tensor& x, const EncoderCall& call, const AttentionVisitor& see) const {
  const EncoderCall own = with_own_mask(call);
  Tensor y = dropout(position.add_to_input(x, call.positions));
  std::shared_ptr<const nn::PreparedTerms> prepared;
  if (call.positions.defined())
    prepared = position.prepare_shared({.queries = call.positions, .keys = call.positions,
                                        .causal = config_.causal || own.mask.implies_causal()}, y.dtype());
  i64 number = 0;
  for (const EncoderLayer& layer : layers) {
    EncoderLayer::See one;
    if (see) one = [&](const nn::Attention& attention, const nn::AttentionInput& in) { see(number, attention, in); };
    y = layer(y, own, one, prepared);
    ++number;
  }
  return y;
}

void Encoder::visit_attentions(const Tensor& x, const EncoderCall& call, const AttentionVisitor& see) const {
  (void)through_layers(x, call, see);
}

std::vector<Tensor> Encoder::weights(const Tensor& x, const EncoderCall& call) const {
  std::vector<Tensor> list(static_cast<size_t>(layers.size()));
  visit_attentions(x, call, [&](i64 layer, const nn::Attention& attention, const nn::AttentionInput& in) {
    if (nn::facts_of_attention(attention.options(), config_.causal).forms_weights)
      list[static_cast<size_t>(layer)] = attention.implied_weights(in);
  });
  return list;
}

}  // namespace waymark::models
