// Kind `op`: one op of the registry, called by the names of its schema. U8 data are b8 here.
#include "core/autograd/op_call.h"
#include "core/ops/registry.h"
#include "nn/spec/suggest.h"
#include "train/verify/kinds.h"

namespace waymark::train {
namespace {

i64 bound(const Json& v) { return v.is_null() ? kNoBound : v.as_int(); }

// JSON -> Argument, for everything but `indices`.
Argument to_argument(const std::string& name, const Json& v) {
  if (v.is_null()) return std::monostate{};
  if (v.is_bool()) return v.as_bool();
  if (v.is_int()) return v.as_int();
  if (v.is_number()) return v.as_double();
  if (v.is_string()) return v.as_string();
  if (!v.is_array()) fail("verify", "args.{} is {}; numbers, words, booleans and lists are allowed", name, v.kind());
  const Json::Array& list = v.as_array();
  bool ints = true, nested = !list.empty();
  for (const Json& x : list) {
    ints &= x.is_int();
    nested &= x.is_array();
  }
  if (nested) {
    std::vector<std::vector<i64>> out;
    for (const Json& row : list) {
      out.emplace_back();
      for (const Json& x : row.as_array()) out.back().push_back(x.as_int());
    }
    return out;
  }
  if (ints) {
    std::vector<i64> out;
    for (const Json& x : list) out.push_back(x.as_int());
    return out;
  }
  std::vector<double> out;
  for (const Json& x : list) out.push_back(x.as_double());
  return out;
}

// [{"slice":[a,b,s]}, "tensor", 3, null, "..."]; tensors are input.indices.<place>.
std::vector<IndexArgument> to_indices(CaseContext& c, const Json& v) {
  std::vector<IndexArgument> out;
  for (size_t i = 0; i < v.as_array().size(); ++i) {
    const Json& x = v.as_array()[i];
    if (x.is_null()) out.emplace_back(None);
    else if (x.is_int()) out.emplace_back(x.as_int());
    else if (x.is_string() && x.as_string() == "...") out.emplace_back(Ellipsis);
    else if (x.is_string() && x.as_string() == "tensor") out.emplace_back(c.get(fmt::format("input.indices.{}", i), true));
    else if (const Json* s = x.is_object() ? x.find("slice") : nullptr; s && s->as_array().size() == 3) {
      const Json::Array& a = s->as_array();
      out.emplace_back(Slice{bound(a[0]), bound(a[1]), a[2].is_null() ? 1 : a[2].as_int()});
    } else {
      fail("verify", "args.indices[{}] is no index: an int, null, \"...\", \"tensor\" or {{\"slice\":[start,stop,step]}}", i);
    }
  }
  return out;
}

}  // namespace

void run_op_case(CaseContext& c) {
  JsonReader reader(c.config(), "config");
  const std::string name = reader.text("op");
  const Json::Object args = reader.object("args");
  reader.finish();
  const OpInfo* op = find_op(name);
  if (!op || !op->apply) {
    std::vector<std::string> known;
    for (const OpInfo* o : all_ops())
      if (o->apply) known.emplace_back(o->name);
    return c.problem(fmt::format("op \"{}\" is unknown{}", name, nn::did_you_mean(name, known)));
  }
  OpCall call(name);
  for (const auto& [key, value] : args) {
    if (key == "indices" && value.is_array()) call.set(key, to_indices(c, value));
    else call.set(key, to_argument(key, value));
  }

  // Inputs; those with a gradient in the file become leaves.
  std::vector<std::pair<std::string, Tensor>> leaves;  // name as in grad_input.<name>
  std::map<std::string, std::vector<Tensor>> lists;
  for (const std::string& key : c.with_prefix("input.")) {
    if (key.starts_with("indices.")) continue;
    const Tensor t = c.get("input." + key, true);
    if (op->rule.differentiable() && c.wants("grad_input." + key)) {
      t.requires_grad_();
      leaves.emplace_back(key, t);
    }
    const size_t dot = key.find('.');
    if (dot == std::string::npos) {
      call.set(key, t);
      continue;
    }
    std::vector<Tensor>& list = lists[key.substr(0, dot)];
    const size_t place = static_cast<size_t>(std::stoul(key.substr(dot + 1)));
    if (list.size() <= place) list.resize(place + 1);
    list[place] = t;
  }
  for (auto& [key, list] : lists) call.set(key, list);

  op->apply(call);
  if (const auto unread = call.unread(); !unread.empty())
    return c.problem(fmt::format("{} has no argument {}; its schema is {}", name, fmt::join(unread, ", "), op->schema));

  std::vector<Tensor> roots;
  RunOptions run{.allow_unused = true};
  for (const auto& [key, t] : call.results) {
    const std::string tail = call.results.size() == 1 && key == "output" ? "" : "." + key;
    if (c.wants("output" + tail)) c.compare("output" + tail, t, true);
    if (Tensor g = c.seed("grad_output" + tail, t); g.defined()) {
      run.seeds.push_back(std::move(g));
      roots.push_back(t);
    }
  }
  if (leaves.empty() || roots.empty()) return;
  std::vector<Tensor> wanted;
  for (const auto& [key, t] : leaves) wanted.push_back(t);
  const GradMap grads = grad(roots, wanted, run);
  for (const auto& [key, t] : leaves) {
    // Nothing arrived is zero for another framework.
    Tensor zero = make_empty(t.shape(), t.dtype());
    visit_dtype(t.dtype(), [&](auto z) { std::fill_n(zero.data<decltype(z)>(), zero.numel(), decltype(z){}); });
    c.compare("grad_input." + key, grads.contains(t) ? grads[t] : zero);
  }
}

}  // namespace waymark::train
