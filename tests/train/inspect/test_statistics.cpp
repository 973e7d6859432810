// Numbers by distance: what is gathered in blocks of 64 query rows equals what the whole maps say, for every encoding of
// the registry; and looking changes nothing.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/io/npz.h"
#include "core/ops/reduce.h"
#include "core/ops/convert.h"
#include "core/ops/arithmetic.h"
#include "core/random/generator.h"
#include "nn/attention/registry.h"
#include "tests/nn/rig.h"
#include "tests/test_level.h"
#include "train/inspect/figures.h"
#include "train/inspect/layer_report.h"

using namespace waymark;
using namespace waymark::test;
using namespace waymark::train;

namespace {

Tensor array(const NamedTensors& arrays, const std::string& name) {
  for (const auto& [key, t] : arrays)
    if (key == name) return t;
  FAIL("no array " << name);
  return {};
}
std::vector<double> numbers(const NamedTensors& arrays, const std::string& name) { return array(arrays, name).to_vector<double>(); }
bool has_array(const NamedTensors& arrays, const std::string& name) {
  return std::any_of(arrays.begin(), arrays.end(), [&](const auto& a) { return a.first == name; });
}

struct Call {
  std::unique_ptr<nn::Attention> attention;
  nn::AttentionInput in;
};
// f64, `batch` rows of `length` tokens of width 8, two heads.
Call make_call(const std::string& position, const std::string& attention, i64 length, i64 batch, bool causal, bool padded) {
  const DefaultF64 f64;
  Call call;
  nn::AttentionConfig config{.embed_dim = 8, .num_heads = 2, .position = position, .attention = attention, .causal = causal, .max_len = length};
  call.attention = nn::make_attention(nullptr, "", nn::resolve_attention(config));
  randomise(*call.attention);
  call.in.x = mul(randn({batch, length, 8}, kF64), 2);
  call.in.positions = nn::Positions::range(length);
  if (padded) {
    const Tensor keep = ones({batch, length}, kB8);
    for (i64 b = 0; b < batch; ++b)
      for (i64 i = length - 3 - b; i < length; ++i) keep.data<bool>()[b * length + i] = false;
    call.in.key_keep = keep;
  }
  return call;
}

}  // namespace

TEST_CASE("inspect: statistics in blocks equal those of the whole maps, for every encoding") {
  manual_seed(3);
  for (const nn::EncodingInfo* info : nn::all_encodings()) {
    for (const bool causal : {false, true}) {
      const nn::Options encoding = info->options.resolve(nn::Spec{info->name(), {}}, {{"model.max_len", nn::SpecValue(i64{150})}});
      const nn::Options dense = nn::attention_tables().resolve(nn::Spec{"dense", {}});
      const nn::Verdict verdict = nn::judge(encoding, dense, causal, false, false);
      if (verdict.ruling == nn::Ruling::refuse || nn::facts_of(encoding).site == nn::Site::input) continue;
      CAPTURE(info->name());
      CAPTURE(causal);
      const i64 length = level() == Level::quick ? 70 : 150;  // not a multiple of 64
      const Call call = make_call(info->name(), "dense", length, 2, causal, true);
      DistanceStatistics statistics;
      statistics.add(*call.attention, call.in);
      const NamedTensors arrays = statistics.arrays();

      // The same from the whole maps.
      const std::vector<ScorePart> parts = call.attention->score_parts(call.in);
      std::map<std::string, Tensor> maps;
      for (const ScorePart& p : parts) maps[p.name] = contiguous(p.value);
      maps["attention"] = contiguous(call.attention->implied_weights(call.in));
      const i64 distances = causal ? length - 3 : 2 * (length - 3) - 1;
      const auto delta = array(arrays, "delta").to_vector<i64>();
      std::map<i64, size_t> place;
      for (size_t d = 0; d < delta.size(); ++d) place[delta[d]] = d;
      const auto count = numbers(arrays, "count");
      i64 counted = 0;
      for (const auto& entry : maps) {
        const std::string& name = entry.first;
        const Tensor& map = entry.second;
        CAPTURE(name);
        const std::string stem = name == "attention" ? "attention_mean" : "score_" + name + "_mean";
        const auto mean = numbers(arrays, stem);
        std::vector<double> sum(mean.size()), squares(mean.size()), n(mean.size());
        const double* v = map.data<double>();
        for (i64 b = 0; b < 2; ++b)
          for (i64 h = 0; h < 2; ++h)
            for (i64 i = 0; i < length; ++i)
              for (i64 j = 0; j < length; ++j, ++v) {
                if (i >= length - 3 - b || j >= length - 3 - b || (causal && j > i)) continue;
                const size_t at = static_cast<size_t>(h) * delta.size() + place.at(j - i);
                sum[at] += *v;
                squares[at] += *v * *v;
                n[at] += 1;
              }
        double worst = 0, worst_sd = 0;
        for (size_t at = 0; at < mean.size(); ++at) {
          if (n[at] == 0) continue;
          worst = std::max(worst, std::abs(sum[at] / n[at] - mean[at]));
          CHECK(n[at] == count[at % delta.size()]);
          if (name == "attention") continue;
          const double sd = numbers(arrays, "score_" + name + "_sd")[at];
          // Relative: a window as a bias has scores of thousands.
          worst_sd = std::max(worst_sd, std::abs(squares[at] / n[at] - sum[at] / n[at] * (sum[at] / n[at]) - sd * sd) /
                                            std::max(1.0, squares[at] / n[at]));
          ++counted;
        }
        CHECK(worst < 1e-10);
        CHECK(worst_sd < 1e-9);
      }
      CHECK(counted >= 2 * 2 * distances);

      // The summands add up to the total.
      std::vector<double> left = numbers(arrays, "score_total_mean");
      for (const std::string& part : statistics.parts()) {
        if (part == "total" || statistics.is_multiplier(part)) continue;
        const auto mean = numbers(arrays, "score_" + part + "_mean");
        for (size_t at = 0; at < left.size(); ++at) left[at] -= mean[at];
      }
      for (const double rest : left) CHECK(std::abs(rest) < 1e-9);
      CHECK(statistics.parts().back() == "total");

      // Σ_δ ᾱ(δ)·count = queries, and what is within 16 is a part of it.
      const auto mean = numbers(arrays, "attention_mean");
      const double queries = numbers(arrays, "queries")[0];
      CHECK(queries == 2 * length - 7);
      for (size_t h = 0; h < 2; ++h) {
        double all = 0, near = 0;
        for (size_t d = 0; d < delta.size(); ++d) {
          all += mean[h * delta.size() + d] * count[d] / queries;
          if (std::abs(delta[d]) <= 16) near += mean[h * delta.size() + d] * count[d] / queries;
        }
        CHECK(all == doctest::Approx(1).epsilon(1e-12));
        CHECK(numbers(arrays, "within")[h * 5 + 4] == doctest::Approx(near).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("inspect: rows of queries are those of the whole call") {
  manual_seed(5);
  for (const char* position : {"none", "shaw(clip=3, values=true)", "huang-m1 + rope", "huang-m3(clip=4)"})
    for (const bool causal : {false, true}) {
      CAPTURE(position);
      Call call = make_call(position, "dense", 20, 2, causal, true);
      const Tensor whole = contiguous(call.attention->implied_weights(call.in));
      const auto parts = call.attention->score_parts(call.in);
      call.in.rows = {7, 5};
      const Tensor some = contiguous(call.attention->implied_weights(call.in));
      REQUIRE(some.shape() == Shape{2, 2, 5, 20});
      const auto cut = call.attention->score_parts(call.in);
      REQUIRE(cut.size() == parts.size());
      const auto rows = [](const Tensor& t) { return contiguous(alias(t, {2, 2, 5, 20}, {800, 400, 20, 1}, 140)); };
      CHECK(largest_difference(some, rows(whole)) < 1e-14);
      for (size_t p = 0; p < parts.size(); ++p) CHECK(largest_difference(contiguous(cut[p].value), rows(contiguous(parts[p].value))) < 1e-14);
      call.in.rows = {18, 5};
      CHECK(has(error_text([&] { (void)call.attention->implied_weights(call.in); }), "rows [18, 18 + 5) of 20 queries"));
    }
}

TEST_CASE("inspect: every attention of the registry can be looked at") {
  manual_seed(4);
  for (const nn::AttentionInfo* info : nn::all_attentions()) {
    CAPTURE(info->name());
    const nn::AttentionFacts facts = info->facts(info->options.resolve(nn::Spec{info->name(), {}}, {{"model.max_len", nn::SpecValue(i64{70})}}), false, false);
    const Call call = make_call("none", info->name(), 70, 1, false, facts.key_padding);
    DistanceStatistics statistics;
    statistics.add(*call.attention, call.in);
    const NamedTensors arrays = statistics.arrays();
    CHECK(statistics.has_weights() == facts.forms_weights);
    if (!facts.forms_weights) CHECK_FALSE(statistics.notes().empty());
    if (!facts.forms_weights || !facts.rows_sum_to_one) continue;
    const auto mean = numbers(arrays, "attention_mean"), count = numbers(arrays, "count"), queries = numbers(arrays, "queries");
    const size_t distances = array(arrays, "delta").to_vector<i64>().size();
    // A query that no cluster holds has an empty row.
    const double rows = sum(call.attention->implied_weights(call.in)).item<double>() / 2 / queries[0];
    double sum_of_heads = 0;
    for (size_t h = 0; h < 2; ++h) {
      double all = 0;
      for (size_t d = 0; d < distances; ++d)
        all += mean[h * distances + d] * count[(count.size() > distances ? h * distances : 0) + d] / queries[0];
      sum_of_heads += all;
    }
    CHECK(sum_of_heads / 2 == doctest::Approx(rows).epsilon(1e-6));
    if (info->name() != "routing") CHECK(rows == doctest::Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("inspect: positions are data") {
  Call call = make_call("shaw(clip=2)", "dense", 4, 1, false, false);
  const Tensor p = zeros({4}, kI64);
  const i64 values[] = {0, 10, 11, -1};
  std::copy_n(values, 4, p.data<i64>());
  call.in.positions = nn::Positions(p);
  DistanceStatistics statistics;
  statistics.add(*call.attention, call.in);
  const auto arrays = statistics.arrays();
  CHECK(array(arrays, "delta").to_vector<i64>() == std::vector<i64>{-11, -10, -1, 0, 1, 10, 11});
  CHECK(array(arrays, "count").to_vector<i64>() == std::vector<i64>{1, 1, 1, 3, 1, 1, 1});  // the last token has no distance
  CHECK(numbers(arrays, "queries")[0] == 4);
}

TEST_CASE("inspect: what never occurs is no number, and a gap in the drawing") {
  // Even heads see the own block, odd ones the last tokens of blocks: distances that only one of them has.
  const Call call = make_call("shaw(clip=2)", "fixed(stride=4, c=1, heads=split)", 16, 1, false, false);
  ModelReport report;
  report.layers.emplace_back().statistics.add(*call.attention, call.in);
  const NamedTensors arrays = report.layers[0].statistics.arrays();
  const auto mean = numbers(arrays, "score_total_mean"), sd = numbers(arrays, "score_total_sd"), count = numbers(arrays, "count");
  REQUIRE(count.size() == mean.size());
  i64 gaps = 0;
  for (size_t at = 0; at < mean.size(); ++at) {
    CHECK(std::isnan(mean[at]) == (count[at] == 0));
    CHECK(std::isnan(sd[at]) == (count[at] == 0));
    gaps += count[at] == 0;
  }
  CHECK(gaps > 0);
  for (const double v : numbers(arrays, "attention_mean")) CHECK(std::isfinite(v));

  // strided sees its window and every fifth token: no pair is 7 apart, and no line of a score runs over that distance.
  const Call far = make_call("none", "strided(stride=5)", 12, 1, false, false);
  ModelReport strided;
  strided.layers.emplace_back().statistics.add(*far.attention, far.in);
  const NamedTensors of_strided = strided.layers[0].statistics.arrays();
  const auto delta = array(of_strided, "delta").to_vector<i64>();
  const auto total = numbers(of_strided, "score_total_mean");
  CHECK(delta == std::vector<i64>{-10, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 10});
  for (const double v : total) CHECK(std::isfinite(v));
  for (const Figure& figure : figures_of(strided)) {
    CHECK(figure.svg.find("nan") == std::string::npos);
    if (figure.name != "score-distance") continue;
    // A curve is the window and its neighbour on both sides, -5 to 5; what is farther stands alone.
    const std::string points = "points=\"";
    const size_t begin = figure.svg.find(points, figure.svg.find("<polyline"));
    REQUIRE(begin != std::string::npos);
    const std::string curve = figure.svg.substr(begin, figure.svg.find('"', begin + points.size()) - begin);
    CHECK(std::count(curve.begin(), curve.end(), ',') == 11);
  }
}

TEST_CASE("inspect: what encodings hold, by distance") {
  const auto pictures_of = [](const std::string& position, i64 length) {
    const DefaultF64 f64;
    const auto attention = nn::make_attention(nullptr, "", nn::resolve_attention({.embed_dim = 8, .num_heads = 2, .position = position}));
    std::vector<std::string> notes;
    auto pictures = encoding_pictures(*attention, length, false, notes);
    CHECK(notes.empty());
    return std::pair(std::move(pictures), attention->state_dict());
  };
  SUBCASE("a table has its rows") {
    const auto [pictures, state] = pictures_of("huang-m4(clip=3)", 12);
    REQUIRE(pictures.size() == 1);
    CHECK(pictures[0].kind == EncodingPicture::Kind::vectors);
    CHECK(pictures[0].delta == std::vector<i64>{-3, -2, -1, 0, 1, 2, 3});
    for (const auto& [name, t] : state)
      if (name == "position.table") CHECK(largest_difference(pictures[0].values, t) == 0);
    NamedTensors arrays;
    append_arrays(pictures, arrays);
    const auto norm = numbers(arrays, "norm"), cosine = numbers(arrays, "cosine");
    for (size_t r = 0; r < 7; ++r) {
      double sum = 0;
      for (i64 c = 0; c < 4; ++c) sum += std::pow(pictures[0].values.at<double>({static_cast<i64>(r), c}), 2);
      CHECK(norm[r] == doctest::Approx(std::sqrt(sum)));
      CHECK(cosine[r * 7 + r] == doctest::Approx(1));
    }
  }
  SUBCASE("a multiplier that does not see direction is the same on both sides") {
    const auto [pictures, state] = pictures_of("huang-m1(clip=2)", 6);
    REQUIRE(pictures.size() == 1);
    CHECK(pictures[0].kind == EncodingPicture::Kind::multiplier);
    CHECK(pictures[0].values.shape() == Shape{2, 5});
    for (const double v : pictures[0].values.to_vector<double>()) CHECK(v == 1);
  }
  SUBCASE("rope: the mean cosine over the pairs of channels") {
    const auto [pictures, state] = pictures_of("rope", 9);
    REQUIRE(pictures.size() == 1);
    CHECK(pictures[0].kind == EncodingPicture::Kind::kernel);
    for (size_t at = 0; at < pictures[0].delta.size(); ++at) {
      const double d = static_cast<double>(pictures[0].delta[at]);
      CHECK(pictures[0].values.at<double>({static_cast<i64>(at)}) == doctest::Approx((std::cos(d) + std::cos(d / 100)) / 2).epsilon(1e-9));
    }
  }
  SUBCASE("tupe: the logits of every two positions") {
    const auto [pictures, state] = pictures_of("tupe(max_len=9)", 7);
    REQUIRE(pictures.size() == 1);
    CHECK(pictures[0].kind == EncodingPicture::Kind::position_pairs);
    CHECK(pictures[0].values.shape() == Shape{2, 7, 7});
    NamedTensors arrays;
    append_arrays(pictures, arrays);
    CHECK(array(arrays, "pairs").shape() == Shape{2, 7, 7});
    // The same numbers as the summand of a call, which does not read the tokens.
    const DefaultF64 f64;
    const auto attention = nn::make_attention(nullptr, "", nn::resolve_attention({.embed_dim = 8, .num_heads = 2, .position = "tupe(max_len=9)"}));
    attention->load_state_dict(state);
    nn::AttentionInput in;
    in.x = randn({1, 7, 8}, kF64);
    in.positions = nn::Positions::range(7);
    for (const ScorePart& part : attention->score_parts(in))
      if (part.name == "position_bias") CHECK(largest_difference(part.value.squeeze(0), pictures[0].values) < 1e-12);
  }
  SUBCASE("two encodings keep their names apart") {
    const auto [pictures, state] = pictures_of("huang-m2(clip=2) + shaw(clip=3)", 6);
    REQUIRE(pictures.size() == 2);
    NamedTensors arrays;
    append_arrays(pictures, arrays);
    CHECK(has_array(arrays, "table"));
    CHECK(has_array(arrays, "bias"));
  }
}
