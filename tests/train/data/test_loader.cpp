#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/error_text.h"
#include "tests/tensors.h"
#include "train/data/loader.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {
std::vector<i64> epoch_of(BatchOrder& order) {
  std::vector<i64> all;
  const i64 epoch = order.cursor().epoch;
  while (order.cursor().epoch == epoch)
    for (const i64 item : order.next()) all.push_back(item);
  return all;
}
}  // namespace

TEST_CASE("an epoch has every item once, in an order of its own") {
  BatchOrder order(103, {.batch_size = 10, .shuffle = true, .seed = 3});
  CHECK(order.batches() == 11);
  std::set<std::vector<i64>> orders;
  for (int e = 0; e < 4; ++e) {
    std::vector<i64> items = epoch_of(order);
    orders.insert(items);
    std::sort(items.begin(), items.end());
    REQUIRE(items.size() == 103);
    for (i64 i = 0; i < 103; ++i) CHECK(items[static_cast<size_t>(i)] == i);
  }
  CHECK(orders.size() == 4);
  CHECK(order.cursor() == Cursor{4, 0});
  BatchOrder same(103, {.batch_size = 10, .shuffle = true, .seed = 3}), other(103, {.batch_size = 10, .shuffle = true, .seed = 4});
  CHECK(orders.contains(epoch_of(same)));
  CHECK(!orders.contains(epoch_of(other)));
}

TEST_CASE("the cursor resumes anywhere") {
  const LoaderOptions options{.batch_size = 4, .shuffle = true, .seed = 1};
  BatchOrder whole(18, options);
  std::vector<std::vector<i64>> batches;
  std::vector<Cursor> cursors;
  for (int k = 0; k < 12; ++k) {
    cursors.push_back(whole.cursor());
    batches.push_back(whole.next());
  }
  CHECK(batches[4].size() == 2);
  for (size_t cut = 0; cut < 12; ++cut) {
    BatchOrder resumed(18, options);
    resumed.set_cursor(cursors[cut]);
    for (size_t k = cut; k < 12; ++k) CHECK(resumed.next() == batches[k]);
  }
  CHECK(has(error_text([&] { whole.set_cursor({0, 6}); }), "no batch 6 in epoch 0"));
  CHECK(has(error_text([&] { whole.set_cursor({-1, 0}); }), "epoch -1"));
  whole.set_cursor({1, 5});
  CHECK(whole.cursor() == Cursor{2, 0});
}

TEST_CASE("plain order, drop_last, data without end") {
  BatchOrder plain(5, {.batch_size = 2});
  CHECK(epoch_of(plain) == std::vector<i64>{0, 1, 2, 3, 4});
  BatchOrder dropped(5, {.batch_size = 2, .drop_last = true});
  CHECK(dropped.batches() == 2);
  CHECK(epoch_of(dropped) == std::vector<i64>{0, 1, 2, 3});
  BatchOrder endless(0, {.batch_size = 3, .shuffle = true});
  endless.set_cursor({0, 1000000});
  CHECK(endless.next() == std::vector<i64>{3000000, 3000001, 3000002});
  CHECK(has(error_text([&] { (void)endless.batches(); }), "no end"));
  CHECK(has(error_text([&] { endless.set_cursor({1, 0}); }), "epoch 1"));
  CHECK(has(error_text([] { BatchOrder o(3, {.batch_size = 4, .drop_last = true}); }), "make no batch of 4"));
  CHECK(has(error_text([] { BatchOrder o(3, {.batch_size = 0}); }), "batch_size = 0"));
}

TEST_CASE("DataLoader is a range over the rest of an epoch") {
  const TensorDataset data({make<i64>({5, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41}), make<float>({5}, {0, 1, 2, 3, 4})});
  DataLoader loader(data, {.batch_size = 2});
  std::vector<std::vector<i64>> seen;
  for (int epoch = 0; epoch < 2; ++epoch)
    for (const std::vector<Tensor>& batch : loader) {
      seen.push_back(batch[0].to_vector<i64>());
      CHECK(batch[1].size(0) == batch[0].size(0));
    }
  REQUIRE(seen.size() == 6);
  CHECK(seen[1] == std::vector<i64>{20, 21, 30, 31});
  CHECK(seen[2] == std::vector<i64>{40, 41});
  CHECK(seen[3] == seen[0]);
  CHECK(loader.cursor() == Cursor{2, 0});
  loader.set_cursor({2, 2});
  int left = 0;
  for (const auto& batch : loader) left += static_cast<int>(batch.size());
  CHECK(left == 2);
  CHECK(has(error_text([] { TensorDataset d({make<float>({2}, {1, 2}), make<float>({1}, {1})}); }), "must agree"));
  CHECK(has(error_text([] { TensorDataset d({make<float>({}, {1})}); }), "no rows"));
}
