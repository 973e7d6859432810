// The text of a card.
#include "core/engine/card.h"
#include "core/engine/layout.h"

namespace waymark {

int columns_of(std::string_view text) {
  int n = 0;
  for (char c : text) n += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  return n;
}

std::string hanging(std::string_view head, std::string_view body, int width) {
  std::string out(head);
  const int indent = columns_of(head);
  int at = indent;
  bool first = true;
  for (size_t i = 0; i < body.size();) {
    size_t begin = body.find_first_not_of(' ', i);
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(body.find(' ', begin), body.size());
    const std::string_view word = body.substr(begin, end - begin);
    const int gap = first ? 0 : static_cast<int>(begin - i), size = columns_of(word);
    if (!first && at + gap + size > width) {
      out += "\n" + std::string(static_cast<size_t>(indent), ' ');
      at = indent;
    } else {
      out.append(static_cast<size_t>(gap), ' ');
      at += gap;
    }
    out += word;
    at += size;
    first = false;
    i = end;
  }
  return out;
}

std::string bytes_text(i64 b) {
  return b < 1024 ? fmt::format("{} B", b) : b < 1 << 20 ? fmt::format("{:.1f} KiB", static_cast<double>(b) / 1024)
                                                         : fmt::format("{:.1f} MiB", static_cast<double>(b) / 1048576);
}

std::string attributes_text(const std::vector<std::pair<std::string, AttrValue>>& attributes) {
  std::string out;
  for (const auto& [name, value] : attributes) {
    if (!out.empty()) out += ", ";
    out += name + "=";
    out += std::visit(
        [](const auto& v) -> std::string {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
          else if constexpr (std::is_same_v<T, std::vector<i64>>) return fmt::format("[{}]", fmt::join(v, ", "));
          else if constexpr (std::is_same_v<T, std::string>) return "'" + v + "'";
          else if constexpr (std::is_same_v<T, double>) return fmt::format("{:.6g}", v);
          else return fmt::format("{}", v);
        },
        value);
  }
  return out;
}

namespace {

std::string layout_text(const CardTensor& t) {
  if (!t.known) return "-";  // not computed, which is not zero
  std::string out = fmt::format("{} {}", t.shape, name_of(t.dtype));
  if (!layout_of(t.shape, t.strides).contiguous) out += fmt::format(" strides {}", t.strides);
  return out;
}

std::string full_text(const CardTensor& t) {
  if (!t.known) return "-";
  return layout_text(t) + "   " + (t.computed ? short_text(t.stats) : "-");
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.3g} %", 100 * share) : "-"; }

}  // namespace

std::string NodeCard::head_text(int width) const {
  std::string body = label;
  if (!scope.empty()) body += "   " + scope;
  if (!place.empty()) body += "   " + place;
  if (!form.empty()) body += "   " + form;
  if (order > 1) body += fmt::format("   order {}", order);
  return hanging(fmt::format("{}/{}  ", step, total), body, width);
}

std::string NodeCard::incoming_text(int width) const {
  std::string out;
  for (const Incoming& in : incoming) {
    std::string body = in.gradient.name + " " + full_text(in.gradient);
    if (in.contributions.size() == 1) body += fmt::format("   1 contribution: {} {}", in.contributions[0].from, percent(in.contributions[0].share));
    else if (!in.contributions.empty()) body += fmt::format("   {} contributions:", in.contributions.size());
    out += "\n" + hanging("  in     ", body, width);
    if (in.contributions.size() > 1)
      for (const Contribution& c : in.contributions)
        out += "\n" + hanging("           ", fmt::format("{}   norm {:.2g}   share {}   cosine {}", c.from, c.gradient.stats.norm,
                                                       percent(c.share), std::isfinite(c.cosine) ? fmt::format("{:.2f}", c.cosine) : "-"),
                              width);
  }
  return out.empty() ? out : out.substr(1);
}

std::string NodeCard::saved_text(int width) const {
  std::string out;
  for (const SavedItem& s : saved) {
    std::string body = s.what;
    if (s.has_values) body += fmt::format(" {} {}", s.shape, name_of(s.dtype));
    body += "   " + bytes_text(s.bytes);
    if (s.has_values) body += fmt::format("   version {}/{}", s.version_saved, s.version_now);
    if (s.recomputed) body += "   recomputed by a checkpoint";
    if (!s.shared_with.empty()) {
      const size_t shown = std::min<size_t>(3, s.shared_with.size());
      body += fmt::format("   shared with {}", fmt::join(s.shared_with.begin(), s.shared_with.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
      if (shown < s.shared_with.size()) body += fmt::format(" and {} more", s.shared_with.size() - shown);
    }
    if (s.freed) body += "   freed";
    out += "\n" + hanging("  saved  ", body, width);
  }
  if (saved.size() > 1 || (saved.size() == 1 && std::isfinite(saved_share)))
    out += "\n" + hanging("         ", fmt::format("total {}{}", bytes_text(saved_bytes),
                                                 std::isfinite(saved_share) ? fmt::format(", {} of the run's", percent(saved_share)) : ""),
                          width);
  if (out.empty()) return "  saved  nothing";
  return out.substr(1);
}

std::string NodeCard::outgoing_text(int width) const {
  std::string out;
  for (const Outgoing& o : outgoing) {
    std::string body = fmt::format("{} <- {}", o.to, full_text(o.after));
    if (!o.edge.empty()) body += fmt::format("   {} from {} {}", o.edge, o.before.shape, name_of(o.before.dtype));
    if (std::isfinite(o.gain)) body += fmt::format("   gain {:.2g}", o.gain);
    if (o.slot_before.computed)
      body += fmt::format("   sum: norm {:.2g} -> {:.2g}", o.slot_before.stats.norm, o.slot_after.stats.norm);
    body += fmt::format("   arrived {} of {}", o.arrived, o.expected);
    out += "\n" + hanging("  out    ", body, width);
  }
  return out.empty() ? "  out    nothing" : out.substr(1);
}

std::string NodeCard::hooks_text() const {
  if (!hooks_run) return "  hooks  none";
  return fmt::format("  hooks  {} ran{}", hooks_run, hooks_changed ? ", changed the gradient" : ", changed nothing");
}

std::string NodeCard::check_text(int width) const {
  constexpr std::string_view head = "  check  ", more = "         ";
  if (!check) return std::string(head) + "not run";
  const NodeCheck& c = *check;
  if (!c.possible) return hanging(head, "not possible: " + c.reason, width);
  std::string out = hanging(head, fmt::format("{}: {} derivatives, largest error {:.1e} (limit {:.0e})", c.passed ? "passed" : "FAILED",
                                              c.compared, c.max_error, c.tolerance), width);
  if (c.compared && !c.where.empty())
    out += "\n" + hanging(more, fmt::format("at {}: rule {:.8g}, finite difference {:.8g}", c.where, c.analytic, c.numeric), width);
  if (c.near_kinks)
    out += "\n" + hanging(more, fmt::format("{} elements lie within 10 steps of a kink and were left out", c.near_kinks), width);
  return out;
}

std::string NodeCard::to_string(int width) const {
  std::string out = head_text(width);
  std::string values = formula;
  if (!attributes.empty()) values += "   (" + attributes_text(attributes) + ")";
  if (3 + columns_of(values) + 3 + columns_of(rule) + 2 <= width) out += fmt::format("\n  {}   |   {}", values, rule);
  else out += "\n" + hanging("  ", values, width) + "\n" + hanging("  ", rule, width);
  for (const CardTensor& t : inputs)
    if (!t.name.empty() || t.known) out += "\n" + hanging("  input  ", (t.name.empty() ? "constant" : t.name) + " " + full_text(t), width);
  for (const CardTensor& t : outputs) out += "\n" + hanging("  output ", t.name + " " + full_text(t), width);
  if (!incoming.empty()) out += "\n" + incoming_text(width);
  if (!saved.empty()) out += "\n" + saved_text(width);
  if (!outgoing.empty()) out += "\n" + outgoing_text(width);
  if (hooks_run) out += "\n" + hooks_text();
  for (const std::string& n : notes) out += "\n" + hanging("  notes  ", n, width);
  return out + "\n" + check_text(width);
}

}  // namespace waymark

fmt::appender fmt::formatter<waymark::NodeCard>::format(const waymark::NodeCard& value, fmt::format_context& c) const {
  return fmt::format_to(c.out(), "{}", value.to_string());
}
