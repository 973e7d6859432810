// Tensor, TensorImpl, Storage, Block: sharing, versions, limits.
#include <doctest/doctest.h>

#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/inplace.h"
#include "core/ops/shape.h"
#include "tests/error_text.h"
#include "tests/tensors.h"

namespace waymark::test {

TEST_CASE("copies of a tensor are the same tensor; views share storage and version") {
  const Tensor a = make<float>({2, 2}, {1, 2, 3, 4});
  const Tensor b = a, v = a.view({4}), d = a.detach();
  b.mul_(10);
  CHECK(a.to_vector<float>() == std::vector<float>{10, 20, 30, 40});
  CHECK(v.to_vector<float>() == a.to_vector<float>());
  CHECK(a.is(b));
  CHECK(!a.is(v));
  CHECK(a.version() == 1);
  CHECK(v.version() == 1);
  CHECK(d.version() == 1);
  v.add_(1);
  CHECK(a.version() == 2);
  CHECK(std::string(a.impl()->storage->last_writer().op) == "add_");
}

TEST_CASE("tensors carved from one block have a storage and a version each") {
  const Intrusive<Block> block = Block::allocate(1024);
  const auto part = [&](i64 offset) {
    return Tensor(Intrusive<TensorImpl>(new TensorImpl(Storage::part_of(block, offset, 64), kF32, {16}, {1}, 0)));
  };
  const Tensor a = part(0), b = part(64);
  a.fill_(1);
  b.fill_(2);
  b.fill_(3);
  CHECK(a.version() == 1);
  CHECK(b.version() == 2);
  CHECK(a.to_vector<float>()[15] == 1);
  CHECK(overlap_of(a, b) == Overlap::none);
  CHECK(error_text([&] { Storage::part_of(block, 1000, 64); }) == "storage: 64 bytes from 1000 do not lie in a block of 1024 bytes");
}

TEST_CASE("C24 sizes that overflow are errors, and nothing is allocated") {
  const i64 live = memory_counters().bytes_live;
  CHECK(error_text([] { make_empty({i64{1} << 31, i64{1} << 32}, kF32); }) == "empty: [2147483648, 4294967296] has more than 2^63-1 bytes");
  CHECK(error_text([] { make_empty({3, -1}, kF32); }) == "empty: negative extent in [3, -1]");
  CHECK(memory_counters().bytes_live == live);
}

TEST_CASE("an allocation that fails is an error with sizes, and later ones work") {
  testing::fail_after(0);
  CHECK(has(error_text([] { make_empty({1024}, kF32); }), "cannot get 4096 B"));
  CHECK(make_empty({1024}, kF32).numel() == 1024);
}

TEST_CASE("C15 writes to shared elements and between overlapping windows are refused") {
  const Tensor row = make<float>({1, 5}, {1, 2, 3, 4, 5});
  CHECK(error_text([&] { row.expand({4, 5}).add_(1); }) ==
        "add_: the target [4, 5] with strides [0, 1] has elements that share memory; clone() it first");
  const Tensor a = make<float>({5}, {1, 2, 4, 8, 16});
  CHECK(has(error_text([&] { a.slice(0, 1).div_(a.slice(0, 0, 4)); }), "share part of their memory; clone() the input first"));
  CHECK(a.to_vector<float>() == std::vector<float>{1, 2, 4, 8, 16});
  a.slice(0, 0, 2).add_(a.slice(0, 2, 4));  // disjoint parts of one storage
  CHECK(a.to_vector<float>() == std::vector<float>{5, 10, 4, 8, 16});
  a.add_(a);                                 // the same view
  CHECK(a.to_vector<float>() == std::vector<float>{10, 20, 8, 16, 32});
}

TEST_CASE("axes of extent 1 and empty tensors have no meaningful stride") {
  const Tensor a = make<float>({1, 3}, {1, 2, 3});
  CHECK(alias(a, {1, 3}, {17, 1}, 0).is_contiguous());
  CHECK(alias(a, {3, 1}, {1, 99}, 0).is_contiguous());
  CHECK(alias(a, {0, 3}, {5, 7}, 0).is_contiguous());
  CHECK(alias(a, {3, 1}, {1, 99}, 0).view({3}).to_vector<float>() == std::vector<float>{1, 2, 3});
}

TEST_CASE("view: -1, incompatible strides, counts") {
  const Tensor a = make<float>({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(a.view({3, -1}).shape() == Shape{3, 2});
  CHECK(error_text([&] { (void)a.transpose(0, 1).view({6}); }) ==
        "view: [3, 2] with strides [1, 3] cannot become [6] without a copy (axes 0 and 1 are not adjacent in memory); use reshape");
  CHECK(a.transpose(0, 1).reshape({6}).to_vector<float>() == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(error_text([&] { (void)a.view({4}); }) == "view: [2, 3] (6 elements) cannot become [4] (4 elements)");
}

}  // namespace waymark::test
