#include "train/config/sweep_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "nn/spec/glob.h"
#include "nn/spec/suggest.h"
#include "train/config/keys.h"

namespace waymark::train {

using nn::printable;
using nn::SpecValue;
using Kind = SpecValue::Kind;

namespace {

constexpr size_t kMaxCells = 100000;

// Keys that change together, and the values of each step.
struct Axis {
  std::vector<std::string> keys;
  std::vector<std::vector<RawEntry>> steps;
};

RawEntry entry_of(const std::string& key, SpecValue value, const std::string& origin) {
  RawEntry entry{key, {}, origin};
  entry.value.value = std::move(value);
  return entry;
}

// 0..4, or one number.
bool parse_seed_range(std::string_view text, std::vector<i64>& seeds) {
  auto number = [](std::string_view s, i64& out) {
    const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), out);
    return code == std::errc() && end == s.data() + s.size() && out >= 0;
  };
  const size_t dots = text.find("..");
  i64 first = 0, last = 0;
  if (dots == std::string_view::npos) {
    if (!number(text, first)) return false;
    last = first;
  } else if (!number(text.substr(0, dots), first) || !number(text.substr(dots + 2), last) || last < first) {
    return false;
  }
  if (static_cast<u64>(last - first) >= kMaxCells) return false;
  for (i64 seed = first; seed <= last; ++seed) seeds.push_back(seed);
  return true;
}

class Expansion {
 public:
  Expansion(bool strict, Problems& problems, const Registries& registries)
      : strict_(strict), problems_(problems), registries_(registries) {}

  SweepCells run(const std::vector<Source>& files, const std::vector<Override>& overrides, const std::string& seeds) {
    const size_t before = problems_.size();
    for (const Source& file : files) read_file(file);
    const Source command_line = read_overrides(overrides);
    if (!seeds.empty()) read_seeds(seeds, "--seeds");
    check_seeds(command_line);
    base_ = files;
    base_.push_back(command_line);
    if (problems_.size() == before) make_cells();
    if (problems_.size() > before) result_.cells.clear();  // nothing of a wrong request runs
    return std::move(result_);
  }

 private:
  void add(const std::string& origin, std::string text) { problems_.push_back({origin, std::move(text)}); }

  // Axes --------------------------------------------------------------------------------------------------------------

  // A later source says something else about the key: its earlier axis is gone.
  void drop_axes_of(const std::string& key) {
    std::erase_if(
        axes_, [&](const Axis& axis) { return std::find(axis.keys.begin(), axis.keys.end(), key) != axis.keys.end(); });
  }

  void read_file(const Source& file) {
    for (const RawEntry& entry : file.entries) drop_axes_of(entry.key);
    Axis zip;
    for (const RawEntry& entry : file.sweep.settings) {
      if (entry.key == "sweep.seeds")
        read_seeds(entry);
      else if (entry.key.rfind("sweep.grid.", 0) == 0)
        add_grid(entry, entry.key.substr(11));
      else if (entry.key.rfind("sweep.zip.", 0) == 0)
        add_zip(zip, entry, entry.key.substr(10));
      else
        add(entry.origin, fmt::format("{}: unknown key.{}", printable(entry.key),
                                      nn::did_you_mean(entry.key, {"sweep.seeds", "sweep.grid", "sweep.zip",
                                                                   "sweep.case", "sweep.exclude"})));
    }
    if (!zip.keys.empty()) axes_.push_back(std::move(zip));
    cases_.insert(cases_.end(), file.sweep.cases.begin(), file.sweep.cases.end());
    excludes_.insert(excludes_.end(), file.sweep.excludes.begin(), file.sweep.excludes.end());
  }

  // The values of a list in a file.
  std::vector<RawEntry> values(const RawEntry& entry, const std::string& key) {
    std::vector<RawEntry> out;
    const RawValue& raw = entry.value;
    if (!raw.unusable.empty() || raw.is_table || raw.is_table_list || raw.value.kind() != Kind::list ||
        raw.value.list().empty())
      add(entry.origin, fmt::format("{} must be a list of values", printable(entry.key)));
    else if (key == "seed")
      add(entry.origin, fmt::format("{}: seeds are given as sweep.seeds or --seeds", printable(entry.key)));
    else
      for (const SpecValue& value : raw.value.list()) out.push_back(entry_of(key, value, entry.origin));
    return out;
  }
  void add_grid(const RawEntry& entry, const std::string& key) {
    drop_axes_of(key);
    Axis axis{{key}, {}};
    for (RawEntry& value : values(entry, key)) axis.steps.push_back({std::move(value)});
    if (!axis.steps.empty()) axes_.push_back(std::move(axis));
  }
  void add_zip(Axis& zip, const RawEntry& entry, const std::string& key) {
    drop_axes_of(key);
    std::vector<RawEntry> list = values(entry, key);
    if (list.empty()) return;
    if (zip.keys.empty()) zip.steps.resize(list.size());
    if (zip.steps.size() != list.size())
      return add(entry.origin, fmt::format("{} has {} values, but {} has {}: sweep.zip pairs lists of equal length",
                                           printable(entry.key), list.size(), zip.keys.front(), zip.steps.size()));
    zip.keys.push_back(key);
    for (size_t i = 0; i < list.size(); ++i) zip.steps[i].push_back(std::move(list[i]));
  }

  // Options with several values become axes, the others one source.
  Source read_overrides(const std::vector<Override>& overrides) {
    std::vector<Override> single;
    for (const Override& o : overrides) {
      drop_axes_of(o.key);
      const auto parts = o.is_text ? std::vector<std::string>{o.text} : split_top_level(o.text);
      if (parts.size() < 2) {
        single.push_back(o);
        continue;
      }
      Axis axis{{o.key}, {}};
      for (const std::string& part : parts) {
        if (part.empty()) add(o.origin, fmt::format("{} = {}: a value is empty", printable(o.key), printable(o.text)));
        axis.steps.push_back({RawEntry{o.key, parse_setting_value(part), o.origin}});
      }
      if (o.key == "seed") add(o.origin, "several seeds are given by --seeds");
      axes_.push_back(std::move(axis));
    }
    Source source = command_line_source(single, problems_);
    for (size_t i = 0; i < overrides.size(); ++i)  // the same key as an axis and once more
      for (size_t k = 0; k < i; ++k)
        if (overrides[i].key == overrides[k].key && !both_single(single, overrides[i].key))
          add(overrides[i].origin, fmt::format("{} is given twice, by {} and by {}", printable(overrides[i].key),
                                               overrides[k].origin, overrides[i].origin));
    return source;
  }
  static bool both_single(const std::vector<Override>& single, const std::string& key) {
    return std::count_if(single.begin(), single.end(), [&](const Override& o) { return o.key == key; }) > 1;
  }

  // Seeds -------------------------------------------------------------------------------------------------------------

  void read_seeds(const RawEntry& entry) {
    const SpecValue& value = entry.value.value;
    const bool plain = entry.value.unusable.empty() && !entry.value.is_table && !entry.value.is_table_list;
    if (plain && (value.kind() == Kind::text || value.kind() == Kind::word))
      return read_seeds(value.text(), entry.origin);
    seeds_.clear();
    bool fits = plain && value.kind() == Kind::list && !value.list().empty();
    for (size_t i = 0; fits && i < value.list().size(); ++i) {
      fits = value.list()[i].kind() == Kind::integer && value.list()[i].integer() >= 0;
      if (fits) seeds_.push_back(value.list()[i].integer());
    }
    if (!fits) add(entry.origin, "sweep.seeds must be text like \"0..4\" or a list of ints >= 0");
    seeds_origin_ = entry.origin;
  }
  void read_seeds(const std::string& text, const std::string& origin) {
    seeds_.clear();
    seeds_origin_ = origin;
    for (const std::string& part : split_top_level(text))
      if (!parse_seed_range(part, seeds_))
        return add(origin, fmt::format("seeds = {}: must be like 0..4 or 0,3,7", printable(text)));
  }
  void check_seeds(const Source& command_line) {
    std::set<i64> seen;
    for (const i64 seed : seeds_)
      if (!seen.insert(seed).second) return add(seeds_origin_, fmt::format("the seed {} is given twice", seed));
    for (const RawEntry& entry : command_line.entries) {
      if (entry.key != "seed") continue;
      if (seeds_origin_ == "--seeds")
        add(entry.origin, "the seed is given twice, by --seeds and by " + entry.origin);
      else
        seeds_.clear();  // one seed on the command line replaces those of the file
    }
  }

  // Cells -------------------------------------------------------------------------------------------------------------

  void make_cells() {
    size_t count = 1;
    for (const Axis& axis : axes_) {
      count *= axis.steps.size();
      if (count > kMaxCells) return add("", fmt::format("the sweep has more than {} cells", kMaxCells));
    }
    if ((count + cases_.size()) * std::max<size_t>(1, seeds_.size()) > kMaxCells)
      return add("", fmt::format("the sweep has more than {} cells", kMaxCells));
    if (!axes_.empty() || cases_.empty()) {
      for (size_t i = 0; i < count; ++i) {
        std::vector<RawEntry> cell;
        size_t rest = i, inner = count;
        for (const Axis& axis : axes_) {
          inner /= axis.steps.size();
          const auto& step = axis.steps[rest / inner];
          cell.insert(cell.end(), step.begin(), step.end());
          rest %= inner;
        }
        add_cell(std::move(cell));
      }
    }
    for (const auto& one : cases_) add_cell(one);
  }

  void add_cell(std::vector<RawEntry> cell) {
    if (seeds_.empty()) return add_run(cell);
    for (const i64 seed : seeds_) {
      std::vector<RawEntry> seeded = cell;
      seeded.push_back(entry_of("seed", SpecValue(seed), seeds_origin_));
      add_run(seeded);
    }
  }

  void add_run(const std::vector<RawEntry>& cell) {
    std::vector<Source> sources = base_;
    sources.push_back(Source{cell, {}});
    Problems problems;
    auto config = resolve_cell(sources, problems, registries_);
    std::string refused;
    for (const Problem& p : problems) {
      if (p.refusal && config && !strict_) {
        if (!refused.empty()) refused += "; ";
        refused += p.text;
      } else if (said_.insert(p.origin + "\n" + p.text).second) {
        problems_.push_back(p);
      }
    }
    if (!config || excluded(*config)) return;
    if (!ids_.insert(config->id()).second) {
      ++result_.repeated;
      return;
    }
    result_.cells.push_back({std::move(*config), std::move(refused)});
  }

  bool excluded(const Config& config) {
    for (const auto& exclude : excludes_) {
      bool all = !exclude.empty();
      for (const RawEntry& entry : exclude) {
        if (!find_key(entry.key)) {
          const std::string text =
              fmt::format("sweep.exclude: unknown key {}.{}", printable(entry.key), suggest_key(entry.key));
          if (said_.insert(entry.origin + "\n" + text).second) add(entry.origin, text);
          return false;
        }
        const SpecValue& value = entry.value.value;
        const bool is_text = value.kind() == Kind::text || value.kind() == Kind::word;
        all = all && nn::glob_match(is_text ? value.text() : nn::value_text(value), config.short_form(entry.key));
      }
      if (all) {
        ++result_.excluded;
        return true;
      }
    }
    return false;
  }

  bool strict_;
  Problems& problems_;
  const Registries& registries_;
  std::vector<Source> base_;
  std::vector<Axis> axes_;
  std::vector<std::vector<RawEntry>> cases_, excludes_;
  std::vector<i64> seeds_;
  std::string seeds_origin_;
  std::set<std::string> said_, ids_;
  SweepCells result_;
};

}  // namespace

SweepCells expand_sweep(const std::vector<Source>& files, const std::vector<Override>& overrides,
                        const std::string& seeds, bool strict, Problems& problems, const Registries& registries) {
  return Expansion(strict, problems, registries).run(files, overrides, seeds);
}

}  // namespace waymark::train
