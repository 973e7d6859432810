// StopPoint: where BackwardRun::until halts.
#include <fnmatch.h>

#include <charconv>
#include <cmath>

#include "core/engine/backward.h"

namespace waymark {
namespace {

double number_after(const std::string& text, size_t at) {
  double v = 0;
  const char* begin = text.data() + at;
  const char* end = text.data() + text.size();
  const auto [p, error] = std::from_chars(begin, end, v);
  if (error != std::errc() || p != end) fail("until", "\"{}\": a number is expected after the comparison", text);
  if (std::isnan(v)) fail("until", "\"{}\": nothing is above NaN; nonfinite stops where one comes up", text);
  return v;
}
u64 seq_after(const std::string& text) {
  u64 v = 0;
  const char* const end = text.data() + text.size();
  const auto [p, error] = std::from_chars(text.data() + 1, end, v);
  if (error != std::errc() || p != end) fail("until", "\"{}\": # is followed by the number of a node", text);
  return v;
}

}  // namespace

StopPoint::StopPoint(std::string text) : text_(std::move(text)) {
  if (text_.starts_with("line ")) text_ = text_.substr(5);
  if (text_.empty()) fail("until", "the stop point is empty");
  if (text_.starts_with("norm>")) { kind_ = Kind::norm; limit_ = number_after(text_, 5); }
  else if (text_.starts_with("gain>")) { kind_ = Kind::gain; limit_ = number_after(text_, 5); }
  else if (text_ == "nonfinite") kind_ = Kind::nonfinite;
  else if (text_ == "zero") kind_ = Kind::zero;
  else if (text_ == "leaf") kind_ = Kind::leaf;
  else if (text_ == "kink") kind_ = Kind::kink;
  else if (text_.front() == '#') { kind_ = Kind::seq; seq_ = seq_after(text_); }
  else if (const size_t colon = text_.find(':'); colon != std::string::npos) kind_ = Kind::line;
}

bool StopPoint::matches_next(const Node& node) const {
  switch (kind_) {
    case Kind::seq: return node.seq == seq_;
    case Kind::line: return node.loc && fmt::format("{}:{}", node.loc.name(), node.loc.line) == text_;
    case Kind::name: {
      const std::string& scope = scope_path(node.scope);
      const bool below = scope.size() > text_.size() && scope.starts_with(text_) && scope[text_.size()] == '.';
      return node.op->name == text_ || below || fnmatch(text_.c_str(), scope.c_str(), 0) == 0;
    }
    default: return false;
  }
}

bool StopPoint::matches_done(const NodeCard& card) const {
  if (kind_ == Kind::kink) {
    for (const std::string& note : card.notes)
      if (note.starts_with("kink ")) return true;
    return false;
  }
  for (const NodeCard::Outgoing& o : card.outgoing) {
    if (!o.after.computed) continue;
    const TensorStats& s = o.after.stats;
    const bool complete = o.arrived == o.expected;
    switch (kind_) {
      case Kind::norm: if (s.norm > limit_) return true; break;
      case Kind::gain: if (o.gain > limit_) return true; break;
      case Kind::nonfinite: if (s.nonfinite()) return true; break;
      case Kind::zero: if (s.all_zero()) return true; break;
      case Kind::leaf: if (o.is_leaf() && complete) return true; break;
      case Kind::name: if (o.to == text_ && complete) return true; break;
      default: break;
    }
  }
  return false;
}

}  // namespace waymark
