// Kind `loss`: a loss of nn/loss/loss.h, its value and the gradients of its float inputs.
#include "nn/loss/loss.h"
#include "train/verify/kinds.h"

namespace waymark::train {
namespace {

using Leaves = std::vector<std::pair<std::string, Tensor>>;  // by the name behind "input."

Tensor maybe(CaseContext& c, const std::string& name) { return c.has(name) ? c.get(name) : Tensor(); }

// A float input that may have a gradient in the file.
Tensor leaf(CaseContext& c, Leaves& leaves, const std::string& name) {
  leaves.emplace_back(name, leaf_of(c, "input." + name));
  return leaves.back().second;
}

Tensor cross_entropy_case(CaseContext& c, JsonReader& r, Leaves& leaves) {
  nn::loss::CrossEntropyOptions o;
  o.ignore_index = r.maybe_integer("ignore_index").value_or(-100);
  o.label_smoothing = r.maybe_number("label_smoothing").value_or(0);
  r.finish();
  o.weight = maybe(c, "input.weight");
  o.item_weight = maybe(c, "input.item_weight");
  return nn::loss::cross_entropy(leaf(c, leaves, "logits"), c.get("input.target"), o);
}

Tensor kl_div_case(CaseContext& c, JsonReader& r, Leaves& leaves) {
  nn::loss::KlOptions o;
  o.kl = nn::loss::kl_of(r.maybe_text("kl").value_or("symmetric"));
  o.detach = nn::loss::detach_of(r.maybe_text("detach").value_or("none"));
  r.finish();
  o.mask = keep_of(c, "input.mask");
  o.item_weight = maybe(c, "input.item_weight");
  const Tensor first = leaf(c, leaves, "first"), second = leaf(c, leaves, "second");
  return nn::loss::kl_div(first, second, o);
}

nn::loss::SpanTargets span_targets(CaseContext& c) {
  return {
      .start = c.get("input.start_positions"), .end = c.get("input.end_positions"), .keep = keep_of(c, "input.mask")};
}

Tensor consistency_case(CaseContext& c, JsonReader& r, Leaves& leaves, bool r_drop) {
  nn::loss::ConsistencyOptions o;
  o.alpha = r.maybe_number("alpha").value_or(1);
  o.kl = nn::loss::kl_of(r.maybe_text("kl").value_or("symmetric"));
  o.ce = nn::loss::scored_of(r.maybe_text("ce").value_or("both"));
  o.detach = nn::loss::detach_of(r.maybe_text("detach").value_or("none"));
  const std::string task = r.maybe_text("task").value_or("classify");
  if (task != "classify" && task != "span" && task != "regress")
    r.refuse("task", fmt::format("is \"{}\"; it must be classify, span or regress", task));
  r.finish();
  o.item_weight = maybe(c, "input.item_weight");
  if (task == "span") {
    const nn::loss::SpanLogits first{leaf(c, leaves, "first_start"), leaf(c, leaves, "first_end")};
    const nn::loss::SpanLogits second{leaf(c, leaves, "second_start"), leaf(c, leaves, "second_end")};
    return nn::loss::sar_span(first, second, span_targets(c), o);
  }
  const Tensor first = leaf(c, leaves, "first"), second = leaf(c, leaves, "second"), target = c.get("input.target");
  if (task == "regress") return nn::loss::sar_regression(first, second, target, o);
  return r_drop ? nn::loss::r_drop(first, second, target, o) : nn::loss::sar(first, second, target, o);
}

Tensor span_case(CaseContext& c, JsonReader& r, Leaves& leaves) {
  nn::loss::SpanOptions o{.pad_logits = r.maybe_flag("pad_logits").value_or(false)};
  r.finish();
  o.item_weight = maybe(c, "input.item_weight");
  const nn::loss::SpanLogits logits{leaf(c, leaves, "start_logits"), leaf(c, leaves, "end_logits")};
  return nn::loss::span_qa(logits, span_targets(c), o);
}

}  // namespace

void run_loss_case(CaseContext& c) {
  JsonReader r(c.config(), "config");
  const std::string name = r.text("loss");
  Leaves leaves;
  Tensor loss;
  if (name == "cross_entropy")
    loss = cross_entropy_case(c, r, leaves);
  else if (name == "kl_div")
    loss = kl_div_case(c, r, leaves);
  else if (name == "sar" || name == "r_drop")
    loss = consistency_case(c, r, leaves, name == "r_drop");
  else if (name == "span_qa")
    loss = span_case(c, r, leaves);
  else
    r.refuse("loss", fmt::format("is \"{}\"; it must be cross_entropy, kl_div, sar, r_drop or span_qa", name));
  c.compare("output", loss);
  compare_gradients(c, {{"output", loss, {}}}, leaves, nullptr);
}

}  // namespace waymark::train
