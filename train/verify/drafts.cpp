#include "train/verify/drafts.h"

#include <algorithm>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/random_ops.h"
#include "core/ops/registry.h"
#include "core/random/generator.h"
#include "nn/attention/registry.h"
#include "nn/position/registry.h"
#include "nn/spec/suggest.h"
#include "train/optim/registry.h"

namespace waymark::train {

using nn::OptionDef;
using nn::Options;
using nn::Spec;
using nn::SpecValue;

Tensor draw_floats(const Shape& shape, DType dtype, const std::string& name) {
  return randn(shape, {.dtype = dtype, .stream = "case." + name});
}
Tensor draw_ids(const Shape& shape, i64 classes, const std::string& name) {
  return randint(0, classes, shape, {.dtype = kI64, .stream = "case." + name});
}

namespace {

std::vector<OptionDef> joined_options(std::vector<OptionDef> a, const std::vector<OptionDef>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
const std::vector<OptionDef>& common() {
  static const std::vector<OptionDef> list = {{"dtype", nn::word_option("f64", {"f64", "f32"}), "of all floats"},
                                              {"seed", nn::int_option(0, 0), "of the random values"}};
  return list;
}
std::vector<OptionDef> attention_options() {
  return {{"embed_dim", nn::int_option(8, 1), "width of the tokens"},
          {"num_heads", nn::int_option(2, 1), "heads"},
          {"head_dim", nn::int_option(0, 0), "width of a head; 0: embed_dim / num_heads"},
          {"num_kv_heads", nn::int_option(0, 0), "heads of keys and values; 0: num_heads"},
          {"position", nn::text_option("none"), "encodings; a sum in quotes"},
          {"attention", nn::text_option("dense"), "attention"},
          {"causal", nn::bool_option(false), "no key behind the query"},
          {"scale", nn::real_option("default").or_word({"default", "none"}), "of the scores"},
          {"bias", nn::bool_option(true), "of the projections"}};
}
std::vector<OptionDef> layer_options() {
  return {{"ffn_dim", nn::int_option(16, 1), "width of the feed-forward part"},
          {"activation", nn::word_option("gelu", {"gelu", "gelu_tanh", "relu", "silu"}), "of the feed-forward part"},
          {"norm", nn::word_option("pre", {"pre", "post"}), "place of the norms"},
          {"norm_eps", nn::real_option(1e-5).greater_than(0), "of the norms"},
          {"norm_type", nn::word_option("layer", {"layer", "rms"}), "of the norms"},
          {"ffn_bias", nn::bool_option(true), "of the feed-forward part"}};
}
std::vector<OptionDef> token_sizes() {
  return {{"batch", nn::int_option(2, 1), "sequences"},
          {"length", nn::int_option(5, 1), "tokens of a sequence"},
          {"padding", nn::bool_option(false), "a mask that drops the last third of the last sequence"}};
}

// A mask [..., L] that drops the last third of every last row of axis `rows`.
Tensor padding_mask(const Shape& shape) {
  const Tensor mask = ones(shape, kI64);
  const i64 length = shape.at(-1), rows = shape.at(-2), all = mask.numel() / length;
  for (i64 r = rows - 1; r < all; r += rows)
    for (i64 i = length - length / 3; i < length; ++i) mask.data<i64>()[r * length + i] = 0;
  return mask;
}

// Is this true of an encoding of the sum? Not of a sum with problems, which are told elsewhere.
bool any_encoding(const std::string& position, bool (*is_true)(const nn::EncodingFacts&)) {
  std::vector<std::string> problems;
  const auto layers = nn::resolve_encodings(position, 1, problems);
  return problems.empty() && !layers.empty() &&
         std::any_of(layers[0].begin(), layers[0].end(), [&](const Options& o) { return is_true(nn::facts_of(o)); });
}

void fill_tokens(const Options& o, CaseDraft& d) {
  const i64 batch = o.integer("batch"), length = o.integer("length"), width = o.integer("embed_dim");
  d.tensors["input.x"] = draw_floats({batch, length, width}, d.dtype, "x");
  if (o.boolean("padding")) d.tensors["input.mask"] = padding_mask({batch, length});
}
void fill_attention(const Options& o, CaseDraft& d) {
  fill_tokens(o, d);
  if (const i64 keys = o.integer("context"); keys > 0) {
    d.tensors["input.context"] = draw_floats({o.integer("batch"), keys, o.integer("embed_dim")}, d.dtype, "context");
    if (o.boolean("padding")) d.tensors["input.mask"] = padding_mask({o.integer("batch"), keys});
  }
  if (o.boolean("weights")) d.optional.insert("weights");
  if (any_encoding(o.word("position"), [](const nn::EncodingFacts& f) { return f.reads_segments; }))
    d.tensors["input.segments"] = draw_ids({o.integer("batch"), o.integer("length")}, 2, "segments");
}
void fill_attention_core(const Options& o, CaseDraft& d) {
  const i64 batch = o.integer("batch"), heads = o.integer("num_heads"), length = o.integer("length"),
            width = o.integer("head_dim");
  const i64 kv = o.integer("num_kv_heads") > 0 ? o.integer("num_kv_heads") : heads;
  d.tensors["input.q"] = draw_floats({batch, heads, length, width}, d.dtype, "q");
  d.tensors["input.k"] = draw_floats({batch, kv, length, width}, d.dtype, "k");
  d.tensors["input.v"] = draw_floats({batch, kv, length, width}, d.dtype, "v");
  if (o.boolean("padding")) d.tensors["input.mask"] = padding_mask({batch, length});
  if (o.boolean("weights")) d.optional.insert("weights");
}
void fill_query_key(const Options& o, CaseDraft& d) {
  const Shape shape = {o.integer("batch"), o.integer("num_heads"), o.integer("length"), o.integer("head_dim")};
  d.tensors["input.q"] = draw_floats(shape, d.dtype, "q");
  d.tensors["input.k"] = draw_floats(shape, d.dtype, "k");
}
void fill_nothing(const Options&, CaseDraft&) {}

// A value of a spec as JSON has it.
Json json_of(const SpecValue& v) {
  switch (v.kind()) {
    case SpecValue::Kind::integer: return v.integer();
    case SpecValue::Kind::real: return v.real();
    case SpecValue::Kind::boolean: return v.boolean();
    case SpecValue::Kind::list: {
      Json::Array out;
      for (const SpecValue& x : v.list()) out.push_back(json_of(x));
      return out;
    }
    case SpecValue::Kind::spec: return to_string(v.spec());
    default: return v.text();
  }
}

// {"name": ..., options}: an optimizer's spec as kind `training` has it.
Json optimizer_object(const std::string& text) {
  Json out = Json::Object{};
  const Options o = optimizer_tables().resolve(nn::parse_spec(text));
  out.set("name", o.name());
  for (const OptionDef& def : optimizer_tables().find(o.name())->options) out.set(def.name, json_of(o.value(def.name)));
  return out;
}
void fill_training(const Options& o, CaseDraft& d) {
  const Shape shape = {o.integer("steps"), o.integer("batch"), o.integer("length")};
  Json model = Json::Object{}, optimizer = optimizer_object(o.word("optimizer"));
  for (const auto& [key, value] : d.config.as_object())
    if (key != "clip_norm" && key != "optimizer" && key != "decay") model.set(key, value);
  optimizer.set("decay", o.word("decay"));
  d.config = Json::Object{{"model", model}, {"optimizer", optimizer}, {"clip_norm", o.real("clip_norm")}};
  d.tensors["input.ids"] = draw_ids(shape, o.integer("vocab_size"), "ids");
  const Tensor targets = draw_ids(shape, o.integer("vocab_size"), "targets");
  if (o.boolean("padding")) {
    const Tensor mask = padding_mask(shape);
    for (i64 i = 0; i < mask.numel(); ++i)
      if (mask.data<i64>()[i] == 0) targets.data<i64>()[i] = -100;
    d.tensors["input.mask"] = mask;
  }
  d.tensors["input.targets"] = targets;
}

void fill_loss(const Options& o, CaseDraft& d) {
  const std::string loss = o.word("loss"), task = o.word("task");
  const i64 rows = o.integer("rows"), classes = o.integer("classes"), length = o.integer("length");
  const bool two = loss == "sar" || loss == "r_drop";
  const auto floats = [&](const std::string& name, const Shape& shape) {
    d.tensors["input." + name] = draw_floats(shape, d.dtype, name);
  };
  // Only keys that this loss has.
  Json config = Json::Object{};
  const auto keep = [&](std::initializer_list<const char*> keys) {
    for (const char* key : keys) config.set(key, *d.config.find(key));
  };
  keep({"loss"});
  if (loss == "cross_entropy") keep({"label_smoothing"});
  if (loss == "kl_div" || two) keep({"kl", "detach"});
  if (two) keep({"alpha", "ce", "task"});
  if (loss == "span_qa") keep({"pad_logits"});
  for (const auto& [key, value] : d.config.as_object())
    if (o.given(key) && !config.find(key)) fail("verify", "the loss {} has no option {}", loss, key);
  if (two && task == "regress" && o.given("classes")) fail("verify", "{} of task=regress has no option classes", loss);
  d.config = config;
  if (o.boolean("item_weight"))
    d.tensors["input.item_weight"] = to(add(draw_ids({rows}, 4, "item_weight"), 1), d.dtype);
  Shape items = {rows};
  if (length > 0) items.push_back(length);
  Shape logits = items;
  logits.push_back(classes);
  d.constant = {"target", "weight", "item_weight"};
  if (loss == "span_qa" || (two && task == "span")) {
    const i64 places = length > 0 ? length : classes;
    if (loss == "span_qa")
      for (const char* name : {"start_logits", "end_logits"}) floats(name, {rows, places});
    else
      for (const char* name : {"first_start", "first_end", "second_start", "second_end"}) floats(name, {rows, places});
    for (const char* name : {"start_positions", "end_positions"})
      d.tensors[std::string("input.") + name] = draw_ids({rows}, places - places / 3, name);
    d.tensors["input.mask"] = padding_mask({rows, places});
    return;
  }
  if (two && task == "regress") {
    for (const char* name : {"first", "second", "target"}) floats(name, items);
    return;
  }
  if (loss == "cross_entropy")
    floats("logits", logits);
  else
    for (const char* name : {"first", "second"}) floats(name, logits);
  if (loss == "kl_div") return;
  const Tensor target = draw_ids(items, classes, "target");
  if (target.numel() > 2) target.data<i64>()[1] = -100;
  d.tensors["input.target"] = target;
}

std::vector<DraftKind> make_kinds() {
  const OptionDef position{"position", nn::text_option(std::nullopt), "the encoding"};
  const OptionDef length{"length", nn::int_option(5, 1), "positions"},
      batch{"batch", nn::int_option(2, 1), "sequences"};
  const OptionDef weights{"weights", nn::bool_option(false), "attention weights, too"};
  const OptionDef heads{"num_heads", nn::int_option(2, 1), "heads"},
      head_dim{"head_dim", nn::int_option(4, 1), "width of a head"};
  std::vector<DraftKind> list;
  list.push_back({{"attention",
                   joined_options(joined_options(attention_options(), token_sizes()),
                          {{"out_proj", nn::bool_option(true), "with output projection"},
                           {"context", nn::int_option(0, 0), "cross-attention over a context of this length; 0: none"},
                           weights}),
                   "an attention module"},
                  {"batch", "length", "padding", "context", "weights"},
                  fill_attention});
  list.push_back({{"attention_core",
                   joined_options({heads,
                           head_dim,
                           {"num_kv_heads", nn::int_option(0, 0), "heads of keys and values; 0: num_heads"},
                           {"position", nn::text_option("none"), "encodings"},
                           {"attention", nn::text_option("dense"), "attention"},
                           {"causal", nn::bool_option(false), "no key behind the query"},
                           {"scale", nn::real_option("default").or_word({"default", "none"}), "of the scores"},
                           weights},
                          token_sizes()),
                   "an attention without projections"},
                  {"batch", "length", "padding", "weights"},
                  fill_attention_core});
  list.push_back({{"score_bias",
                   {heads,
                    position,
                    {"causal", nn::bool_option(false), "as the attention is"},
                    {"query_length", nn::int_option(4, 1), "queries"},
                    {"key_length", nn::int_option(5, 1), "keys"},
                    {"query_offset", nn::int_option(0, 0), "position of the first query"}},
                   "biases of an encoding"},
                  {},
                  fill_nothing});
  list.push_back({{"embedding_position",
                   {{"embed_dim", nn::int_option(8, 1), "width"}, length, position},
                   "an input-site encoding"},
                  {},
                  fill_nothing});
  list.push_back({{"query_key_map", {heads, head_dim, position, length, batch}, "a query-key encoding"},
                  {"length", "batch"},
                  fill_query_key});
  list.push_back(
      {{"encoder_layer", joined_options(joined_options(attention_options(), layer_options()), token_sizes()), "a layer of an encoder"},
       {"batch", "length", "padding"},
       fill_tokens});
  list.push_back(
      {{"training",
        joined_options(joined_options(joined_options({{"vocab_size", nn::int_option(11, 2), "tokens that there are"},
                              {"num_layers", nn::int_option(1, 1), "layers"},
                              {"tie_embeddings", nn::bool_option(false), "the head is the token table"},
                              {"head_bias", nn::bool_option(true), "of the head"},
                              {"optimizer", nn::text_option("adamw(lr=0.01, eps=1e-6)"), "spec of the optimizer"},
                              {"decay", nn::word_option("all", {"all", "matrices"}), "what decays"},
                              {"clip_norm", nn::real_option(1, 0.0), "0: off"},
                              {"steps", nn::int_option(3, 1), "updates"}},
                             attention_options()),
                      layer_options()),
               token_sizes()),
        "a small model in training"},
       {"batch", "length", "padding", "steps"},
       fill_training});
  list.push_back(
      {{"loss",
        {{"loss", nn::word_option(nn::required(), {"cross_entropy", "kl_div", "sar", "r_drop", "span_qa"}), "which"},
         {"label_smoothing", nn::real_option(0, 0.0, 1.0), "of cross_entropy"},
         {"kl", nn::word_option("symmetric", {"symmetric", "forward", "reverse"}), "direction of the divergence"},
         {"detach", nn::word_option("none", {"none", "first"}), "of the first pass"},
         {"alpha", nn::real_option(1, 0.0), "weight of the divergence"},
         {"ce", nn::word_option("both", {"both", "first"}), "passes with cross-entropy"},
         {"task", nn::word_option("classify", {"classify", "span", "regress"}), "of sar and r_drop"},
         {"pad_logits", nn::bool_option(false), "of span_qa"},
         {"rows", nn::int_option(4, 1), "examples"},
         {"classes", nn::int_option(5, 2), "classes; positions of a span"},
         {"length", nn::int_option(0, 0), "tokens of an example; 0: none"},
         {"item_weight", nn::bool_option(false), "weights of the examples"}},
        "a loss of a task"},
       {"rows", "classes", "length", "item_weight"},
       fill_loss});
  for (DraftKind& k : list) {
    k.table.options = joined_options(k.table.options, common());
    k.sizes.insert(k.sizes.end(), {"dtype", "seed"});
  }
  return list;
}

// The options that are keys of the config. A key that only says "as usual" is left out.
Json config_of(const DraftKind& kind, const Options& o) {
  Json config = Json::Object{};
  for (const OptionDef& def : kind.table.options) {
    if (std::find(kind.sizes.begin(), kind.sizes.end(), def.name) != kind.sizes.end()) continue;
    const SpecValue& v = o.value(def.name);
    if (!o.given(def.name) &&
        ((v.kind() == SpecValue::Kind::integer && v.integer() == 0) || o.is_word(def.name, "default")))
      continue;
    config.set(def.name, json_of(v));
  }
  return config;
}

// position=huang-m4(clip=3) -> position="huang-m4(clip=3)": such options are texts here.
Spec with_texts(Spec spec) {
  for (nn::SpecArg& arg : spec.args)
    if (arg.value.kind() == SpecValue::Kind::spec) arg.value = SpecValue::quoted(to_string(arg.value.spec()));
  return spec;
}
Spec of_kind(std::string kind, std::string key, std::string value) {
  return {.name = std::move(kind), .args = {{.key = std::move(key), .value = SpecValue::quoted(std::move(value))}}};
}

// optimizer(optimizer=adamw(lr=0.1), shape=[3,4], steps=4, clip_norm=1)
CaseDraft draft_optimizer(const Spec& spec) {
  static const nn::OptionTable table{
      "optimizer", joined_options({{"optimizer", nn::text_option(std::nullopt), "spec of the optimizer"},
                           {"shape", nn::int_list_option(std::vector<i64>{3, 4}, 1, 1 << 20), "of the parameter"},
                           {"steps", nn::int_option(4, 1), "updates"},
                           {"clip_norm", nn::real_option(0, 0.0), "0: off"}},
                          common())};
  const Options o = table.resolve(with_texts(spec));
  CaseDraft d{.kind = "optimizer",
              .dtype = o.word("dtype") == "f64" ? kF64 : kF32,
              .seed = static_cast<u64>(o.integer("seed"))};
  const RandomScope scope(d.seed);
  const Json optimizer = optimizer_object(o.word("optimizer"));
  for (const auto& [key, value] : optimizer.as_object()) d.config.set(key == "name" ? "optimizer" : key, value);
  d.config.set("steps", o.integer("steps"));
  if (o.real("clip_norm") > 0) d.config.set("clip_norm", o.real("clip_norm"));
  const Shape shape(o.integers("shape"));
  d.tensors["param.w"] = draw_floats(shape, d.dtype, "w");
  for (i64 t = 1; t <= o.integer("steps"); ++t)
    d.tensors[fmt::format("input.grad.{}", t)] = draw_floats(shape, d.dtype, fmt::format("grad.{}", t));
  return d;
}

// What a short form stands for.
Spec long_form(const std::string& text) {
  const nn::SpecSum sum = nn::parse_sum(text);
  const auto with_position = [&] {
    Spec out = of_kind("attention", "position", text);
    if (any_encoding(text, [](const nn::EncodingFacts& f) { return f.needs_causal_call; })) out.args.push_back({.key = "causal", .value = true});
    return out;
  };
  if (sum.size() > 1) return with_position();
  const Spec& spec = sum[0];
  if (find_kind(spec.name)) return spec;
  if (nn::encoding_tables().find(spec.name)) return with_position();
  if (nn::attention_tables().find(spec.name)) return of_kind("attention", "attention", text);
  if (optimizer_tables().find(spec.name)) return of_kind("optimizer", "optimizer", text);
  if (find_op(spec.name)) return {.name = "op", .args = {{.key = "op", .value = spec}}};
  std::vector<std::string> names = case_kinds();
  for (const auto& list : {nn::encoding_tables().names(), nn::attention_tables().names(), optimizer_tables().names()})
    names.insert(names.end(), list.begin(), list.end());
  for (const OpInfo* op : all_ops()) names.emplace_back(op->name);
  fail("verify", "{} is no kind of case, encoding, attention, optimizer or op.{}", nn::printable(spec.name),
       nn::did_you_mean(spec.name, names));
}

}  // namespace

const std::vector<DraftKind>& draft_kinds() {
  static const std::vector<DraftKind> list = make_kinds();
  return list;
}

CaseDraft draft_of(const std::string& text) {
  const Spec spec = long_form(text);
  if (spec.name == "op") return draft_op(spec);
  if (spec.name == "optimizer") return draft_optimizer(spec);
  for (const DraftKind& kind : draft_kinds()) {
    if (kind.table.name != spec.name) continue;
    const Options o = kind.table.resolve(with_texts(spec));
    CaseDraft d{.kind = spec.name,
                .config = config_of(kind, o),
                .dtype = o.word("dtype") == "f64" ? kF64 : kF32,
                .seed = static_cast<u64>(o.integer("seed"))};
    const RandomScope scope(d.seed);
    kind.fill(o, d);
    return d;
  }
  fail("verify", "there is no way to write a case of kind {}", spec.name);
}

}  // namespace waymark::train
