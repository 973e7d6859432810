#include "train/verify/case_context.h"

#include <algorithm>
#include <cmath>

#include "core/autograd/state.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/inplace.h"
#include "core/ops/random_ops.h"
#include "core/ops/shape.h"
#include "nn/spec/glob.h"
#include "nn/spec/suggest.h"

namespace waymark::train {

// ---- reading --------------------------------------------------------------------------------------------------------

bool CaseContext::has(std::string_view name) const {
  return writing() ? draft_->tensors.count(std::string(name)) > 0 : file_->contains(name);
}

Tensor CaseContext::get(const std::string& name, bool u8_is_bool) {
  used_.insert(name);
  if (!has(name)) fail("verify", "{}", no_tensor(name));
  if (writing()) {
    const Tensor t = draft_->tensors.at(name);
    return u8_is_bool || t.dtype() != kB8 ? clone(t) : to(t, kI64);
  }
  const Tensor t = file_->get(name);
  return u8_is_bool && file_->find(name)->dtype == FileDType::U8 ? to(t, kB8) : t;
}

std::vector<std::string> CaseContext::with_prefix(std::string_view prefix) const {
  std::vector<std::string> out;
  const auto take = [&](const std::string& name) {
    if (name.starts_with(prefix)) out.push_back(name.substr(prefix.size()));
  };
  if (writing())
    for (const auto& [name, t] : draft_->tensors) take(name);
  else
    for (const SafeTensors::Entry& e : file_->entries()) take(e.name);
  return out;
}

std::vector<std::string> CaseContext::unused() const {
  std::vector<std::string> out;
  for (const std::string& name : with_prefix(""))
    if (!used_.contains(name)) out.push_back(name);
  return out;
}

DType CaseContext::dtype() const {
  if (writing()) return draft_->dtype;
  for (const SafeTensors::Entry& e : file_->entries())
    if (e.dtype == FileDType::F64) return kF64;
  return kF32;
}

void CaseContext::problem(std::string text) {
  std::vector<std::string>& list = report_.problems;
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

// ---- what is wanted -------------------------------------------------------------------------------------------------

bool CaseContext::wants(const std::string& name) const {
  if (!writing()) return has(name);
  constexpr std::string_view kOfInput = "grad_input.";
  if (name.starts_with(kOfInput)) {
    const std::string input = name.substr(kOfInput.size());
    const auto found = draft_->tensors.find("input." + input);
    return found != draft_->tensors.end() && is_float(found->second.dtype()) && !draft_->constant.contains(input);
  }
  if (name.starts_with("grad_param.")) return draft_->tensors.contains(name.substr(5));
  return name.starts_with("output") || draft_->optional.contains(name);
}

Tensor CaseContext::seed(const std::string& name, const Tensor& output, const Tensor& keep) {
  if (!writing()) return has(name) ? get(name) : Tensor();
  if (!output.requires_grad()) return {};
  Tensor g = randn(output.shape(), {.dtype = output.dtype(), .stream = "case.grad_output"});
  if (keep.defined()) {
    Tensor rows = to(keep, output.dtype());
    while (rows.dim() < output.dim()) rows = rows.unsqueeze(-1);
    g = mul(g, rows);
  }
  draft_->tensors[name] = g;
  return g;
}

void CaseContext::parameters(nn::ModuleBase& module, std::string_view without) {
  module.eval();
  const auto left_out = [&](const std::string& name) { return !without.empty() && nn::glob_match(without, name); };
  if (!writing()) {
    nn::StateDict state;
    for (const char* prefix : {"param.", "buffer."})
      for (const std::string& name : with_prefix(prefix)) state.emplace_back(name, get(prefix + name));
    for (const auto& [name, t] : module.state_dict())
      if (left_out(name)) state.emplace_back(name, t);
    module.load_state_dict(state);
    return;
  }
  const NoGrad off;
  // Far from the initial values, so that every one matters.
  for (const nn::NamedParameter& p : module.named_parameters()) {
    if (left_out(p.name)) continue;
    normal_(p.tensor, p.tensor.dim() == 1 ? 0.3 : 0, 0.5, "case.param." + p.name);
    draft_->tensors["param." + p.name] = clone(p.tensor.detach());
  }
  for (const auto& [name, t] : module.named_buffers())
    if (!left_out(name)) draft_->tensors["buffer." + name] = clone(t.detach());
}

// ---- comparing ------------------------------------------------------------------------------------------------------

namespace {

std::string index_text(i64 flat, const Shape& shape) {
  std::vector<i64> index(static_cast<size_t>(shape.size()));
  for (int d = shape.size() - 1; d >= 0; --d) {
    index[static_cast<size_t>(d)] = flat % shape[d];
    flat /= shape[d];
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

u64 distance_of(i64 a, i64 b) {
  return a > b ? static_cast<u64>(a) - static_cast<u64>(b) : static_cast<u64>(b) - static_cast<u64>(a);
}

// Zeros in the rows that do not count.
Tensor zeroed(const Tensor& t, const std::vector<bool>& rows) {
  const Tensor out = contiguous(clone(t.detach()));
  const i64 count = static_cast<i64>(rows.size()), width = count ? out.numel() / count : 0;
  visit_dtype(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    for (i64 r = 0; r < count; ++r)
      if (!rows[static_cast<size_t>(r)]) std::fill_n(out.data<T>() + r * width, width, T{});
  });
  return out;
}

}  // namespace

void CaseContext::compare(const std::string& name, const Tensor& ours, bool u8_is_bool) {
  if (writing()) {
    draft_->tensors[name] = clone(ours.detach());
    return;
  }
  if (!options_.only.empty() && !nn::glob_match(options_.only, name)) {
    used_.insert(name);
    return;
  }
  compare_values(name, ours, get(name, u8_is_bool), nullptr);
}

void CaseContext::compare_rows(const std::string& name, const Tensor& ours, const Tensor& keep) {
  const std::vector<bool> rows = to(keep, kB8).to_vector<bool>();
  if (writing()) {
    draft_->tensors[name] = zeroed(ours, rows);
    return;
  }
  if (!options_.only.empty() && !nn::glob_match(options_.only, name)) {
    used_.insert(name);
    return;
  }
  compare_values(name, ours, get(name), &rows);
}

void CaseContext::compare_values(const std::string& name, const Tensor& ours, const Tensor& theirs,
                                 const std::vector<bool>* keep_rows) {
  TensorCheck check{.name = name, .shape = theirs.shape(), .where = {}};
  const auto refuse = [&](std::string why) {
    check.pass = false;
    check.where = std::move(why);
    report_.checks.push_back(check);
  };
  if (!ours.defined()) return refuse("not computed");
  if (ours.shape() != theirs.shape()) return refuse(fmt::format("ours has shape {}", ours.shape()));
  if (is_float(ours.dtype()) != is_float(theirs.dtype()) || (ours.dtype() == kB8) != (theirs.dtype() == kB8))
    return refuse(
        fmt::format("ours is {}, theirs {}", waymark::name_of(ours.dtype()), waymark::name_of(theirs.dtype())));
  const std::vector<double> a = ours.to_vector<double>(), b = theirs.to_vector<double>();
  // Integers as they are: above 2^53 a double skips some.
  const bool whole = ours.dtype() == kI64;
  const std::vector<i64> wa = whole ? ours.to_vector<i64>() : std::vector<i64>(), wb = whole ? theirs.to_vector<i64>() : std::vector<i64>();
  // Elements of one row: everything but the leading axes that keep_rows counts.
  const size_t row = keep_rows && !keep_rows->empty() ? std::max<size_t>(1, a.size() / keep_rows->size()) : a.size();
  double worst = -1;
  for (size_t i = 0; i < a.size(); ++i) {
    if (keep_rows && !(*keep_rows)[i / row]) continue;
    double excess;  // error over tolerance; > 1 fails
    if (std::isnan(b[i]) || std::isnan(a[i])) {
      excess = std::isnan(b[i]) && std::isnan(a[i]) ? 0 : INFINITY;
    } else if (std::isinf(b[i]) || std::isinf(a[i])) {
      excess = a[i] == b[i] ? 0 : INFINITY;
    } else {
      const double error = whole ? static_cast<double>(distance_of(wa[i], wb[i])) : std::abs(a[i] - b[i]);
      check.max_abs = std::max(check.max_abs, error);
      if (b[i] != 0) check.max_rel = std::max(check.max_rel, error / std::abs(b[i]));
      const double tolerance = atol_ + rtol_ * std::abs(b[i]);
      excess = error == 0 ? 0 : tolerance > 0 ? error / tolerance : INFINITY;
    }
    if (excess > worst) {
      worst = excess;
      check.of_tolerance = excess;
      if (excess > 0) {
        const std::string at = index_text(static_cast<i64>(i), theirs.shape());
        check.where = whole ? fmt::format("{} ours {} theirs {}", at, wa[i], wb[i]) : fmt::format("{} ours {} theirs {}", at, a[i], b[i]);
      }
    }
    check.pass &= excess <= 1;
  }
  report_.checks.push_back(std::move(check));
}

// ---- the frame of a kind --------------------------------------------------------------------------------------------

namespace {

bool is_of(const Json& v, std::string_view type) {
  if (type == "int") return v.is_int();
  if (type == "number") return v.is_number();
  if (type == "bool") return v.is_bool();
  if (type == "text") return v.is_string();
  if (type == "list") return v.is_array();
  if (type == "object") return v.is_object();
  return true;
}

}  // namespace

std::vector<std::string> check_config(const CaseKind& kind, const Json& config) {
  std::vector<std::string> problems, known;
  for (const CaseEntry& key : kind.keys) known.emplace_back(key.name);
  for (const auto& [name, value] : config.as_object()) {
    const CaseEntry* key = nullptr;
    for (const CaseEntry& e : kind.keys)
      if (e.name == name) key = &e;
    if (key && !is_of(value, key->type))
      problems.push_back(fmt::format("config.{} must be {}, not {}", name, key->type, value.kind()));
    if (!key && !kind.more_keys)
      problems.push_back(fmt::format("config.{} is unknown; keys of kind {} are {}.{}", nn::printable(name), kind.name,
                                     fmt::join(known, ", "), nn::did_you_mean(name, known)));
  }
  for (const CaseEntry& key : kind.keys)
    if (key.required && !config.find(key.name))
      problems.push_back(fmt::format("config has no {} ({})", key.name, key.doc));
  return problems;
}

std::vector<std::string> check_tensors(const CaseKind& kind, const std::vector<std::string>& names) {
  std::vector<std::string> problems;
  for (const CaseEntry& t : kind.tensors) {
    bool found = !t.required;
    for (const std::string& name : names) found = found || nn::glob_match(t.name, name);
    if (!found) problems.push_back(no_tensor(t.name));
  }
  for (const std::string& name : names) {
    bool known = false;
    for (const CaseEntry& t : kind.tensors) known = known || nn::glob_match(t.name, name);
    if (!known) problems.push_back(no_meaning(name, kind.name));
  }
  return problems;
}

std::string no_tensor(std::string_view name) { return fmt::format("the file has no tensor {}", name); }
std::string no_meaning(std::string_view tensor, std::string_view kind) {
  return fmt::format("the tensor {} has no meaning in a case of kind {}", nn::printable(tensor), kind);
}

}  // namespace waymark::train
