// waymark explain --position P --attention A: the verdict of the judge, and what the two are.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "nn/attention/judge.h"
#include "nn/module/summary.h"
#include "nn/spec/suggest.h"
#include "train/cli/command_list.h"
#include "train/cli/config_options.h"
#include "train/cli/text_layout.h"
#include "train/config/keys.h"
#include "train/config/registries.h"
#include "train/trainer/cost.h"

namespace waymark::train::cli {

namespace {

using nn::Options;
using nn::Ruling;

struct Question {
  std::vector<Options> encodings;
  std::optional<Options> attention;
  nn::EncodingSizes sizes;
  bool causal = false;
  std::vector<i64> lengths = {512, 2048};
};

// Widths from --set: the only keys that matter here.
void read_sizes(const Arguments& arguments, Question& q, Problems& problems) {
  q.sizes = {64, 4, 0};
  for (const std::string& setting : arguments.all("--set")) {
    Override o;
    if (!split_setting(setting, "--set", o, problems)) continue;
    i64* target = o.key == "model.embed_dim"   ? &q.sizes.embed_dim
                  : o.key == "model.num_heads" ? &q.sizes.num_heads
                  : o.key == "model.head_dim"  ? &q.sizes.head_dim
                                               : nullptr;
    if (!target) {
      problems.push_back(
          {"--set", fmt::format("{}: only model.embed_dim, model.num_heads and model.head_dim matter here",
                                nn::printable(o.key))});
      continue;
    }
    std::string problem;
    const auto value = nn::convert(find_key(o.key)->rule, parse_setting_value(o.text).value, problem);
    if (value)
      *target = value->integer();
    else
      problems.push_back({"--set", fmt::format("{} = {}: {}", o.key, nn::printable(o.text), problem)});
  }
  if (q.sizes.head_dim == 0) {
    if (q.sizes.embed_dim % q.sizes.num_heads != 0)
      problems.push_back({"--set", fmt::format("model.embed_dim = {} is not divisible by model.num_heads = {}",
                                               q.sizes.embed_dim, q.sizes.num_heads)});
    q.sizes.head_dim = std::max<i64>(1, q.sizes.embed_dim / q.sizes.num_heads);
  }
}

template <class F> void parsed(const char* option, Problems& problems, F parse) {
  std::vector<std::string> texts;
  try {
    parse(texts);
  } catch (const Error& e) { texts.emplace_back(e.what()); }
  for (const std::string& text : texts) problems.push_back({option, text});
}

Question question_of(const Arguments& arguments) {
  Problems problems = arguments.problems;
  Question q;
  read_sizes(arguments, q, problems);
  q.causal = arguments.has("--causal");
  const Registries& r = registries();
  if (arguments.has("--task")) {
    parsed("--task", problems, [&](auto& texts) {
      if (const auto task = r.tasks->resolve(nn::parse_spec(arguments.text("--task")), texts)) {
        const TaskFacts facts = r.task_facts(*task);
        q.causal = q.causal || facts.causal;
        if (facts.max_len > 0) q.lengths = {facts.max_len};
        if (facts.longest > facts.max_len) q.lengths.push_back(facts.longest);
      }
    });
  }
  if (arguments.has("--lengths")) q.lengths = parse_lengths(arguments.text("--lengths"), "--lengths", problems);
  for (const i64 length : q.lengths)
    if (length > i64{1} << 31)
      problems.push_back({"--lengths", fmt::format("must be at most 2147483648, not {}", length)});
  nn::Defaults defaults{{"model.embed_dim", nn::SpecValue(q.sizes.embed_dim)},
                        {"model.num_heads", nn::SpecValue(q.sizes.num_heads)},
                        {"model.head_dim", nn::SpecValue(q.sizes.head_dim)}};
  if (!q.lengths.empty())
    defaults["model.max_len"] = nn::SpecValue(*std::max_element(q.lengths.begin(), q.lengths.end()));
  const auto text_of = [&](const char* option, const char* otherwise) {
    return arguments.has(option) ? arguments.text(option) : std::string(otherwise);
  };
  parsed("--position", problems, [&](auto& texts) {
    if (auto sum = r.encodings->resolve_sum(nn::parse_sum(text_of("--position", "none")), texts, defaults))
      q.encodings = std::move(*sum);
  });
  parsed("--attention", problems, [&](auto& texts) {
    q.attention = r.attentions->resolve(nn::parse_spec(text_of("--attention", "dense")), texts, defaults);
  });
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return q;
}

std::string names_text(const std::vector<std::string>& names) {
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

// The verdict over all encodings of the sum, and the rules of combination.
bool print_verdict(const Question& q) {
  bool refused = false, warned = false;
  std::string lines;
  std::vector<std::string> texts;
  nn::check_sum(q.encodings, texts);
  nn::check_sizes(q.encodings, q.sizes, texts);
  for (const std::string& text : texts) {
    refused = true;
    lines += "  " + text + "\n";
  }
  for (const Options& encoding : q.encodings) {
    const nn::Verdict v = nn::judge(encoding, *q.attention, q.causal);
    refused = refused || v.ruling == Ruling::refuse;
    warned = warned || v.ruling == Ruling::warn;
    for (const std::string& reason : v.reasons)
      lines += fmt::format("  {}{}: {}\n", v.ruling == Ruling::warn ? "warning: " : "", v.encoding, reason);
    if (v.ruling == Ruling::refuse)
      lines += fmt::format("  works on {}: {}\n  {} works on: {}\n", v.attention, names_text(v.works_here), v.encoding,
                           names_text(v.works_there));
  }
  fmt::print("{} on {}, {}: {}\n{}", sum_text(q.encodings, false), q.attention->short_form(),
             q.causal ? "causal" : "bidirectional",
             refused  ? "refused"
             : warned ? "accepted, with a loss"
                      : "accepted",
             lines);
  return !refused;
}

void add_row(std::vector<Row>& rows, const char* left, const std::string& right) {
  if (!right.empty()) rows.push_back({left, right});
}

// ", stays in [0.01, 2]"
std::string bounds_text(const std::optional<Bounds>& b) {
  if (!b) return "";
  if (std::isinf(b->high)) return fmt::format(", stays at or above {}", b->low);
  return fmt::format(", stays in [{}, {}]", b->low, b->high);
}

void print_encoding(const Options& encoding, const Question& q) {
  const nn::EncodingInfo& info = nn::encoding_info(encoding.name());
  const nn::EncodingFacts facts = info.facts(encoding, q.causal, false);
  fmt::print("\n{}: {}\n", encoding.short_form(), info.options.doc);
  static constexpr const char* kSites[] = {"nowhere", "embeddings", "queries and keys", "scores"};
  std::vector<Row> rows;
  add_row(rows, "acts on",
          kSites[static_cast<size_t>(facts.site)] + std::string(facts.value_side ? " and mixed values" : ""));
  for (const std::string& formula : info.formulas) add_row(rows, "formula", formula);
  add_row(rows, "sees direction", facts.direction);
  add_row(rows, "shift invariant", facts.shift_text());
  add_row(rows, "beyond training", facts.beyond_trained);
  if (info.parameters) {
    for (const nn::ParameterSpec& p : info.parameters(encoding, q.sizes))
      add_row(rows, "parameter",
              fmt::format("position.{} {}, {} numbers{}, starts as {}{}{}{}", p.name, to_string(p.shape),
                          nn::with_commas(checked_numel("explain", p.shape)),
                          facts.site == nn::Site::input || p.shared ? " once" : " per layer", p.init.text(),
                          bounds_text(p.bounds), p.no_decay ? ", does not decay" : "", p.shared ? ", shared by the layers" : ""));
  }
  fmt::print("{}", columns(rows));
}

// Forward flops of the attention part of one layer on one sequence, and what a query sees.
void print_costs(const Question& q) {
  std::vector<Row> rows;
  for (const i64 length : q.lengths) {
    const LayerCost cost = layer_cost(q.encodings, q.sizes, 0, q.causal, length);
    const double n = static_cast<double>(length), keys = cost.density * n;
    std::string extra;
    for (const auto& [name, flops] : cost.encodings) extra += fmt::format(", {} {}", name, flops_text(flops));
    rows.push_back(
        {fmt::format("L = {}", length),
         fmt::format("projections {}, scores and mix {}{}, together {} flops forward; {} keys per query on "
                     "average (density {:.2f}), {} pairs per head",
                     flops_text(cost.projections), flops_text(cost.scores), extra, flops_text(cost.total()),
                     nn::with_commas(std::llround(keys)), cost.density, nn::with_commas(std::llround(n * keys)))});
  }
  fmt::print("\none layer, one sequence, model.embed_dim = {}, model.num_heads = {}, model.head_dim = {}\n{}",
             q.sizes.embed_dim, q.sizes.num_heads, q.sizes.head_dim, columns(rows));
}

int run_explain(const Arguments& arguments) {
  const Question q = question_of(arguments);
  const bool accepted = print_verdict(q);
  for (const Options& encoding : q.encodings) print_encoding(encoding, q);
  const nn::AttentionInfo& attention = nn::attention_info(q.attention->name());
  fmt::print("\n{}: {}\n", q.attention->short_form(), attention.options.doc);
  std::vector<Row> rows;
  for (const std::string& formula : attention.formulas) add_row(rows, "formula", formula);
  const nn::AttentionFacts facts = nn::facts_of_attention(*q.attention, q.causal);
  add_row(rows, "can be causal", facts.causal_exact ? "yes" : "no");
  add_row(rows, "any mask", facts.any_mask ? "yes" : "no");
  fmt::print("{}", columns(rows));
  print_costs(q);
  return accepted ? 0 : 2;
}

}  // namespace

Command explain_command() {
  Command command;
  command.name = "explain";
  command.summary = "does a position encoding go with an attention, and what are they";
  command.options = {
      {"--position", "SPEC", "position encodings, joined by +: help encodings", "none"},
      {"--attention", "SPEC", "attention: help attentions", "dense"},
      {"--task", "SPEC", "causality and lengths of this task", ""},
      {"--causal", "", "a token sees earlier tokens only", ""},
      {"--lengths", "LIST", "sequence lengths for the cost", "512,2048"},
      {"--set", "KEY=VALUE", "model.embed_dim, model.num_heads or model.head_dim", "", ArgumentType::text, {}, true},
  };
  command.examples = {"waymark explain --position 'huang-m4(clip=8)' --attention dense",
                      "waymark explain --position 'learned + rope' --causal --lengths 64,256"};
  command.details = "Exit code 0 if the judge accepts the pair, also with a loss; 2 if it refuses.\n";
  command.joins_problems = true;
  command.run = run_explain;
  return command;
}

}  // namespace waymark::train::cli
