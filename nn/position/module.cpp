#include "nn/position/module.h"

#include <algorithm>
#include <set>

namespace waymark::nn {

std::vector<ParameterSpec> parameters_of(const Options& encoding, const EncodingSizes& sizes) {
  const EncodingInfo& info = encoding_info(encoding.name());
  return info.parameters ? info.parameters(encoding, sizes) : std::vector<ParameterSpec>();
}

namespace {
// Of several encodings of one owner with a parameter of this name, each has its own.
std::string name_of_parameter(const Options& encoding, const std::string& name, i64 owners) {
  return owners > 1 ? encoding.name() + "." + name : name;
}
bool in_stack(const Options& encoding, const ParameterSpec& p) { return p.shared || facts_of(encoding).site == Site::input; }
}  // namespace

std::string parameter_path(const EncodingSum& sum, const Options& encoding, const ParameterSpec& parameter, const EncodingSizes& sizes) {
  i64 owners = 0;
  for (const Options& o : sum)
    for (const ParameterSpec& p : parameters_of(o, sizes)) owners += p.name == parameter.name && in_stack(o, p) == in_stack(encoding, parameter);
  return "position." + name_of_parameter(encoding, parameter.name, owners);
}

PositionModule::PositionModule(ModuleBase& parent, const EncodingSum& encodings, const EncodingSizes& sizes,
                               const PositionModule* stack)
    : ModuleBase(parent, "position"), sum_(encodings) {
  std::vector<Own> own;
  for (const Options& o : sum_)
    for (ParameterSpec& spec : parameters_of(o, sizes))
      if (!stack || !spec.shared) own.push_back({&o, std::move(spec)});
  make_parameters(own);
  make_encodings(sizes, stack);
}

PositionModule::PositionModule(ModuleBase& parent, const std::vector<EncodingSum>& layers, const EncodingSizes& sizes)
    : ModuleBase(parent, "position"), sum_(layers.empty() ? EncodingSum() : at_input(layers[0])) {
  std::vector<Own> own;
  for (const Options& o : sum_)
    for (ParameterSpec& spec : parameters_of(o, sizes)) own.push_back({&o, std::move(spec)});
  std::set<std::string> seen;
  for (const EncodingSum& sum : layers)
    for (const Options& o : sum) {
      if (facts_of(o).site == Site::input || !seen.insert(o.canonical()).second) continue;
      for (ParameterSpec& spec : parameters_of(o, sizes))
        if (spec.shared) own.push_back({&o, std::move(spec)});
    }
  make_parameters(own);
  make_encodings(sizes, nullptr);
  seen.clear();
  for (const EncodingSum& sum : layers)
    for (const Options& o : sum) {
      if (!facts_of(o).terms_of_positions || !seen.insert(o.canonical()).second) continue;
      const std::vector<ParameterSpec> list = parameters_of(o, sizes);
      if (std::all_of(list.begin(), list.end(), [](const ParameterSpec& p) { return p.shared; }))
        shared_.emplace_back(o.canonical(), made(o, sizes, nullptr));
    }
}

void PositionModule::make_parameters(const std::vector<Own>& list) {
  for (const Own& p : list) {
    i64 owners = 0;
    for (const Own& other : list) {
      if (other.spec.name != p.spec.name) continue;
      ++owners;
      if (other.encoding != p.encoding && other.encoding->name() == p.encoding->name())
        fail("position", "{} and {} would share the parameter {}.{}; use share_layers=false, or the same options in every layer",
             p.encoding->short_form(), other.encoding->short_form(), path(), p.spec.name);
    }
    // Either name loads.
    const Tensor t = parameter_at(name_of_parameter(*p.encoding, p.spec.name, owners), p.spec.shape, p.spec.init,
                                  {.no_decay = p.spec.no_decay, .also = {name_of_parameter(*p.encoding, p.spec.name, owners > 1 ? 1 : 2)},
                                   .bounds = p.spec.bounds});
    parameters_[{p.encoding->canonical(), p.spec.name}] = t;
  }
}

void PositionModule::make_encodings(const EncodingSizes& sizes, const PositionModule* stack) {
  for (const Options& o : sum_) list_.push_back(made(o, sizes, stack));
}

std::unique_ptr<Encoding> PositionModule::made(const Options& encoding, const EncodingSizes& sizes, const PositionModule* stack) const {
  const ParameterLookup lookup = [&](std::string_view name) {
    Tensor t = find(encoding, name);
    if (!t.defined() && stack) t = stack->find(encoding, name);
    if (!t.defined()) fail("position", "{} asks for a parameter {} that it does not declare", encoding.name(), name);
    return t;
  };
  auto e = encoding_info(encoding.name()).make(encoding, sizes, lookup);
  if (!e) fail("position", "the make function of {} returned nothing", encoding.name());
  return e;
}

Tensor PositionModule::find(const Options& encoding, std::string_view name) const {
  const auto found = parameters_.find({encoding.canonical(), std::string(name)});
  return found == parameters_.end() ? Tensor() : found->second;
}

std::string PositionModule::reader() const {
  for (const Options& o : sum_)
    if (facts_of(o).reads_positions) return o.name();
  return "";
}

bool PositionModule::maps_query_key() const {
  return std::any_of(sum_.begin(), sum_.end(), [](const Options& o) { return facts_of(o).site == Site::query_key; });
}

Tensor PositionModule::add_to_input(const Tensor& x, const Positions& positions) const {
  Tensor y = x;
  for (const auto& e : list_) y = e->add_to_input(y, positions);
  return y;
}

std::pair<Tensor, Tensor> PositionModule::map_query_key(const Tensor& q, const Tensor& k, const EncodingCall& call) const {
  std::pair<Tensor, Tensor> mapped = {q, k};
  for (const auto& e : list_) mapped = e->map_query_key(mapped.first, mapped.second, call);
  return mapped;
}

std::vector<std::pair<std::string, ScoreTerm>> PositionModule::prepare(const EncodingCall& call, const Tensor& q,
                                                                       const Tensor& k, const PreparedTerms* prepared) const {
  // Whoever adds tokens of its own has other positions, and prepares for itself.
  const auto same = [](const Positions& a, const Positions& b) {
    return a.defined() == b.defined() && (!a.defined() || a.tensor().impl() == b.tensor().impl());
  };
  if (prepared && !(same(prepared->queries, call.queries) && same(prepared->keys, call.keys) && prepared->causal == call.causal &&
                    prepared->dtype == q.dtype()))
    prepared = nullptr;
  std::vector<std::pair<std::string, ScoreTerm>> terms;
  for (size_t i = 0; i < list_.size(); ++i) {
    std::vector<ScoreTerm> own;
    const std::vector<ScoreTerm>* ready = nullptr;
    if (prepared)
      if (const auto found = prepared->terms.find(sum_[i].canonical()); found != prepared->terms.end()) ready = &found->second;
    if (ready) own = *ready;
    else list_[i]->prepare(call, q, k, own);
    for (ScoreTerm& t : own) terms.emplace_back(sum_[i].name(), std::move(t));
  }
  return terms;
}

std::shared_ptr<const PreparedTerms> PositionModule::prepare_shared(const EncodingCall& call, DType dtype) const {
  if (shared_.empty()) return nullptr;
  auto prepared = std::make_shared<PreparedTerms>(PreparedTerms{call.queries, call.keys, call.causal, dtype, {}});
  const Tensor none = make_empty({0, 0, 0, 0}, dtype);
  for (const auto& [spec, encoding] : shared_) encoding->prepare(call, none, none, prepared->terms[spec]);
  return prepared;
}

}  // namespace waymark::nn
