// A case with its sampled tensors: a function of the leaves.
#pragma once

#include "core/autograd/op_info.h"
#include "tests/ops/sampler.h"

namespace waymark::test {

struct Instance {
  const OpInfo* op = nullptr;
  std::string title;
  std::vector<CaseArg> args;
  std::vector<Sample> samples;  // one per sampled argument, in order
  std::vector<Tensor> leaves;

  // Calls the op with these values in place of the leaves; Error if the case gives arguments that the op does not read.
  std::vector<Tensor> run(const std::vector<Tensor>& values) const;
};

Instance instance(const OpInfo* op, const std::string& title, const std::vector<CaseArg>& args, MemoryLayout layout, u64 seed);
std::string title_of(const OpCase& c);

}  // namespace waymark::test
