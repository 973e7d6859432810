// Tensors and numbers by the names that a user gives them.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/inspect/stepper.h"
#include "core/ops/index.h"
#include "core/ops/registry.h"
#include "core/tensor/strided.h"
#include "core/tensor/suggest.h"

namespace waymark::inspect {
namespace {

std::string trimmed(std::string_view s) {
  const size_t a = s.find_first_not_of(" \t"), b = s.find_last_not_of(" \t");
  return a == std::string_view::npos ? "" : std::string(s.substr(a, b - a + 1));
}

template <class T> std::optional<T> parsed(const std::string& text) {
  T v{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, v);
  if (error != std::errc() || end != last || text.empty()) return std::nullopt;
  return v;
}

// "[0, :, 1:3, ...]" without its brackets.
std::vector<IndexItem> parse_slice(const std::string& text) {
  std::vector<IndexItem> items;
  std::string rest = text;
  while (true) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string item = trimmed(rest.substr(0, comma));
    const auto bad = [&]() -> void { fail("", "[{}]: an index is a number, a slice as 1:3, or ..., not {}", text, printable(item)); };
    if (item == "...") {
      items.emplace_back(Ellipsis);
    } else if (item.find(':') == std::string::npos) {
      const auto n = parsed<i64>(item);
      if (!n) bad();
      items.emplace_back(*n);
    } else {
      i64 part[3] = {kNoBound, kNoBound, 1};
      size_t at = 0;
      for (int i = 0; i < 3; ++i) {
        const size_t colon = std::min(item.find(':', at), item.size());
        const std::string number = trimmed(item.substr(at, colon - at));
        if (!number.empty()) {
          const auto n = parsed<i64>(number);
          if (!n) bad();
          part[i] = *n;
        }
        at = colon + 1;
        if (colon == item.size()) break;
        if (i == 2) bad();
      }
      Slice s;
      s.start = part[0];
      s.stop = part[1];
      s.step = part[2];
      items.emplace_back(s);
    }
    if (comma == rest.size()) break;
    rest = rest.substr(comma + 1);
  }
  return items;
}

// "W[0, 1:3]" -> "W" and "0, 1:3"; a name may hold brackets of its own only as "leaf [3]".
std::pair<std::string, std::string> split_slice(const std::string& text) {
  if (text.empty() || text.back() != ']') return {text, ""};
  const size_t open = text.rfind('[');
  if (open == std::string::npos || open == 0) return {text, ""};
  return {trimmed(text.substr(0, open)), text.substr(open + 1, text.size() - open - 2)};
}

bool ends_with_part(const std::string& name, const std::string& part) {
  return name.size() > part.size() && name.ends_with(part) && name[name.size() - part.size() - 1] == '.';
}

}  // namespace

// The full name of what may be given in part: "table" for "encoder.position.table" if no other ends so, "#131" or
// "softmax#131" for "softmax #131".
std::string Stepper::full_name(const std::string& given) const {
  std::vector<std::string> names = trace_->names();
  const auto add = [&](const std::string& n) {
    if (!n.empty() && std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
  };
  for (const Tensor& t : run_.leaves()) add(t.name());
  for (const Node* n : run_.nodes()) {
    for (u32 k = 0; k < n->outputs.size(); ++k) add(name_of_target(Edge{Intrusive<Node>(const_cast<Node*>(n)), nullptr, k}));
    for (const Edge& e : n->edges) add(name_of_target(e));
  }
  if (std::find(names.begin(), names.end(), given) != names.end()) return given;
  std::vector<std::string> fitting;
  for (const std::string& n : names) {
    const size_t hash = n.find(" #");
    if (hash != std::string::npos && (given == n.substr(hash + 1) || given == n.substr(0, hash) + n.substr(hash + 1))) return n;
    if (ends_with_part(n, given)) fitting.push_back(n);
  }
  if (fitting.size() == 1) return fitting[0];
  if (fitting.size() > 1) {
    const size_t shown = std::min<size_t>(fitting.size(), 4);
    fail("", "{} fits {} tensors: {}{}", printable(given), fitting.size(),
         fmt::join(fitting.begin(), fitting.begin() + static_cast<std::ptrdiff_t>(shown), ", "), shown < fitting.size() ? ", ..." : "");
  }
  fail("", "there is no tensor {}.{}", printable(given), did_you_mean(given, names));
}

CardTensor Stepper::lookup(const std::string& text) const {
  const std::string name = trimmed(text);
  if (name.empty()) fail("", "the name of a tensor is expected");
  const Trace& trace = *trace_;
  // Parts of the current card.
  const auto number_after = [&](std::string_view head) -> std::optional<size_t> {
    if (!name.starts_with(head)) return std::nullopt;
    const std::string rest = name.substr(head.size());
    return rest.empty() ? std::optional<size_t>(0) : parsed<size_t>(rest);
  };
  if (const auto k = number_after("g"))
    if (run_.index() > 0 && *k < current().incoming.size()) return current().incoming[*k].gradient;
  if (const auto k = number_after("in"))
    if (run_.index() > 0 && *k < current().inputs.size()) return current().inputs[*k];
  if (const auto k = number_after("out"))
    if (run_.index() > 0 && *k < current().outputs.size()) return current().outputs[*k];
  if (const size_t arrow = name.find("<-"); arrow != std::string::npos) {
    const std::string to = full_name(trimmed(name.substr(0, arrow))), from = full_name(trimmed(name.substr(arrow + 2)));
    for (const NodeCard& c : trace.backward())
      for (const NodeCard::Outgoing& o : c.outgoing)
        if (o.to == to && (c.label == from || (!c.outputs.empty() && c.outputs[0].name == from))) return o.after;
    CardTensor none;
    none.name = name;
    return none;  // not computed yet
  }
  if (name.starts_with("grad(") && name.ends_with(')')) return TraceTensor(trace, full_name(trimmed(name.substr(5, name.size() - 6)))).gradient();
  const std::string full = full_name(name);
  if (const TensorRecord* r = trace.find_tensor(full)) return *r;
  for (const NodeCard& c : trace.backward())
    for (const auto* list : {&c.inputs, &c.outputs})
      for (const CardTensor& t : *list)
        if (t.name == full && t.computed) return t;
  for (const Tensor& t : run_.leaves())
    if (t.name() == full) {
      CardTensor leaf;
      leaf.name = full;
      leaf.set(t.detach());
      return leaf;
    }
  fail("", "the values of {} are not known: no recorder saw the forward pass", full);
}

Tensor Stepper::values_of(const CardTensor& t, const std::string& name) const {
  if (!t.value.defined()) fail("", "the values of {} ({} elements) were not kept", name, t.stats.count);
  return t.value;
}

void Stepper::print(const std::string& argument) {
  if (argument.empty()) fail("", "print needs a tensor; see help print");
  CardTensor t;
  auto [name, slice] = split_slice(argument);
  try {
    t = lookup(slice.empty() ? argument : name);
  } catch (const Error&) {
    if (slice.empty()) throw;
    t = lookup(argument);  // "leaf [3]"
    slice.clear();
  }
  if (!t.computed) return say(fmt::format("{}: - (not computed yet)", t.name));
  Tensor v = values_of(t, name).detach();
  if (!slice.empty()) v = index(v, parse_slice(slice));
  say(fmt::format("{}{}", v, v.dim() ? fmt::format("   {} {}", v.shape(), name_of(v.dtype())) : ""));
}

void Stepper::stats(const std::string& argument) {
  const CardTensor t = lookup(argument);
  if (!t.computed) return say(fmt::format("{}: - (not computed yet)", t.name));
  const TensorStats& s = t.stats;
  say(fmt::format("{}   {} {}", t.name, t.shape, name_of(t.dtype)));
  say(fmt::format("  min {:.6g}   max {:.6g}", s.min, s.max));
  say(fmt::format("  mean {:.6g}   s.d. {:.6g}   norm {:.6g}", s.mean, s.sd, s.norm));
  say(fmt::format("  zeros {:.3g} %", 100 * s.zero_share()));
  const auto special = [&](std::string_view what, i64 n, i64 first) {
    if (n > 0) say(fmt::format("  {} {}, first at {}", n, what, position_text(t.shape, first)));
  };
  special("NaN", s.nan, s.first_nan);
  special("+inf", s.positive_inf, s.first_positive_inf);
  special("-inf", s.negative_inf, s.first_negative_inf);
}

Stepper::Quantity Stepper::quantity(const std::string& given) const {
  const std::string text = trimmed(given);
  Quantity q;
  const auto number = [&](double v) {
    q.is_number = true;
    q.number = v;
    return q;
  };
  const auto word = [&](std::string w, std::string asked) {
    q.word = std::move(w);
    q.asked = std::move(asked);
    return q;
  };
  if (const auto v = parsed<double>(text)) {
    if (std::isnan(*v)) fail("", "expect: nothing compares with nan; nans(T) counts them");
    return number(*v);
  }
  if (text == "step") return number(static_cast<double>(run_.index()));
  if (text == "total") return number(static_cast<double>(run_.total()));
  if (text == "op") return word(current().op, text);
  if (text == "scope") return word(current().scope, text);
  if (text == "check") return word(!current().check ? "not run" : !current().check->possible ? "not possible" : current().check->passed ? "passed" : "failed", text);
  const size_t open = text.find('(');
  if (open != std::string::npos && text.ends_with(')')) {
    const std::string function = text.substr(0, open), name = text.substr(open + 1, text.size() - open - 2);
    const std::vector<std::string> known = {"norm", "min", "max", "mean", "sd", "zeros", "nans", "numel"};
    if (std::find(known.begin(), known.end(), function) == known.end())
      fail("", "expect: there is no {}(T); there are {}.{}", printable(function), fmt::join(known, ", "), did_you_mean(function, known));
    {
      const CardTensor t = lookup(name);
      if (!t.computed) fail("", "{} is not computed yet", t.name.empty() ? name : t.name);
      const TensorStats& s = t.stats;
      return number(function == "norm"    ? s.norm
                    : function == "min"   ? s.min
                    : function == "max"   ? s.max
                    : function == "mean"  ? s.mean
                    : function == "sd"    ? s.sd
                    : function == "zeros" ? static_cast<double>(s.zeros)
                    : function == "nans"  ? static_cast<double>(s.nan)
                                          : static_cast<double>(s.count));
    }
  }
  return word(text, "");
}

void Stepper::check_word(const std::string& asked, const std::string& word) const {
  std::vector<std::string> known;
  if (asked == "check") known = {"passed", "failed", "not run", "not possible"};
  if (asked == "op")
    for (const OpInfo* op : all_ops()) known.emplace_back(op->name);
  for (const Node* n : run_.nodes()) {
    if (asked == "op") known.emplace_back(n->op->name);
    if (asked == "scope") known.push_back(scope_path(n->scope));
  }
  if (std::find(known.begin(), known.end(), word) != known.end()) return;
  if (asked == "check") fail("", "expect: check is never {}; it is one of {}", printable(word), fmt::join(known, ", "));
  fail("", "expect: no {} is called {}.{}", asked, printable(word), did_you_mean(word, known));
}

void Stepper::expect(const std::string& argument) {
  constexpr std::string_view operators[] = {"==", "!=", "<=", ">=", "<", ">"};
  for (const std::string_view op : operators) {
    // "T<-#131" is a name: a comparison has blanks around it.
    const size_t at = argument.find(fmt::format(" {} ", op));
    if (at == std::string::npos) continue;
    const std::string left = trimmed(argument.substr(0, at)), right = trimmed(argument.substr(at + op.size() + 2));
    const Quantity a = quantity(left), b = quantity(right);
    bool holds = false;
    if (a.is_number && b.is_number) {
      const double x = a.number, y = b.number;
      holds = op == "==" ? x == y : op == "!=" ? x != y : op == "<=" ? x <= y : op == ">=" ? x >= y : op == "<" ? x < y : x > y;
    } else if (op == "==" || op == "!=") {
      // Two words that ask nothing are equal or not whatever the run does: one of them is mistyped.
      if (a.asked.empty() && b.asked.empty() && !(a.is_number && b.is_number)) {
        const std::string& unknown = a.is_number ? right : left;
        const std::vector<std::string> known = {"step", "total", "op", "scope", "check"};
        fail("", "expect: {} is nothing that is known here. There are numbers, step, total, norm(T), min(T), max(T), mean(T), sd(T), zeros(T), nans(T), numel(T), and the words op, scope, check.{}",
             printable(unknown), did_you_mean(unknown, known));
      }
      if (a.is_number != b.is_number) fail("", "expect: {} is a number and {} is a word", a.is_number ? left : right, a.is_number ? right : left);
      if (b.asked.empty()) check_word(a.asked, b.word);
      if (a.asked.empty()) check_word(b.asked, a.word);
      holds = (a.word == b.word) == (op == "==");
    } else {
      fail("", "expect: {} compares numbers, and {} is none", op, a.is_number ? right : left);
    }
    const std::string found = a.is_number ? fmt::format("{:.9g}", a.number) : a.word;
    if (!holds) fail("", "expect: {} is {}, which is not {} {}", left, found.empty() ? "empty" : found, op, right);
    return say(fmt::format("as expected: {} is {}", left, found));
  }
  fail("", "expect needs a comparison with blanks around it, as in: expect norm(grad(W)) < 1");
}

}  // namespace waymark::inspect
