// A position encoding: options, facts, parameters, and what it does at its site. One file and one line of the list in
// registry.cpp add one; a program adds its own with register_encoding() (nn/position/registry.h).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/autograd/bounds.h"
#include "core/ops/attention_terms.h"
#include "nn/init.h"
#include "nn/position/facts.h"
#include "nn/position/positions.h"
#include "nn/spec/options.h"

namespace waymark::nn {

// Sizes of the model around an encoding. E: width, H: heads, d: width of a head.
struct EncodingSizes {
  i64 embed_dim = 0, num_heads = 1, head_dim = 0;
};

// A parameter as data. Names are relative to `position`; dots make groups: "r_proj.weight".
struct ParameterSpec {
  std::string name = {};
  Shape shape = {};
  Init init = init::zeros();
  bool no_decay = false;
  bool shared = false;  // lives in the stack and serves all layers (share_layers)
  std::optional<Bounds> bounds = {};
};

// One call of one attention, as its encodings see it.
struct EncodingCall {
  Positions queries = {}, keys = {};
  bool causal = false;
  Tensor keep = {};  // allowed pairs: b8, expands to [B, H, Lq, Lk]; undefined: all
  Tensor query_keep = {}, key_keep = {};  // b8 [B, Lq], [B, Lk]: kept tokens; undefined: all
  Tensor query_segments = {}, key_segments = {};  // i64 [B, Lq], [B, Lk] of self-attention, if they were given
  // Rows [..., E] as the attention projects its queries and keys, [..., H·d] and [..., Hkv·d]; empty: it does not lend them.
  std::function<Tensor(const Tensor&)> project_query = {}, project_key = {};
};

// An encoding with its parameters. Only the functions of its site do anything.
class WAYMARK_API Encoding {
 public:
  virtual ~Encoding() = default;
  // Site input: x [B, L, E] with the positions of its tokens.
  virtual Tensor add_to_input(const Tensor& x, const Positions& positions) const;
  // Site query-key: maps q [B, H, Lq, d] and k [B, Hkv, Lk, d].
  virtual std::pair<Tensor, Tensor> map_query_key(const Tensor& q, const Tensor& k, const EncodingCall& call) const;
  // Site score: appends its terms, prepared for q and k before any query-key map. With the fact terms_of_positions it may
  // read nothing of q and k but their dtype, and nothing of the call but positions and `causal`.
  virtual void prepare(const EncodingCall& call, const Tensor& q, const Tensor& k, std::vector<ScoreTerm>& terms) const;
};

// Parameters of an encoding by their names in its ParameterSpecs.
using ParameterLookup = std::function<Tensor(std::string_view)>;

struct EncodingInfo {
  OptionTable options = {};  // with name and one line of doc
  std::function<EncodingFacts(const Options&, bool causal, bool cross)> facts = {};
  std::vector<std::string> formulas = {};  // for explain, one line each
  // Forward flops for these numbers of queries and keys, all heads, extra to none (positions 5.5). May be empty: none.
  std::function<double(const Options&, const EncodingSizes&, double queries, double keys)> flops = {};
  // Appends what does not fit these sizes, without the name of the encoding. May be empty.
  std::function<void(const Options&, const EncodingSizes&, std::vector<std::string>& problems)> check = {};
  // May be empty: no parameters.
  std::function<std::vector<ParameterSpec>(const Options&, const EncodingSizes&)> parameters = {};
  std::function<std::unique_ptr<Encoding>(const Options&, const EncodingSizes&, const ParameterLookup&)> make = {};

  const std::string& name() const { return options.name; }
};

}  // namespace waymark::nn
