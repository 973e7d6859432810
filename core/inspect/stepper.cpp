#include "core/inspect/stepper.h"

#include <algorithm>
#include <set>

#include "core/tensor/suggest.h"

namespace waymark::inspect {

Stepper::Stepper(BackwardRun& run, ReplIo& io) : run_(run), io_(io) {
  if (!Recorder::current()) own_ = std::make_unique<Recorder>(RecorderOptions{.keep = Keep::values, .max_elements = INT64_MAX});
  trace_ = Recorder::current()->shared_trace();
}

const std::vector<Stepper::Command>& Stepper::commands() {
  static const std::vector<Command> list = {
      {"step", "s, Enter", "[n]", "run one node, or n", "", &Stepper::step},
      {"back", "b", "[n]", "go back one node, or n, by exact replay", "Hooks run again.", &Stepper::back},
      {"next", "n", "", "run the whole module of the next node",
       "The module and all modules in it, as one step; a node outside of modules alone.", &Stepper::next_module},
      {"finish", "f", "", "run until the module of the current node is left", "", &Stepper::finish_module},
      {"until", "u", "X", "run until X comes up",
       "Stops before a node: an op (softmax), a scope or glob (encoder.layers.0, encoder.*.attention), #seq, FILE:LINE.\n"
       "Stops after a node: norm>X, gain>X, nonfinite, zero, kink; the name of a tensor, or leaf: after its last contribution.",
       &Stepper::until},
      {"goto", "", "k", "go to the state after k nodes, forward or back", "", &Stepper::go_to},
      {"end", "", "", "run all that is left", "Nothing is committed to .grad.", &Stepper::end},
      {"card", ".", "", "show the current node", "", &Stepper::card},
      {"in", "", "", "what arrived: the gradient and its contributions", "", &Stepper::in},
      {"out", "", "", "what leaves: the contributions to the inputs", "", &Stepper::out},
      {"saved", "", "", "what the node keeps for its rule", "", &Stepper::saved},
      {"hooks", "", "", "which hooks ran, and whether they changed the gradient", "", &Stepper::hooks},
      {"print", "p", "T [slice]", "values of a tensor",
       "T: a parameter or watched tensor by its path, or by the end of it if only one ends so; softmax #131, softmax#131 or #131: the "
       "output of that node; grad(T): the gradient so far; T<-#131: the contribution of node 131 to it.\n"
       "Of the current node: g or g1 (incoming), in0, in1 (inputs), out0 (output).\n"
       "Slices are written as indices: print head.weight[0, 1:3]",
       &Stepper::print},
      {"stats", "", "T", "statistics of a tensor; T as in print", "", &Stepper::stats},
      {"why", "", "T [depth]", "the contributions that make up grad(T), as a tree",
       "Largest first. A share is the part along the sum: shares add up to 100 %, one that works against it is negative.", &Stepper::why},
      {"tree", "", "[depth]", "modules with nodes, time, saved bytes, gradient norms", "", &Stepper::tree},
      {"bytes", "", "", "what the graph keeps, largest first, shared memory once", "", &Stepper::bytes},
      {"check", "", "[all]", "finite differences against the rule of this node, or of every node",
       "The op alone is called again in f64 on its recorded inputs. Inputs of up to 4,096 elements are checked whole, larger ones at their "
       "64 largest entries, 64 random ones and along 4 random directions. check all takes fewer.",
       &Stepper::check},
      {"expect", "", "A == B", "fail unless a comparison holds: for scripts",
       "==, !=, <, <=, >, >= between numbers: norm(T), min(T), max(T), mean(T), sd(T), zeros(T), nans(T), numel(T), step, total; == and != "
       "between words: op, scope, check (passed, failed, not run, not possible).\n"
       "expect norm(grad(head.weight)) < 1",
       &Stepper::expect},
      {"help", "h, ?", "[command]", "this list, or more on one command", "", &Stepper::help},
      {"quit", "q, Ctrl-D", "", "leave", "", &Stepper::quit},
  };
  return list;
}

const Stepper::Command* Stepper::find(const std::string& word) {
  for (const Command& c : commands()) {
    if (c.name == word) return &c;
    std::string_view rest = c.shortcut;
    while (!rest.empty()) {
      const size_t comma = std::min(rest.find(", "), rest.size());
      if (rest.substr(0, comma) == word) return &c;
      rest.remove_prefix(std::min(rest.size(), comma + 2));
    }
  }
  return nullptr;
}

Stepper::Outcome Stepper::execute(const std::string& line) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  size_t begin = 0, end = line.size();
  while (begin < end && blank(line[begin])) ++begin;
  while (end > begin && blank(line[end - 1])) --end;
  const std::string text = line.substr(begin, end - begin);
  if (text.empty()) {
    if (io_.strict) return Outcome::done;  // a blank line of a script is layout; elsewhere Enter means step
    return execute("step");
  }
  if (text.front() == '#' && io_.strict) return Outcome::done;  // a comment
  size_t word_end = 0;
  while (word_end < text.size() && !blank(text[word_end])) ++word_end;
  const std::string word = text.substr(0, word_end);
  size_t rest = word_end;
  while (rest < text.size() && blank(text[rest])) ++rest;
  const Command* c = find(word);
  if (!c) {
    std::vector<std::string> names;
    for (const Command& k : commands()) names.push_back(k.name);
    say(fmt::format("unknown command {}.{} help lists them.", printable(word), did_you_mean(word, names)));
    return Outcome::unknown;
  }
  try {
    if (c->arguments.empty() && rest < text.size()) fail("", "{} takes no argument, got {}", c->name, printable(text.substr(rest)));
    (this->*c->run)(text.substr(rest));
  } catch (const Error& e) {
    say(e.what());
    return c->name == "expect" ? Outcome::unmet : Outcome::failed;
  }
  return quit_ ? Outcome::quit : Outcome::done;
}

std::vector<std::string> Stepper::words() const {
  std::set<std::string> out;
  for (const Command& c : commands()) out.insert(c.name);
  for (const Node* n : run_.nodes()) {
    out.insert(std::string(n->op->name));
    if (n->scope) out.insert(scope_path(n->scope));
  }
  for (const Tensor& t : run_.leaves())
    if (!t.name().empty()) out.insert(t.name());
  for (const char* w : {"leaf", "kink", "nonfinite", "zero", "norm>", "gain>"}) out.insert(w);
  return {out.begin(), out.end()};
}

}  // namespace waymark::inspect
