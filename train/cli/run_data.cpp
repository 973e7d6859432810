// What waymark data does.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/autograd/state.h"
#include "nn/module/summary.h"
#include "nn/spec/suggest.h"
#include "train/cli/requests.h"
#include "train/cli/text_layout.h"
#include "train/tasks/registry.h"

namespace waymark::train::cli {

namespace {

using nn::with_commas;

constexpr i64 kChunk = 256;                // items at a time
constexpr i64 kMostItems = i64{1} << 32;  // as many as there are draws of a stream

std::string size_text(i64 size) { return size == 0 ? "items without end" : with_commas(size) + " items"; }

void print_list() {
  std::vector<Row> rows;
  for (const std::string& name : task_tables().names()) {
    const nn::OptionTable& table = *task_tables().find(name);
    rows.push_back({name, table.doc + ": " + table.signature()});
  }
  for (const auto& [alias, spec] : task_tables().aliases()) rows.push_back({alias, "= " + to_string(spec)});
  fmt::print("{}", columns(rows));
}

// f(batch, first item) over all items of a split that ends.
template <class F> void for_each_chunk(const Task& task, const SplitFacts& split, F f) {
  for (i64 first = 0; first < split.size; first += kChunk) {
    std::vector<i64> items;
    for (i64 i = first; i < std::min(first + kChunk, split.size); ++i) items.push_back(i);
    f(task.evaluation_batch(split.name, items), items);
  }
}

void print_info(const Task& task) {
  const TaskFacts& facts = task.facts();
  std::vector<Row> rows = {{"task", task.spec().canonical()},
                           {"kind", facts.kind},
                           {"tokens", fmt::format("{} in, {} out, padding {}", with_commas(task.inputs()),
                                                  with_commas(task.outputs()), task.pad_id())},
                           {"metric", facts.metric}};
  if (!task.masking().empty()) rows.push_back({"masking", task.masking()});
  for (const SplitFacts& split : task.splits())
    rows.push_back({split.name, fmt::format("{}{}, fingerprint {}", size_text(split.size),
                                            split.length ? fmt::format(" of {} tokens", with_commas(split.length)) : "",
                                            task.fingerprint(split.name))});
  fmt::print("{}", columns(rows));
}

// Lengths, targets and baselines of every split that ends.
void print_stats(const Task& task) {
  for (const SplitFacts& split : task.splits()) {
    std::vector<Row> rows;
    if (split.size == 0) {
      fmt::print("{}: without end\n\n", split.name);
      continue;
    }
    std::vector<i64> lengths;
    std::map<i64, i64> counts;
    i64 scored = 0;
    for_each_chunk(task, split, [&](const Batch& batch, const std::vector<i64>& items) {
      scored += batch.scored;
      // A batch without padding has one length.
      const std::vector<bool> keep = batch.keep.defined() ? batch.keep.to_vector<bool>() : std::vector<bool>();
      const size_t width = static_cast<size_t>(batch.tokens.size(1));
      for (size_t i = 0; i < items.size(); ++i) {
        const auto begin = keep.begin() + static_cast<std::ptrdiff_t>(keep.empty() ? 0 : i * width);
        lengths.push_back(keep.empty() ? static_cast<i64>(width)
                                       : std::count(begin, begin + static_cast<std::ptrdiff_t>(width), true));
      }
      if (is_float(batch.targets.dtype())) return;
      for (const i64 target : batch.targets.to_vector<i64>())
        if (target != kNotScored) ++counts[target];
    });
    std::sort(lengths.begin(), lengths.end());
    double sum = 0;
    for (const i64 n : lengths) sum += static_cast<double>(n);
    rows.push_back({"items", with_commas(split.size)});
    rows.push_back(
        {"tokens", fmt::format("{} in all; per item least {}, median {}, mean {:.1f}, most {}",
                               with_commas(static_cast<i64>(sum)), lengths.front(), lengths[lengths.size() / 2],
                               sum / static_cast<double>(lengths.size()), lengths.back())});
    rows.push_back({"targets", fmt::format("{} scored", with_commas(scored))});
    std::vector<std::pair<i64, i64>> common(counts.begin(), counts.end());
    std::stable_sort(common.begin(), common.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string labels;
    for (size_t i = 0; i < std::min<size_t>(8, common.size()); ++i)
      labels +=
          fmt::format("{}{} {:.1f} %", i ? ", " : "", common[i].first,
                      100 * static_cast<double>(common[i].second) / static_cast<double>(std::max<i64>(1, scored)));
    if (!labels.empty())
      rows.push_back(
          {"labels", fmt::format("{} different; most often {}", with_commas(static_cast<i64>(counts.size())), labels)});
    if (split.name != "train")
      for (const Baseline& b : task.baselines(split.name))
        rows.push_back({"baseline", fmt::format("{}: {} {:.4f}", b.name, b.metric, b.value)});
    fmt::print("{}\n{}\n", split.name, columns(rows));
  }
}

int show(const Task& task, const DataRequest& request) {
  if (!task.has_split(request.split)) {
    std::vector<std::string> names;
    for (const SplitFacts& split : task.splits()) names.push_back(split.name);
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    throw ConfigError(
        Problems{{"--split", fmt::format("there is no split {}; there are {}.{}", nn::printable(request.split), list,
                                         nn::did_you_mean(request.split, names))}});
  }
  const SplitFacts& split = task.split(request.split);
  // A stream without end still numbers its items.
  const i64 size = split.size > 0 ? split.size : kMostItems;
  if (request.item >= size)
    throw ConfigError(Problems{{"--item", fmt::format("{} is out of range: {} has the items 0 to {}", request.item,
                                                      split.name, size - 1)}});
  fmt::print("{}\n", task.describe(split.name, request.item));
  return 0;
}

// What must hold of any task: ids in range and unique, a row alone equal to the row in its batch, targets in range, the
// same fingerprint twice.
class Checker {
 public:
  explicit Checker(const Task& task) : task_(task) {}

  int run() {
    for (const SplitFacts& split : task_.splits()) {
      if (split.size == 0) {
        fmt::print("{}: without end, only its first items are checked\n", split.name);
        SplitFacts first = split;
        first.size = kChunk;
        check(first, false);
      } else {
        check(split, true);
      }
    }
    return failures_ == 0 ? 0 : 1;
  }

 private:
  void report(const std::string& split, const char* what, const std::string& fault) {
    fmt::print("{}: {}: {}\n", split, what, fault.empty() ? "ok" : fault);
    failures_ += !fault.empty();
  }

  void check(const SplitFacts& split, bool ends) {
    std::string range, targets, rows, ids;
    std::set<std::string> seen;
    for_each_chunk(task_, split, [&](const Batch& batch, const std::vector<i64>& items) {
      for (const i64 id : batch.tokens.to_vector<i64>())
        if (id < 0 || id >= task_.inputs()) range = fmt::format("id {} is outside 0..{}", id, task_.inputs() - 1);
      if (!is_float(batch.targets.dtype()))
        for (const i64 t : batch.targets.to_vector<i64>())
          if (t != kNotScored && (t < 0 || t >= task_.outputs()))
            targets = fmt::format("target {} is outside 0..{}", t, task_.outputs() - 1);
      for (const i64 item : items)
        if (!seen.insert(task_.item_id(split.name, item)).second)
          ids = fmt::format("{} is the id of two items", task_.item_id(split.name, item));
      // The first row of each chunk alone.
      const i64 one[] = {items.front()};
      const std::vector<i64> alone = task_.evaluation_batch(split.name, one).tokens.to_vector<i64>();
      const std::vector<i64> together = batch.tokens.to_vector<i64>();
      if (!std::equal(alone.begin(), alone.end(), together.begin()))
        rows = fmt::format("item {} alone differs from the item in a batch", items.front());
    });
    report(split.name, "ids of tokens", range);
    report(split.name, "targets", targets);
    report(split.name, "ids of items", ids);
    report(split.name, "an item alone and in a batch", rows);
    if (ends) {
      const bool same = task_.fingerprint(split.name) == task_.fingerprint(split.name);
      report(split.name, "fingerprint", same ? "" : "differs when it is computed again");
    }
  }

  const Task& task_;
  i64 failures_ = 0;
};

}  // namespace

int run_data(const DataRequest& request) {
  if (request.action == "list") {
    print_list();
    return 0;
  }
  NoGrad no_grad;
  const auto task = make_task(task_request(*request.config));
  if (request.action == "show") return show(*task, request);
  if (request.action == "check") return Checker(*task).run();
  if (request.action == "stats")
    print_stats(*task);
  else
    print_info(*task);
  return 0;
}

}  // namespace waymark::train::cli
