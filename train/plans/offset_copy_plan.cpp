// offset-copy: a copy from three places before, trained at length 32, tested up to 256.
#include "train/plans/plan.h"

namespace waymark::train {

Plan offset_copy_plan() {
  Plan p;
  p.name = "offset-copy";
  p.summary = "copy the token three places before: trained at length 32, tested up to 8 times as long";
  p.recipe = R"toml(# Two pre-norm layers of width 64, 2 heads, feed-forward 128; 500 updates of 32 x 32 tokens; AdamW with betas 0.9, 0.98;
# rate 2e-3, warm-up 100, cosine.
task = "offset-copy"

[model]
embed_dim = 64
num_heads = 2
ffn_dim = 128
num_layers = 2
init = "pytorch(learned_std=1)"

[optim]
optimizer = "adamw(lr=2e-3, betas=[0.9, 0.98], weight_decay=0.01)"
schedule = "cosine(warmup=100)"
clip_norm = 1.0

[data]
val_size = 200
test_size = 500

[train]
steps = 500
batch_size = 32
select = "last"
)toml";
  p.columns = {{"32", "test.accuracy"}, {"64", "test@64.accuracy"}, {"128", "test@128.accuracy"}, {"256", "test@256.accuracy"}};
  p.rows = {
      {"none"},
      {"sinusoid", {100, 51.6, 30.7, 18.5}, "dense", true},
      {"learned(max_len=256)", {100, 52.8, 29.6, 18.3}, "dense", true},
      {"shaw", {100, 100, 100, 100}, "dense", true},
      {"huang-m4", {100, 100, 100, 100}, "dense", true},
      {"rope", {100, 100, 100, 100}, "dense", true},
      {"t5"},
      {"alibi", {19.5, 21.3, 18.8, 18.5}, "dense", true},
      {"huang-m4", {100, 100, 100, 100}, "local(window=8)", true},
      {"rope", {60.2, 44.0, 31.8, 22.5}, "linear", true},
      {"sinusoid", {70.5, 33.9, 16.2, 9.3}, "linear", true},
  };
  p.reads = "Chance is 6.25 %. Expected: relative methods keep what they learned at every length, absolute ones do not leave the trained one.";
  return p;
}

}  // namespace waymark::train
