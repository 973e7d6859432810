// The registry of config keys: the one table that the parser, the checks, the id and `waymark help keys` read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nn/spec/options.h"

namespace waymark::train {

enum class KeyShape : u8 {
  plain,            // int, float, bool, word, text, list of texts: as `rule` says
  spec,             // task, optim.optimizer
  sum,              // model.cross_position
  layers_of_sums,   // model.position: a pattern of sums
  layers_of_specs,  // model.attention
  groups,           // optim.groups: a list of tables
};

struct KeyInfo {
  std::string name = {};
  KeyShape shape = KeyShape::plain;
  nn::OptionRule rule = {};   // of a plain key; a default that depends on other keys stands in `rule.from` as text
  std::string fallback = {};  // the default as help shows it: "64", "4*embed_dim", "task"
  bool in_id = true;     // does it decide the result?
  std::string doc = {};       // one line
};

WAYMARK_API const std::vector<KeyInfo>& config_keys();
WAYMARK_API const KeyInfo* find_key(std::string_view name);
// What was probably meant by an unknown key, as a sentence: names of the same table, last components in any table, and
// the names that other programs use (lr, d_model, ...).
WAYMARK_API std::string suggest_key(std::string_view wrong);

}  // namespace waymark::train
