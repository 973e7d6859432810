#include "train/trainer/state.h"

#include <cmath>
#include <limits>

#include "core/tensor/error.h"
#include "train/config/hash.h"
#include "train/report/json.h"

namespace waymark::train {

namespace {

constexpr std::string_view kFormat = "waymark-state-1";

// JSON has no number for these, and a sum of losses may well become one.
Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}
double number_from(JsonReader& r, std::string_view name) {
  const Json& value = r.need(name);
  if (value.is_number()) return value.as_double();
  const std::string text = value.is_string() ? value.as_string() : "";
  const double infinity = std::numeric_limits<double>::infinity();
  if (text == "nan") return std::nan("");
  if (text == "inf") return infinity;
  if (text == "-inf") return -infinity;
  r.refuse(name, "must be a number");
}

Json scored_json(const ScoredSplit& scored) {
  Json::Array metrics;
  for (const auto& [name, value] : scored.result.metrics) {
    Json entry;
    entry.set("name", name).set("value", number_json(value.value)).set("n", value.n);
    if (value.error) entry.set("error", *value.error);
    if (value.approximate) entry.set("approximate", true);
    metrics.push_back(std::move(entry));
  }
  Json out;
  out.set("step", scored.step).set("length", scored.result.length).set("untrained", scored.result.untrained);
  out.set("metrics", std::move(metrics));
  return out;
}

ScoredSplit scored_from(const Json& value, const std::string& origin, const std::string& path) {
  JsonReader r(value, origin, path);
  ScoredSplit out;
  out.step = r.integer("step");
  out.result.length = r.integer("length");
  out.result.untrained = r.flag("untrained");
  for (const Json& item : r.array("metrics")) {
    JsonReader m(item, origin, path + ".metrics");
    const std::string name = m.text("name");
    MetricValue v;
    v.value = number_from(m, "value");
    v.n = m.integer("n");
    v.error = m.maybe_number("error");
    v.approximate = m.maybe_flag("approximate").value_or(false);
    m.finish();
    out.result.metrics.emplace_back(name, v);
  }
  r.finish();
  return out;
}

// The last member is the hash of all that stands before it: one changed digit would else be as good as the right one.
constexpr std::string_view kHash = ",\n  \"hash\": \"", kEnd = "\n}";

std::string with_hash(const std::string& json) {
  return fmt::format("{}{}{}\"{}\n", json.substr(0, json.size() - kEnd.size()), kHash, xxh128_hex(json), kEnd);
}
// Any other text gives something whose with_hash() is not that text.
std::string without_hash(std::string_view text) {
  const size_t at = text.rfind(kHash);
  return std::string(text.substr(0, at == text.npos ? 0 : at)) + std::string(kEnd);
}

}  // namespace

std::string state_to_json(const TrainState& s, const CheckpointFacts& facts) {
  Json out;
  out.set("format", kFormat).set("id", facts.id).set("step", s.step);
  out.set("epoch", s.cursor.epoch).set("batch", s.cursor.batch);
  out.set("tokens", s.tokens).set("targets", s.targets);
  out.set("empty_steps", s.empty_steps).set("nonfinite_skipped", s.nonfinite_skipped);
  out.set("nonfinite_in_a_row", s.nonfinite_in_a_row).set("evaluated", s.evaluated);
  out.set("line_loss", number_json(s.line_loss)).set("line_targets", s.line_targets);
  out.set("line_tokens", s.line_tokens).set("line_time", s.line_time);
  out.set("mean_loss", number_json(s.mean_loss)).set("mean_weight", s.mean_weight);
  if (s.last_val) out.set("last_val", scored_json(*s.last_val));
  if (s.best_val) out.set("best_val", scored_json(*s.best_val));
  out.set("without_gain", s.without_gain).set("seconds", s.seconds).set("resumes", s.resumes);
  if (s.flops_per_step) out.set("flops_per_step", *s.flops_per_step);
  if (!s.continued_from.empty()) out.set("continued_from", s.continued_from);
  Json random;
  // Seeds and counts are u64: as text, since JSON readers may take numbers for f64.
  random.set("seed", fmt::format("{}", s.random.seed));
  Json counts{Json::Object()};
  for (const auto& [stream, count] : s.random.counts) counts.set(stream, fmt::format("{}", count));
  random.set("counts", std::move(counts));
  out.set("random", std::move(random));
  out.set("config", texts_json(facts.config)).set("fingerprints", texts_json(facts.fingerprints));
  out.set("version", facts.version).set("blas_core", facts.blas_core).set("files", texts_json(facts.files));
  return with_hash(write_json(out, 2));
}

void state_from_json(std::string_view text, std::string_view origin, TrainState& s, CheckpointFacts& facts) {
  const Json value = parse_json(text, origin);
  JsonReader r(value, std::string(origin));
  r.check_format(kFormat);
  facts.id = r.text("id");
  s.step = r.integer("step");
  s.cursor = {r.integer("epoch"), r.integer("batch")};
  s.tokens = r.integer("tokens");
  s.targets = r.integer("targets");
  s.empty_steps = r.integer("empty_steps");
  s.nonfinite_skipped = r.integer("nonfinite_skipped");
  s.nonfinite_in_a_row = r.integer("nonfinite_in_a_row");
  s.evaluated = r.flag("evaluated");
  s.line_loss = number_from(r, "line_loss");
  s.line_targets = r.integer("line_targets");
  s.line_tokens = r.integer("line_tokens");
  s.line_time = r.number("line_time");
  s.mean_loss = number_from(r, "mean_loss");
  s.mean_weight = r.number("mean_weight");
  if (const Json* v = r.get("last_val")) s.last_val = scored_from(*v, r.origin(), "last_val");
  if (const Json* v = r.get("best_val")) s.best_val = scored_from(*v, r.origin(), "best_val");
  s.without_gain = r.integer("without_gain");
  s.seconds = r.number("seconds");
  s.resumes = r.integer("resumes");
  s.flops_per_step = r.maybe_number("flops_per_step");
  s.continued_from = r.maybe_text("continued_from").value_or("");
  JsonReader random(r.need("random"), r.origin(), "random");
  const auto unsigned_of = [&](JsonReader& reader, std::string_view name, const std::string& digits) {
    try {
      size_t used = 0;
      const u64 v = std::stoull(digits, &used);
      if (used == digits.size() && digits[0] != '-') return v;
    } catch (const std::exception&) {
    }
    reader.refuse(name, "must be a whole number as text");
  };
  s.random.seed = unsigned_of(random, "seed", random.text("seed"));
  s.random.counts.clear();
  for (const auto& [stream, count] : random.texts("counts")) s.random.counts[stream] = unsigned_of(random, "counts", count);
  random.finish();
  facts.config = r.texts("config");
  facts.fingerprints = r.texts("fingerprints");
  facts.version = r.text("version");
  facts.blas_core = r.text("blas_core");
  facts.files = r.texts("files");
  (void)r.text("hash");
  r.finish();
  if (s.step < 0 || s.cursor.epoch < 0 || s.cursor.batch < 0 || s.tokens < 0 || s.line_targets < 0 || s.seconds < 0)
    fail("", "{}: a count is negative", origin);
  if (with_hash(without_hash(text)) != text) fail("", "{}: damaged: its bytes are not those that were written", origin);
}

}  // namespace waymark::train
