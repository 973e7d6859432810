// What explain and the plan of a sweep say a model costs, against what is counted while it trains.
#include <doctest/doctest.h>

#include "core/kernels/peak.h"
#include "tests/train/trainer/fixture.h"
#include "train/trainer/cost.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

TEST_CASE("the cost of a layer by hand") {
  const nn::EncodingSizes sizes{64, 4, 16};
  const LayerCost cost = layer_cost({}, sizes, 128, false, 32);
  CHECK(cost.projections == 8.0 * 32 * 64 * 64);
  CHECK(cost.scores == 4.0 * 32 * 32 * 64);
  CHECK(cost.feed_forward == 4.0 * 32 * 64 * 128);
  CHECK(cost.density == 1);
  CHECK(cost.total() == cost.projections + cost.scores + cost.feed_forward);
  const LayerCost causal = layer_cost({}, sizes, 0, true, 32);
  CHECK(causal.density == 16.5 / 32);
  CHECK(causal.scores == 4.0 * 32 * 16.5 * 64);
  const Config shaw = make_config({{"task", "char-mlm(source=kjv)"}, {"model.position", "shaw"}});
  const LayerCost table = layer_cost(shaw.layers("model.position")[0], sizes, 0, false, 32);
  REQUIRE(table.encodings.size() == 1);
  CHECK(table.encodings[0].first == "shaw");
  CHECK(table.encodings[0].second >= 2.0 * 32 * 64 * 33);  // q·W of the table
  CHECK(table.total() > layer_cost({}, sizes, 0, false, 32).total());
}

TEST_CASE("the estimate of a run is near what training counts") {
  const TemporaryFolder folder;
  // Wide enough that the output layer, which the estimate leaves out, is a small part.
  for (const char* position : {"none", "huang-m4(clip=4)"}) {
    const Config config = small_config(small_text(folder), {{"model.embed_dim", "64"},
                                                            {"model.num_layers", "2"},
                                                            {"model.position", position},
                                                            {"optim.accumulate", "1"},
                                                            {"train.steps", "2"}});
    const RunResult result = Trainer(config).run();
    REQUIRE(result.flops_per_step);
    const double counted = 2 * *result.flops_per_step, estimate = training_flops(config).value();
    CAPTURE(position);
    CHECK(estimate > 0.8 * counted);
    CHECK(estimate < 1.2 * counted);
  }
  // A window costs what its pairs cost.
  const auto flops = [](const char* attention) {
    return *training_flops(make_config({{"task", "char-mlm(source=kjv, context=64)"}, {"model.attention", attention}, {"train.steps", "10"}}));
  };
  const double dense = flops("dense"), window = flops("local(window=8)");
  CHECK(window < dense);
  CHECK(flops("local(window=64)") == dense);
  const auto masked = *training_flops(make_config({{"task", "char-mlm(source=kjv, context=64)"}, {"model.mask", "window(8, 8)"}, {"train.steps", "10"}}));
  CHECK(masked == window);
  const nn::EncodingSizes sizes{64, 4, 16};
  const double pairs = 64 * 17 - 8 * 9;
  CHECK(dense - window == doctest::Approx(3.0 * 10 * 32 * 2 * 4 * 64 * (64 * 64 - pairs)).epsilon(1e-12));
  CHECK(layer_cost({}, sizes, 0, false, 64, pairs / (64 * 64)).scores == doctest::Approx(4 * 64 * pairs));

  const Config minutes = make_config({{"task", "char-mlm(source=kjv)"}, {"train.minutes", "1"}, {"optim.schedule", "constant"}});
  CHECK(!training_flops(minutes));
}

TEST_CASE("flops as text") {
  CHECK(flops_text(0) == "0");
  CHECK(flops_text(950) == "950");
  CHECK(flops_text(999.7) == "1 k");
  CHECK(flops_text(532480) == "532 k");
  CHECK(flops_text(1.944e12) == "1.94 T");
}

TEST_CASE("the peak of a core is a plausible number, and measured once") {
  const double peak = kernels::fma_peak();
  CHECK(peak > 1e7);  // also in a build that nothing optimises
  CHECK(peak < 1e12);
  CHECK(kernels::fma_peak() == peak);
}
