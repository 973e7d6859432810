// Attentions with random parameters in f64, and what property tests need around them.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/autograd/bounds.h"
#include "core/autograd/state.h"
#include "core/ops/create.h"
#include "core/ops/inplace.h"
#include "core/ops/random_ops.h"
#include "core/ops/shape.h"
#include "core/random/generator.h"
#include "nn/attention/projected.h"
#include "nn/attention/judge.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {

class DefaultF64 {
 public:
  explicit DefaultF64(DType dtype = kF64) : before_(default_dtype()) { set_default_dtype(dtype); }
  ~DefaultF64() { set_default_dtype(before_); }
  DefaultF64(const DefaultF64&) = delete;
  DefaultF64& operator=(const DefaultF64&) = delete;

 private:
  DType before_;
};

// Far from the neutral values, so that every parameter matters; inside the bounds of those that have some. A threshold
// starts as it does in a model: tests say by options where it lies. The same in every run of the tests, so that no kink of
// a network lies in a step of gradcheck by chance.
inline void randomise(nn::ModuleBase& m) {
  const NoGrad off;
  const RandomScope scope(5);
  for (const nn::NamedParameter& p : m.named_parameters()) {
    if (p.name.ends_with("threshold")) continue;
    normal_(p.tensor, 0.2, 0.6, "test." + p.name);
    const auto bounds = bounds_of(p.tensor);
    if (!bounds) continue;
    double* v = p.tensor.data<double>();
    for (i64 i = 0; i < p.tensor.numel(); ++i) v[i] = std::min(bounds->low + 0.1 + std::abs(v[i]), bounds->high - 0.1);
  }
}

// Variants of all encodings, and the default of every one that is registered.
inline std::vector<std::string> encoding_specs() {
  std::vector<std::string> list = {
      "sinusoid(layout=concat)", "shaw(clip=3)", "shaw(clip=2, values=true, per_head=true)", "shaw(clip=2, beyond=zero)",
      "huang-m1(clip=3)", "huang-m2(clip=2)", "huang-m3(clip=2)", "huang-m3(clip=3, per_head=true, beyond=zero)", "huang-m4(clip=3)",
      "huang-m4(clip=2, beyond=zero, per_head=true)", "rope(layout=halves, fraction=0.5)", "rope + huang-m4(clip=2)",
      "huang-m1(clip=2) + huang-m2(clip=3) + shaw(clip=1, values=true)", "sinusoid + learned(max_len=64) + rope + shaw",
      "fourier(features=6, hidden=5)", "t5(buckets=8, max_distance=9)", "t5(buckets=5, max_distance=6, bidirectional=false)",
      "alibi(heads=1)", "alibi(symmetric=false)", "sandwich(dim=6)", "fire(hidden=3, init_threshold=2.5)",
      "shaw(clip=2) + t5(buckets=4, max_distance=6) + alibi", "fourier(features=4, hidden=3) + fire(hidden=9)",
      "huang-m2(clip=2) + rope + kerple-log + kerple-power",
      "cope(max_pos=3)", "huang-m4(clip=2) + cope(max_pos=4)", "xpos(scale_base=16, layout=halves)", "xpos + shaw(clip=2)",
      "transformer-xl(clamp=3)", "huang-m2(clip=2) + transformer-xl", "deberta(clip=3)",
      "deberta(clip=2, terms=c2p, normalize_table=true)", "deberta(clip=9, terms=p2c, buckets=5)",
      "deberta(clip=4, p2c_index=ji) + rope", "deberta(clip=3, share_projections=true)",
      "tupe(max_len=99, relative=true, buckets=8, max_distance=9)", "deberta(clip=2) + tupe(max_len=99) + t5(buckets=4, max_distance=5)"};
  for (const nn::EncodingInfo* info : nn::all_encodings()) list.push_back(info->name());
  return list;
}
// Variants of all attentions, and the default of every one that is registered and has projections.
inline std::vector<std::string> attention_specs() {
  std::vector<std::string> list = {
      "dense(qk_norm=l2)", "local(window=2)", "local(block=3)", "local(block=2, before=1, after=1, qk_norm=rms)", "strided(stride=3)",
      "strided(stride=3, heads=split)", "fixed(stride=3, c=1)", "fixed(stride=4, c=2, heads=split)", "longformer(window=1)",
      "longformer(window=1, global=2)", "longformer(window=1, global=1, dilation=[1,2], projections=false)",
      "longformer(window=2, global=3, qk_norm=l2)", "bigbird(block=2, window=1, global=1, random=1)",
      "bigbird(block=2, window=3, global=2, random=1, reach=6, seed=3)", "reformer(chunk=3, hashes=2)",
      "reformer(buckets=4, chunk=2, hashes=3, duplicates=count, wrap=chain)", "reformer(chunk=4, hashes=1, wrap=none)",
      "routing(clusters=3)", "routing(clusters=2, window=3)"};
  for (const nn::AttentionInfo* info : nn::all_attentions()) {
    std::vector<std::string> problems;
    const auto o = info->options.resolve(nn::Spec{info->name(), {}}, problems);
    if (!o) continue;
    const nn::Capabilities gives = info->facts(*o, false, false).gives;
    if (gives.has(nn::Capability::query_key) && gives.has(nn::Capability::pair)) list.push_back(info->name());
  }
  return list;
}
inline nn::Options attention_of(const std::string& spec) {
  std::vector<std::string> problems;
  const auto list = nn::resolve_attentions(spec, 1, problems);
  if (list.empty()) fail("rig", "{}: {}", spec, problems.empty() ? "" : problems[0]);
  return list[0];
}
// Does the judge let the two run, in a model of 2 heads of width 4?
inline bool accepted(const std::string& position, const std::string& attention, bool causal, bool cross = false) {
  std::vector<std::string> problems, warnings;
  nn::judge_model({{nn::resolve_encodings(position, 1)[0]}, {attention_of(attention)}, {8, 2, 4}, 2, causal, cross, {}}, problems, warnings);
  return problems.empty();
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
// Positions below this are "plain" for encodings that depend on differences only up to a threshold.
inline double plain_up_to(const nn::EncodingSum& sum) {
  double limit = std::numeric_limits<double>::infinity();
  for (const nn::Options& o : sum)
    if (o.has("init_threshold")) limit = std::min(limit, o.real("init_threshold"));
  return limit;
}
// For calls with positions up to `last`.
inline bool shift_invariant(const nn::EncodingSum& sum, double last) {
  for (const nn::Options& o : sum) {
    const nn::EncodingFacts f = nn::facts_of(o);
    if (!f.shift_invariant && (f.shift.empty() || last > plain_up_to(sum))) return false;
  }
  return true;
}
inline bool needs_causal_call(const nn::EncodingSum& sum) {
  for (const nn::Options& o : sum)
    if (nn::facts_of(o).needs_causal_call) return true;
  return false;
}
inline bool twice_differentiable(const nn::EncodingSum& sum) {
  for (const nn::Options& o : sum)
    if (!nn::facts_of(o).twice_differentiable) return false;
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
    module = nn::make_attention(nullptr, "", nn::resolve_attention(base));
    attention = dynamic_cast<nn::ProjectedAttention*>(module.get());
    if (!attention) fail("rig", "{} has no projections", base.attention);
    randomise(*attention);
    attention->eval();
  }
  Rig(const std::string& position, const std::string& spec, bool causal, bool with_out_proj = true)
      : Rig(position, causal, [&] {
          nn::AttentionConfig c;
          c.attention = spec;
          c.out_proj = with_out_proj;
          return c;
        }()) {}
  nn::ProjectedAttention& operator*() const { return *attention; }
  nn::ProjectedAttention* operator->() const { return attention; }
  Tensor y(const Tensor& x, const nn::Positions& p, const Tensor& keep = {}) const {
    return (*attention)({.x = x, .positions = p, .key_keep = keep}).y;
  }

  DefaultF64 dtype;
  std::unique_ptr<nn::Attention> module;
  nn::ProjectedAttention* attention = nullptr;
};

// t with its tokens (axis 1) in another order.
inline Tensor reordered(const Tensor& t, const std::vector<i64>& order) {
  const Tensor out = make_empty(t.shape(), t.dtype());
  for (i64 b = 0; b < t.size(0); ++b)
    for (size_t i = 0; i < order.size(); ++i)
      for (i64 e = 0; e < t.size(2); ++e) out.at<double>({b, static_cast<i64>(i), e}) = t.at<double>({b, order[i], e});
  return out;
}
// t with zeros, or other content, in front of and behind its tokens.
inline Tensor padded(const Tensor& t, i64 left, i64 right, double content) {
  const Tensor out = full({t.size(0), t.size(1) + left + right, t.size(2)}, content, kF64);
  const NoGrad off;
  out.narrow(1, left, t.size(1)).copy_(t.detach());
  return out;
}
inline Tensor kept(i64 batch, i64 left, i64 length, i64 right) {
  const Tensor keep = zeros({batch, left + length + right}, kB8);
  keep.narrow(1, left, length).fill_(true);
  return keep;
}
inline double norm(const Tensor& t) { return largest_difference(t, zeros_like(t)); }
inline Tensor tokens(i64 batch, i64 length, i64 width = 8) { return randn({batch, length, width}, {.dtype = kF64, .stream = "test.x"}); }
inline nn::Positions positions(const std::vector<i64>& p) { return nn::Positions(tensor(p, kI64)); }

}  // namespace waymark::test
