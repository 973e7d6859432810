// Kind `op` from a spec: matmul(input=[2,3], other=[3,4]), gather(input=[3,4], dim=1, index=int(shape=[3,2], high=4)).
// A tensor argument is a shape (uniform in (-2, 2)), or float(shape, low, high, grad), int(shape, low, high),
// bool(shape), or its values themselves: values(of=[[1,2],[3,4]]), whose type (bool, int, float) theirs is.
// indices: a list of ints, none, "...", slice(start=, stop=, step=), and such tensors.
#include <cmath>
#include <limits>
#include <map>

#include "core/autograd/op_info.h"
#include "core/ops/arithmetic.h"
#include "core/ops/random_ops.h"
#include "core/ops/registry.h"
#include "core/random/generator.h"
#include "nn/spec/suggest.h"
#include "train/verify/drafts.h"

namespace waymark::train {

std::map<std::string, std::string> argument_types(std::string_view schema) {
  std::map<std::string, std::string> types;
  const size_t begin = schema.find('(') + 1;
  int depth = 0;
  std::string part;
  const auto take = [&] {
    const size_t start = part.find_first_not_of(' ');
    const std::string text = start == std::string::npos ? "" : part.substr(start);
    const size_t space = text.find(' ');
    if (space != std::string::npos) types[text.substr(space + 1, text.find('=') - space - 1)] = text.substr(0, space);
    part.clear();
  };
  for (size_t i = begin; i < schema.size(); ++i) {
    const char c = schema[i];
    if (c == ')' && depth == 0) break;
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == ',' && depth == 0)
      take();
    else
      part += c;
  }
  take();
  return types;
}

namespace {

using nn::Spec;
using nn::SpecValue;

Shape shape_of(const std::string& name, const SpecValue& v) {
  if (v.kind() != SpecValue::Kind::list) fail("verify", "{} must be a shape, such as [2,3]", name);
  std::vector<i64> out;
  for (const SpecValue& n : v.list()) {
    if (n.kind() != SpecValue::Kind::integer || n.integer() < 0) fail("verify", "{}: extents are integers >= 0", name);
    out.push_back(n.integer());
  }
  return out;
}

const nn::SpecTables& element_tables() {
  static const nn::SpecTables tables(
      "element type", {{"float",
                        {{"shape", nn::int_list_option(std::nullopt, 0, 1 << 30), ""},
                         {"low", nn::real_option(-2), "least value"},
                         {"high", nn::real_option(2), "largest value"},
                         {"grad", nn::bool_option(true), "with its gradient"}},
                        "uniform numbers"},
                       {"int",
                        {{"shape", nn::int_list_option(std::nullopt, 0, 1 << 30), ""},
                         {"low", nn::int_option(0), "least value"},
                         {"high", nn::int_option(nn::required()), "above all values"}},
                        "integers"},
                       {"bool", {{"shape", nn::int_list_option(std::nullopt, 0, 1 << 30), ""}}, "true or false"}});
  return tables;
}

Tensor between(const Shape& shape, double low, double high, DType dtype, const std::string& name) {
  return add(mul(rand(shape, {.dtype = dtype, .stream = "case." + name}), high - low), low);
}

// The extents of a nested list, every level of one length; its values in their order.
void flatten(const std::string& name, const SpecValue& v, int level, Shape& shape, std::vector<SpecValue>& flat) {
  if (v.kind() != SpecValue::Kind::list) {
    if (level < shape.size()) fail("verify", "{}: the lists are not all equally long and deep", name);
    return flat.push_back(v);
  }
  const i64 n = static_cast<i64>(v.list().size());
  if (level == shape.size() && flat.empty()) shape.push_back(n);
  if (level >= shape.size() || shape[level] != n) fail("verify", "{}: the lists are not all equally long and deep", name);
  for (const SpecValue& x : v.list()) flatten(name, x, level + 1, shape, flat);
}

Tensor given_tensor(CaseDraft& d, const std::string& name, const Spec& spec) {
  const SpecValue* of = spec.find("of");
  const SpecValue* grad = spec.find("grad");
  for (const nn::SpecArg& arg : spec.args)
    if (arg.key != "of" && arg.key != "grad") fail("verify", "{}: values has no option {}; it has of, grad", name, arg.key);
  if (!of || (grad && grad->kind() != SpecValue::Kind::boolean))
    fail("verify", "{}: values(of=[[1,2],[3,4]], grad=false) is expected, not {}", name, to_string(spec));
  Shape shape;
  std::vector<SpecValue> flat;
  flatten(name, *of, 0, shape, flat);
  bool real = flat.empty(), number = true, boolean = true;
  for (const SpecValue& v : flat) {
    real |= v.kind() == SpecValue::Kind::real;
    number &= v.kind() == SpecValue::Kind::real || v.kind() == SpecValue::Kind::integer;
    boolean &= v.kind() == SpecValue::Kind::boolean;
  }
  if (!number && !boolean) fail("verify", "{}: values are numbers, or all of them true or false", name);
  const DType dtype = real ? d.dtype : boolean ? kB8 : kI64;
  if (grad && !grad->boolean()) d.constant.insert(name);
  const Tensor t = make_empty(shape, dtype);
  visit_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < flat.size(); ++i) {
      const SpecValue& v = flat[i];
      t.data<T>()[i] = v.kind() == SpecValue::Kind::real      ? static_cast<T>(v.real())
                       : v.kind() == SpecValue::Kind::integer ? static_cast<T>(v.integer())
                                                              : static_cast<T>(v.boolean());
    }
  });
  return t;
}

Tensor tensor_of(CaseDraft& d, const std::string& name, const SpecValue& v) {
  if (v.kind() == SpecValue::Kind::spec && v.spec().name == "values") return given_tensor(d, name, v.spec());
  if (v.kind() != SpecValue::Kind::spec) return between(shape_of(name, v), -2, 2, d.dtype, name);
  const nn::Options o = element_tables().resolve(v.spec());
  const Shape shape(o.integers("shape"));
  if (o.name() == "int") {
    if (o.integer("high") <= o.integer("low")) fail("verify", "{}: high must be above low", name);
    return randint(o.integer("low"), o.integer("high"), shape, {.dtype = kI64, .stream = "case." + name});
  }
  if (o.name() == "bool") return ge(rand(shape, {.dtype = kF64, .stream = "case." + name}), 0.5);
  const double low = o.real("low"), high = o.real("high");
  const double most = d.dtype == kF64 ? std::numeric_limits<double>::max() : static_cast<double>(std::numeric_limits<float>::max());
  if (!(low <= high)) fail("verify", "{}: low = {} is above high = {}", name, low, high);
  if (!(std::abs(low) <= most && std::abs(high) <= most && high - low <= most))
    fail("verify", "{}: low = {}, high = {}: a range is at most {} wide in {}", name, low, high, most, name_of(d.dtype));
  if (!o.boolean("grad")) d.constant.insert(name);
  return between(shape, low, high, d.dtype, name);
}

// Index[]: [0, none, "...", slice(start=1), values(of=[0,2])], as a file has it.
Json indices_of(CaseDraft& d, const std::string& name, const SpecValue& v) {
  if (v.kind() != SpecValue::Kind::list) fail("verify", "{} must be a list of indices", name);
  Json::Array out;
  for (const SpecValue& x : v.list()) {
    const bool word = x.kind() == SpecValue::Kind::word || x.kind() == SpecValue::Kind::text;
    if (x.kind() == SpecValue::Kind::integer) {
      out.emplace_back(x.integer());
    } else if (word && x.text() == "none") {
      out.emplace_back();
    } else if (word && x.text() == "...") {
      out.emplace_back("...");
    } else if (x.kind() != SpecValue::Kind::spec) {
      fail("verify", "{}: {} is no index; these are ints, none, \"...\", slice(start=, stop=, step=) and tensors", name, to_string(x));
    } else if (x.spec().name == "slice") {
      Json::Array ends(3);
      for (const nn::SpecArg& arg : x.spec().args) {
        const size_t place = arg.key == "start" ? 0 : arg.key == "stop" ? 1 : arg.key == "step" ? 2 : 3;
        if (place == 3 || arg.value.kind() != SpecValue::Kind::integer)
          fail("verify", "{}: slice(start=1, stop=4, step=2) is expected, or parts of it, not {}", name, to_string(x));
        ends[place] = arg.value.integer();
      }
      out.emplace_back(Json(Json::Object{{"slice", ends}}));
    } else {
      const std::string place = fmt::format("{}.{}", name, out.size());
      d.tensors["input." + place] = tensor_of(d, place, x);
      out.emplace_back("tensor");
    }
  }
  return out;
}

}  // namespace

CaseDraft draft_op(const Spec& spec) {
  CaseDraft d{.kind = "op"};
  std::vector<nn::SpecArg> all;
  std::string name;
  for (const nn::SpecArg& arg : spec.args) {
    if (arg.key != "op") {
      all.push_back(arg);
    } else if (arg.value.kind() == SpecValue::Kind::spec) {
      name = arg.value.spec().name;
      all.insert(all.end(), arg.value.spec().args.begin(), arg.value.spec().args.end());
    } else {
      name = arg.value.text();
    }
  }
  const OpInfo* op = find_op(name);
  if (!op || !op->apply) {
    std::vector<std::string> known;
    for (const OpInfo* o : all_ops())
      if (o->apply) known.emplace_back(o->name);
    fail("verify", "op {} is unknown.{}", nn::printable(name), nn::did_you_mean(name, known));
  }
  const std::map<std::string, std::string> types = argument_types(op->schema);
  std::vector<nn::SpecArg> args;
  std::set<std::string> given;
  for (const nn::SpecArg& arg : all) {
    if (!given.insert(arg.key).second) fail("verify", "{}: {} is given twice", name, nn::printable(arg.key));
    const bool of_op = types.contains(arg.key);
    const bool word = arg.value.kind() == SpecValue::Kind::word || arg.value.kind() == SpecValue::Kind::text;
    const std::string text = word ? arg.value.text() : "";
    if (arg.key == "seed" && !of_op) {
      if (arg.value.kind() != SpecValue::Kind::integer || arg.value.integer() < 0)
        fail("verify", "{}: seed must be an integer >= 0, not {}", name, to_string(arg.value));
      d.seed = static_cast<u64>(arg.value.integer());
    } else if (arg.key == "dtype" && text == "f32") {
      d.dtype = kF32;
    } else if (arg.key == "dtype" && !of_op) {
      if (text != "f64") fail("verify", "{}: dtype must be f64 or f32, not {}", name, to_string(arg.value));
    } else {
      args.push_back(arg);
    }
  }
  const RandomScope scope(d.seed);
  Json call = Json::Object{};
  std::string unknown;
  for (const nn::SpecArg& arg : args) {
    const auto type = types.find(arg.key);
    const SpecValue& v = arg.value;
    if (type == types.end()) {
      unknown += (unknown.empty() ? "" : ", ") + nn::printable(arg.key);
    } else if (type->second == "Index[]") {
      call.set(arg.key, indices_of(d, arg.key, v));
    } else if (type->second == "Tensor[]" || type->second == "Tensor?[]") {
      if (v.kind() != SpecValue::Kind::list) fail("verify", "{} must be a list of shapes", arg.key);
      for (size_t i = 0; i < v.list().size(); ++i) {
        const std::string place = fmt::format("{}.{}", arg.key, i);
        d.tensors["input." + place] = tensor_of(d, place, v.list()[i]);
      }
    } else if (type->second.starts_with("Tensor") &&
               (v.kind() == SpecValue::Kind::list || v.kind() == SpecValue::Kind::spec)) {
      d.tensors["input." + arg.key] = tensor_of(d, arg.key, v);
    } else {
      // Numbers, booleans and lists are written alike in JSON; words need quotes.
      const bool word = v.kind() == SpecValue::Kind::word || v.kind() == SpecValue::Kind::text;
      call.set(arg.key, word ? Json(v.text()) : parse_json(to_string(v), arg.key));
    }
  }
  if (!unknown.empty()) fail("verify", "{} has no argument {}; its schema is {}", name, unknown, op->schema);
  d.config = Json::Object{{"op", name}, {"args", call}};
  return d;
}

}  // namespace waymark::train
