// waymark explain --position P --attention A: the verdict of the judge, and what the two are.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/io/files.h"
#include "nn/attention/judge.h"
#include "nn/attention/mask_report.h"
#include "nn/module/summary.h"
#include "nn/spec/suggest.h"
#include "train/cli/command_list.h"
#include "train/cli/config_options.h"
#include "train/cli/text_layout.h"
#include "train/config/keys.h"
#include "train/config/registries.h"
#include "train/report/mask_svg.h"
#include "train/trainer/cost.h"
#include "train/trainer/run_folder.h"

namespace waymark::train::cli {

namespace {

using nn::Options;
using nn::Ruling;

// What a pattern reads, whatever the length.
enum class Pairs { all, of_positions, of_content };
Pairs pairs_of(const Options& attention) {
  const auto pattern = nn::attention_pattern(attention, nn::sequence_call(1), "attention.pattern");
  return !pattern ? Pairs::of_content : pattern->is_all() ? Pairs::all : Pairs::of_positions;
}

struct Question {
  std::vector<Options> encodings;
  std::optional<Options> attention;
  nn::EncodingSizes sizes;
  bool causal = false;
  std::vector<i64> lengths = {512, 2048};
  std::optional<Options> against;
  nn::Mask mask;
  i64 shift = 0;
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

// Why a file cannot be written at this place; nothing if it can.
std::optional<std::string> file_refusal(const std::string& text) {
  namespace fs = std::filesystem;
  const fs::path file(text);
  std::error_code ignored;
  if (!file.has_filename()) return "must name a file";
  if (fs::is_directory(file, ignored)) return nn::printable(text, 200) + " is a folder";
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (const auto refusal = place_refusal(folder)) return refusal;
  if (!fs::is_directory(folder, ignored)) return fmt::format("there is no folder {}", nn::printable(folder.string(), 200));
  return std::nullopt;
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
  if (arguments.has("--against"))
    parsed("--against", problems, [&](auto& texts) {
      q.against = r.attentions->resolve(nn::parse_spec(arguments.text("--against")), texts, defaults);
    });
  parsed("--mask", problems, [&](auto&) {
    q.mask = nn::Mask::parse(text_of("--mask", "all()"));
    q.mask.check_heads(q.sizes.num_heads);
    if (!q.mask.inputs().empty()) fail("", "{}(input) needs an array, and there is no call here", q.mask.inputs().front());
  });
  if (arguments.has("--shift")) q.shift = arguments.integer("--shift");
  // What cannot be answered is said before anything is printed.
  if (q.attention) parsed("--attention", problems, [&](auto&) { (void)pairs_of(*q.attention); });
  if (q.against) parsed("--against", problems, [&](auto&) { (void)pairs_of(*q.against); });
  if (problems.empty())
    parsed("--mask", problems, [&](auto&) {
      for (const i64 length : q.lengths)
        if (length <= nn::kLongestReport) q.mask.check_call(nn::sequence_call(length, q.sizes.num_heads, q.causal, q.shift));
    });
  for (const char* option : {"--svg", "--pgm"}) {
    if (!arguments.has(option)) continue;
    if (const auto refusal = file_refusal(arguments.text(option))) problems.push_back({option, *refusal});
    else if (problems.empty() && pairs_of(*q.attention) == Pairs::of_content)
      problems.push_back({option, fmt::format("which pairs of tokens meet in {} depends on what they are: there is no picture", q.attention->name())});
  }
  if (!q.lengths.empty() && q.lengths.front() > nn::kLongestReport)
    for (const char* option : {"--svg", "--pgm", "--against"})
      if (arguments.has(option))
        problems.push_back({option, fmt::format("a picture is of at most {} tokens, and the first of --lengths is {}", nn::kLongestReport, q.lengths.front())});
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

void print_encoding(const nn::EncodingSum& sum, const Options& encoding, const Question& q) {
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
              fmt::format("{} {}, {} numbers{}, starts as {}{}{}{}", nn::parameter_path(sum, encoding, p, q.sizes), to_string(p.shape),
                          nn::with_commas(checked_numel("explain", p.shape)),
                          facts.site == nn::Site::input || p.shared ? " once" : " per layer", p.init.text(),
                          bounds_text(p.bounds), p.no_decay ? ", does not decay" : "", p.shared ? ", shared by the layers" : ""));
  }
  fmt::print("{}", columns(rows));
}

// The pattern of an attention, and --mask; nothing if the pairs depend on what the tokens say.
std::optional<nn::Mask> mask_of(const Options& attention, const Question& q, i64 length) {
  const auto pattern = nn::attention_pattern(attention, nn::sequence_call(length, q.sizes.num_heads, q.causal, q.shift), "attention.pattern");
  return pattern ? std::optional(*pattern & q.mask) : std::nullopt;
}

// The pairs of an attention on one sequence; nothing if they depend on what the tokens say, if they are all, or too many to
// count.
std::optional<nn::MaskReport> report_of(const Options& attention, const Question& q, i64 length) {
  if (length > nn::kLongestReport) return std::nullopt;
  const auto pattern = mask_of(attention, q, length);
  if (!pattern || pattern->is_all()) return std::nullopt;
  return nn::mask_report(*pattern, nn::sequence_call(length, q.sizes.num_heads, q.causal, q.shift), q.sizes.head_dim);
}

// Forward flops of the attention part of one layer on one sequence, and what a query sees.
void print_costs(const Question& q, const std::vector<std::optional<nn::MaskReport>>& reports) {
  std::vector<Row> rows;
  Pairs pairs = pairs_of(*q.attention);
  if (pairs == Pairs::all && !q.mask.is_all()) pairs = Pairs::of_positions;
  for (size_t i = 0; i < q.lengths.size(); ++i) {
    const i64 length = q.lengths[i];
    const LayerCost cost = layer_cost(q.encodings, q.sizes, 0, q.causal, length,
                                      reports[i] ? std::optional(reports[i]->density()) : std::nullopt);
    const double n = static_cast<double>(length), keys = cost.density * n;
    std::string extra;
    if (pairs == Pairs::of_positions && !reports[i]) {
      rows.push_back({fmt::format("L = {}", length), fmt::format("projections {} flops forward; the pairs are not counted beyond {} tokens",
                                                                flops_text(cost.projections), nn::with_commas(nn::kLongestReport))});
      continue;
    }
    for (const auto& [name, flops] : cost.encodings) extra += fmt::format(", {} {}", name, flops_text(flops));
    rows.push_back(
        {fmt::format("L = {}", length),
         fmt::format("projections {}, scores and mix {}{}, together {} flops forward; {} keys per query on "
                     "average (density {:.2f}), {} pairs per head{}",
                     flops_text(cost.projections), flops_text(cost.scores), extra, flops_text(cost.total()),
                     nn::with_commas(std::llround(keys)), cost.density, nn::with_commas(std::llround(n * keys)),
                     pairs == Pairs::of_content ? ", as if all met: which do depends on the tokens" : "")});
  }
  fmt::print("\none layer, one sequence, model.embed_dim = {}, model.num_heads = {}, model.head_dim = {}\n{}",
             q.sizes.embed_dim, q.sizes.num_heads, q.sizes.head_dim, columns(rows));
}

// Reports of all lengths, pictures of the first.
void print_reports(const Question& q, const std::vector<std::optional<nn::MaskReport>>& reports, const Arguments& arguments) {
  const i64 length = q.lengths.front();
  if (length > nn::kLongestReport) return;
  const auto write = [&](const char* option, const std::string& text) {
    if (arguments.has(option)) write_file_atomic(arguments.text(option), text);
  };
  const std::string name = q.attention->short_form() + (q.mask.is_all() ? "" : " & " + q.mask.to_string());
  const auto pattern = mask_of(*q.attention, q, length);
  if (!pattern) {
    fmt::print("\nwhich pairs of tokens meet depends on what they are: there is no picture\n");
    return;
  }
  if (pattern->is_all() && !q.against && !arguments.has("--svg") && !arguments.has("--pgm")) return;
  fmt::print("\npairs: {}\n", pattern->to_string(true));
  for (const auto& r : reports)
    if (r) fmt::print("{}", nn::to_string(*r));
  const nn::MaskCall call = nn::sequence_call(length, q.sizes.num_heads, q.causal, q.shift);
  const nn::MaskReport first = reports.front() ? *reports.front() : nn::mask_report(*pattern, call, q.sizes.head_dim);
  for (size_t h = 0; h < first.heads.size(); ++h)
    fmt::print("\n{} tokens{}, queries downwards, keys to the right:\n{}", length,
               first.heads.size() == 1 ? "" : fmt::format(", head {}", h), nn::picture_text(first.heads[h].picture));
  write("--pgm", nn::picture_pgm(first.heads.front().picture));
  if (!q.against) return write("--svg", mask_svg(first, name));
  const auto other = mask_of(*q.against, q, length);
  if (!other) {
    fmt::print("\n{} has no picture to compare with\n", q.against->short_form());
    return write("--svg", mask_svg(first, name));
  }
  const nn::MaskDifference d = nn::mask_difference(*other, *pattern, call);
  fmt::print("\nagainst {}{}: {} pairs kept (█ ▒), {} gone (-), {} new (+)\n{}", q.against->short_form(), pattern->per_head() || other->per_head() ? ", head 0" : "",
             nn::with_commas(d.kept_pairs),
             nn::with_commas(d.gone_pairs), nn::with_commas(d.added_pairs), nn::picture_text(d));
  write("--svg", mask_svg(d, fmt::format("{} against {}", name, q.against->short_form())));
}

int run_explain(const Arguments& arguments) {
  const Question q = question_of(arguments);
  const bool accepted = print_verdict(q);
  for (const Options& encoding : q.encodings) print_encoding(q.encodings, encoding, q);
  const nn::AttentionInfo& attention = nn::attention_info(q.attention->name());
  fmt::print("\n{}: {}\n", q.attention->short_form(), attention.options.doc);
  std::vector<Row> rows;
  add_row(rows, "options", q.attention->canonical());
  for (const std::string& formula : attention.formulas) add_row(rows, "formula", formula);
  const nn::AttentionFacts facts = nn::facts_of_attention(*q.attention, q.causal);
  add_row(rows, "can be causal", facts.causal_exact ? "yes" : "no");
  add_row(rows, "cross-attention", facts.cross ? "yes" : "no");
  add_row(rows, "any mask", facts.any_mask ? "yes" : "no");
  add_row(rows, "moves with --shift", facts.topology_sensitive ? "yes" : "no");
  add_row(rows, "shares key heads", facts.shares_key_heads ? "yes" : "no");
  fmt::print("{}", columns(rows));
  std::vector<std::optional<nn::MaskReport>> reports;
  for (const i64 length : q.lengths) reports.push_back(report_of(*q.attention, q, length));
  print_costs(q, reports);
  print_reports(q, reports, arguments);
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
      {"--mask", "EXPR", "mask expression, joined with the attention's own pattern: window(4, 4) | global(count=1)", "all()"},
      {"--shift", "N", "moves the borders of blocks", "0", ArgumentType::integer},
      {"--against", "SPEC", "another attention: which pairs does it have, and which are new", ""},
      {"--svg", "FILE", "write the picture of the pairs as SVG, with --against that of the difference", ""},
      {"--pgm", "FILE", "write the picture of the pairs as a grey PGM (of the first head)", ""},
      {"--set", "KEY=VALUE", "model.embed_dim, model.num_heads or model.head_dim", "", ArgumentType::text, {}, true},
  };
  command.examples = {"waymark explain --position 'huang-m4(clip=8)' --attention dense",
                      "waymark explain --position 'learned + rope' --causal --lengths 64,256",
                      "waymark explain --attention dense --mask 'window(8, 8) | global(count=1)' --lengths 64 --svg mask.svg"};
  command.details = "Exit code 0 if the judge accepts the pair, also with a loss; 2 if it refuses.\n";
  command.joins_problems = true;
  command.run = run_explain;
  return command;
}

}  // namespace waymark::train::cli
