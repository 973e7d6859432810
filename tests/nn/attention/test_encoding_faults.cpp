// Faults of other implementations that must not be ours, by the numbers of the list in the documentation of the position
// encodings: caches, layouts of channel pairs, values, low precision, lengths. 10, 11 and 12 are in
// tests/nn/position/test_projected.cpp.
#include "core/engine/backward.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/index.h"
#include "core/ops/join.h"
#include "core/ops/matmul.h"
#include "core/ops/shape.h"
#include "tests/nn/rig.h"

using namespace waymark;
using namespace waymark::nn;
using test::largest_difference;
using test::make;
using test::Rig;
using test::tokens;

namespace {

bool has_part_of_position(const ScorePart& p) { return p.name != "content" && p.name != "total" && !p.multiplier; }

// Maps alone, in a dtype: q' of the token at a position, for x = 1, 2, 3, ...
Tensor map_at(const std::string& spec, i64 width, i64 position, DType dtype) {
  const test::DefaultF64 of(dtype);
  struct Maps : Module<Maps> {
    Maps(const std::string& s, i64 d) : encodings(*this, test::sum_of(s), {d, 1, d}) {}
    PositionModule encodings;
  };
  const Maps maps(spec, width);
  const Tensor x = make_empty({1, 1, 1, width}, kF64);
  for (i64 e = 0; e < width; ++e) x.at<double>({0, 0, 0, e}) = static_cast<double>(e + 1);
  const Positions p = Positions::range(1, position);
  return to(maps.encodings.map_query_key(to(x, dtype), to(x, dtype), {.queries = p, .keys = p, .causal = true}).first, kF64);
}

}  // namespace

TEST_CASE("positions 8.4 no. 16: no state is left by calls of other sizes, and tokens without position shift nothing") {
  for (const std::string& spec : test::encoding_specs()) {
    CAPTURE(spec);
    const bool causal = test::needs_causal_call(test::sum_of(spec));
    const Rig used(spec, causal);
    const Tensor q = randn({2, 2, 9, 4}, kF64), k = randn({2, 2, 9, 4}, kF64), v = randn({2, 2, 9, 4}, kF64);
    const auto call = [&](const Rig& rig, i64 queries, i64 keys) {
      return rig->core(q.narrow(2, 0, queries), k.narrow(2, 0, keys), v.narrow(2, 0, keys),
                       {.context = k, .positions = Positions::range(queries, keys - queries), .context_positions = Positions::range(keys)}).z;
    };
    for (const auto& [queries, keys] : {std::pair<i64, i64>{6, 9}, {9, 9}, {1, 9}, {3, 4}, {6, 9}}) {
      const Rig fresh(spec, causal);
      fresh->load_state_dict(used->state_dict());
      CHECK(test::difference(call(used, queries, keys), call(fresh, queries, keys)) == "");
    }
  }
  // Memory slots in front: what encodings say of two tokens with positions stays, bit for bit.
  for (const char* spec : {"shaw(clip=2)", "huang-m4(clip=2)", "transformer-xl", "deberta(clip=2)", "tupe(max_len=16, relative=true, buckets=8, max_distance=9)",
                           "alibi", "t5", "kerple-log", "huang-m2(clip=2) + deberta(clip=3) + alibi"}) {
    CAPTURE(spec);
    const Rig rig(spec);
    const Tensor x = tokens(1, 5), memory = tokens(1, 2);
    const auto plain = rig->score_parts({.x = x, .positions = Positions::range(5)});
    const auto with = rig->score_parts({.x = cat({memory, x}, 1), .positions = test::positions({-1, -1, 0, 1, 2, 3, 4})});
    REQUIRE(plain.size() == with.size());
    for (size_t i = 0; i < plain.size(); ++i) {
      CAPTURE(plain[i].name);
      CHECK(largest_difference(with[i].value.narrow(2, 2, 5).narrow(3, 2, 5), plain[i].value) < 1e-13);
      // A pair with a memory slot has no part in what reads positions; tupe has a score of its own for it.
      const Tensor slots = with[i].value.narrow(3, 0, 2);
      if (has_part_of_position(plain[i]) && plain[i].name != "content_bias" && !test::has(spec, "tupe")) CHECK(test::norm(slots) == 0);
    }
  }
}

TEST_CASE("positions 8.4 no. 18: angles of a cached step are those of its positions") {
  for (const char* spec : {"rope", "rope(layout=halves)", "rope(interpolation=3)", "rope(ntk=2)", "xpos", "rope + huang-m4(clip=2)"}) {
    CAPTURE(spec);
    const Rig rig(spec, true);
    const Tensor q = randn({2, 2, 11, 4}, kF64), k = randn({2, 2, 11, 4}, kF64), v = randn({2, 2, 11, 4}, kF64);
    const Tensor whole = rig->core(q, k, v, {.positions = Positions::range(11)}).z;
    for (i64 i = 0; i < 11; ++i) {
      const auto step = [&](i64 at) {
        return rig->core(q.narrow(2, i, 1), k.narrow(2, 0, i + 1), v.narrow(2, 0, i + 1),
                         {.context = k, .positions = Positions::range(1, at), .context_positions = Positions::range(i + 1)}).z;
      };
      CHECK(largest_difference(step(i), whole.narrow(2, i, 1)) < 1e-12);
      if (i > 1) CHECK(largest_difference(step(i + 7), whole.narrow(2, i, 1)) > 1e-6);  // the position is what is read
    }
  }
}

TEST_CASE("positions 8.4 no. 19: interleaved and halves are different, and equal after the permutation of channels") {
  const Tensor x = randn({1, 2, 5, 8}, kF64), order = make<i64>({8}, {0, 2, 4, 6, 1, 3, 5, 7});
  const Positions p = test::positions({0, 3, 4, 9, 70});
  for (const std::string name : {"rope", "rope(fraction=0.5)", "xpos"}) {
    CAPTURE(name);
    struct Maps : Module<Maps> {
      explicit Maps(const std::string& s) : encodings(*this, test::sum_of(s), {16, 2, 8}) {}
      PositionModule encodings;
    };
    const auto mapped = [&](const std::string& layout, const Tensor& t) {
      const std::string spec = name.back() == ')' ? name.substr(0, name.size() - 1) + ", layout=" + layout + ")" : name + "(layout=" + layout + ")";
      const test::DefaultF64 dtype;
      return Maps(spec).encodings.map_query_key(t, t, {.queries = p, .keys = p, .causal = true});
    };
    const bool partial = name.find("fraction") != std::string::npos;
    const Tensor channels = partial ? make<i64>({8}, {0, 2, 1, 3, 4, 5, 6, 7}) : order;
    const auto interleaved = mapped("interleaved", x), halves = mapped("halves", index_select(x, 3, channels));
    CHECK(largest_difference(index_select(interleaved.first, 3, channels), halves.first) < 1e-12);
    CHECK(largest_difference(index_select(interleaved.second, 3, channels), halves.second) < 1e-12);
    CHECK(largest_difference(interleaved.first, mapped("halves", x).first) > 1e-3);
  }
}

TEST_CASE("positions 8.4 no. 20: values are never turned") {
  for (const char* spec : {"rope", "xpos", "rope(fraction=0.5) + shaw(clip=1)"}) {
    CAPTURE(spec);
    AttentionConfig c;
    c.out_proj = false;
    const Rig rig(spec, true, c);
    const Tensor x = tokens(2, 6);
    const AttentionInput in{.x = x, .positions = test::positions({3, 4, 9, 10, 30, 31})};
    const Tensor v = rig->v_proj(x).view({2, 6, 2, 4}).transpose(1, 2);
    const Tensor z = matmul(rig->implied_weights(in), v).transpose(1, 2).reshape({2, 6, 8});
    CHECK(largest_difference(z, (*rig)(in).y) < 1e-12);
  }
}

// Windows and blocks that are cut out of a sequence must not begin to count anew.
TEST_CASE("positions 8.4 no. 20: a map on a pattern is the map on dense attention under that mask") {
  for (const char* spec : {"rope", "rope(layout=halves, fraction=0.5)", "xpos"})
    for (const auto& entry : {std::pair<const char*, Mask>{"local(window=3)", Mask::window(3, 3)},
                              {"local(block=4)", Mask::blocks(4)},
                              {"local(block=3, before=1)", Mask::blocks(3, 1, 0)}})
      for (const bool causal : {false, true}) {
        if (!causal && test::needs_causal_call(test::sum_of(spec))) continue;
        const char* pattern = entry.first;
        CAPTURE(spec);
        CAPTURE(pattern);
        CAPTURE(causal);
        AttentionConfig c;
        c.attention = pattern;
        const Rig local(spec, causal, c), dense(spec, causal);
        dense->load_state_dict(local->state_dict());
        for (const i64 offset : {i64{0}, i64{1001}}) {
          AttentionInput in{.x = tokens(2, 13), .positions = Positions::range(13, offset)};
          const Tensor y = (*local)(in).y;
          in.mask = entry.second;
          CHECK(largest_difference(y, (*dense)(in).y) < 1e-12);
        }
      }
}

TEST_CASE("positions 8.4 no. 21: angles are formed in f64 also where tokens are f32") {
  for (const i64 p : {15962, 1000003, 16777217, 2147483646}) {
    CAPTURE(p);
    for (const char* spec : {"rope", "rope(layout=halves, interpolation=3)", "xpos(scale_base=100000000)"}) {
      CAPTURE(spec);
      CHECK(largest_difference(map_at(spec, 8, p, kF32), map_at(spec, 8, p, kF64)) < 4e-6);
    }
    // The neighbours differ by one step, although no f32 tells them apart.
    CHECK(largest_difference(map_at("rope", 8, p - 1, kF32), map_at("rope", 8, p, kF64)) > 1e-2);
  }
  // transformer-xl: differences of 16,777,216 and one more.
  const auto score = [](DType dtype, i64 p) {
    const test::DefaultF64 of(dtype);
    struct Terms : Module<Terms> {
      Terms() : encodings(*this, test::sum_of("transformer-xl"), {8, 1, 8}) {}
      PositionModule encodings;
    };
    const Terms terms;
    {
      const NoGrad off;
      for (const NamedParameter& q : terms.named_parameters()) q.tensor.fill_(0.25);
    }
    const Tensor x = full({1, 1, 1, 8}, 1, {.dtype = dtype});
    ReferenceAttention call{.query = x, .key = x, .value = x, .query_positions = make<i64>({1}, {p}), .key_positions = make<i64>({1}, {0})};
    for (auto& [name, term] : terms.encodings.prepare({.queries = test::positions({p}), .keys = test::positions({0})}, x, x)) call.terms.push_back(term);
    return score_parts_reference(call).back().value.to_vector<double>()[0];
  };
  for (const i64 p : {16777216, 16777217}) CHECK(score(kF32, p) == doctest::Approx(score(kF64, p)).epsilon(1e-5));
  CHECK(std::abs(score(kF32, 16777216) - score(kF32, 16777217)) > 1e-2);
}

TEST_CASE("positions 8.4 no. 23: no index matrix caps a relative encoding: any length, any offset") {
  const NoGrad off;
  for (const EncodingInfo* info : all_encodings()) {
    const EncodingFacts f = facts_of(test::sum_of(info->name())[0]);
    if (!f.shift_invariant || f.site == Site::none) continue;
    CAPTURE(info->name());
    const Rig rig(info->name(), true);
    const Tensor x = tokens(1, 600);
    const Tensor y = rig.y(x, Positions::range(600)), far = rig.y(x, Positions::range(600, 5000000));
    CHECK(y.shape() == Shape{1, 600, 8});
    CHECK(largest_difference(y, far) < 1e-8);
    CHECK(largest_difference(y.narrow(1, 0, 40), rig.y(x.narrow(1, 0, 40), Positions::range(40))) < 1e-11);
  }
}
