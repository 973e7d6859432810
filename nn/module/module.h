// Module: something with parameters and a place in a model. Built from the top down: the parent is the first argument,
// so a module knows its path ("encoder.layers.0.ffn") before its members are built.
//
//   struct Block : nn::Module<Block> {
//     Block(nn::ModuleBase& parent, std::string_view name, i64 width)
//         : Module(parent, name), up(*this, "up", width, 4 * width), gain(parameter("gain", {width}, init::ones())) {}
//     Tensor forward(const Tensor& x) { return up(x) * ...; }
//     nn::Linear up;
//     Tensor gain;
//   };
//   struct Net : nn::Module<Net> { Block block{*this, "block", 64}; ... };     // no parent: a root, its path is empty
//
// * Neither copyable nor movable: paths and children would no longer be true.
// * operator() sets the scope to the module's path, so that ops know where they were called, and calls `forward`, of
//   any signature. There is no virtual forward.
// * Names have no dots and are unique within their parent (Error). Members register in the order of construction.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/autograd/bounds.h"
#include "core/autograd/state.h"
#include "core/tensor/tensor.h"
#include "nn/init.h"

namespace waymark::nn {

struct ParameterOptions {
  // Weight decay would pull it to a wrong neutral point: biases, gains of norms, multipliers.
  bool no_decay = false;
  // Other names under which a state may have it, relative to the module, dots allowed; used where unambiguous.
  std::vector<std::string> also = {};
  // Values stay in here: the first ones are projected, and optimizers project after each step.
  std::optional<Bounds> bounds = {};
  // A state that does not have it gives the values of this parameter of the same module.
  std::string otherwise = {};
};

struct NamedParameter {
  std::string name;  // relative to the module that was asked
  Tensor tensor;
  bool no_decay = false;
};

// Parameters and buffers by name, in order; what core/io/safetensors.h reads and writes.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

// What load_state_dict(state, false) passed over.
struct LoadReport {
  std::vector<std::string> missing, unexpected;
};

class WAYMARK_API ModuleBase {
 public:
  ModuleBase() = default;                                // a root
  ModuleBase(ModuleBase& parent, std::string_view name) : ModuleBase(&parent, name) {}
  ModuleBase(ModuleBase* parent, std::string_view name);  // null: a root, the name does not count
  virtual ~ModuleBase();
  ModuleBase(const ModuleBase&) = delete;
  ModuleBase& operator=(const ModuleBase&) = delete;

  // From the root, without the root: "encoder.layers.0"; empty for a root.
  const std::string& path() const { return path_; }
  // "<path>.<name>", or the bare name without a path: of streams and messages.
  std::string path_of(std::string_view name) const;

  // In the order of registration, children in place; a shared parameter once, under its first name. Names are relative
  // to this module.
  std::vector<NamedParameter> named_parameters() const;
  std::vector<Tensor> parameters() const;
  StateDict named_buffers() const;
  // Children in the order of registration.
  std::vector<std::pair<std::string, ModuleBase*>> children() const;
  // f(module, its name relative to this one) for this module and all below it, parents first.
  void visit(const std::function<void(ModuleBase&, const std::string&)>& f);
  void visit(const std::function<void(const ModuleBase&, const std::string&)>& f) const;

  // This module and all below it. A module is built in training mode, or in its parent's.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }
  // Clears .grad of all parameters.
  void zero_grad() const;

  // Parameters and buffers by name. The tensors share memory with the module's, without history.
  StateDict state_dict() const;
  // Copies values in, cast to the module's dtypes. Every missing, unexpected, ill-shaped and ill-typed name is listed in
  // one Error, and then nothing was changed. strict = false passes over missing and unexpected ones.
  LoadReport load_state_dict(const StateDict& state, bool strict = true);

 protected:
  // For initialiser lists. A trainable leaf of the default dtype, with values from `init`.
  Tensor parameter(std::string_view name, const Shape& shape, const Init& init, ParameterOptions options = {});
  // For modules whose parameters are declared as data (position encodings): dots are allowed, as if `mlp` of "mlp.0.bias"
  // were a module of its own.
  Tensor parameter_at(std::string_view dotted_name, const Shape& shape, const Init& init, ParameterOptions options = {});
  // A parameter that another module made, under a second name: it counts and is saved once.
  Tensor share_parameter(std::string_view name, const Tensor& t);
  // State that is saved but not trained.
  Tensor buffer(std::string_view name, const Tensor& t);
  Tensor buffer_at(std::string_view dotted_name, const Tensor& t);  // as parameter_at

 private:
  friend class ModuleScope;
  enum class Kind : u8 { parameter, buffer, child };
  struct Item {
    Kind kind{};
    std::string name = {};
    Tensor tensor = {};
    ModuleBase* child = nullptr;
    ParameterOptions options = {};
  };
  void check_name(std::string_view what, std::string_view name) const;
  void check_free(std::string_view name) const;
  void check_dotted(std::string_view name) const;
  Tensor make_buffer(std::string_view name, const Tensor& t);
  Tensor make_parameter(std::string_view name, const Shape& shape, const Init& init, ParameterOptions options);
  // f(item, relative name) for every parameter and buffer here and below.
  void each(const std::string& prefix, const std::function<void(const Item&, const std::string&)>& f) const;

  ModuleBase* parent_ = nullptr;
  std::string path_;
  u32 scope_ = 0;
  bool training_ = true;
  std::vector<Item> items_;
};

// Sets the scope to a module's path; a module without a path keeps the scope of its caller.
class ModuleScope {
 public:
  explicit ModuleScope(const ModuleBase& m) : scope_(m.scope_ ? m.scope_ : thread_state().scope) {}

 private:
  Scope scope_;
};

template <class Derived> class Module : public ModuleBase {
 public:
  Module() = default;
  Module(ModuleBase& parent, std::string_view name) : ModuleBase(parent, name) {}
  Module(ModuleBase* parent, std::string_view name) : ModuleBase(parent, name) {}

  template <class... A> decltype(auto) operator()(A&&... a) {
    const ModuleScope scope(*this);
    return static_cast<Derived&>(*this).forward(std::forward<A>(a)...);
  }
  template <class... A> decltype(auto) operator()(A&&... a) const {
    const ModuleScope scope(*this);
    return static_cast<const Derived&>(*this).forward(std::forward<A>(a)...);
  }
};

}  // namespace waymark::nn
