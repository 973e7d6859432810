// PositionModule: the `position` part of a stack or of an attention. It owns the parameters of its encodings and puts
// them under the right names.
//
// * One owner of a path: position.table. Two encodings with the same one: position.huang-m4.table, position.cope.table.
//   A state may use the plain and the qualified name wherever that is unambiguous.
// * Input-site encodings live in the stack, all others in each attention; parameters with share_layers=true live in the
//   stack, and the attentions of its layers use them.
// * Terms that depend on positions and shared parameters alone are prepared once for a forward pass, by the stack.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn/module/module.h"
#include "nn/position/registry.h"

namespace waymark::nn {

// Terms that a stack prepared for the positions of a call, by canonical spec.
struct PreparedTerms {
  Positions queries = {}, keys = {};
  bool causal = false;
  DType dtype = kF32;
  std::map<std::string, std::vector<ScoreTerm>> terms = {};
};

class WAYMARK_API PositionModule : public ModuleBase {
 public:
  // Of an attention. `stack` lends parameters of share_layers=true; null: everything is owned here.
  PositionModule(ModuleBase& parent, const EncodingSum& encodings, const EncodingSizes& sizes,
                 const PositionModule* stack = nullptr);
  // Of a stack: its input-site encodings, and the shared parameters of its layers.
  PositionModule(ModuleBase& parent, const std::vector<EncodingSum>& layers, const EncodingSizes& sizes);

  const EncodingSum& encodings() const { return sum_; }
  bool empty() const { return list_.empty(); }
  // Does an encoding here read positions? The name of the first that does; empty: none.
  std::string reader() const;

  // All input-site encodings, in order.
  Tensor add_to_input(const Tensor& x, const Positions& positions) const;
  // All others.
  std::pair<Tensor, Tensor> map_query_key(const Tensor& q, const Tensor& k, const EncodingCall& call) const;
  bool maps_query_key() const;
  // Terms with the name of their encoding, which qualifies the names of score parts where two are equal. `prepared`: of the
  // stack; what is there for the same positions is taken.
  std::vector<std::pair<std::string, ScoreTerm>> prepare(const EncodingCall& call, const Tensor& q, const Tensor& k,
                                                         const PreparedTerms* prepared = nullptr) const;
  // Of a stack: the terms of its layers that need no layer. Of the call it reads positions and `causal`. Null: there are none.
  std::shared_ptr<const PreparedTerms> prepare_shared(const EncodingCall& call, DType dtype) const;

 private:
  struct Own {
    const Options* encoding;
    ParameterSpec spec;
  };
  void make_parameters(const std::vector<Own>& list);
  void make_encodings(const EncodingSizes& sizes, const PositionModule* stack);
  std::unique_ptr<Encoding> made(const Options& encoding, const EncodingSizes& sizes, const PositionModule* stack) const;
  Tensor find(const Options& encoding, std::string_view name) const;

  EncodingSum sum_;
  std::vector<std::unique_ptr<Encoding>> list_;  // as sum_
  std::vector<std::pair<std::string, std::unique_ptr<Encoding>>> shared_;  // of a stack: those that prepare once, by canonical spec
  std::map<std::pair<std::string, std::string>, Tensor> parameters_;  // by canonical spec and name
};

// Parameters of an encoding, with their shapes: for explain and for counting without a model.
WAYMARK_API std::vector<ParameterSpec> parameters_of(const Options& encoding, const EncodingSizes& sizes);
// The path of a parameter of `encoding` as one of `sum`, below the module that owns it: position.table, or
// position.cope.table where another encoding of that owner has a table, too.
WAYMARK_API std::string parameter_path(const EncodingSum& sum, const Options& encoding, const ParameterSpec& parameter,
                                       const EncodingSizes& sizes);

}  // namespace waymark::nn
