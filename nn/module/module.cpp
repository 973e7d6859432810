#include "nn/module/module.h"

#include <algorithm>
#include <unordered_set>

#include "core/autograd/meta.h"
#include "core/ops/projection.h"

namespace waymark::nn {

ModuleBase::ModuleBase(ModuleBase* parent, std::string_view name) : parent_(parent) {
  if (!parent) return;
  training_ = parent->training_;
  parent->check_name("module", name);
  path_ = parent->path_of(name);
  scope_ = intern_scope(path_);
  parent->items_.push_back({.kind = Kind::child, .name = std::string(name), .child = this});
}

ModuleBase::~ModuleBase() {
  for (const Item& item : items_)
    if (item.child) item.child->parent_ = nullptr;
  if (!parent_) return;
  auto& siblings = parent_->items_;
  siblings.erase(std::find_if(siblings.begin(), siblings.end(), [&](const Item& i) { return i.child == this; }));
}

std::string ModuleBase::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void ModuleBase::check_name(std::string_view what, std::string_view name) const {
  const std::string where = path_.empty() ? "the root" : path_;
  if (name.empty()) fail("module", "a {} of {} has an empty name", what, where);
  if (name.find('.') != std::string_view::npos)
    fail("module", "\"{}\" of {} has a dot in its name; dots separate modules: give it a parent instead", name, where);
  check_free(name);
}

// "a" and "a.b" exclude each other, too: a would be a parameter and a module.
void ModuleBase::check_free(std::string_view name) const {
  const auto begins = [](std::string_view text, std::string_view start) {
    return text.substr(0, start.size()) == start && (text.size() == start.size() || text[start.size()] == '.');
  };
  for (const Item& item : items_)
    if (begins(item.name, name) || begins(name, item.name))
      fail("module", "{} already has a {} called \"{}\"", path_.empty() ? "the root" : path_,
           item.kind == Kind::child ? "module" : item.kind == Kind::buffer ? "buffer" : "parameter", item.name);
}

Tensor ModuleBase::make_parameter(std::string_view name, const Shape& shape, const Init& init, ParameterOptions options) {
  const Tensor t = make_empty(shape, default_dtype());
  init.fill(t, path_of(name) + ".init");
  if (options.bounds) {
    set_bounds(t, *options.bounds);
    project(t);
  }
  t.requires_grad_();
  set_name(t, path_of(name));
  items_.push_back({.kind = Kind::parameter, .name = std::string(name), .tensor = t, .options = std::move(options)});
  return t;
}

Tensor ModuleBase::parameter(std::string_view name, const Shape& shape, const Init& init, ParameterOptions options) {
  check_name("parameter", name);
  return make_parameter(name, shape, init, std::move(options));
}

void ModuleBase::check_dotted(std::string_view dotted_name) const {
  size_t begin = 0;
  for (;;) {
    const size_t dot = std::min(dotted_name.find('.', begin), dotted_name.size());
    if (dot == begin) fail("module", "\"{}\" of {} has an empty part", dotted_name, path_.empty() ? "the root" : path_);
    if (dot == dotted_name.size()) break;
    begin = dot + 1;
  }
  check_free(dotted_name);
}

Tensor ModuleBase::parameter_at(std::string_view dotted_name, const Shape& shape, const Init& init,
                                ParameterOptions options) {
  check_dotted(dotted_name);
  return make_parameter(dotted_name, shape, init, std::move(options));
}

Tensor ModuleBase::share_parameter(std::string_view name, const Tensor& t) {
  check_name("parameter", name);
  if (!t.defined() || !t.is_leaf() || !t.requires_grad())
    fail("module", "\"{}\" must be a trainable leaf to be shared as {}", t.defined() ? t.name() : "an undefined tensor",
         path_of(name));
  items_.push_back({.kind = Kind::parameter, .name = std::string(name), .tensor = t});
  return t;
}

Tensor ModuleBase::buffer(std::string_view name, const Tensor& t) {
  check_name("buffer", name);
  return make_buffer(name, t);
}

Tensor ModuleBase::buffer_at(std::string_view dotted_name, const Tensor& t) {
  check_dotted(dotted_name);
  return make_buffer(dotted_name, t);
}

Tensor ModuleBase::make_buffer(std::string_view name, const Tensor& t) {
  if (!t.defined()) fail("module", "the buffer {} is undefined", path_of(name));
  if (t.requires_grad()) fail("module", "the buffer {} requires grad; make it a parameter or detach() it", path_of(name));
  items_.push_back({.kind = Kind::buffer, .name = std::string(name), .tensor = t});
  return t;
}

void ModuleBase::each(const std::string& prefix, const std::function<void(const Item&, const std::string&)>& f) const {
  for (const Item& item : items_) {
    const std::string name = prefix + item.name;
    if (item.child) item.child->each(name + ".", f);
    else f(item, name);
  }
}

std::vector<NamedParameter> ModuleBase::named_parameters() const {
  std::vector<NamedParameter> list;
  std::unordered_set<const TensorImpl*> seen;
  each("", [&](const Item& item, const std::string& name) {
    if (item.kind == Kind::parameter && seen.insert(item.tensor.impl()).second)
      list.push_back({name, item.tensor, item.options.no_decay});
  });
  return list;
}

std::vector<Tensor> ModuleBase::parameters() const {
  std::vector<Tensor> list;
  for (NamedParameter& p : named_parameters()) list.push_back(std::move(p.tensor));
  return list;
}

StateDict ModuleBase::named_buffers() const {
  StateDict list;
  each("", [&](const Item& item, const std::string& name) {
    if (item.kind == Kind::buffer) list.emplace_back(name, item.tensor);
  });
  return list;
}

std::vector<std::pair<std::string, ModuleBase*>> ModuleBase::children() const {
  std::vector<std::pair<std::string, ModuleBase*>> list;
  for (const Item& item : items_)
    if (item.child) list.emplace_back(item.name, item.child);
  return list;
}

void ModuleBase::visit(const std::function<void(ModuleBase&, const std::string&)>& f) {
  const std::function<void(ModuleBase&, const std::string&)> walk = [&](ModuleBase& m, const std::string& name) {
    f(m, name);
    for (const auto& [child_name, child] : m.children())
      walk(*child, name.empty() ? child_name : name + "." + child_name);
  };
  walk(*this, "");
}

void ModuleBase::visit(const std::function<void(const ModuleBase&, const std::string&)>& f) const {
  const_cast<ModuleBase*>(this)->visit([&](ModuleBase& m, const std::string& name) { f(std::as_const(m), name); });
}

void ModuleBase::train(bool on) {
  training_ = on;
  for (const Item& item : items_)
    if (item.child) item.child->train(on);
}

void ModuleBase::zero_grad() const {
  for (const Tensor& t : parameters()) t.set_grad(Tensor());
}

}  // namespace waymark::nn
