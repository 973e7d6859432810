// signed-neighbour: which encodings let a token look up what stands at a signed distance; and what the clip must be.
#include <fmt/format.h>

#include "train/plans/plan.h"

namespace waymark::train {

namespace {

// One pre-norm layer of width 64, 4 heads, feed-forward 128; 700 updates of 32 x 32 tokens; Adam with betas 0.9, 0.98;
// rate 3e-3 · min((t + 1)/50, 1) · max(0.02, 1 - t/700); gradient norm clipped at 1; no weight decay.
constexpr const char* kNeighbourRecipe = R"toml(# One pre-norm layer of width 64, 4 heads, feed-forward 128; 700 updates of 32 x 32 tokens; Adam with betas 0.9, 0.98;
# rate 3e-3 · min((t + 1)/50, 1) · max(0.02, 1 - t/700); gradient norm clipped at 1; no weight decay.
task = "signed-neighbour"

[model]
embed_dim = 64
num_heads = 4
ffn_dim = 128
num_layers = 1
init = 'pytorch(token_std=0.5, learned_std=0.1, zero=["*position.bias", "*position.content_bias", "*position.position_bias"])'

[optim]
optimizer = "adam(lr=3e-3, betas=[0.9, 0.98])"
schedule = "linear(warmup=50, final=0.02, from=product)"
clip_norm = 1.0

[train]
steps = 700
batch_size = 32
select = "last"
)toml";

std::vector<PlanColumn> neighbour_columns() {
  return {{"receiver, 32", "test.receiver_accuracy"},     {"masked, 32", "test.masked_accuracy"},
          {"receiver, 64", "test@64.receiver_accuracy"},  {"masked, 64", "test@64.masked_accuracy"},
          {"receiver, 256", "test@256.receiver_accuracy"}, {"masked, 256", "test@256.masked_accuracy"},
          {"within 1", "within.1"}, {"within 3", "within.3"}, {"within 5", "within.5"}, {"within 8", "within.8"}};
}

}  // namespace

Plan signed_neighbour_plan() {
  Plan p;
  p.name = "signed-neighbour";
  p.summary = "look-ups at a signed distance: all encodings, also at 2 and 8 times the trained length (mechanism demonstration)";
  p.recipe = kNeighbourRecipe;
  p.columns = neighbour_columns();
  p.others_with_clip = 8;
  p.rows = {
      {"none", {27, 27, 26, 23, 14, 17, .09, .22, .32, .47}},
      {"sinusoid", {80, 57, 43, 35, 16, 16, .47, .83, .95, .98}},
      {"learned(max_len=256)", {44, 36, 30, 28, 17, 18, .18, .40, .56, .71}},
      {"shaw(clip=8)", {100, 96, 100, 95, 100, 92, .18, .41, .49, .60}},
      {"shaw(clip=8, values=true)", {100, 95, 100, 95, 100, 94, .17, .39, .48, .59}, "dense", true},
      {"transformer-xl", {100, 95, 100, 95, 100, 93, .27, .62, .70, .76}},
      {"huang-m1(clip=8)", {46, 75, 44, 75, 45, 70, .20, .41, .49, .60}},
      {"huang-m2(clip=8)", {87, 82, 87, 83, 81, 81, .20, .41, .49, .60}},
      {"huang-m3(clip=8)", {100, 100, 100, 100, 100, 100, .17, .37, .45, .57}},
      {"huang-m4(clip=8)", {100, 100, 100, 100, 100, 99, .21, .46, .54, .64}},
      {"huang-m4(clip=8, per_head=true)", {100, 100, 100, 100, 100, 100, .19, .43, .51, .62}, "dense", true},
      {"huang-m4(clip=8, beyond=zero)", {100, 100, 100, 100, 100, 92, .18, .41, .48, .57}},
      {"t5", {39, 49, 41, 47, 22, 27, .20, .54, .60, .69}},
      {"alibi", {37, 37, 37, 42, 34, 42, .18, .36, .49, .63}},
      {"kerple-log", {42, 60, 44, 62, 40, 57, .61, .79, .86, .92}},
      {"kerple-power", {40, 69, 43, 74, 42, 74, .79, .97, .99, 1.0}, "dense", true},
      {"sandwich", {41, 63, 42, 67, 38, 66, .63, .84, .88, .92}},
      {"fire", {42, 68, 44, 68, 39, 50, .85, .97, .99, 1.0}},
      {"deberta(clip=8)", {100, 100, 100, 100, 100, 99, .22, .51, .58, .67}},
      {"tupe(max_len=256)", {93, 91, 52, 51, 24, 23, .38, .80, .85, .87}},
      {"rope", {100, 100, 100, 99, 84, 73, .19, .35, .45, .56}},
  };
  p.reads =
      "Chance is 12.5 %. Half of the slots need the query beside the position (receiver), half the key (masked); decoys\n"
      "stand on the other side. It shows what a mechanism can express, not which encoding is better for language.\n"
      "Uniform attention has .09, .21, .31 and .46 within 1, 3, 5 and 8.";
  return p;
}

Plan signed_neighbour_clip_plan() {
  Plan p;
  p.name = "signed-neighbour-clip";
  p.summary = "how large must the clip of huang-m4 be for look-ups up to 3 away";
  p.recipe = kNeighbourRecipe;
  p.seeds = "0";
  p.columns = {{"receiver, 32", "test.receiver_accuracy"},      {"masked, 32", "test.masked_accuracy"},
               {"receiver, 256", "test@256.receiver_accuracy"}, {"masked, 256", "test@256.masked_accuracy"},
               {"within 1", "within.1"}, {"within 3", "within.3"}, {"within 5", "within.5"}, {"within 8", "within.8"}};
  const struct {
    int clip;
    std::vector<double> expected;
  } list[] = {{1, {45, 42, 21, 21, .10, .23, .35, .49}}, {2, {63, 64, 45, 47}},   {3, {83, 84, 74, 67}},
              {4, {100, 100, 100, 100}},                 {8, {100, 100, 100, 100}}, {16, {100, 100, 100, 98}},
              {31, {100, 100, 99, 98}}};
  for (const auto& row : list) p.rows.push_back({fmt::format("huang-m4(clip={})", row.clip), row.expected, "dense", true});
  p.reads =
      "Expected: the offsets reach 3, and clip 3 still fails, since its end row is shared with everything farther away: the\n"
      "clip must exceed the largest useful distance by one.";
  return p;
}

}  // namespace waymark::train
