#include "core/inspect/counters.h"

#include <algorithm>
#include <unordered_set>

#include "core/autograd/meta.h"
#include "core/kernels/gemm.h"
#include "core/parallel/parallel.h"

namespace waymark::inspect {
namespace {

// Bytes of the storages that a node keeps and that are not in `seen` yet.
i64 saved_bytes(const Node& node, std::unordered_set<const Storage*>& seen) {
  i64 bytes = 0;
  for (const Saved& s : node.saved)
    if (s.data && seen.insert(s.data->storage.get()).second) bytes += s.data->storage->bytes();
  return bytes;
}

std::string bytes_text(i64 bytes) {
  return bytes < 1024      ? fmt::format("{} B", bytes)
         : bytes < 1 << 20 ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024)
                           : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576);
}

// How many handles to the leaf its hooks hold: a copy of each hook holds as many again.
u32 held_by_hooks(const TensorImpl* leaf) {
  u32 held = 0;
  const AutogradMeta& m = *meta_of(leaf);
  for (const auto& list : {m.hooks, m.post_hooks})
    if (list)
      for (const Hook& hook : *list) {
        const u32 before = leaf->use_count();
        const HookFunction copy = *hook.run;
        held += leaf->use_count() - before;
      }
  return held;
}

std::string line_of(const LiveGraph& g) {
  std::string out = fmt::format("{} #{}", g.op, g.seq);
  const std::string& place = g.place;
  if (!place.empty() || !g.scope.empty())
    out += fmt::format(" ({}{}{})", place, !place.empty() && !g.scope.empty() ? ", " : "", g.scope);
  return out + fmt::format(": {} node{}, {} saved", g.nodes, g.nodes == 1 ? "" : "s", bytes_text(g.bytes));
}

}  // namespace

Counters counters() {
  Counters c;
  c.live_nodes = Node::live();
  c.live_tensors = TensorImpl::live();
  c.live_storages = Storage::live();
  const MemoryCounters memory = memory_counters();
  c.bytes_live = memory.bytes_live;
  c.bytes_peak = memory.bytes_peak;
  c.bytes_cached = memory.bytes_cached;
  c.allocations = memory.allocations;
  std::unordered_set<const Storage*> seen;
  for (const Node* node : Node::all_living()) c.bytes_saved += saved_bytes(*node, seen);
  c.ops_recorded = counted(Count::ops);
  c.parallel_regions = waymark::parallel_regions();
  c.gemm_calls = kernels::gemm_calls();
  return c;
}

void reset_peak() { waymark::reset_peak(); }

LiveGraphs live_graphs() {
  LiveGraphs out;
  std::vector<Node*> nodes = Node::all_living();
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->seq > b->seq; });
  std::unordered_set<const Node*> inner;
  for (const Node* node : nodes)
    for (const Edge& e : node->edges)
      if (e.node) inner.insert(e.node.get());
  std::unordered_set<const Node*> visited;
  std::unordered_set<const Storage*> seen;
  const u64 made = Node::made();
  for (const Node* root : nodes) {
    if (inner.contains(root)) continue;
    LiveGraph g{.op = std::string(root->op->name),
                .scope = scope_path(root->scope),
                .place = root->loc ? fmt::format("{}:{}", root->loc.name(), root->loc.line) : "",
                .seq = root->seq};
    g.age = static_cast<i64>(made - root->seq);
    std::vector<const Node*> stack{root};
    visited.insert(root);
    while (!stack.empty()) {
      const Node* node = stack.back();
      stack.pop_back();
      ++g.nodes;
      g.bytes += saved_bytes(*node, seen);
      for (const Edge& e : node->edges)
        if (e.node && visited.insert(e.node.get()).second) stack.push_back(e.node.get());
    }
    out.graphs.push_back(std::move(g));
  }
  for (const Tensor& leaf : hooked_leaves()) {
    const u32 held = held_by_hooks(leaf.impl());
    if (!held) continue;
    const AutogradMeta& m = *meta_of(leaf);
    out.leaves.push_back({m.name, leaf.shape(), leaf.impl()->use_count() == held + 1});  // 1: the loop's own handle
  }
  return out;
}

std::string LiveGraphs::to_string() const {
  if (graphs.empty() && leaves.empty()) return "no graph is alive\n";
  std::string out;
  for (const LiveGraph& g : graphs) out += fmt::format("{}, {} nodes ago\n", line_of(g), g.age);
  for (const SelfHeldLeaf& l : leaves)
    out += fmt::format("leaf {}{} is held by its own hook{}; let the hook hold no handle to it\n",
                       l.name.empty() ? "" : l.name + " ", l.shape, l.only ? " alone" : "");
  return out;
}

std::optional<std::string> GrowthWatch::after_step() {
  const i64 live = Node::live();
  grew_ = nodes_ >= 0 && live > nodes_ ? grew_ + 1 : 0;
  nodes_ = live;
  if (grew_ != steps_) return std::nullopt;
  std::string text = fmt::format("graph nodes that stay alive grew in {} steps in a row, to {}", steps_, live);
  const LiveGraphs all = live_graphs();
  const auto largest = std::max_element(all.graphs.begin(), all.graphs.end(),
                                        [](const LiveGraph& a, const LiveGraph& b) { return a.nodes < b.nodes; });
  if (largest != all.graphs.end()) text += fmt::format("; of {} living graphs the largest ends at {}", all.graphs.size(), line_of(*largest));
  return text + ". Something keeps losses or outputs: keep loss.item<double>() or detach()";
}

}  // namespace waymark::inspect
