// Properties that every op of the case table has, whatever it computes.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <thread>

#include "core/engine/backward.h"
#include "core/engine/checkpoint.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/registry.h"
#include "core/tensor/allocator.h"
#include "tests/ops/instance.h"
#include "tests/ops/values.h"
#include "tests/tensors.h"

namespace waymark::test {
namespace {

// Calls f(instance) for every case of the table.
template <class F> void for_all_cases(MemoryLayout layout, F f) {
  for (const OpCase& c : all_cases()) {
    const OpInfo* op = find_op(c.op);
    if (!op || !op->apply) continue;
    const Instance x = instance(op, title_of(c), c.args, layout, 11);
    INFO(x.title << ", " << name_of(layout));
    try {
      f(c, x);
    } catch (const std::exception& e) {
      FAIL_CHECK(std::string(e.what()));
    }
  }
}

std::vector<Tensor> constants(const Instance& x) {
  std::vector<Tensor> out;
  for (const Tensor& t : x.leaves) out.push_back(t.detach());
  return out;
}
// Fresh leaves with the same values.
std::vector<Tensor> leaves_of(const Instance& x) {
  std::vector<Tensor> out;
  for (const Tensor& t : x.leaves) {
    out.push_back(t.detach().clone());
    if (t.requires_grad()) out.back().requires_grad_();
  }
  return out;
}

double distance_of(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double worst = a.size() == b.size() ? 0 : 1e300;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) worst = std::max(worst, distance(a[i], b[i]));
  return worst;
}

// The outputs that have a gradient, and weights for them.
struct Roots {
  std::vector<Tensor> roots;
  std::vector<Tensor> seeds(double phase) const {
    std::vector<Tensor> out;
    for (const Tensor& t : roots) {
      const Tensor g = make_empty(t.shape(), t.dtype());
      for (i64 i = 0; i < g.numel(); ++i) g.data<double>()[i] = std::cos(phase += 1.7);
      out.push_back(g);
    }
    return out;
  }
};
Roots roots_of(const std::vector<Tensor>& outputs) {
  Roots r;
  for (const Tensor& t : outputs)
    if (t.requires_grad()) r.roots.push_back(t);
  return r;
}
std::vector<Tensor> wanted(const std::vector<Tensor>& leaves) {
  std::vector<Tensor> out;
  for (const Tensor& t : leaves)
    if (t.requires_grad()) out.push_back(t);
  return out;
}
// The gradients of Σ outputs ⊙ seeds; undefined where none arrives.
std::vector<Tensor> gradients(const Roots& r, const std::vector<Tensor>& leaves, const std::vector<Tensor>& seeds,
                              bool create_graph = false, bool retain = false) {
  RunOptions options{.retain_graph = retain, .create_graph = create_graph, .allow_unused = true};
  options.seeds = seeds;
  const std::vector<Tensor> inputs = wanted(leaves);
  const GradMap map = grad(r.roots, inputs, options);
  std::vector<Tensor> out;
  for (const Tensor& t : inputs) out.push_back(map.contains(t) ? map[t].detach() : Tensor());
  return out;
}

struct Quiet final : Observer {
  void on_op(const ForwardEvent&) override {}
  void before_write(const Tensor&) override {}
  void on_rule(const Node&, std::span<const Tensor>, const Grads&) override {}
};

// Sums and products, whose order of addition or kernel may depend on the layout.
bool adds(const OpInfo& op) {
  static const std::set<std::string_view> families = {"matmul",     "einsum",    "convolution", "linalg",  "fourier",
                                                      "similarity", "attention", "pooling",     "relative"};
  static const std::set<std::string_view> names = {
      "sum",  "mean",   "nansum", "nanmean",    "prod",       "var",           "std",       "var_mean", "std_mean",
      "norm", "trace",  "kron",   "tensordot",  "logsumexp",  "sum_to_size",   "mse_loss",  "l1_loss",  "smooth_l1_loss",
      "huber_loss",     "kl_div", "nll_loss",   "cross_entropy", "binary_cross_entropy", "binary_cross_entropy_with_logits",
      "layer_norm",     "rms_norm", "group_norm", "quantile", "linear", "linear_packed"};
  return families.contains(op.family) || names.contains(op.name);
}

}  // namespace

TEST_CASE("every op gives on views what it gives on their copies") {
  for (const MemoryLayout layout : {MemoryLayout::permuted, MemoryLayout::every_second, MemoryLayout::reversed,
                                    MemoryLayout::offset, MemoryLayout::expanded})
    for_all_cases(layout, [&](const OpCase&, const Instance& x) {
      Instance copies = x;
      const std::vector<Tensor> given = constants(x);
      std::vector<Tensor> plain;
      for (size_t i = 0; i < given.size(); ++i) {
        plain.push_back(x.samples[i].view(given[i]).clone().contiguous());
        copies.samples[i].layout = MemoryLayout::contiguous;
      }
      const std::vector<Tensor> a = x.run(given), b = copies.run(plain);
      if (adds(*x.op)) CHECK(distance_of(a, b) <= 1e-13);
      else CHECK(difference_of(a, b) == "");
    });
}

TEST_CASE("every op gives the same bits under NoGrad, an observer, in a checkpoint, in a thread, without reuse") {
  for_all_cases(MemoryLayout::contiguous, [](const OpCase&, const Instance& x) {
    if (x.op->name == "empty") return;  // its values are what was in the memory
    const std::vector<Tensor> leaves = leaves_of(x), outputs = x.run(leaves);
    {
      const NoGrad off;
      const std::vector<Tensor> y = x.run(leaves);
      CHECK(difference_of(y, outputs) == "");
      for (const Tensor& t : y)
        if (!leaves.empty() && !t.is(leaves[0])) CHECK((!t.requires_grad() || t.is_leaf()));
    }
    {
      Quiet quiet;
      thread_state().observer = &quiet;
      const std::vector<Tensor> y = x.run(leaves);
      thread_state().observer = nullptr;
      CHECK(difference_of(y, outputs) == "");
    }
    {
      thread_state().reuse_buffers = false;
      const std::vector<Tensor> y = x.run(leaves);
      thread_state().reuse_buffers = true;
      CHECK(difference_of(y, outputs) == "");
    }
    std::string elsewhere;
    std::thread([&] {
      try {
        elsewhere = difference_of(x.run(leaves), outputs);
      } catch (const std::exception& e) {
        elsewhere = e.what();
      }
    }).join();
    CHECK(elsewhere == "");
    const Roots r = roots_of(outputs);
    if (r.roots.empty()) return;
    const std::vector<Tensor> seeds = r.seeds(0.3), plain = gradients(r, leaves, seeds);
    const std::vector<Tensor> again = checkpoint([&](const std::vector<Tensor>& v) { return x.run(v); }, leaves);
    CHECK(difference_of(again, outputs) == "");
    CHECK(difference_of(gradients(roots_of(again), leaves, seeds), plain) == "");
  });
}

TEST_CASE("every rule: recorded = not recorded, twice the same bits, linear in g, and it writes to nothing") {
  for_all_cases(MemoryLayout::contiguous, [](const OpCase& c, const Instance& x) {
    const std::vector<Tensor> leaves = leaves_of(x);
    std::vector<Tensor> before;
    for (const Tensor& t : leaves) before.push_back(t.detach().clone());
    const Roots r = roots_of(x.run(leaves));
    if (r.roots.empty() || wanted(leaves).empty()) return;
    const std::vector<Tensor> one = r.seeds(0.3), two = r.seeds(2.9);
    std::vector<Tensor> outputs;
    for (const Tensor& t : r.roots) outputs.push_back(t.detach().clone());
    const std::vector<Tensor> seed_copy = r.seeds(0.3);
    const std::vector<Tensor> g1 = gradients(r, leaves, one, false, true);
    CHECK(difference_of(one, seed_copy) == "");
    CHECK(difference_of(leaves, before) == "");
    CHECK(difference_of(r.roots, outputs) == "");
    CHECK(difference_of(gradients(r, leaves, one, false, true), g1) == "");
    CHECK(distance_of(gradients(r, leaves, one, true), g1) <= 1e-12);
    std::vector<Tensor> mixed, sums;
    for (size_t i = 0; i < one.size(); ++i) mixed.push_back(one[i] * 2 + two[i] * -3);
    const std::vector<Tensor> g2 = gradients(r, leaves, two, false, true);
    for (size_t i = 0; i < g1.size(); ++i) sums.push_back(g1[i].defined() ? g1[i] * 2 + g2[i] * -3 : Tensor());
    const std::vector<Tensor> g3 = gradients(r, leaves, mixed, false, true);
    // Cancellation: measured against the parts.
    for (size_t i = 0; i < g3.size(); ++i) {
      if (!g3[i].defined()) continue;
      double scale = 1e-30;
      for (const Tensor& part : {g1[i], g2[i]})
        for (const double v : part.to_vector<double>()) scale = std::max(scale, std::abs(v));
      const auto a = g3[i].to_vector<double>(), b = sums[i].to_vector<double>();
      for (size_t k = 0; k < a.size(); ++k) CHECK(std::abs(a[k] - b[k]) <= 1e-11 * scale);
    }
    // .grad after backward is the same.
    BackwardRun run(r.roots, {.seeds = one, .inputs = {}, .retain_graph = true, .create_graph = false,
                              .allow_unused = false, .rewindable = false});
    run.finish();
    std::vector<Tensor> committed;
    for (const Tensor& t : wanted(leaves)) committed.push_back(t.grad());
    CHECK(difference_of(committed, g1) == "");
    static_cast<void>(c);
  });
}

TEST_CASE("what a rule keeps is what its OpInfo declares") {
  std::set<std::string> told;  // one line for each op and item
  for_all_cases(MemoryLayout::contiguous, [&](const OpCase&, const Instance& x) {
    const std::vector<Tensor> leaves = leaves_of(x), outputs = x.run(leaves);
    std::set<std::string> declared;
    for (const SaveText& t : x.op->saves) declared.insert(std::string(t.what));
    // The tensor arguments of the schema, in order.
    std::vector<std::string> names;
    const std::string schema(x.op->schema.substr(0, x.op->schema.find("->")));
    for (size_t at = schema.find("Tensor"); at != std::string::npos; at = schema.find("Tensor", at + 1)) {
      const size_t from = schema.find(' ', at) + 1;
      names.push_back(schema.substr(from, schema.find_first_of(",)=", from) - from));
    }
    for (const Tensor& y : outputs) {
      if (!y.requires_grad() || y.is_leaf()) continue;
      const Node& n = *ensure_meta(y).history.node;
      if (n.op != x.op) continue;  // composed of others
      for (const Saved& saved : n.saved) {
        std::string what;
        switch (saved.kind) {
          case SaveKind::input: {
            const bool all = names.size() == n.edges.size();
            what = all ? names[saved.index] : "";
            if (all ? declared.contains(what) : !declared.empty()) continue;
            break;
          }
          case SaveKind::output: what = "output"; break;
          case SaveKind::indices:
            what = declared.contains("index") ? "index" : declared.contains("rows") ? "rows" : "indices";
            break;
          case SaveKind::bits: what = declared.contains("mask") ? "mask" : "mask bits"; break;
          case SaveKind::stats: what = "row statistics"; break;
          case SaveKind::shape: what = "shape"; break;
          default: what = "random key";
        }
        if (!declared.contains(what)) told.insert(fmt::format("{} keeps {}", x.op->name, what));
      }
    }
  });
  CHECK(fmt::format("{}", fmt::join(told, "; ")) == "");
}

TEST_CASE("every op with only some of its inputs requiring grad") {
  for_all_cases(MemoryLayout::contiguous, [](const OpCase&, const Instance& x) {
    const std::vector<Tensor> all = leaves_of(x);
    const std::vector<Tensor> inputs = wanted(all);
    if (inputs.size() < 2 || inputs.size() > 6) return;
    const Roots r = roots_of(x.run(all));
    if (r.roots.empty()) return;
    const std::vector<Tensor> whole = gradients(r, all, r.seeds(0.3));
    for (size_t subset = 1; subset + 1 < size_t{1} << inputs.size(); ++subset) {
      std::vector<Tensor> some, expected;
      size_t k = 0;
      for (const Tensor& t : all) {
        some.push_back(t.detach().clone());
        if (!t.requires_grad()) continue;
        if (subset >> k & 1) {
          some.back().requires_grad_();
          expected.push_back(whole[k]);
        }
        ++k;
      }
      const Roots part = roots_of(x.run(some));
      if (part.roots.size() != r.roots.size()) continue;  // an output that depends on the others alone
      CHECK(distance_of(gradients(part, some, part.seeds(0.3)), expected) <= 1e-12);
    }
  });
}

TEST_CASE("an op that gets no memory throws and leaves its inputs as they were") {
  for_all_cases(MemoryLayout::contiguous, [](const OpCase&, const Instance& x) {
    const std::vector<Tensor> leaves = leaves_of(x);
    std::vector<Tensor> before;
    std::vector<u32> versions;
    for (const Tensor& t : leaves) {
      before.push_back(t.detach().clone());
      versions.push_back(t.version());
    }
    const i64 nodes = Node::live(), tensors = TensorImpl::live();
    for (i64 n = 0; n < 3; ++n) {
      testing::fail_after(n);
      std::string text;
      try {
        static_cast<void>(x.run(leaves));
      } catch (const Error& e) {
        text = e.what();
      }
      testing::fail_after(-1);
      if (text.empty()) break;  // it needed no more
      CHECK(text.find("cannot get") != std::string::npos);
      CHECK(Node::live() == nodes);
      CHECK(TensorImpl::live() == tensors);
    }
    CHECK(difference_of(leaves, before) == "");
    for (size_t i = 0; i < leaves.size(); ++i) CHECK(leaves[i].version() == versions[i]);
  });
}

}  // namespace waymark::test
