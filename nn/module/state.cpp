// State dictionaries of modules.
#include <map>
#include <unordered_set>

#include "core/autograd/state.h"
#include "core/ops/inplace.h"
#include "nn/module/module.h"

namespace waymark::nn {

namespace {

// The same values without history.
Tensor plain(const Tensor& t) { return alias(t); }

struct Target {
  std::string name;
  Tensor tensor;
  const Tensor* source = nullptr;
  std::string source_name = {};
  std::string otherwise = {};
};

}  // namespace

StateDict ModuleBase::state_dict() const {
  StateDict state;
  std::unordered_set<const TensorImpl*> seen;
  each("", [&](const Item& item, const std::string& name) {
    if (seen.insert(item.tensor.impl()).second) state.emplace_back(name, plain(item.tensor));
  });
  return state;
}

LoadReport ModuleBase::load_state_dict(const StateDict& state, bool strict) {
  std::vector<Target> targets;
  std::map<const TensorImpl*, size_t> place;
  // Names under which a tensor may stand in the state. Two targets for one other name: it is ambiguous, none gets it.
  constexpr size_t kNone = ~size_t{0};
  std::map<std::string, size_t, std::less<>> by_name, by_other_name;
  each("", [&](const Item& item, const std::string& name) {
    const auto [entry, fresh] = place.emplace(item.tensor.impl(), targets.size());
    if (fresh) targets.push_back({name, item.tensor});
    by_name[name] = entry->second;
    const std::string prefix = name.substr(0, name.size() - item.name.size());
    if (fresh && !item.options.otherwise.empty()) targets.back().otherwise = prefix + item.options.otherwise;
    for (const std::string& other : item.options.also) {
      const auto [found, is_new] = by_other_name.emplace(prefix + other, entry->second);
      if (!is_new && found->second != entry->second) found->second = kNone;
    }
  });

  LoadReport report;
  std::vector<std::string> problems, unexpected;
  for (const auto& [name, tensor] : state) {
    if (!tensor.defined()) {
      problems.push_back(fmt::format("undefined: {}", name));
      continue;
    }
    auto found = by_name.find(name);
    if (found == by_name.end()) {
      found = by_other_name.find(name);
      if (found == by_other_name.end() || found->second == kNone) {
        report.unexpected.push_back(name);
        unexpected.push_back(fmt::format("unexpected: {} {} {}", name, tensor.shape(), name_of(tensor.dtype())));
        continue;
      }
    }
    Target& target = targets[found->second];
    if (target.source) {
      problems.push_back(fmt::format("twice: {}, as {} and as {}", target.name, target.source_name, name));
      continue;
    }
    target.source = &tensor;
    target.source_name = name;
    if (!(tensor.shape() == target.tensor.shape()))
      problems.push_back(fmt::format("shape: {} is {} in the state, {} here", name, tensor.shape(), target.tensor.shape()));
    else if (is_float(tensor.dtype()) != is_float(target.tensor.dtype()) ||
             (!is_float(tensor.dtype()) && tensor.dtype() != target.tensor.dtype()))
      problems.push_back(fmt::format("type: {} is {} in the state, {} here", name, name_of(tensor.dtype()),
                                     name_of(target.tensor.dtype())));
  }
  for (Target& target : targets)
    if (const auto other = by_name.find(target.otherwise); !target.source && !target.otherwise.empty() && other != by_name.end() &&
                                                           targets[other->second].source) {
      if (targets[other->second].source->shape() == target.tensor.shape()) target.source = targets[other->second].source;
    }
  std::vector<std::string> missing;
  for (const Target& target : targets) {
    if (target.source) continue;
    report.missing.push_back(target.name);
    missing.push_back(
        fmt::format("missing: {} {} {}", target.name, target.tensor.shape(), name_of(target.tensor.dtype())));
  }
  if (strict) {
    problems.insert(problems.begin(), unexpected.begin(), unexpected.end());
    problems.insert(problems.begin(), missing.begin(), missing.end());
  }
  if (!problems.empty()) {
    std::string text;
    for (const std::string& p : problems) text += "\n  " + p;
    fail("load_state_dict", "{} problem{}, nothing was changed{}", problems.size(), problems.size() == 1 ? "" : "s", text);
  }

  const NoGrad off;
  for (const Target& target : targets)
    if (target.source) copy_(target.tensor, *target.source);
  return report;
}

}  // namespace waymark::nn
