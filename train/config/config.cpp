#include "train/config/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "nn/spec/suggest.h"
#include "train/config/hash.h"
#include "train/config/keys.h"
#include "train/report/escape.h"

namespace waymark::train {

using nn::SpecValue;
using Kind = SpecValue::Kind;

// Values --------------------------------------------------------------------------------------------------------------

const Config::Entry& Config::entry(std::string_view key) const {
  const auto found = entries_.find(key);
  if (found != entries_.end()) return found->second;
  if (find_key(key)) fail("config", "{} has no value: this config was not resolved", key);
  fail("config", "there is no key {}.{}", key, suggest_key(key));
}
const Config::Entry& Config::set_entry(std::string_view key) const {
  const Entry& e = entry(key);
  if (!e.set) fail("config", "{} is not set", key);
  return e;
}

namespace {
[[noreturn]] void wrong_type(std::string_view key, const std::string& value, const char* wanted) {
  fail("config", "{} = {} was asked for as {}", key, value, wanted);
}
}  // namespace

i64 Config::integer(std::string_view key) const {
  const Entry& e = set_entry(key);
  if (!e.layers.empty() || e.plain.kind() != Kind::integer || find_key(key)->shape != KeyShape::plain)
    wrong_type(key, e.short_form, "an int");
  return e.plain.integer();
}
double Config::real(std::string_view key) const {
  const Entry& e = set_entry(key);
  if (find_key(key)->shape == KeyShape::plain && e.plain.kind() == Kind::real) return e.plain.real();
  wrong_type(key, e.short_form, "a float");
}
bool Config::boolean(std::string_view key) const {
  const Entry& e = set_entry(key);
  if (find_key(key)->shape == KeyShape::plain && e.plain.kind() == Kind::boolean) return e.plain.boolean();
  wrong_type(key, e.short_form, "a bool");
}
const std::string& Config::text(std::string_view key) const {
  const Entry& e = set_entry(key);
  if (e.plain.kind() == Kind::word) return e.plain.text();
  wrong_type(key, e.short_form, "a text");
}
std::vector<std::string> Config::texts(std::string_view key) const {
  const Entry& e = set_entry(key);
  if (e.plain.kind() != Kind::list) wrong_type(key, e.short_form, "a list of texts");
  std::vector<std::string> out;
  for (const SpecValue& v : e.plain.list()) out.push_back(v.text());
  return out;
}
const nn::Options& Config::spec(std::string_view key) const {
  const Entry& e = set_entry(key);
  if (find_key(key)->shape != KeyShape::spec) wrong_type(key, e.short_form, "a spec");
  return e.layers.front().front();
}
const std::vector<nn::Options>& Config::sum(std::string_view key) const {
  const Entry& e = set_entry(key);
  if (find_key(key)->shape != KeyShape::sum) wrong_type(key, e.short_form, "a sum");
  return e.layers.front();
}
const std::vector<std::vector<nn::Options>>& Config::layers(std::string_view key) const {
  const Entry& e = set_entry(key);
  const KeyShape shape = find_key(key)->shape;
  if (shape != KeyShape::layers_of_sums && shape != KeyShape::layers_of_specs)
    wrong_type(key, e.short_form, "a pattern of layers");
  return e.layers;
}
const std::vector<ParameterGroup>& Config::groups() const { return set_entry("optim.groups").groups; }

bool Config::has(std::string_view key) const { return entry(key).set; }
bool Config::is_word(std::string_view key, std::string_view word) const {
  const Entry& e = set_entry(key);
  return e.plain.kind() == Kind::word && e.plain.text() == word;
}
const std::string& Config::origin(std::string_view key) const { return entry(key).origin; }
bool Config::is_default(std::string_view key) const { return entry(key).is_default; }
const std::string& Config::canonical(std::string_view key) const { return entry(key).canonical; }
const std::string& Config::short_form(std::string_view key) const { return entry(key).short_form; }
SpecValue Config::value(std::string_view key) const {
  const Entry& e = set_entry(key);
  return find_key(key)->shape == KeyShape::plain ? e.plain : SpecValue(e.short_form);
}

// Identity ------------------------------------------------------------------------------------------------------------

std::map<std::string, std::string> Config::id_lines() const {
  std::map<std::string, std::string> lines;
  for (const KeyInfo& key : config_keys())
    if (key.in_id) lines[key.name] = entry(key.name).canonical;
  return lines;
}

std::string Config::id() const {
  std::string text = "waymark-id-1\n";
  for (const auto& [key, value] : id_lines()) text += fmt::format("{}={}\n", key, value);
  return xxh128_hex(text).substr(0, 12);
}

namespace {

// Names without options: "huang-m4", "learned+t5", "rope3-none" for [rope]*3, none.
std::string layer_names(const std::vector<std::vector<nn::Options>>& layers) {
  std::string out;
  size_t run = 0;
  std::string last;
  auto flush = [&] {
    if (run == 0) return;
    if (!out.empty()) out += '-';
    out += last;
    if (run > 1 && run < layers.size()) out += fmt::format("{}", run);
  };
  for (const auto& sum : layers) {
    std::string name;
    for (const nn::Options& o : sum) {
      if (!name.empty()) name += '+';
      name += o.name();
    }
    if (run > 0 && name != last) {
      flush();
      run = 0;
    }
    last = name;
    ++run;
  }
  flush();
  return out;
}

}  // namespace

std::string Config::name() const {
  if (has("name")) return file_name(text("name"));
  const std::string head = fmt::format("{}-{}-{}", spec("task").name(), layer_names(layers("model.position")),
                                       layer_names(layers("model.attention")));
  return file_name(head, 89) + "-" + id().substr(0, 6);
}

// Printing ------------------------------------------------------------------------------------------------------------

namespace {

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// TOML tells ints from floats by their form, so a float keeps its point.
std::string toml_value(const SpecValue& v) {
  switch (v.kind()) {
    case Kind::word:
    case Kind::text: return toml_string(v.text());
    case Kind::list: break;
    default: return to_string(v);
  }
  std::string out = "[";
  for (const SpecValue& item : v.list()) {
    if (out.size() > 1) out += ", ";
    out += toml_value(item);
  }
  return out + "]";
}

std::string toml_group(const ParameterGroup& g) {
  std::string out = fmt::format("{{match = {}, lr_scale = {}", toml_string(g.match), to_string(SpecValue(g.lr_scale)));
  if (g.weight_decay) out += fmt::format(", weight_decay = {}", to_string(SpecValue(*g.weight_decay)));
  if (g.freeze) out += ", freeze = true";
  return out + "}";
}

}  // namespace

std::string Config::to_toml() const {
  std::string out = fmt::format("# Resolved config of run {}. Repeat it with: waymark train <this file>\n", id());
  out += "format = \"waymark-config-1\"\n";
  std::string table;
  for (const KeyInfo& key : config_keys()) {
    const Entry& e = entry(key.name);
    const size_t dot = key.name.find('.');
    const std::string section = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (section != table) {
      out += fmt::format("\n[{}]\n", section);
      table = section;
    }
    const std::string leaf = key.name.substr(dot == std::string::npos ? 0 : dot + 1);
    if (!e.set) {
      out += key.name == "name" ? fmt::format("# name = {}  # default\n", toml_string(name()))
                                : fmt::format("# {} is not set\n", leaf);
      continue;
    }
    std::string value;
    if (key.shape == KeyShape::plain)
      value = toml_value(e.plain);
    else if (key.shape != KeyShape::groups)
      value = toml_string(e.canonical);
    else {
      value = "[";
      for (const ParameterGroup& g : e.groups) {
        if (value.size() > 1) value += ", ";
        value += toml_group(g);
      }
      value += "]";
    }
    out += fmt::format("{:<40}  # {}\n", leaf + " = " + value, e.origin);
  }
  return out;
}

std::string Config::to_text(bool all) const {
  size_t key_width = 16, value_width = 24;
  std::vector<std::pair<const KeyInfo*, const Entry*>> lines;
  for (const KeyInfo& key : config_keys()) {
    const Entry& e = entry(key.name);
    if (!e.set || (e.is_default && !all)) continue;
    lines.emplace_back(&key, &e);
    key_width = std::max(key_width, key.name.size());
    if (e.short_form.size() <= 40) value_width = std::max(value_width, e.short_form.size());
  }
  std::string out;
  for (const auto& [key, e] : lines)
    out += fmt::format("  {:<{}}  {:<{}}  {}\n", key->name, key_width, nn::printable(e->short_form, 4096), value_width,
                       e->origin);
  return out;
}

}  // namespace waymark::train
