// Internal: the kinds of case files, one function each.
#pragma once

#include "nn/attention/attention.h"
#include "train/optim/base.h"
#include "train/verify/case_context.h"

namespace waymark::train {

void run_op_case(CaseContext& context);
void run_optimizer_case(CaseContext& context);
void run_loss_case(CaseContext& context);
void run_attention_case(CaseContext& context);
void run_attention_core_case(CaseContext& context);
void run_embedding_position_case(CaseContext& context);
void run_query_key_map_case(CaseContext& context);
void run_score_bias_case(CaseContext& context);
void run_encoder_layer_case(CaseContext& context);
void run_training_case(CaseContext& context);

// An optimizer by name, with the options of a case's JSON.
std::unique_ptr<Optimizer> optimizer_from_case(std::vector<ParamGroup> groups, const std::string& name, const Json::Object& options);
// The keys that kinds `optimizer` and `training` share. Error for a negative limit (0 = off).
double clip_norm_key(const Json& config);
// `lr` as a list: a rate for each of the steps; empty if it is no list. Error that names the place.
std::vector<double> rates_key(const Json& config, i64 steps);

// Modules are built in the file's dtype.
class DefaultDType {
 public:
  explicit DefaultDType(DType t);
  ~DefaultDType();
  DefaultDType(const DefaultDType&) = delete;
  DefaultDType& operator=(const DefaultDType&) = delete;

 private:
  DType before_;
};

// A size in a config: least to 2²⁴, else Error. otherwise: of a key that may be missing.
i64 size_key(JsonReader& r, std::string_view name, i64 least, std::optional<i64> otherwise = {});
// Error unless the tensor, if the file has it, has the axes that the text names: "[B, L, E]".
void need_axes(CaseContext& c, const std::string& name, std::string_view text);
// What a file from a stranger must keep to before anything large is built by its config: false, and a problem, if the
// tensor is there and has another shape (-1: any extent), or if an encoding's parameters are larger than all that the
// file has. Small things are built, and what does not fit is found then.
bool need_shape(CaseContext& c, const std::string& name, const Shape& wanted);
bool need_parameters(CaseContext& c, const nn::EncodingSum& sum, const nn::EncodingSizes& sizes);
// The keys that all kinds with an attention share.
struct AttentionKeys {
  AttentionKeys(JsonReader& r, bool cross);
  nn::AttentionConfig config;
  nn::Mask mask;  // of the call
  i64 shift = 0;
};
// What `input` stands for in the mask of a case.
nn::MaskArrays mask_arrays(CaseContext& c);
nn::Positions positions_or_range(CaseContext& c, const std::string& name, i64 length);
Tensor keep_of(CaseContext& c, const std::string& name);  // b8; undefined if the file has none
Tensor leaf_of(CaseContext& c, const std::string& name);  // requires grad if its gradient is wanted
// An output by its name in the file; keep: rows that count (undefined: all).
struct CaseOutput {
  std::string name;
  Tensor value, keep;
};
// Backward from the outputs that have a gradient in the file, then every gradient that it has.
void compare_gradients(CaseContext& c, const std::vector<CaseOutput>& outputs,
                       const std::vector<std::pair<std::string, Tensor>>& inputs, const nn::ModuleBase* module);

}  // namespace waymark::train
