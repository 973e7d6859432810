// Config: a checked, resolved configuration; what Trainer, eval, inspect and the tables work with.
//
//   Config config = make_config({{"task", "char-mlm(context=64)"}, {"model.position", "rope"}, {"train.steps",
//   "900"}}); config.integer("train.steps");                 900 config.layers("model.position")[0][0].name();  "rope"
//   config.origin("train.steps");                  "program"; from a file "tiny.toml:21"; else "default"
//   config.id();                                   12 hex digits over every key that decides the result
//
// The keys are declared in keys.h, sources and their precedence in source.h, the rules in resolve.h. Every key has a
// value: what was not written is filled in from the defaults, which may depend on other keys and on the task. The
// exceptions are train.steps/epochs/tokens/minutes, of which exactly one is set; ask has().
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/spec/options.h"
#include "train/config/problem.h"

namespace waymark::train {

// One entry of optim.groups: what holds for the parameters whose name matches the glob. The first match wins.
struct ParameterGroup {
  std::string match = {};
  double lr_scale = 1;
  std::optional<double> weight_decay = {};  // none: that of the optimizer
  bool freeze = false;
};

class WAYMARK_API Config {
 public:
  // Typed values. Error for a name that is no key, for a key of another type, and for one that is not set.
  i64 integer(std::string_view key) const;
  double real(std::string_view key) const;
  bool boolean(std::string_view key) const;
  const std::string& text(std::string_view key) const;              // words and texts
  std::vector<std::string> texts(std::string_view key) const;       // optim.no_decay
  const nn::Options& spec(std::string_view key) const;              // task, optim.optimizer, optim.schedule, ...
  const std::vector<nn::Options>& sum(std::string_view key) const;  // model.cross_position, train.regularizer
  // model.position, model.attention: one sum per layer, model.num_layers of them. An attention is a sum of one.
  const std::vector<std::vector<nn::Options>>& layers(std::string_view key) const;
  const std::vector<ParameterGroup>& groups() const;  // optim.groups

  bool has(std::string_view key) const;  // false: one of train.steps/epochs/tokens/minutes that is not set
  // Is the value this word? For numbers with words beside them: is_word("run.threads", "auto").
  bool is_word(std::string_view key, std::string_view word) const;

  // Where the value comes from: "default", "tiny.toml:21", "--set", "--position", "program".
  const std::string& origin(std::string_view key) const;
  bool is_default(std::string_view key) const;                // equal to what it would be if nothing were written
  const std::string& canonical(std::string_view key) const;   // every option written out; "" if not set
  const std::string& short_form(std::string_view key) const;  // as tables and the printed config show it

  // First 12 hex digits of XXH3-128 over "waymark-id-1\n" and the sorted lines key=canonical value of the keys that
  // decide the result (keys.h), seed included. The order of keys, their origin and their written form do not count.
  std::string id() const;
  // Values of id() as text, for a message that says in which keys two configs differ.
  std::map<std::string, std::string> id_lines() const;
  // `name`, or <task>-<position>-<attention>-<first 6 of id>, as a safe name of a folder (file_name in
  // report/escape.h).
  std::string name() const;

  // config.toml: every key with its origin as a comment. Read again it gives the same config and the same id.
  std::string to_toml() const;
  // The lines that are printed at the start: what differs from the default, or everything.
  std::string to_text(bool all = false) const;

  // Values as SpecValue, for results and tables that want them untyped; specs as their short form.
  nn::SpecValue value(std::string_view key) const;

 private:
  friend class Resolver;
  struct Entry {
    bool set = false, is_default = true;
    nn::SpecValue plain;                           // numbers, words, texts, lists of texts
    std::vector<std::vector<nn::Options>> layers;  // specs, sums and patterns
    std::vector<ParameterGroup> groups;
    std::string canonical, short_form, origin = "default";
  };
  const Entry& entry(std::string_view key) const;
  const Entry& set_entry(std::string_view key) const;
  std::map<std::string, Entry, std::less<>> entries_;
};

// For programs: files in their order, then settings as after --set ("[1, 2]" is TOML, a bare word is a string).
// Throws ConfigError with all problems.
using Settings = std::vector<std::pair<std::string, std::string>>;
WAYMARK_API Config make_config(const Settings& settings, const std::vector<std::string>& files = {});

}  // namespace waymark::train
