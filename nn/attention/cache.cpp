#include "nn/attention/cache.h"

#include <algorithm>

#include "core/autograd/state.h"
#include "core/ops/join.h"
#include "core/ops/shape.h"
#include "nn/attention/judge.h"

namespace waymark::nn {

namespace {

// The new part behind the old one. Both are there, or neither.
Tensor behind(const char* what, const Tensor& old, const Tensor& more, int axis, bool first) {
  if (first) return more;
  if (old.defined() != more.defined())
    fail("attention", "{} {} in this call, but not in those before", what, more.defined() ? "was given" : "is missing");
  return old.defined() ? cat({old, more}, axis) : more;
}

// [B, n], where the old ones are shared by the batch and the new ones are not, or the other way round.
Tensor by_row(const Tensor& positions, i64 batch) {
  return positions.dim() == 2 && positions.size(0) == batch ? positions : positions.view({1, positions.size(-1)}).expand({batch, positions.size(-1)});
}

Positions behind(const Positions& old, const Positions& more, i64 batch, bool first) {
  if (first || !old.defined() || !more.defined()) return Positions(behind("positions", old.tensor(), more.tensor(), -1, first));
  if (old.tensor().dim() == 1 && more.tensor().dim() == 1) return Positions(cat({old.tensor(), more.tensor()}, 0));
  return Positions(cat({by_row(old.tensor(), batch), by_row(more.tensor(), batch)}, 1));
}

}  // namespace

AttentionInput CachedTokens::append(const AttentionInput& in, std::initializer_list<Tensor*> mine) {
  const bool first = length == 0;
  const i64 batch = in.x.size(0);
  if (first) kept.resize(mine.size());
  size_t at = 0;
  for (Tensor* t : mine) {
    if (t->defined()) {
      if (!first && kept[at].size(0) != batch) fail("attention", "{} rows behind a cache of {}", batch, kept[at].size(0));
      kept[at] = behind("a projection", kept[at], *t, 2, first);
      *t = kept[at];
    }
    ++at;
  }
  call.positions = behind(call.positions, in.positions, batch, first);
  call.key_keep = behind("key_keep", call.key_keep, in.key_keep, 1, first);
  call.query_keep = behind("query_keep", call.query_keep, in.query_keep, 1, first);
  call.segments = behind("segments", call.segments, in.segments, 1, first);
  length += in.x.size(1);

  AttentionInput all = in;
  all.x = Tensor();
  all.positions = call.positions;
  all.key_keep = call.key_keep;
  all.query_keep = call.query_keep;
  all.segments = call.segments;
  return all;
}

AttentionCache::AttentionCache(const Attention& attention) : attention_(&attention) {
  const AttentionSetup& s = attention.setup();
  const std::string name = attention.options().short_form();
  if (s.cross) fail("attention", "a cache of cross-attention: its keys are those of the context, which does not grow");
  const AttentionFacts facts = facts_of_attention(attention.options(), true);
  if (!facts.causal_exact) fail("attention", "{}", causal_refusal(attention.options()));
  if (!facts.cache) fail("attention", "{} does not decode with a cache", name);
}

Tensor AttentionCache::append(const AttentionInput& tokens) {
  const Attention& a = *attention_;
  if (grad_enabled()) fail("attention", "decoding with a cache is not recorded: the keys of earlier calls would get no gradient; use NoGrad");
  if (a.training()) fail("attention", "decoding with a cache is of evaluation; call eval()");
  if (!a.causal(tokens))
    fail("attention", "decoding with a cache needs a causal call: without, earlier rows would change with every token; set causal");
  const ModuleScope scope(a);
  a.check(tokens);
  if (tokens.x.size(1) == 0) return a.attend(tokens).y;
  CachedTokens next = tokens_;
  Tensor y = a.decode(tokens, next);
  tokens_ = std::move(next);
  return y;
}

}  // namespace waymark::nn
