// routing: queries and keys meet in clusters around centroids (Roy et al. 2021; as implemented in
// lucidrains/routing-transformer, KmeansAttention).
//
//   q̂ = q/‖q‖, k̂ = k/‖k‖;  cluster c takes the w kept queries with the largest q̂·μ_c, and the w kept keys likewise
//   z_i = mean over the clusters that hold i and give it a key of softmax_{j in keys(c)}(e_ij) v_j;  0 if there is none
//
// Training, after the forward: loss commitment·mean((x̂ - μ_best)²) over kept queries and keys;
// μ_c <- decay·μ_c + (1 - decay)·normalise(Σ x̂ whose nearest is c). Both choices have no gradient.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/create.h"
#include "core/ops/index.h"
#include "core/ops/inplace.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "nn/attention/mask_rows.h"
#include "nn/attention/projected.h"

namespace waymark::nn {

namespace {

Tensor unit_vectors(const Tensor& x) { return div(x, sqrt(clamp(sum(square(x), -1, true), 1e-24, {}))); }

class RoutingAttention final : public ProjectedAttention {
 public:
  RoutingAttention(ModuleBase* parent, std::string_view name, AttentionSetup s)
      : ProjectedAttention(parent, name, std::move(s)), clusters_(options().integer("clusters")) {
    const Tensor start = make_empty({setup().sizes.num_heads, clusters_, setup().sizes.head_dim}, default_dtype());
    init::normal(0, 1).fill(start, path_of("attention.centroids") + ".init");
    const NoGrad off;
    centroids_ = buffer_at("attention.centroids", unit_vectors(start));
  }

 protected:
  std::vector<Pass> passes(const Projected& p, const AttentionInput& in) const override {
    const std::vector<Tensor> of_queries = members(p.q, query_keep(in)), of_keys = members(p.k, in.key_keep);
    std::vector<Pass> list;
    list.push_back(pass_of(p.q, p.k, p.v, in, allowed_pairs(in, p.q.size(0), p.q.size(2), p.k.size(2))));
    for (size_t c = 0; c < of_queries.size(); ++c)
      list.back().call.groups.push_back(logical_and(of_queries[c].unsqueeze(-1), of_keys[c].unsqueeze(-2)));
    return list;
  }

  void after_forward(const Projected& p, const AttentionInput& in, AttentionOutput& out) const override {
    if (!training()) return;
    const Tensor q = unit_vectors(p.q), k = unit_vectors(p.k), q_keep = query_keep(in);
    const Tensor q_near = nearest(q), k_near = nearest(k);
    out.auxiliary_losses.emplace_back("commitment", commitment(q, q_near, q_keep, k, k_near, in.key_keep));
    move_centroids(q.detach(), q_near, q_keep, k.detach(), k_near, in.key_keep);
  }

 private:
  // x̂·μ in f64, without BLAS: a choice must not depend on how many rows stand beside it.
  std::vector<double> similarities(const Tensor& x) const {
    const Tensor unit = contiguous(to(unit_vectors(x.detach()), kF64)), mu = contiguous(to(centroids_, kF64));
    const i64 rows = unit.numel() / std::max<i64>(1, unit.size(3)), length = unit.size(2), heads = unit.size(1), width = unit.size(3);
    std::vector<double> out(static_cast<size_t>(rows * clusters_), 0);
    for (i64 row = 0; row < rows; ++row) {
      const double* vector = unit.data<double>() + row * width;
      const i64 h = row / std::max<i64>(1, length) % heads;
      for (i64 c = 0; c < clusters_; ++c) {
        const double* centre = mu.data<double>() + (h * clusters_ + c) * width;
        out[static_cast<size_t>(row * clusters_ + c)] = std::inner_product(vector, vector + width, centre, 0.0);
      }
    }
    return out;
  }

  // For each cluster b8 [B, H, L]: the kept tokens that it takes.
  std::vector<Tensor> members(const Tensor& x, const Tensor& keep) const {
    const i64 batch = x.size(0), heads = x.size(1), length = x.size(2);
    const std::vector<double> near = similarities(x);
    std::vector<Tensor> list;
    for (i64 c = 0; c < clusters_; ++c) list.push_back(zeros({batch, heads, length}, kB8));
    for (i64 b = 0; b < batch; ++b) {
      const std::vector<u8> kept = kept_tokens(keep, b, length);
      std::vector<i64> tokens;
      for (i64 t = 0; t < length; ++t)
        if (kept[static_cast<size_t>(t)]) tokens.push_back(t);
      const i64 n = static_cast<i64>(tokens.size());
      const i64 wanted = options().is_word("window", "auto") ? (n + clusters_ - 1) / clusters_ : options().integer("window");
      for (i64 h = 0; h < heads; ++h)
        for (i64 c = 0; c < clusters_; ++c) {
          const i64 first = (b * heads + h) * length;
          std::vector<i64> order = tokens;
          std::stable_sort(order.begin(), order.end(), [&](i64 s, i64 t) {
            return near[static_cast<size_t>((first + s) * clusters_ + c)] > near[static_cast<size_t>((first + t) * clusters_ + c)];
          });
          for (i64 t = 0; t < std::min(wanted, n); ++t)
            list[static_cast<size_t>(c)].data<bool>()[first + order[static_cast<size_t>(t)]] = true;
        }
    }
    return list;
  }

  // The centroid that is nearest, i64 [B, H, L]; the first on ties.
  Tensor nearest(const Tensor& x) const {
    const std::vector<double> near = similarities(x);
    const Tensor out = make_empty({x.size(0), x.size(1), x.size(2)}, kI64);
    for (i64 row = 0; row < out.numel(); ++row) {
      const auto first = near.begin() + row * clusters_;
      out.data<i64>()[row] = std::max_element(first, first + clusters_) - first;
    }
    return out;
  }

  // Σ (x̂ - μ_best)² over kept tokens, and how many numbers that are.
  std::pair<Tensor, i64> distances(const Tensor& x, const Tensor& near, const Tensor& keep) const {
    const i64 batch = x.size(0), heads = x.size(1), length = x.size(2), width = x.size(3);
    const Tensor head = arange(heads).view({1, heads, 1}).expand(near.shape());
    const Tensor rows = reshape(add(near, mul(head, clusters_)), {-1});
    const Tensor best = index_select(centroids_.reshape({heads * clusters_, width}), 0, rows).view({batch, heads, length, width});
    Tensor d = square(sub(x, best));
    i64 kept = batch * length;
    if (keep.defined()) {
      d = masked_fill(d, logical_not(keep).unsqueeze(1).unsqueeze(-1), 0);
      kept = sum(to(keep, kI64)).item<i64>();
    }
    return {sum(d), kept * heads * width};
  }
  Tensor commitment(const Tensor& q, const Tensor& q_near, const Tensor& q_keep, const Tensor& k, const Tensor& k_near,
                    const Tensor& k_keep) const {
    const auto [of_q, n_q] = distances(q, q_near, q_keep);
    const auto [of_k, n_k] = distances(k, k_near, k_keep);
    return mul(add(of_q, of_k), options().real("commitment") / static_cast<double>(std::max<i64>(1, n_q + n_k)));
  }

  void add_to(std::vector<double>& sums, const Tensor& x, const Tensor& near, const Tensor& keep) const {
    const Tensor unit = contiguous(to(x, kF64));
    const i64 batch = x.size(0), heads = x.size(1), length = x.size(2), width = x.size(3);
    for (i64 b = 0; b < batch; ++b) {
      const std::vector<u8> kept = kept_tokens(keep, b, length);
      for (i64 h = 0; h < heads; ++h)
        for (i64 t = 0; t < length; ++t) {
          if (!kept[static_cast<size_t>(t)]) continue;
          const i64 row = (b * heads + h) * length + t;
          double* sum_of = &sums[static_cast<size_t>((h * clusters_ + near.data<i64>()[row]) * width)];
          for (i64 e = 0; e < width; ++e) sum_of[e] += unit.data<double>()[row * width + e];
        }
    }
  }
  void move_centroids(const Tensor& q, const Tensor& q_near, const Tensor& q_keep, const Tensor& k, const Tensor& k_near,
                      const Tensor& k_keep) const {
    const NoGrad off;
    const i64 width = centroids_.size(2);
    std::vector<double> sums(static_cast<size_t>(centroids_.numel()), 0);
    add_to(sums, q, q_near, q_keep);
    add_to(sums, k, k_near, k_keep);
    const Tensor next = contiguous(to(centroids_, kF64)).clone();
    const double decay = options().real("decay");
    for (i64 row = 0; row < next.numel() / width; ++row) {
      const double* s = &sums[static_cast<size_t>(row * width)];
      const double length = std::sqrt(std::inner_product(s, s + width, s, 0.0));
      if (length == 0) continue;  // nobody was near it
      double* mu = next.data<double>() + row * width;
      for (i64 e = 0; e < width; ++e) mu[e] = decay * mu[e] + (1 - decay) * s[e] / length;
    }
    copy_(centroids_, next);
  }

  i64 clusters_;
  Tensor centroids_;
};

}  // namespace

namespace attentions {

AttentionInfo routing() {
  return {.options = {"routing",
                      {{"clusters", int_option(8, 1, 1 << 20), "clusters of queries and keys"},
                       {"window", int_option("auto", 1, 1 << 30).or_word({"auto"}), "queries and keys that a cluster takes; auto: tokens/clusters"},
                       {"decay", real_option(0.999, 0, 1), "share of a centroid that stays in a step of training"},
                       {"commitment", real_option(1e-4, 0, 1e6), "weight of the loss that pulls tokens to their centroids"}},
                      "softmax within clusters of queries and keys, averaged"},
          .facts = [](const Options&, bool, bool) {
            AttentionFacts f = pair_attention_facts();
            f.causal_exact = f.shares_key_heads = f.cache = false;
            f.cross = f.content_pattern = true;
            f.why_not_cross.clear();
            f.why_not_causal = "cluster membership is chosen over the whole sequence";
            f.why_not_shared_heads = "the centroids of keys differ by head";
            return f;
          },
          .formulas = {"cluster c takes the `window` queries and keys with the largest q̂·μ_c, k̂·μ_c (unit vectors, centroids μ)",
                       "z_i = mean over the clusters that hold i of softmax_{j in c}(e_ij)·v_j;  0 if there is none"},
          .make = make_projected<RoutingAttention>};
}

}  // namespace attentions
}  // namespace waymark::nn
