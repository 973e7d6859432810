// Internal: a registry of things that specs name: an explicit list in one .cpp file, and what a program adds.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/error.h"
#include "nn/spec/options.h"
#include "nn/spec/suggest.h"

namespace waymark::nn {

// Info has `OptionTable options` and name(). kind: "position encoding". planned: names that later versions will have.
template <class Info> class Catalog {
 public:
  Catalog(std::string kind, std::vector<Info> built_in, std::vector<std::string> planned)
      : tables_(std::move(kind)) {
    for (Info& info : built_in) add(std::move(info));
    tables_.set_planned(std::move(planned));
  }

  std::vector<const Info*> all() const {
    std::vector<const Info*> list;
    for (const auto& info : list_) list.push_back(info.get());
    return list;
  }
  const Info* find(std::string_view name) const {
    for (const auto& info : list_)
      if (info->name() == name) return info.get();
    return nullptr;
  }
  // Error for an unknown name, with suggestions.
  const Info& at(std::string_view name) const {
    if (const Info* info = find(name)) return *info;
    const auto& planned = tables_.planned();
    if (std::find(planned.begin(), planned.end(), name) != planned.end())
      fail("", "the {} {} is not part of this version", tables_.kind(), name);
    fail("", "unknown {} {}.{}", tables_.kind(), printable(name), did_you_mean(name, tables_.names()));
  }
  const SpecTables& tables() const { return tables_; }
  const std::vector<std::string>& planned() const { return tables_.planned(); }

  // For programs: checks the name.
  void add_checked(Info info) {
    const std::string& name = info.name();
    // As the specs read it: it begins with a letter.
    if (name.empty() || name[0] < 'a' || name[0] > 'z' ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") != std::string::npos)
      fail("", "\"{}\" is no name for a {}: use lower-case letters, digits, - and _, and begin with a letter", printable_part(name),
           tables_.kind());
    if (find(name)) fail("", "there is a {} called {} already", tables_.kind(), name);
    add(std::move(info));
  }

 private:
  void add(Info info) {
    tables_.add(info.options);
    list_.push_back(std::make_unique<const Info>(std::move(info)));
  }
  std::vector<std::unique_ptr<const Info>> list_;  // addresses stay
  SpecTables tables_;
};

// A pattern per layer: one item serves every layer, otherwise there is one for each; else a problem.
template <class T>
void spread_pattern(std::vector<T>& layers, std::string_view pattern, size_t items, i64 num_layers,
                    std::vector<std::string>& problems) {
  if (items != 1 && static_cast<i64>(items) != num_layers)
    problems.push_back(fmt::format("the pattern {} names {} layers, the model has {}", printable(pattern), items, num_layers));
  if (layers.size() == 1 && items == 1) layers.resize(static_cast<size_t>(std::max<i64>(0, num_layers)), layers[0]);
}

// Appends those that are not there yet: a repeated item of a pattern repeats its problems.
inline void add_new(std::vector<std::string>& problems, const std::vector<std::string>& found) {
  for (const std::string& p : found)
    if (std::find(problems.begin(), problems.end(), p) == problems.end()) problems.push_back(p);
}

// parse_pattern whose errors are problems; empty then.
inline SpecPattern parse_pattern(std::string_view text, std::vector<std::string>& problems) {
  try {
    return parse_pattern(text);
  } catch (const Error& e) {
    problems.emplace_back(e.what());
    return {};
  }
}

}  // namespace waymark::nn
