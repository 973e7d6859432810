#include "train/plans/plan.h"

#include <algorithm>

#include "nn/attention/registry.h"
#include "nn/position/registry.h"
#include "train/report/escape.h"

// One line per plan, in the order of the list: the line declares the function of its file, and lists it.
#define WAYMARK_PLANS(X)          \
  X(signed_neighbour_plan)        \
  X(signed_neighbour_clip_plan)   \
  X(offset_copy_plan)             \
  X(character_mlm_plan)

namespace waymark::train {

#define WAYMARK_DECLARE(NAME) Plan NAME();
WAYMARK_PLANS(WAYMARK_DECLARE)
#undef WAYMARK_DECLARE

const std::vector<Plan>& all_plans() {
  static const std::vector<Plan> plans = {
#define WAYMARK_CALL(NAME) NAME(),
      WAYMARK_PLANS(WAYMARK_CALL)
#undef WAYMARK_CALL
  };
  return plans;
}

const Plan* find_plan(std::string_view name) {
  for (const Plan& plan : all_plans())
    if (plan.name == name) return &plan;
  return nullptr;
}

namespace {

bool can_be_built(const PlanRow& row) {
  std::vector<std::string> problems;
  try {
    (void)nn::resolve_encodings(row.position, 1, problems);
    (void)nn::resolve_attentions(row.attention, 1, problems);
  } catch (const Error&) {
    return false;
  }
  return problems.empty();
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + json_string(text);
  return "[" + list + "]";
}

}  // namespace

std::string plan_toml(const Plan& plan) {
  std::vector<std::string> positions, attentions;
  for (const PlanRow& row : plan.rows)
    if (can_be_built(row)) {
      positions.push_back(row.position);
      attentions.push_back(row.attention);
    }
  if (plan.others_with_clip > 0)
    for (const nn::EncodingInfo* info : nn::all_encodings()) {
      const bool known = std::any_of(plan.rows.begin(), plan.rows.end(), [&](const PlanRow& row) {
        return row.position == info->name() || row.position.rfind(info->name() + "(", 0) == 0;
      });
      if (known) continue;
      positions.push_back(info->options.find("clip") ? fmt::format("{}(clip={})", info->name(), plan.others_with_clip) : info->name());
      attentions.emplace_back("dense");
    }
  std::string text = "# " + plan.name + ": " + plan.summary + "\n" + plan.recipe;
  text += fmt::format("\n[sweep]\nseeds = \"{}\"\n\n", plan.seeds);
  const bool dense = std::all_of(attentions.begin(), attentions.end(), [](const std::string& a) { return a == "dense"; });
  text += fmt::format("[sweep.{}]\n\"model.position\" = {}\n", dense ? "grid" : "zip", list_of(positions));
  if (!dense) text += fmt::format("\"model.attention\" = {}\n", list_of(attentions));
  return text;
}

}  // namespace waymark::train
