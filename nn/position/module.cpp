#include "nn/position/module.h"

#include <algorithm>
#include <set>

namespace waymark::nn {

std::vector<ParameterSpec> parameters_of(const Options& encoding, const EncodingSizes& sizes) {
  const EncodingInfo& info = encoding_info(encoding.name());
  return info.parameters ? info.parameters(encoding, sizes) : std::vector<ParameterSpec>();
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
    const std::string qualified = p.encoding->name() + "." + p.spec.name;
    const Tensor t = parameter_at(owners > 1 ? qualified : p.spec.name, p.spec.shape, p.spec.init,
                                  {.no_decay = p.spec.no_decay, .also = {owners > 1 ? p.spec.name : qualified}, .bounds = p.spec.bounds});
    parameters_[{p.encoding->canonical(), p.spec.name}] = t;
  }
}

void PositionModule::make_encodings(const EncodingSizes& sizes, const PositionModule* stack) {
  for (const Options& o : sum_) {
    const ParameterLookup lookup = [&](std::string_view name) {
      Tensor t = find(o, name);
      if (!t.defined() && stack) t = stack->find(o, name);
      if (!t.defined()) fail("position", "{} asks for a parameter {} that it does not declare", o.name(), name);
      return t;
    };
    list_.push_back(encoding_info(o.name()).make(o, sizes, lookup));
    if (!list_.back()) fail("position", "the make function of {} returned nothing", o.name());
  }
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
                                                                       const Tensor& k) const {
  std::vector<std::pair<std::string, ScoreTerm>> terms;
  for (size_t i = 0; i < list_.size(); ++i) {
    std::vector<ScoreTerm> own;
    list_[i]->prepare(call, q, k, own);
    for (ScoreTerm& t : own) terms.emplace_back(sum_[i].name(), std::move(t));
  }
  return terms;
}

}  // namespace waymark::nn
