#include "core/autograd/node.h"

#include <atomic>

#include "core/autograd/meta.h"

namespace waymark {
namespace {

std::atomic<u64> next_seq{1};

// Nodes whose count reached zero on this thread, waiting for the outermost release.
struct Graveyard {
  std::vector<Node*> nodes;
  bool draining = false;
};
thread_local Graveyard graveyard;

std::string_view kind_name(SaveKind k) {
  switch (k) {
    case SaveKind::input: return "input";
    case SaveKind::output: return "output";
    case SaveKind::indices: return "indices";
    case SaveKind::bits: return "mask";
    case SaveKind::stats: return "statistics";
    case SaveKind::shape: return "shape";
    default: return "random key";
  }
}

}  // namespace

Node::Node(const OpInfo& info, Loc at, size_t bytes)
    : op(&info),
      seq(next_seq.fetch_add(1, std::memory_order_relaxed)),
      scope(thread_state().scope),
      loc(at),
      bytes_(bytes) {
  count(Count::nodes);
}
Node::~Node() { count(Count::nodes, -1); }
i64 Node::live() { return counted(Count::nodes); }
u64 Node::made() { return next_seq.load(std::memory_order_relaxed) - 1; }

std::vector<Node*> Node::all_living() {
  std::vector<Node*> all;
  each_tracked([](void* node, void* list) { static_cast<std::vector<Node*>*>(list)->push_back(static_cast<Node*>(node)); },
               &all);
  return all;
}

void Node::destroy(Node* node) {
  graveyard.nodes.push_back(node);
  if (graveyard.draining) return;
  graveyard.draining = true;
  while (!graveyard.nodes.empty()) {
    Node* dead = graveyard.nodes.back();
    graveyard.nodes.pop_back();
    const size_t bytes = dead->bytes_;
    dead->~Node();  // releases edges, saved values, closure: each may push more nodes
    tracked_free(dead, bytes);
  }
  graveyard.draining = false;
}

namespace {

// The tensor argument behind input `index`: "other" of "mul(Tensor input, Tensor other)", "tensors.2" of a list. Empty: none.
std::string tensor_argument(std::string_view schema, u32 index) {
  size_t at = std::min(schema.find('('), schema.size());
  for (u32 seen = 0; at < schema.size();) {
    const size_t begin = at + 1, end = std::min(schema.find_first_of(",)", begin), schema.size());
    std::string_view argument = schema.substr(begin, end - begin);
    at = end < schema.size() && schema[end] == ',' ? end : schema.size();
    argument.remove_prefix(std::min(argument.find_first_not_of(' '), argument.size()));
    if (argument.substr(0, 6) != "Tensor") continue;
    const size_t space = std::min(argument.find(' '), argument.size() - 1);
    const std::string_view name = argument.substr(space + 1, argument.find('=') - space - 1);
    if (argument.substr(6, 2) == "[]") return fmt::format("{}.{}", name, index - seen);
    if (seen++ == index) return std::string(name);
  }
  return "";
}

}  // namespace

std::string Saved::what(const OpInfo& op) const {
  const std::string_view name = kind_name(kind);
  if (kind == SaveKind::output) return index == 0 ? std::string(name) : fmt::format("{} {}", name, index);
  if (kind != SaveKind::input && kind != SaveKind::shape) return std::string(name);
  const std::string argument = tensor_argument(op.schema, index);
  const std::string input = argument.empty() ? fmt::format("input {}", index) : argument;
  return kind == SaveKind::input ? input : "shape of " + input;
}

std::string Node::label() const {  // cards are full of it
  const fmt::format_int number(seq);
  std::string out;
  out.reserve(op->name.size() + 2 + number.size());
  return out.append(op->name).append(" #").append(number.data(), number.size());
}

std::string Node::where() const {
  std::string out = loc ? fmt::format("{}:{}", loc.name(), loc.line) : "";
  if (scope) out += (out.empty() ? "in " : " in ") + scope_path(scope);
  return out;
}

std::string Node::place() const {
  std::string out = loc ? fmt::format("{}:{}", loc.name(), loc.line) : "";
  if (scope) out += (out.empty() ? "" : ", ") + scope_path(scope);
  return out;
}

SlotHooks* Node::find_hooks(u32 slot) {
  for (SlotHooks& h : hooks)
    if (h.slot == slot) return &h;
  return nullptr;
}
SlotHooks& Node::hooks_of(u32 slot) {
  if (SlotHooks* h = find_hooks(slot)) return *h;
  hooks.emplace_back().slot = slot;
  return hooks.back();
}

void Node::drop_watch(u32 slot) {
  SlotHooks* h = find_hooks(slot);
  if (!h) return;
  h->cell = nullptr;
  h->name.clear();
}

void Node::release() {
  for (Saved& s : saved) {
    s.data = nullptr;
    s.lazy = nullptr;
  }
  hooks.clear();
  released = true;
}

void Node::version_error(const Saved& s) const {
  const TensorImpl& t = *s.data;
  const Writer& w = t.storage->last_writer();
  std::string what = s.kind == SaveKind::output ? fmt::format("its output {}", s.index)
                     : s.kind == SaveKind::input ? fmt::format("input {}", s.index)
                                                 : "a value that it keeps";
  std::string maker = label(), maker_place = where();
  const Node* from = s.kind == SaveKind::output ? this : s.kind == SaveKind::input ? edges[s.index].node.get() : nullptr;
  if (s.kind == SaveKind::output) {
    what += fmt::format(" ({} {})", t.shape, name_of(t.dtype));
  } else if (from) {
    maker = from->label();
    maker_place = from->where();
    what += fmt::format(" (output of {}, {} {})", maker, t.shape, name_of(t.dtype));
  } else {
    maker.clear();
    what += fmt::format(" ({} {})", t.shape, name_of(t.dtype));
  }
  const std::string writer_place = w.place();
  const char* const writer = w.name();
  std::string places;
  if (!maker.empty() && !maker_place.empty())
    places = fmt::format("{} at {}", from ? from->op->name : op->name, maker_place);
  if (!writer_place.empty()) places += fmt::format("{}{} at {}", places.empty() ? "" : "; ", writer, writer_place);
  fail_at(loc, op->name, "backward needs {} as it was at version {}, but {} wrote to it (version {})\n{}  write y = y + 1, or clone() before the change",
          what, s.version, writer, t.storage->version(), places.empty() ? "" : "  " + places + "\n");
}

Tensor Node::unpack(size_t i) {
  Saved& s = saved[i];
  if (s.lazy) {
    const Intrusive<Placeholder> lazy = s.lazy;
    s.data = lazy->fill();
    s.lazy = nullptr;
    s.version = s.data->storage->version();
  }
  if (!s.data) {
    const std::string known = place();
    fail_at(loc, label() + (known.empty() ? "" : " (" + known + ")"),
            "its saved values were freed by the first backward; pass retain_graph = true there");
  }
  if (s.data->storage->version() != s.version) version_error(s);
  if (!grad_enabled() || s.kind > SaveKind::output) return Tensor(s.data);
  Edge edge;
  if (s.kind == SaveKind::input) edge = edges[s.index];
  else edge = Edge{Intrusive<Node>(this), nullptr, s.index};
  if (edge.leaf) return Tensor(edge.leaf);
  Tensor out = alias(Tensor(s.data));
  if (edge.node) ensure_meta(out).history = edge;
  return out;
}

Grads run_rule(Node& node, std::span<Tensor> g, const Need& need) {
  ThreadState& state = thread_state();
  Node* const before = std::exchange(state.running, &node);
  struct Restore {
    ThreadState& state;
    Node* before;
    ~Restore() { state.running = before; }
  } restore{state, before};
  return node.run(g, need);
}

Tensor SavedTensor::operator*() const {
  Node* node = thread_state().running;
  if (!node || index_ < 0) fail("saved", "a saved value was read outside its rule, or the rule did not ask the Saver for it");
  return node->unpack(static_cast<size_t>(index_));
}

}  // namespace waymark
