// Case files: proof against another framework (specs: cases). A case file holds what another program computed; verify
// builds the same thing here, runs it forward and backward in the dtype of the file, and compares.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace waymark::train {

struct VerifyOptions {
  std::optional<double> rtol, atol;  // in place of those of the file
  std::string only;                  // glob on tensor names; empty: all
};

// One compared tensor. It passes where |ours − theirs| <= atol + rtol·|theirs| everywhere; NaN equals NaN only where
// theirs is NaN, and infinities must agree.
struct TensorCheck {
  std::string name;
  Shape shape;
  double max_abs = 0, max_rel = 0;   // largest absolute and relative error of finite elements
  std::string where;                 // index of the worst element, "" if all are equal
  bool pass = true;
};

struct CaseReport {
  std::string file, module, source, note;
  std::vector<TensorCheck> checks;
  std::vector<std::string> problems;  // reasons why the file cannot be used; then nothing was compared
  bool usable() const { return problems.empty(); }
  bool pass() const;
};

// Never throws on a bad file: its reasons are in `problems`.
WAYMARK_API CaseReport verify_file(const std::filesystem::path& file, const VerifyOptions& options = {});
// The kinds that `module` may name, in the order of the help page.
WAYMARK_API std::vector<std::string> case_kinds();

}  // namespace waymark::train
