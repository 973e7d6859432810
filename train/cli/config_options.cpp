#include "train/cli/config_options.h"

#include <charconv>

#include "nn/spec/suggest.h"

namespace waymark::train::cli {

namespace {

struct ShortOption {
  const char* option;
  const char* key;
  bool is_text;  // the value is taken as it is, even if it looks like a number
};
constexpr ShortOption kShort[] = {
    {"--task", "task", true},
    {"--preset", "preset", true},
    {"--position", "model.position", true},
    {"--attention", "model.attention", true},
    {"--seed", "seed", false},
    {"--steps", "train.steps", false},
    {"--data-dir", "data.dir", true},
    {"--progress", "log.progress", true},
    {"--threads", "run.threads", false},
};

}  // namespace

std::vector<OptionInfo> config_options() {
  return {
      {"--task", "SPEC", "what is trained and measured: help tasks", ""},
      {"--preset", "NAME", "settings of a published experiment", "none", ArgumentType::text, {}, false, false, 1, true},
      {"--position", "SPEC", "position encodings, joined by +, or a pattern per layer: help encodings", "none"},
      {"--attention", "SPEC", "attention, or a pattern per layer: help attentions", "dense"},
      {"--seed", "N", "seed of everything but the data", "0", ArgumentType::integer},
      {"--steps", "N", "optimizer updates", "2000", ArgumentType::integer},
      {"--data-dir", "DIR", "where data files are looked for first", ""},
      {"--progress",
       "HOW",
       "how progress is shown",
       "auto",
       ArgumentType::text,
       {"auto", "bar", "plain", "json", "none"}},
      {"--set",
       "KEY=VALUE",
       "any other key: help keys. VALUE in TOML syntax; a bare word is a string",
       "",
       ArgumentType::text,
       {},
       true},
  };
}

std::vector<Override> config_overrides(const Arguments& arguments, Problems& problems) {
  std::vector<Override> overrides;
  for (const ShortOption& s : kShort)
    if (arguments.has(s.option) && !arguments.is_bad(s.option))
      overrides.push_back({s.key, arguments.text(s.option), s.option, s.is_text});
  for (const std::string& setting : arguments.all("--set")) {
    Override o;
    if (split_setting(setting, "--set", o, problems)) overrides.push_back(std::move(o));
  }
  return overrides;
}

std::vector<Source> read_files(const std::vector<std::string>& files, Problems& problems) {
  std::vector<Source> sources;
  for (const std::string& file : files) sources.push_back(read_toml_file(file, problems));
  return sources;
}

std::vector<i64> parse_lengths(const std::string& text, const std::string& origin, Problems& problems) {
  std::vector<i64> lengths;
  for (const std::string& part : split_top_level(text)) {
    i64 n = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), n);
    if (code != std::errc() || end != part.data() + part.size() || n < 1) {
      problems.push_back(
          {origin, code == std::errc::result_out_of_range
                       ? fmt::format("{} is out of range", nn::printable(part))
                       : fmt::format("must be lengths >= 1 with commas between, as 64,256, not {}", nn::printable(text))});
      return {};
    }
    lengths.push_back(n);
  }
  return lengths;
}

}  // namespace waymark::train::cli
