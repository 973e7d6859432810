// Internal: what a kind of case works with. The same function of a kind verifies a file and writes one: reading, it
// gets the file's tensors and hands over its own to be compared; writing, it gets what a draft laid out, and hands over
// the results that the file will hold.
#pragma once

#include <map>
#include <set>

#include "core/engine/backward.h"
#include "core/io/safetensors.h"
#include "nn/module/module.h"
#include "train/report/json.h"
#include "train/verify/verify.h"

namespace waymark::train {

// A file to be: configuration, inputs, and what else is in it once a kind has run on it.
struct CaseDraft {
  std::string kind;
  Json config = Json(Json::Object{});
  std::map<std::string, Tensor> tensors = {};  // by their names in the file
  std::set<std::string> optional = {};         // results that are not always in a file: "weights"
  std::set<std::string> constant = {};         // inputs without gradient, without "input."
  DType dtype = kF64;
  u64 seed = 0;  // of parameters and incoming gradients
};

class CaseContext {
 public:
  CaseContext(SafeTensors file, Json config, double rtol, double atol, const VerifyOptions& options, CaseReport& report)
      : file_(std::move(file)),
        config_(std::move(config)),
        rtol_(rtol),
        atol_(atol),
        options_(options),
        report_(report) {}
  // Writing: results go to the draft; problems to `report`.
  CaseContext(CaseDraft& draft, const VerifyOptions& options, CaseReport& report)
      : draft_(&draft), config_(draft.config), options_(options), report_(report) {}

  bool writing() const { return draft_ != nullptr; }
  const Json& config() const { return config_; }
  bool has(std::string_view name) const;
  // Reads a tensor and remembers that it was used. u8_is_bool: U8 data are b8 (kind `op`), else i64.
  Tensor get(const std::string& name, bool u8_is_bool = false);
  // Names with this prefix, without it, in the file's order.
  std::vector<std::string> with_prefix(std::string_view prefix) const;
  // Is this result in the file, or to be written?
  bool wants(const std::string& name) const;
  // Compares one of ours with the file's tensor of that name, or writes it.
  void compare(const std::string& name, const Tensor& ours, bool u8_is_bool = false);
  // The same on rows: `keep` (b8, one per leading element) says which rows count; the others are written as zeros.
  void compare_rows(const std::string& name, const Tensor& ours, const Tensor& keep);
  // The gradient that comes into an output: the file's, or a new one; undefined if there is none. keep: as above.
  Tensor seed(const std::string& name, const Tensor& output, const Tensor& keep = {});
  // Gives a module the file's parameters and buffers: every one must be in the file, and the reverse, but those that
  // the glob `without` names; evaluation mode. Writing, the module gets random ones.
  void parameters(nn::ModuleBase& module, std::string_view without = "");
  // Tensors of the file that no part of the case asked for.
  std::vector<std::string> unused() const;
  // The file cannot be used: listed. Collects when `more` problems follow.
  void problem(std::string text);
  bool usable() const { return report_.problems.empty(); }
  // f64 if the file's floats are f64, else f32.
  DType dtype() const;

 private:
  void compare_values(const std::string& name, const Tensor& ours, const Tensor& theirs,
                      const std::vector<bool>* keep_rows);
  std::optional<SafeTensors> file_ = {};
  CaseDraft* draft_ = nullptr;
  Json config_;
  double rtol_ = 0, atol_ = 0;
  const VerifyOptions& options_;
  CaseReport& report_;
  std::set<std::string> used_;
};

// A key of the config, or a tensor, of a kind: what the help shows, and what a file is checked against before it runs.
struct CaseEntry {
  const char* name;  // tensors: may hold a *
  const char* type;  // keys: "int", "number", "bool", "text", "list", "object", "any"; tensors: shape, for the help
  bool required;
  const char* doc;
};
struct CaseKind {
  const char* name;
  const char* doc;
  void (*run)(CaseContext&);
  std::vector<CaseEntry> keys, tensors;
  bool more_keys = false;  // further keys belong to what the config names, which checks them itself
};
// The explicit list of kinds (kinds.cpp): one file and one line add one.
const std::vector<CaseKind>& kinds();
const CaseKind* find_kind(std::string_view name);
// Every unknown, missing and ill-typed key; every tensor that is missing or that the kind does not know.
std::vector<std::string> check_config(const CaseKind& kind, const Json& config);
std::vector<std::string> check_tensors(const CaseKind& kind, const std::vector<std::string>& names);
// The texts of two of these problems, which a running kind may find, too.
std::string no_tensor(std::string_view name);
std::string no_meaning(std::string_view tensor, std::string_view kind);

}  // namespace waymark::train
