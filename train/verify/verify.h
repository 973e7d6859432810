// Case files: proof against another framework. A case file holds what another program computed; verify
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
// Finite and >= 0.
WAYMARK_API bool is_tolerance(double value);

// One compared tensor. It passes where |ours − theirs| <= atol + rtol·|theirs| everywhere; NaN equals NaN only where
// theirs is NaN, and infinities must agree. Integers are compared as integers: no difference is too small to be seen.
struct TensorCheck {
  std::string name;
  Shape shape;
  double max_abs = 0, max_rel = 0;  // largest absolute and relative error of finite elements
  double of_tolerance = 0;          // largest error over what is allowed there; above 1 fails
  std::string where;                // index of the worst element, "" if all are equal
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

// A file, or the case files of a folder (*.safetensors, by name). Error for a folder without any.
WAYMARK_API std::vector<std::filesystem::path> case_files(const std::filesystem::path& file_or_folder);

// What many files came to, by kind.
struct VerifySummary {
  struct Line {
    std::string kind;  // "-": files that do not say
    i64 files = 0, passed = 0, failed = 0, unusable = 0, tensors = 0;
    double max_abs = 0, max_rel = 0, of_tolerance = 0;  // over the files that could be used
    void add(const CaseReport& report);
  };
  std::vector<Line> kinds;  // in the order of case_kinds()
  Line all;
  void add(const CaseReport& report);
};

// The kinds that `module` may name, in the order of the help page.
WAYMARK_API std::vector<std::string> case_kinds();
// The help page on case files: kinds with their keys and tensors, how PyTorch writes one, how we do.
WAYMARK_API std::string case_help();

// Writes a case file of ours into a folder, that others can check themselves against: `spec` is a kind with its keys,
//   attention(embed_dim=8, num_heads=2, position=huang-m4(clip=3), causal=true)    loss(loss=sar, rows=4, classes=5)
// or, short for one with the kind's defaults, an encoding, an attention, an optimizer, or an op with its arguments:
//   huang-m4(clip=3)    adamw(lr=0.1)    matmul(input=[2,3], other=[3,4])
// Values are drawn from `seed=`. The file is verified once it is written; the report is of that. Error with all
// problems of a spec, before anything is written. The file is named after the spec; where another spec's file has that
// name already, a hash is added to it: nothing but a file of the same spec is written over.
struct WrittenCase {
  std::filesystem::path file;
  CaseReport report;
};
WAYMARK_API WrittenCase write_case(const std::filesystem::path& folder, const std::string& spec);
// What is wrong with such a spec, in itself or once it is computed; empty if nothing.
WAYMARK_API std::string draft_problem(const std::string& spec);

}  // namespace waymark::train
