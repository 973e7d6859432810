// Internal: what a kind of case works with: the file's configuration and tensors in, comparisons out.
#pragma once

#include <set>

#include "core/engine/backward.h"
#include "core/io/safetensors.h"
#include "train/report/json.h"
#include "train/verify/verify.h"

namespace waymark::train {

class CaseContext {
 public:
  CaseContext(SafeTensors file, Json config, double rtol, double atol, const VerifyOptions& options, CaseReport& report)
      : file_(std::move(file)), config_(std::move(config)), rtol_(rtol), atol_(atol), options_(options), report_(report) {}

  const Json& config() const { return config_; }
  bool has(std::string_view name) const { return file_.contains(name); }
  // Reads a tensor and remembers that it was used. u8_is_bool: U8 data are b8 (kind `op`), else i64.
  Tensor get(const std::string& name, bool u8_is_bool = false);
  // Names with this prefix, without it, in the file's order.
  std::vector<std::string> with_prefix(std::string_view prefix) const;
  // Compares one of ours with the file's tensor of that name.
  void compare(const std::string& name, const Tensor& ours, bool u8_is_bool = false);
  // The same on rows: `keep` (b8, one per leading element) says which rows count.
  void compare_rows(const std::string& name, const Tensor& ours, const Tensor& keep);
  // Tensors of the file that no part of the case asked for.
  std::vector<std::string> unused() const;
  // The file cannot be used: Error caught by verify_file, which lists it. Collects when `more` problems follow.
  void problem(std::string text) { report_.problems.push_back(std::move(text)); }
  bool usable() const { return report_.problems.empty(); }
  // f64 if the file's floats are f64, else f32.
  DType dtype() const;

 private:
  void compare_values(const std::string& name, const Tensor& ours, const Tensor& theirs, const std::vector<bool>* keep_rows);
  SafeTensors file_;
  Json config_;
  double rtol_, atol_;
  const VerifyOptions& options_;
  CaseReport& report_;
  std::set<std::string> used_;
};

struct CaseKind {
  const char* name;
  const char* doc;
  void (*run)(CaseContext&);
};
// The explicit list of kinds (kinds.cpp): one file and one line add one.
const std::vector<CaseKind>& kinds();

}  // namespace waymark::train
