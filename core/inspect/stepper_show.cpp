// The commands that show: cards and their parts, where a gradient comes from, modules, saved bytes, checks.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "core/engine/layout.h"
#include "core/inspect/check.h"
#include "core/inspect/stepper.h"
#include "core/tensor/suggest.h"

namespace waymark::inspect {
namespace {

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.3g} %", 100 * share) : "-"; }

i64 depth_of(const std::string& argument, i64 otherwise, std::string_view command) {
  if (argument.empty()) return otherwise;
  i64 n = 0;
  const char* const last = argument.data() + argument.size();
  const auto [end, error] = std::from_chars(argument.data(), last, n);
  if (error != std::errc() || end != last || n < 1) fail("", "{}: a depth of at least 1 is expected, not {}", command, printable(argument));
  return n;
}

// The last word, if it is a number; taken off the argument.
std::string take_number(std::string& argument) {
  const size_t space = argument.find_last_of(' ');
  if (space == std::string::npos) return "";
  const std::string last = argument.substr(space + 1);
  if (last.empty() || last.find_first_not_of("0123456789") != std::string::npos) return "";
  argument.resize(argument.find_last_not_of(' ', space) + 1);
  return last;
}

}  // namespace

const NodeCard& Stepper::current() const {
  if (run_.index() == 0) fail("", "no node ran yet; step runs the first one");
  shown_ = run_.current();
  if (const auto it = checks_.find(shown_.seq); it != checks_.end()) shown_.check = it->second;
  return shown_;
}

void Stepper::card(const std::string&) {
  const std::string text = current().to_string(io_.width);
  if (!io_.bold) return say(text);
  const size_t first = std::min(text.find('\n'), text.size());
  say("\x1b[1m" + text.substr(0, first) + "\x1b[0m" + text.substr(first));
}
void Stepper::in(const std::string&) { say(current().incoming_text(io_.width)); }
void Stepper::out(const std::string&) { say(current().outgoing_text(io_.width)); }
void Stepper::saved(const std::string&) { say(current().saved_text(io_.width)); }
void Stepper::hooks(const std::string&) { say(current().hooks_text()); }

void Stepper::why(const std::string& given) {
  std::string name = given;
  const i64 depth = depth_of(take_number(name), 3, "why");
  if (name.empty()) fail("", "why needs a tensor, as in: why head.weight");
  const Trace& trace = *trace_;
  const auto branch = [&](const auto& self, const std::string& tensor, int level) -> void {
    for (const Contribution& c : TraceTensor(trace, tensor).contributions()) {
      say(hanging(std::string(static_cast<size_t>(2 * level), ' '),
                  fmt::format("{:>7}  {}   norm {:.2g}   cosine {}", percent(c.share), c.from, c.gradient.stats.norm,
                              std::isfinite(c.cosine) ? fmt::format("{:.2f}", c.cosine) : "-"),
                  io_.width));
      if (level < depth && c.seq) self(self, c.from, level + 1);
    }
  };
  const std::string full = full_name(name);
  const CardTensor sum = TraceTensor(trace, full).gradient();
  if (!sum.computed) return say(fmt::format("grad({}): - (nothing arrived yet)", full));
  say(hanging("", fmt::format("grad({})   {}   {}", full, sum.shape, short_text(sum.stats)), io_.width));
  branch(branch, full, 1);
}

void Stepper::tree(const std::string& argument) {
  const i64 depth = depth_of(argument, 3, "tree");
  struct Row {
    i64 nodes = 0, ran = 0, time = 0;
    std::set<const Storage*> storages;
    i64 saved = 0;
    double squares = 0;
    bool any_gradient = false;
  };
  std::map<std::string, Row> rows;
  // Every prefix of a scope, down to the depth.
  const auto prefixes = [&](const std::string& scope) {
    std::vector<std::string> out{""};
    size_t at = 0;
    for (i64 level = 0; level < depth && at < scope.size(); ++level) {
      const size_t dot = std::min(scope.find('.', at), scope.size());
      out.push_back(scope.substr(0, dot));
      at = dot + 1;
    }
    return out;
  };
  for (const Node* n : run_.nodes())
    for (const std::string& p : prefixes(scope_path(n->scope))) {
      Row& r = rows[p];
      ++r.nodes;
      for (const Saved& s : n->saved)
        if (s.data && r.storages.insert(s.data->storage.get()).second) r.saved += s.data->storage->bytes();
    }
  for (const NodeCard& c : trace_->backward())
    if (c.run == run_.number())
      for (const std::string& p : prefixes(c.scope)) {
        ++rows[p].ran;
        rows[p].time += c.nanoseconds;
      }
  const GradMap grads = run_.grads();
  for (const GradMap::Entry& e : grads) {
    const std::string name = e.tensor.name();
    const size_t dot = name.rfind('.');
    const double norm = stats_of(e.grad).norm;
    for (const std::string& p : prefixes(dot == std::string::npos ? "" : name.substr(0, dot))) {
      rows[p].squares += norm * norm;
      rows[p].any_gradient = true;
    }
  }
  size_t name_width = 6;
  const auto shown = [](const std::string& p) {
    const size_t level = static_cast<size_t>(std::count(p.begin(), p.end(), '.')) + (p.empty() ? 0 : 1);
    const size_t dot = p.rfind('.');
    return std::string(2 * level, ' ') + (p.empty() ? "(all)" : p.substr(dot == std::string::npos ? 0 : dot + 1));
  };
  for (const auto& [p, r] : rows) name_width = std::max(name_width, shown(p).size());
  say(fmt::format("{:<{}} {:>9} {:>9} {:>10} {:>9}", "module", name_width, "ran", "ms", "saved", "|grad|"));
  for (const auto& [p, r] : rows)
    say(fmt::format("{:<{}} {:>9} {:>9} {:>10} {:>9}", shown(p), name_width, fmt::format("{}/{}", r.ran, r.nodes),
                    r.ran ? fmt::format("{:.3f}", static_cast<double>(r.time) / 1e6) : "-", bytes_text(r.saved),
                    r.any_gradient ? fmt::format("{:.2e}", std::sqrt(r.squares)) : "-"));
}

void Stepper::bytes(const std::string&) {
  struct Row {
    i64 bytes = 0;
    std::string what;
    std::vector<std::string> nodes;
  };
  std::map<const Storage*, Row> storages;
  i64 total = 0;
  for (const Node* n : run_.nodes())
    for (const Saved& s : n->saved) {
      if (!s.data) continue;
      Row& r = storages[s.data->storage.get()];
      if (r.nodes.empty()) {
        r.bytes = s.data->storage->bytes();
        total += r.bytes;
        std::string name;
        if (s.kind == SaveKind::input && s.index < n->edges.size()) name = name_of_target(n->edges[s.index]);
        if (s.kind == SaveKind::output) name = n->label();
        r.what = fmt::format("{}{} {}", name.empty() ? "" : name + "   ", s.data->shape, waymark::name_of(s.data->dtype));
      }
      if (r.nodes.empty() || r.nodes.back() != n->label()) r.nodes.push_back(n->label());
    }
  if (storages.empty()) return say("nothing is kept");
  std::vector<const Row*> rows;
  for (const auto& entry : storages) rows.push_back(&entry.second);
  std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->bytes != b->bytes ? a->bytes > b->bytes : a->what < b->what; });
  const size_t most = 20;
  for (size_t i = 0; i < rows.size() && i < most; ++i) {
    const size_t nodes = std::min<size_t>(rows[i]->nodes.size(), 3);
    say(hanging(fmt::format("{:>10}  ", bytes_text(rows[i]->bytes)),
                fmt::format("{}   for {}{}", rows[i]->what,
                            fmt::join(rows[i]->nodes.begin(), rows[i]->nodes.begin() + static_cast<std::ptrdiff_t>(nodes), ", "),
                            nodes < rows[i]->nodes.size() ? fmt::format(" and {} more", rows[i]->nodes.size() - nodes) : ""),
                io_.width));
  }
  if (rows.size() > most) {
    i64 rest = 0;
    for (size_t i = most; i < rows.size(); ++i) rest += rows[i]->bytes;
    say(fmt::format("{:>10}  in {} more", bytes_text(rest), rows.size() - most));
  }
  say(fmt::format("{:>10}  in all, each memory once", bytes_text(total)));
}

void Stepper::check(const std::string& argument) {
  CheckOptions options;
  options.stop = io_.interrupted;
  if (argument.empty()) {
    const NodeCard& c = current();
    checks_[c.seq] = check_node(c, options);
    return say(current().check_text(io_.width));
  }
  if (argument != "all") fail("", "check stands alone, for the current node, or as check all; not check {}", printable(argument));
  // Fewer derivatives a node than `check` takes: there are many nodes.
  options.all_elements = 256;
  options.largest = options.random = 16;
  options.directions = 2;
  const i64 here = run_.index();
  while (!interrupted() && run_.step()) {}
  i64 passed = 0, failed = 0;
  std::map<std::string, i64> refused;
  double worst = 0;
  std::string where;
  for (const NodeCard& c : trace_->backward()) {
    if (c.run != run_.number()) continue;
    if (interrupted()) break;
    const NodeCheck r = check_node(c, options);
    checks_[c.seq] = r;
    if (!r.possible) {
      ++refused[fmt::format("{}: {}", c.op, r.reason)];
      continue;
    }
    ++(r.passed ? passed : failed);
    if (r.max_error / r.tolerance >= worst) {
      worst = r.max_error / r.tolerance;
      where = fmt::format("{} {}: {:.1e} of the largest entry (limit {:.0e})", c.label, r.where, r.max_error, r.tolerance);
    }
    if (!r.passed) {
      NodeCard shown = c;
      shown.check = r;
      say(shown.head_text(io_.width));
      say(shown.check_text(io_.width));
    }
  }
  if (here < run_.index()) run_.rewind(here);
  say(fmt::format("{} nodes passed, {} failed", passed, failed));
  if (!where.empty()) say(hanging("largest error  ", where, io_.width));
  for (const auto& [reason, count] : refused) say(hanging(fmt::format("{} not checked  ", count), reason, io_.width));
  if (failed > 0) fail("", "check: {} nodes failed", failed);
}

void Stepper::help(const std::string& argument) {
  if (!argument.empty()) {
    const Command* c = find(argument);
    if (!c) {
      std::vector<std::string> names;
      for (const Command& k : commands()) names.push_back(k.name);
      fail("", "there is no command {}.{}", printable(argument), did_you_mean(argument, names));
    }
    say(hanging("", fmt::format("{}{}: {}", c->name, c->arguments.empty() ? "" : " " + c->arguments, c->help), io_.width));
    if (!c->shortcut.empty()) say("  short: " + c->shortcut);
    for (size_t at = 0; at < c->details.size();) {
      const size_t end = std::min(c->details.find('\n', at), c->details.size());
      say(hanging("  ", c->details.substr(at, end - at), io_.width));
      at = end + 1;
    }
    return;
  }
  for (const Command& c : commands()) {
    std::string head = c.name + (c.arguments.empty() ? "" : " " + c.arguments);
    if (!c.shortcut.empty()) head += fmt::format(" ({})", c.shortcut);
    say(hanging(fmt::format("  {:<22}", head), c.help, io_.width));
  }
  say("  help COMMAND says more.");
}

void Stepper::quit(const std::string&) { quit_ = true; }

}  // namespace waymark::inspect
