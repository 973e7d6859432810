// Kind `op`: one op of the registry, called by the names of its schema. U8 data are b8 here.
#include <charconv>

#include "core/autograd/op_call.h"
#include "core/ops/registry.h"
#include "nn/spec/suggest.h"
#include "train/verify/drafts.h"
#include "train/verify/kinds.h"

namespace waymark::train {
namespace {

// {"slice":[start,stop,step]}, each an int or null.
std::optional<Slice> slice_of(const Json& v) {
  const Json* ends = v.is_object() && v.as_object().size() == 1 ? v.find("slice") : nullptr;
  if (!ends || !ends->is_array() || ends->as_array().size() != 3) return {};
  const Json::Array& a = ends->as_array();
  for (const Json& x : a)
    if (!x.is_null() && !x.is_int()) return {};
  const auto bound = [&](size_t i, i64 otherwise) { return a[i].is_null() ? otherwise : a[i].as_int(); };
  return Slice{bound(0, kNoBound), bound(1, kNoBound), bound(2, 1)};
}

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
      for (const Json& x : row.as_array()) {
        if (!x.is_int()) fail("verify", "args.{}: the inner lists hold integers, not {}", name, x.kind());
        out.back().push_back(x.as_int());
      }
    }
    return out;
  }
  if (ints) {
    std::vector<i64> out;
    for (const Json& x : list) out.push_back(x.as_int());
    return out;
  }
  std::vector<double> out;
  for (const Json& x : list) {
    if (!x.is_number()) fail("verify", "args.{}: a list holds numbers, or lists of integers, not {}", name, x.kind());
    out.push_back(x.as_double());
  }
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
    else if (const auto slice = slice_of(x)) out.emplace_back(*slice);
    else {
      fail("verify", "args.indices[{}] is no index: an int, null, \"...\", \"tensor\" or {{\"slice\":[start,stop,step]}}", i);
    }
  }
  return out;
}

// The place in a list: decimal digits, as they are counted: no sign, no blank, no zero in front.
std::optional<size_t> place_of(std::string_view digits) {
  if (digits.empty() || (digits[0] == '0' && digits.size() > 1)) return {};
  size_t place = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, place);
  return error == std::errc() && end == last ? std::optional(place) : std::nullopt;
}

using PlacedTensors = std::map<size_t, Tensor>;

// Tensors by their places. Only a list that may leave tensors out has gaps, none beyond what the file could fill.
std::vector<Tensor> list_of(const std::string& name, const PlacedTensors& placed, bool may_have_gaps, size_t tensors_of_file) {
  std::vector<Tensor> list;
  for (const auto& [place, t] : placed) {
    if (may_have_gaps ? place >= tensors_of_file : place != list.size())
      fail("verify", "there is a tensor input.{0}.{1}, but none input.{0}.{2}; a list is numbered 0, 1, 2, ... without gaps", name,
           place, list.size());
    list.resize(place + 1);
    list[place] = t;
  }
  return list;
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
  std::map<std::string, PlacedTensors> lists;
  const std::vector<std::string> inputs = c.with_prefix("input.");
  for (const std::string& key : inputs) {
    if (key.starts_with("indices.")) continue;
    const size_t dot = key.find('.');
    const std::string argument = key.substr(0, dot);
    for (const auto& [given, value] : args)
      if (given == argument) fail("verify", "the argument {} is given twice: in args, and as the tensor input.{}", argument, key);
    const Tensor t = c.get("input." + key, true);
    if (op->rule.differentiable() && c.wants("grad_input." + key)) {
      t.requires_grad_();
      leaves.emplace_back(key, t);
    }
    if (dot == std::string::npos) {
      call.set(key, t);
      continue;
    }
    const auto place = place_of(std::string_view(key).substr(dot + 1));
    if (!place)
      fail("verify", "the tensor input.{}: {} is no place in a list; they are 0, 1, 2, ...", nn::printable(key),
           nn::printable(key.substr(dot + 1)));
    if (c.has("input." + argument)) fail("verify", "the argument {} is given twice: as the tensors input.{} and input.{}", argument, argument, key);
    lists[argument].emplace(*place, t);
  }
  const std::map<std::string, std::string> types = argument_types(op->schema);
  for (const auto& [key, placed] : lists) {
    const auto type = types.find(key);
    call.set(key, list_of(key, placed, type != types.end() && type->second == "Tensor?[]", inputs.size()));
  }

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
