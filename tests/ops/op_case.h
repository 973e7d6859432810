// The case table of the ops: one line a case drives gradcheck, gradgradcheck, layouts, dtypes and the completeness test.
//
//   OP_CASES(softmax_cases) {
//     op_case("softmax", {input({4, 33}), arg("dim", -1)});
//     op_case("div", {input({3, 4}), other({4}).away_from(0, 0.2)});
//     op_case("gather", {input({3, 4}), arg("dim", 1), indices("index", {3, 2}, 4)});
//     op_case("erfinv", {input({5}).range(-0.9, 0.9)}).tolerance(1e-5, 1e-6, "steep near the ends");
//     bad_input("softmax", "softmax: dim 2 is outside [-1, 0] of a tensor with 1 axes", {input({4}), arg("dim", 2)});
//   }
//
// The runner (test_op_cases.cpp) calls OpInfo::apply, joined by the op's name, with the arguments of its schema.
#pragma once

#include <string>
#include <vector>

#include "core/autograd/op_call.h"

namespace waymark::test {

using List = std::vector<i64>;

// One argument of a case: a tensor to sample, or a fixed value.
struct CaseArg {
  std::string name;
  Argument fixed;                      // used if shape is not set
  bool sampled = false;
  Shape shape;
  DType dtype = kF64;
  double low = -2, high = 2;           // f64: uniform values; i64: [low, high); b8: true with probability ½
  std::vector<double> kinks;           // values stay `margin` away from these
  double margin = 0.05;
  bool distinct = false;               // values far apart from each other: ops with ties
  bool dominant = false;               // the last two axes are matrices with a dominant diagonal: ops that invert them
  bool grad = true;                    // f64 inputs require grad unless said
  bool layouts = true;                 // try other memory layouts
  int list = -1;                       // element of a list argument: `tensors` number 0, 1, ...

  CaseArg&& range(double a, double b) && { low = a; high = b; return std::move(*this); }
  CaseArg&& away_from(double kink, double by = 0.05) && { kinks.push_back(kink); margin = by; return std::move(*this); }
  CaseArg&& apart() && { distinct = true; return std::move(*this); }
  CaseArg&& dominant_diagonal() && { dominant = true; return std::move(*this); }
  CaseArg&& no_grad() && { grad = false; return std::move(*this); }
  CaseArg&& as_is() && { layouts = false; return std::move(*this); }
};

CaseArg tensor_arg(std::string name, Shape shape);
inline CaseArg input(Shape shape) { return tensor_arg("input", std::move(shape)); }
inline CaseArg other(Shape shape) { return tensor_arg("other", std::move(shape)); }
// Element n of the list argument `name`.
CaseArg list_arg(std::string name, int n, Shape shape);
// i64 tensor with values in [0, bound).
CaseArg indices(std::string name, Shape shape, i64 bound);
CaseArg mask(std::string name, Shape shape);
// A given tensor (i64 or b8 contents that matter), or any other value.
CaseArg arg(std::string name, Argument value);
inline CaseArg arg(std::string name, double value) { return arg(std::move(name), Argument(value)); }
inline CaseArg arg(std::string name, int value) { return arg(std::move(name), Argument(i64{value})); }
inline CaseArg arg(std::string name, const char* value) { return arg(std::move(name), Argument(std::string(value))); }

struct OpCase {
  std::string op;
  std::vector<CaseArg> args;
  double rtol = 1e-6, atol = 1e-8;
  std::string reason;                  // why the tolerance is loosened
  bool second = true;                  // gradgradcheck, too
  bool f32 = true;                     // compare with the f32 result

  OpCase& tolerance(double r, double a, std::string why) { rtol = r; atol = a; reason = std::move(why); return *this; }
  OpCase& first_order_only(std::string why) { second = false; reason = std::move(why); return *this; }
  OpCase& f64_only(std::string why) { f32 = false; reason = std::move(why); return *this; }
};
struct BadInput {
  std::string op, message;             // message: the whole text of the Error; ends in "*": only its beginning
  std::vector<CaseArg> args;
};

OpCase& op_case(std::string op, std::vector<CaseArg> args);
void bad_input(std::string op, std::string message, std::vector<CaseArg> args);
// All of them, after every OP_CASES block ran.
const std::vector<OpCase>& all_cases();
const std::vector<BadInput>& all_bad_inputs();

void add_block(void (*block)());
struct Block {
  explicit Block(void (*block)()) { add_block(block); }
};
// Static initialisers are fine here: the objects of the test program are linked one by one.
#define OP_CASES(NAME)                                       \
  static void NAME();                                        \
  static const ::waymark::test::Block NAME##_block(&NAME);   \
  static void NAME()

}  // namespace waymark::test
