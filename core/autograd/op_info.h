// OpInfo: what is known of an op besides its code. Plain constexpr data, one per op, beside the op; listed in
// core/ops/registry.cpp. The stepper, the trace, the help pages, `verify` and the tests read it.
//
//   constexpr OpInfo kMatmul{.name = "matmul", .family = "matmul", .doc = "matrix product with batch axes",
//                            .schema = "matmul(Tensor input, Tensor other) -> Tensor",
//                            .formula = "C = A·B", .rule = "dA = dC·Bᵀ,  dB = Aᵀ·dC",
//                            .saves = {{"input", For{1}}, {"other", For{0}}}};
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "core/tensor/types.h"

namespace waymark {

class OpCall;  // arguments by name, for `apply`; core/autograd/op_call.h

// The derivative rule in words, or the reason why there is none. An empty text does not compile.
class RuleText {
 public:
  consteval RuleText(const char* text) : RuleText(text, true) {}  // NOLINT: implicit on purpose
  static consteval RuleText none(const char* reason) { return RuleText(reason, false); }
  constexpr std::string_view text() const { return text_; }
  constexpr bool differentiable() const { return differentiable_; }

 private:
  consteval RuleText(const char* text, bool differentiable) : text_(text), differentiable_(differentiable) {
    if (text_.empty()) throw "an op needs the text of its rule, or the reason why it has none";
  }
  std::string_view text_;
  bool differentiable_;
};
// `.rule = not_differentiable("argmax returns positions")`
consteval RuleText not_differentiable(const char* reason) { return RuleText::none(reason); }

// Inputs whose gradient needs a saved value.
struct For {
  u64 inputs = 0;
  constexpr For() = default;
  constexpr For(std::initializer_list<int> which) {
    for (int i : which) inputs |= u64{1} << i;
  }
};
struct SaveText {
  std::string_view what;  // "input", "other", "output", "indices", "row statistics", ...
  For whose;
};
struct SaveTexts {
  std::array<SaveText, 8> items{};
  size_t count = 0;
  constexpr SaveTexts() = default;
  constexpr SaveTexts(std::initializer_list<SaveText> list) {
    for (const SaveText& s : list) items[count++] = s;
  }
  constexpr const SaveText* begin() const { return items.data(); }
  constexpr const SaveText* end() const { return items.data() + count; }
};

struct OpInfo {
  std::string_view name;
  std::string_view family{};   // file name of the family in core/ops; a heading of the help pages
  std::string_view doc;        // one line
  std::string_view schema;     // PyTorch's notation: "softmax(Tensor input, int dim) -> Tensor"
  std::string_view formula;
  RuleText rule;
  SaveTexts saves{};
  std::string_view kinks{};    // where the derivative jumps: "x = 0"; empty: smooth
  bool view = false;           // the result shares the input's storage
  std::string_view twin{};     // a fused op: name of the composed function that defines its meaning
  double (*flops)(OpCall&) = nullptr;  // multiply-add = 2; null: one per output element
  // Runs the op from arguments by name: replay, local checks, the fuzzer, case files. Null: cannot be called by name
  // (a user's own op, an internal backward op).
  void (*apply)(OpCall&) = nullptr;
};

}  // namespace waymark
