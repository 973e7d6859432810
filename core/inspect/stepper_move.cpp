// The commands that move.
#include <algorithm>
#include <charconv>

#include "core/engine/layout.h"
#include "core/inspect/stepper.h"
#include "core/tensor/suggest.h"

namespace waymark::inspect {
namespace {

i64 count_of(const std::string& argument, i64 otherwise, std::string_view command) {
  if (argument.empty()) return otherwise;
  i64 n = 0;
  const char* const last = argument.data() + argument.size();
  const auto [end, error] = std::from_chars(argument.data(), last, n);
  if (error != std::errc() || end != last || n < 0)
    fail("", "{}: a number of nodes is expected, not {}", command, printable(argument));
  return n;
}

bool inside(const std::string& scope, const std::string& module) {
  return module.empty() || scope == module || (scope.starts_with(module) && scope[module.size()] == '.');
}

}  // namespace

void Stepper::say_position() {
  const Node* next = run_.next();
  if (!next) {
    say(hanging("", fmt::format("the end: all {} nodes ran; nothing is committed to .grad", run_.total()), io_.width));
    return;
  }
  std::string text = fmt::format("next: {}", next->label());
  const std::string where = next->where();
  if (!where.empty()) text += "   " + where;
  say(hanging("", text, io_.width));
}

void Stepper::step(const std::string& argument) {
  const i64 n = count_of(argument, 1, "step");
  i64 ran = 0;
  while (ran < n && !interrupted() && run_.step()) ++ran;
  if (ran > 0) card("");
  if (ran == 0 || !run_.next()) say_position();
}

void Stepper::rewind_to(i64 k) {
  run_.rewind(k);
  stopped_at_ = 0;
  if (k > 0) card("");
  else say_position();
}

void Stepper::back(const std::string& argument) {
  const i64 n = count_of(argument, 1, "back");
  if (run_.index() == 0) return say("this is the start; no node ran yet");
  rewind_to(std::max<i64>(0, run_.index() - n));
}

void Stepper::go_to(const std::string& argument) {
  if (argument.empty()) fail("", "goto needs a step, 0 to {}", run_.total());
  const i64 k = count_of(argument, 0, "goto");
  if (k > run_.total()) fail("", "goto: step {} is outside [0, {}]", k, run_.total());
  if (k < run_.index()) return rewind_to(k);
  while (run_.index() < k && !interrupted() && run_.step()) {}
  if (k > 0) card("");
  else say_position();
}

void Stepper::end(const std::string&) {
  while (!interrupted() && run_.step()) {}
  if (run_.index() > 0) card("");
  say_position();
}

void Stepper::run_while(const std::function<bool(const Node&)>& more) {
  const i64 before = run_.index();
  i64 time = 0;
  double saved = 0;
  for (const Node* next = run_.next(); next && more(*next) && !interrupted(); next = run_.next()) {
    if (!run_.step()) break;
    time += run_.current().nanoseconds;
    saved += static_cast<double>(run_.current().saved_bytes);
  }
  const i64 ran = run_.index() - before;
  if (ran > 0) {
    say(hanging("", fmt::format("{} node{} ran in {:.3g} ms, with {} saved", ran, ran == 1 ? "" : "s", static_cast<double>(time) / 1e6,
                                bytes_text(static_cast<i64>(saved))), io_.width));
    card("");
  }
  say_position();
}

void Stepper::next_module(const std::string&) {
  const Node* next = run_.next();
  if (!next) return say_position();
  const std::string module = scope_path(next->scope);
  if (module.empty()) return step("");  // outside of modules: one node
  run_while([&](const Node& n) { return inside(scope_path(n.scope), module); });
}

void Stepper::finish_module(const std::string&) {
  if (run_.index() == 0) return next_module("");
  const std::string module = run_.current().scope;
  if (module.empty()) return next_module("");
  run_while([&](const Node& n) { return inside(scope_path(n.scope), module); });
}

void Stepper::until(const std::string& argument) {
  if (argument.empty()) fail("", "until needs an op, a scope, #seq, FILE:LINE, a tensor, leaf, kink, nonfinite, zero, norm>X or gain>X");
  std::string wanted = argument;
  // A word that nothing can match would run to the end without a word.
  if (const StopPoint given(argument); given.is_name()) {
    bool matches = false;
    for (const Node* n : run_.nodes()) matches |= given.matches_next(*n);
    std::vector<std::string> names;
    for (const Node* n : run_.nodes()) {
      names.emplace_back(n->op->name);
      if (n->scope) names.push_back(scope_path(n->scope));
      for (const Edge& e : n->edges) names.push_back(name_of_target(e));
    }
    if (!matches) {
      try {
        wanted = full_name(argument);  // a tensor, or the end of its name
      } catch (const Error& e) {
        if (std::string_view(e.what()).find(" fits ") != std::string_view::npos) throw;
        fail("", "until: nothing in this run is called {}.{}", printable(argument), did_you_mean(argument, names));
      }
    }
  }
  const StopPoint stop(wanted);
  // Nor may a number or a line that no node has.
  if (stop.text().front() == '#' || stop.text().find(':') != std::string::npos) {
    u64 first = UINT64_MAX, last = 0;
    bool matches = false;
    std::string place;
    for (const Node* n : run_.nodes()) {
      matches |= stop.matches_next(*n);
      first = std::min(first, n->seq);
      last = std::max(last, n->seq);
      if (n->loc && place.empty()) place = fmt::format("{}:{}", n->loc.name(), n->loc.line);
    }
    if (!matches && stop.text().front() == '#')
      fail("", "until: no node of this run is {}; they are numbered from #{} to #{}, not without gaps", printable(wanted), first, last);
    if (!matches) fail("", "until: no node of this run comes from {}{}", printable(wanted), place.empty() ? "" : "; one comes from " + place);
  }
  const i64 before = run_.index();
  bool stopped = false;
  for (const Node* next = run_.next(); next; next = run_.next()) {
    // A stop before a node at which an earlier one stopped already would never move on.
    stopped = (stop.matches_next(*next) && std::exchange(stopped_at_, next->seq) != next->seq) || interrupted();
    if (stopped || !run_.step()) break;
    stopped = stop.matches_done(run_.current()) || (run_observer() && run_observer()->pause());
    if (stopped) break;
  }
  if (run_.index() > before) card("");
  if (!stopped) say(fmt::format("{} did not come up again", wanted));
  say_position();
}

}  // namespace waymark::inspect
