// A user's program outside of the tree: sees the installed headers and library, builds a network of two layers, trains
// it, prints a gradient, and gets an Error it can catch.
#include <waymark.h>

#include <cstdio>

using namespace waymark;

struct Net : nn::Module<Net> {
  nn::Linear fc1{*this, "fc1", 2, 16};
  nn::Linear fc2{*this, "fc2", 16, 2};
  Tensor forward(const Tensor& x) { return fc2(gelu(fc1(x))); }
};

// Aggregates that a program fills in, by some of their members.
namespace {

void fill_in() {
  static_cast<void>(nn::AttentionConfig{.embed_dim = 8});
  static_cast<void>(nn::AttentionInput{.shift = 1});
  static_cast<void>(nn::AttentionOutput{.y = Tensor()});
  static_cast<void>(nn::AttentionFacts{.causal_exact = true});
  static_cast<void>(nn::AttentionInfo{.options = {}});
  static_cast<void>(nn::EncodingInfo{.options = {}});
  static_cast<void>(nn::EncodingFacts{.shift_invariant = true});
  static_cast<void>(nn::EncodingCall{.causal = true});
  static_cast<void>(nn::ParameterSpec{.name = "table"});
  static_cast<void>(nn::PairEncoding{.name = "mine"});
  static_cast<void>(nn::MaskArrays{});
  static_cast<void>(nn::MaskCall{.batch = 2});
  static_cast<void>(nn::ModelSpecs{.kv_heads = 1});
  static_cast<void>(nn::OptionDef{.name = "clip"});
  static_cast<void>(nn::OptionTable{.name = "mine"});
  static_cast<void>(models::EncoderConfig{.num_layers = 1});
  static_cast<void>(models::EncoderCall{.shift = 1});
  static_cast<void>(train::ParamGroup{.params = {}});
  static_cast<void>(train::OptimizerKind{.table = {}});
  static_cast<void>(train::ScheduleKind{.table = {}});
  static_cast<void>(ReferenceAttention{.dropout = 0});
  static_cast<void>(ScoreTerm{.name = "mine"});
  static_cast<void>(Table{.side = Side::key});
  static_cast<void>(Custom{.scratch = 1});
}

}  // namespace

int main() {
  fill_in();
  manual_seed(7);
  Net net;
  train::AdamW optimizer(net.parameters(), {.lr = 3e-2});
  // Exclusive or.
  const Tensor x = tensor({{-1., -1.}, {-1., 1.}, {1., -1.}, {1., 1.}}, kF32), target = tensor({0, 1, 1, 0});
  double first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), target);
    loss.backward();
    optimizer.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  fmt::print("loss {:.4f} -> {:.4f}\n", first, last);
  fmt::print("|d fc1.weight| = {:.3e}, d fc2.bias = {}\n", net.fc1.weight.grad().norm().item<float>(),
             net.fc2.bias.grad());
  if (!(last < 0.05 && last < first / 10)) return std::puts("it does not learn"), 1;
  if (!equal(net(x).argmax(1), target)) return std::puts("it answers wrongly"), 1;
  try {
    static_cast<void>(matmul(x, x));
  } catch (const Error& e) {
    fmt::print("{}\n", e.what());
    return e.op() == "matmul" ? 0 : 1;
  }
  return std::puts("matmul of ill-shaped matrices did not throw"), 1;
}
