#include "tests/ops/instance.h"

#include "core/random/generator.h"

#include <map>

namespace waymark::test {

std::vector<Tensor> Instance::run(const std::vector<Tensor>& values) const {
  const RandomScope draws(7);  // ops that draw give the same function at every call
  OpCall call(std::string(op->name));
  std::map<std::string, std::vector<Tensor>> lists;
  size_t k = 0;
  for (const CaseArg& a : args) {
    if (!a.sampled) {
      call.set(a.name, a.fixed);
      continue;
    }
    const Tensor t = samples[k].view(values[k]);
    ++k;
    if (a.list >= 0) lists[a.name].push_back(t);
    else call.set(a.name, t);
  }
  for (auto& [name, list] : lists) call.set(name, list);
  op->apply(call);
  const auto unread = call.unread();
  if (!unread.empty()) fail(op->name, "the case gives arguments that the op does not read: {}", fmt::join(unread, ", "));
  std::vector<Tensor> out;
  for (auto& [name, t] : call.results) out.push_back(t);
  return out;
}

Instance instance(const OpInfo* op, const std::string& title, const std::vector<CaseArg>& args, MemoryLayout layout, u64 seed) {
  Instance x{.op = op, .title = title, .args = args, .samples = {}, .leaves = {}};
  std::mt19937_64 rng(seed * 1000003 + 7);
  for (const CaseArg& a : args)
    if (a.sampled) {
      x.samples.push_back(sample(a, layout, rng));
      x.leaves.push_back(x.samples.back().leaf);
    }
  return x;
}

std::string title_of(const OpCase& c) {
  std::string t = c.op + "(";
  for (const CaseArg& a : c.args) t += (t.back() == '(' ? "" : ", ") + a.name + (a.sampled ? " " + to_string(a.shape) : "");
  return t + ")";
}

}  // namespace waymark::test
