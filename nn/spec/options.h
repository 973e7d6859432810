// What a spec may say: an OptionTable declares the options of one name, and turns a Spec into checked Options.
//
//   const OptionTable kHuangM4{"huang-m4",
//                              {{"clip", int_option(16, 0, 1 << 20), "largest distance with a row of its own"},
//                               {"per_head", bool_option(false), "one table per head"},
//                               {"beyond", word_option("clip", {"clip", "zero", "error"}), "what farther pairs get"}},
//                              "relative table added to queries and keys (Huang 2020, method 4)"};
//   Options o = kHuangM4.resolve(parse_spec("huang-m4(clip=8)"));
//   o.integer("clip");   o.short_form() == "huang-m4(clip=8)";   o.canonical() names every option
//
// Types: an int is accepted for a float, never the reverse; "1" is no int, `yes` is no bool.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/spec/spec.h"

namespace waymark::nn {

class SpecTables;

enum class OptionType : u8 { integer, real, boolean, word, text, integers, reals, words, spec };

// Type, range and default of an option. Made by the functions below, refined by the members that return *this.
struct WAYMARK_API OptionRule {
  OptionType type = OptionType::integer;
  std::optional<SpecValue> fallback = {};  // none: the option must be written
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
  bool above = false, below = false;  // the bound itself is not allowed
  std::vector<std::string> choices = {};   // of a word; or words that stand beside a number: heads=all
  i64 min_length = 0, max_length = std::numeric_limits<i64>::max();  // of a list
  std::string from = {};                    // the default comes from here (a config key) where the caller knows it
  bool one = false;                    // of a list: a single value stands for a list of it
  const SpecTables* tables = nullptr;  // of a spec option

  // Words that are accepted beside the type: int_option("all").or_word({"all"}).
  OptionRule or_word(std::vector<std::string> words) const;
  // int_list_option(...).or_one(): dilation=2 is dilation=[2].
  OptionRule or_one() const;
  // Exclusive bounds: real_option(1e-8).greater_than(0).
  OptionRule greater_than(double bound) const;
  OptionRule less_than(double bound) const;
  // The default is what the caller passes under this name (Defaults below), else the fallback.
  OptionRule default_from(std::string key) const;
  // "int 0..1048576", "clip | zero | error", "list of 2 floats": for messages and help.
  std::string describe() const;
};

// The first argument is the default; `required()` instead: the option must be written.
struct Required {};
inline constexpr Required required() { return {}; }
struct WAYMARK_API Fallback {
  std::optional<SpecValue> value = {};
  Fallback(Required) {}                                      // NOLINT: implicit on purpose
  template <class T> Fallback(T v) : value(SpecValue(v)) {}  // NOLINT
};
WAYMARK_API OptionRule int_option(Fallback fallback, i64 min = std::numeric_limits<i64>::min(),
                                  i64 max = std::numeric_limits<i64>::max());
WAYMARK_API OptionRule real_option(Fallback fallback, double min = -std::numeric_limits<double>::infinity(),
                                   double max = std::numeric_limits<double>::infinity());
WAYMARK_API OptionRule bool_option(Fallback fallback);
WAYMARK_API OptionRule word_option(Fallback fallback, std::vector<std::string> choices);
WAYMARK_API OptionRule text_option(std::optional<std::string> fallback);  // any word or "quoted" text
WAYMARK_API OptionRule int_list_option(std::optional<std::vector<i64>> fallback, i64 min, i64 max, i64 min_length = 0,
                                       i64 max_length = 1 << 20);
WAYMARK_API OptionRule real_list_option(std::optional<std::vector<double>> fallback, double min, double max,
                                        i64 min_length = 0, i64 max_length = 1 << 20);
WAYMARK_API OptionRule word_list_option(std::optional<std::vector<std::string>> fallback,
                                        std::vector<std::string> choices);  // no choices: any word
WAYMARK_API OptionRule spec_option(std::optional<std::string> fallback, const SpecTables& tables);

// `value` in the type of the rule (int to float, quoted text to word), or nothing, and in `problem` what would be
// right: "must be int 0..16, not float 1.5". Also used for config keys.
WAYMARK_API std::optional<SpecValue> convert(const OptionRule& rule, const SpecValue& value, std::string& problem);
// Canonical text of a converted value: reals without ".0", lists without blanks.
WAYMARK_API std::string value_text(const SpecValue& value);

struct OptionDef {
  std::string name = {};
  OptionRule rule = {};
  std::string doc = {};
};

// A checked spec: every option of its table has a value of the declared type.
class WAYMARK_API Options {
 public:
  const std::string& name() const { return name_; }
  bool has(std::string_view option) const;

  // Values. Error for an option that the table does not have, or of another type.
  i64 integer(std::string_view option) const;
  double real(std::string_view option) const;
  bool boolean(std::string_view option) const;
  const std::string& word(std::string_view option) const;  // words and texts
  std::vector<i64> integers(std::string_view option) const;
  std::vector<double> reals(std::string_view option) const;
  std::vector<std::string> words(std::string_view option) const;
  const Options& spec(std::string_view option) const;
  const SpecValue& value(std::string_view option) const;
  // Is the value this word? For numbers with words beside them: is_word("heads", "all").
  bool is_word(std::string_view option, std::string_view word) const;
  bool given(std::string_view option) const;  // written in the spec, even if equal to the default

  // Options that differ from their default or whose default comes from outside, in the order of the table.
  std::string short_form() const;
  std::string canonical() const;  // all options

 private:
  friend struct OptionTable;
  friend WAYMARK_API bool operator==(const Options& a, const Options& b);
  struct Entry {
    std::string name;
    OptionType type = OptionType::integer;
    SpecValue value;
    std::optional<SpecValue> fallback;
    bool given = false;
    bool shown = false;                     // always in the short form: its default depends on the surroundings
    std::shared_ptr<const Options> nested;  // of a spec option: its resolved value
  };
  const Entry& entry(std::string_view option) const;
  const Entry& entry(std::string_view option, OptionType type) const;
  std::string name_;
  std::vector<Entry> entries_;
};
WAYMARK_API bool operator==(const Options& a, const Options& b);  // names and values; `given` does not count

// Defaults that depend on the surroundings: {"model.max_len", 128}. See OptionRule::default_from.
using Defaults = std::map<std::string, SpecValue, std::less<>>;

struct WAYMARK_API OptionTable {
  std::string name = {};
  std::vector<OptionDef> options = {};
  std::string doc = {};  // one line
  // Rules that need several options. Appends one text per problem, without the name of the spec.
  std::function<void(const Options&, std::vector<std::string>&)> check = {};

  const OptionDef* find(std::string_view option) const;
  std::vector<std::string> option_names() const;

  // Collects every problem, one line each; empty result if there was one.
  std::optional<Options> resolve(const Spec& spec, std::vector<std::string>& problems,
                                 const Defaults& defaults = {}) const;
  // Throws one Error with all problems.
  Options resolve(const Spec& spec, const Defaults& defaults = {}) const;
  std::string signature() const;  // "huang-m4(clip=16, per_head=false, beyond=clip)"
};

// All names of one kind: encodings, attentions, tasks, optimizers, ...
class WAYMARK_API SpecTables {
 public:
  explicit SpecTables(std::string kind, std::vector<OptionTable> tables = {});

  const std::string& kind() const { return kind_; }  // "position encoding": for messages
  // Error if the name exists. Not for use while another thread resolves specs.
  void add(OptionTable table);
  void add_alias(std::string name, std::string_view spec);  // lra-text = text(source=imdb)
  // Names that later versions will have: their error says so.
  void set_planned(std::vector<std::string> names) { planned_ = std::move(names); }
  const std::vector<std::string>& planned() const { return planned_; }
  const OptionTable* find(std::string_view name) const;  // aliases are not found here
  std::vector<std::string> names() const;                // in registry order, without aliases
  const std::vector<std::pair<std::string, Spec>>& aliases() const { return aliases_; }
  i64 order_of(std::string_view name) const;  // place in the registry; -1 if unknown

  std::optional<Options> resolve(const Spec& spec, std::vector<std::string>& problems,
                                 const Defaults& defaults = {}) const;
  Options resolve(const Spec& spec, const Defaults& defaults = {}) const;
  // A sum: a name may appear once; the result is in registry order, since a + b = b + a.
  std::optional<std::vector<Options>> resolve_sum(const SpecSum& sum, std::vector<std::string>& problems,
                                                  const Defaults& defaults = {}) const;

 private:
  const Spec* find_alias(std::string_view name) const;
  std::string kind_;
  std::vector<std::unique_ptr<const OptionTable>> tables_;  // addresses stay when more are added
  std::vector<std::pair<std::string, Spec>> aliases_;
  std::vector<std::string> planned_;
};

// "learned + t5(buckets=16)".
WAYMARK_API std::string sum_text(const std::vector<Options>& sum, bool canonical);

}  // namespace waymark::nn
