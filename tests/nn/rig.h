// Attentions with random parameters in f64, and what property tests need around them.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/autograd/state.h"
#include "core/ops/create.h"
#include "core/ops/inplace.h"
#include "core/ops/random_ops.h"
#include "nn/attention/dense.h"
#include "nn/attention/judge.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {

class DefaultF64 {
 public:
  DefaultF64() : before_(default_dtype()) { set_default_dtype(kF64); }
  ~DefaultF64() { set_default_dtype(before_); }
  DefaultF64(const DefaultF64&) = delete;
  DefaultF64& operator=(const DefaultF64&) = delete;

 private:
  DType before_;
};

// Far from the neutral values, so that every parameter matters.
inline void randomise(nn::ModuleBase& m) {
  const NoGrad off;
  for (const nn::NamedParameter& p : m.named_parameters()) normal_(p.tensor, 0.2, 0.6, "test." + p.name);
}

// Variants of all encodings, and the default of every one that is registered.
inline std::vector<std::string> encoding_specs() {
  std::vector<std::string> list = {
      "sinusoid(layout=concat)", "shaw(clip=3)", "shaw(clip=2, values=true, per_head=true)", "shaw(clip=2, beyond=zero)",
      "huang-m1(clip=3)", "huang-m2(clip=2)", "huang-m3(clip=2)", "huang-m3(clip=3, per_head=true, beyond=zero)", "huang-m4(clip=3)",
      "huang-m4(clip=2, beyond=zero, per_head=true)", "rope(layout=halves, fraction=0.5)", "rope + huang-m4(clip=2)",
      "huang-m1(clip=2) + huang-m2(clip=3) + shaw(clip=1, values=true)", "sinusoid + learned(max_len=64) + rope + shaw",
      "cope(max_pos=3)", "huang-m4(clip=2) + cope(max_pos=4)", "xpos(scale_base=16, layout=halves)", "xpos + shaw(clip=2)"};
  for (const nn::EncodingInfo* info : nn::all_encodings()) list.push_back(info->name());
  return list;
}
inline nn::EncodingSum sum_of(const std::string& spec) { return nn::resolve_encodings(spec, 1)[0]; }
// Does dense attention take the sum in such a call? cope and xpos need a causal one.
inline bool accepted(const std::string& spec, bool causal = false, bool cross = false) {
  std::vector<std::string> problems;
  const nn::Options dense = nn::resolve_attentions("dense", 1, problems)[0];
  for (const nn::Options& o : sum_of(spec))
    if (nn::judge(o, dense, causal, cross, false).ruling == nn::Ruling::refuse) return false;
  return true;
}
inline bool shift_invariant(const nn::EncodingSum& sum) {
  for (const nn::Options& o : sum)
    if (!nn::facts_of(o).shift_invariant) return false;
  return true;
}
inline bool sees_direction(const nn::EncodingSum& sum) {
  for (const nn::Options& o : sum)
    if (nn::facts_of(o).sees_direction) return true;
  return false;
}

// E = 8, H = 2, d = 4.
struct Rig {
  explicit Rig(const std::string& position, bool causal = false, nn::AttentionConfig base = {}) {
    base.embed_dim = 8;
    base.num_heads = 2;
    base.position = position;
    base.causal = causal;
    attention = std::make_unique<nn::DenseAttention>(nullptr, "", nn::resolve_attention(base));
    randomise(*attention);
  }
  nn::DenseAttention& operator*() const { return *attention; }
  nn::DenseAttention* operator->() const { return attention.get(); }
  Tensor y(const Tensor& x, const nn::Positions& p, const Tensor& keep = {}) const {
    return (*attention)({.x = x, .positions = p, .key_keep = keep}).y;
  }

  DefaultF64 dtype;
  std::unique_ptr<nn::DenseAttention> attention;
};

inline Tensor tokens(i64 batch, i64 length, i64 width = 8) { return randn({batch, length, width}, {.dtype = kF64, .stream = "test.x"}); }
inline nn::Positions positions(const std::vector<i64>& p) { return nn::Positions(tensor(p, kI64)); }

}  // namespace waymark::test
