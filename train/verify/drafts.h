// Internal: from a spec to the draft of a case file.
#pragma once

#include "nn/spec/options.h"
#include "train/verify/case_context.h"

namespace waymark::train {

// What can be written: the options of a kind that become keys of the config, those that say how large the inputs are,
// and a function that lays the inputs out.
struct DraftKind {
  nn::OptionTable table;
  std::vector<std::string> sizes;  // options that are no keys of the config
  void (*fill)(const nn::Options& options, CaseDraft& draft);
};
// Of every kind but `op` and `optimizer`, whose options are those of the op and of the optimizer.
const std::vector<DraftKind>& draft_kinds();

// A kind with its keys, or the short forms (verify.h). Error with all problems.
CaseDraft draft_of(const std::string& spec);

// Random inputs of a draft.
Tensor draw_floats(const Shape& shape, DType dtype, const std::string& name);
Tensor draw_ids(const Shape& shape, i64 classes, const std::string& name);

// "softmax(Tensor input, int dim, *, ScalarType? dtype=None) -> Tensor": the type of every argument. draft_op.cpp
std::map<std::string, std::string> argument_types(std::string_view schema);

// Kind `op`: the arguments by the types of the op's schema. draft_op.cpp
CaseDraft draft_op(const nn::Spec& spec);

}  // namespace waymark::train
