#include "train/cli/help_topics.h"

#include <fmt/format.h>

#include "core/ops/registry.h"
#include "nn/position/registry.h"
#include "train/cli/command.h"
#include "train/cli/text_layout.h"
#include "train/config/checks.h"
#include "train/config/keys.h"
#include "train/config/registries.h"
#include "train/verify/verify.h"

namespace waymark::train::cli {

namespace {

struct SpecTopic {
  const char* name;  // of the topic
  const nn::SpecTables* tables;
  const char* key;  // where such a spec is written
  const char* note = "";  // behind the list
};

constexpr const char* kNotOffered =
    "Encodings join by +: learned + t5. waymark explain --position SPEC shows formulas, facts, parameters and costs.\n"
    "Not offered at all: logit softcap, attention sinks, YaRN and Llama-3 rope scaling, 2-D positions (interpolation and\n"
    "ntk are the only rope scalings; images run as row-major sequences). An own bias or multiplier of positions:\n"
    "register_encoding (nn/position/registry.h).\n";

constexpr const char* kRegularizers =
    "They join by +: sar + r-drop makes three passes. u: outputs of the usual pass, v: of the other, J: Kullback-Leibler\n"
    "divergence for each scored target; loss = mean CE of the passes that carry it + alpha J(u, v). sar(alpha=0) is the\n"
    "control: the other layout as augmentation, without a divergence. metrics.jsonl has loss_ce, loss_sar, loss_rdrop, passes.\n";

std::vector<SpecTopic> spec_topics() {
  const Registries& r = registries();
  std::vector<SpecTopic> topics;
  for (const SpecTopic& t :
       {SpecTopic{"encodings", r.encodings, "model.position", kNotOffered}, SpecTopic{"attentions", r.attentions, "model.attention"},
        SpecTopic{"tasks", r.tasks, "task"}, SpecTopic{"optimizers", r.optimizers, "optim.optimizer"},
        SpecTopic{"schedules", r.schedules, "optim.schedule"}, SpecTopic{"regularizers", r.regularizers, "train.regularizer", kRegularizers}})
    if (t.tables) topics.push_back(t);
  return topics;
}

std::string list_text(const SpecTopic& topic) {
  std::vector<Row> rows;
  for (const std::string& name : topic.tables->names()) {
    const nn::OptionTable& table = *topic.tables->find(name);
    rows.push_back({table.signature(), table.doc});
  }
  for (const auto& [alias, spec] : topic.tables->aliases()) rows.push_back({alias, "= " + to_string(spec)});
  return fmt::format("{} (key {}); waymark help NAME explains one\n\n", topic.name, topic.key) + columns(rows) +
         (*topic.note ? fmt::format("\n{}", topic.note) : "");
}

// What an encoding computes; the facts that need no model.
std::string encoding_text(std::string_view name) {
  const nn::EncodingInfo* info = nn::find_encoding(name);
  if (!info) return "";
  std::vector<std::string> problems;
  const auto options = info->options.resolve(nn::Spec{info->name(), {}}, problems);
  if (!options) return "";
  std::vector<Row> rows;
  for (const std::string& formula : info->formulas) rows.push_back({"formula", formula});
  const nn::EncodingFacts facts = info->facts(*options, false, false);
  rows.push_back({"sees direction", facts.direction});
  rows.push_back({"shift invariant", facts.shift_text()});
  rows.push_back({"beyond training", facts.beyond_trained});
  if (info->parameters) {
    std::string parameters;
    for (const nn::ParameterSpec& p : info->parameters(*options, {8, 2, 4}))
      parameters += (parameters.empty() ? "position." : ", position.") + p.name;
    rows.push_back({"parameters", parameters});
  }
  return "\n" + columns(rows) + fmt::format("\nWith sizes and costs: waymark explain --position {}\n", name);
}

std::string table_text(const SpecTopic& topic, const nn::OptionTable& table) {
  std::string out = fmt::format("{}: {} (key {})\n", table.name, table.doc, topic.key);
  const std::string more = topic.tables == registries().encodings ? encoding_text(table.name) : "";
  if (table.options.empty()) return out + "\nIt has no options.\n" + more;
  std::vector<Row> rows;
  for (const nn::OptionDef& def : table.options) {
    std::string fallback = "required";
    if (!def.rule.from.empty())
      fallback = def.rule.from;
    else if (def.rule.fallback)
      fallback = nn::value_text(*def.rule.fallback);
    rows.push_back({def.name, fmt::format("{} ({}) [{}]", def.doc, def.rule.describe(), fallback)});
  }
  return out + "\n" + columns(rows) + "\nAs written: " + table.signature() + "\n" + more;
}

std::string key_type(const KeyInfo& key) {
  switch (key.shape) {
    case KeyShape::plain: return key.rule.describe();
    case KeyShape::spec: return "spec";
    case KeyShape::sum: return "sum of specs";
    case KeyShape::layers_of_sums: return "pattern of sums of specs";
    case KeyShape::layers_of_specs: return "pattern of specs";
    default: return "list of tables";
  }
}
std::string key_row(const KeyInfo& key) {
  const std::string note = limit_note(key.name);
  return fmt::format("{} ({}) [{}]{}", key.doc, key_type(key), key.fallback.empty() ? "\"\"" : key.fallback,
                     note.empty() ? "" : "; " + note);
}

std::string keys_text(std::string_view table) {
  std::string out =
      "keys of a config; * = does not decide the result, so it is no part of the run id\n"
      "defaults < files in their order < command line; a mistake is told also where a later source replaces it\n";
  std::string section = "?";
  std::vector<Row> rows;
  auto flush = [&] {
    if (!rows.empty()) out += "\n" + columns(rows);
    rows.clear();
  };
  for (const KeyInfo& key : config_keys()) {
    const size_t dot = key.name.find('.');
    const std::string own = dot == std::string::npos ? "" : key.name.substr(0, dot);
    if (!table.empty() && own != table) continue;
    if (own != section) flush();
    section = own;
    rows.push_back({key.name + (key.in_id ? "" : "*"), key_row(key)});
  }
  flush();
  return out;
}

// Ops ----------------------------------------------------------------------------------------------------------------

std::string ops_text() {
  std::string out = "ops of the engine; waymark help op NAME shows one\n";
  std::string_view family = "?";
  std::vector<Row> rows;
  auto flush = [&] {
    if (!rows.empty()) out += fmt::format("\n{}\n", family) + columns(rows);
    rows.clear();
  };
  for (const OpInfo* op : all_ops()) {
    if (op->family != family) flush();
    family = op->family;
    rows.push_back({std::string(op->name), std::string(op->doc)});
  }
  flush();
  return out;
}

std::string op_text(const OpInfo& op) {
  std::vector<Row> rows = {{"schema", std::string(op.schema)}, {"value", std::string(op.formula)}};
  rows.push_back({op.rule.differentiable() ? "gradient" : "no gradient", std::string(op.rule.text())});
  std::string saves;
  for (const SaveText& save : op.saves) {
    if (!saves.empty()) saves += ", ";
    saves += save.what;
  }
  if (!saves.empty()) rows.push_back({"keeps", saves});
  if (!op.kinks.empty()) rows.push_back({"kinks", std::string(op.kinks)});
  if (op.view) rows.push_back({"view", "the result shares the storage of its input"});
  if (!op.twin.empty()) rows.push_back({"twin", std::string(op.twin)});
  return fmt::format("{}: {}\n\n", op.name, op.doc) + columns(rows);
}

bool is_key_table(std::string_view name) {
  for (const KeyInfo& key : config_keys())
    if (key.name.size() > name.size() && key.name[name.size()] == '.' && key.name.substr(0, name.size()) == name)
      return true;
  return false;
}

}  // namespace

std::vector<std::string> help_topics() {
  std::vector<std::string> topics;
  for (const SpecTopic& topic : spec_topics()) topics.push_back(topic.name);
  topics.push_back("keys");
  topics.push_back("ops");
  topics.push_back("case-files");
  return topics;
}

std::optional<std::string> topic_text(std::string_view name) {
  if (name == "keys") return keys_text("");
  if (name == "ops") return ops_text();
  if (name == "case-files") return case_help();
  for (const Command& command : commands())
    if (command.name == name) return command_help(command);
  std::string out;
  auto add = [&](const std::string& text) {
    if (!out.empty()) out += "\n";
    out += text;
  };
  for (const SpecTopic& topic : spec_topics()) {
    if (name == topic.name) return list_text(topic);
    if (const nn::OptionTable* table = topic.tables->find(name)) add(table_text(topic, *table));
    for (const auto& [alias, spec] : topic.tables->aliases())
      if (alias == name)
        add(fmt::format("{} = {}\n\n", alias, to_string(spec)) + table_text(topic, *topic.tables->find(spec.name)));
  }
  if (const KeyInfo* key = find_key(name)) add(fmt::format("{}: {}\n", key->name, key_row(*key)));
  if (is_key_table(name)) add(keys_text(name));
  if (const OpInfo* op = find_op(name)) add(op_text(*op));
  if (out.empty()) return std::nullopt;
  return out;
}

std::optional<std::string> op_topic(std::string_view name) {
  const OpInfo* op = find_op(name);
  return op ? std::optional(op_text(*op)) : std::nullopt;
}
std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpInfo* op : all_ops()) names.emplace_back(op->name);
  return names;
}

std::vector<std::string> topic_names() {
  std::vector<std::string> names = help_topics();
  for (const Command& command : commands()) names.push_back(command.name);
  for (const SpecTopic& topic : spec_topics()) {
    for (const std::string& name : topic.tables->names()) names.push_back(name);
    for (const auto& [alias, spec] : topic.tables->aliases()) names.push_back(alias);
  }
  for (const KeyInfo& key : config_keys()) names.push_back(key.name);
  for (const OpInfo* op : all_ops()) names.emplace_back(op->name);
  return names;
}

}  // namespace waymark::train::cli
