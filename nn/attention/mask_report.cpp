#include "nn/attention/mask_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "nn/attention/mask_rows.h"
#include "nn/module/summary.h"

namespace waymark::nn {

namespace {

constexpr i64 kPictureCells = 64;
constexpr i64 kSources = 256;

size_t index(i64 i) { return static_cast<size_t>(i); }

// The mask with causality and padding, of one head, row by row.
class ReportRows {
 public:
  ReportRows(const Mask& mask, const MaskCall& call)
      : mask_(call.causal ? mask & Mask::causal() : mask), call_(call), rows_(mask_, call_),
        query_kept_(kept_tokens(call.query_keep, 0, call.queries)), key_kept_(kept_tokens(call.key_keep, 0, call.keys)) {}

  bool by_head() const { return rows_.by_head(); }
  void row(i64 head, i64 i, u8* out) const {
    if (!query_kept_[index(i)]) {
      std::fill_n(out, index(call_.keys), u8{0});
      return;
    }
    rows_.row(0, head, i, out);
    for (size_t j = 0; j < key_kept_.size(); ++j) out[j] &= key_kept_[j];
  }

 private:
  Mask mask_;
  const MaskCall& call_;
  MaskRows rows_;
  std::vector<u8> query_kept_, key_kept_;
};

// Cells of a picture: token t is in cell t·n/L, so that cell c begins at ⌈c·L/n⌉.
class Cells {
 public:
  explicit Cells(i64 length) : count_(std::min(length, kPictureCells)) {
    for (i64 c = 0; c <= count_; ++c) begin_.push_back(count_ ? (c * length + count_ - 1) / count_ : 0);
  }
  i64 count() const { return count_; }
  i64 of(i64 token) const { return std::upper_bound(begin_.begin(), begin_.end(), token) - begin_.begin() - 1; }
  std::vector<i64> empty() const { return std::vector<i64>(index(count_ * count_), 0); }
  // Adds the ones of a row to the cells of its token; returns how many they are.
  i64 add(i64 token, const std::vector<u8>& row, std::vector<i64>& pairs) const {
    i64* to = pairs.data() + of(token) * count_;
    i64 all = 0;
    for (i64 c = 0; c < count_; ++c) {
      const u8* from = row.data() + begin_[index(c)];
      u32 ones = 0;
      for (i64 j = 0; j < size(c); ++j) ones += from[j];
      to[c] += ones;
      all += ones;
    }
    return all;
  }
  std::vector<double> shares(const std::vector<i64>& pairs) const {
    std::vector<double> out;
    for (i64 a = 0; a < count_; ++a)
      for (i64 b = 0; b < count_; ++b)
        out.push_back(static_cast<double>(pairs[index(a * count_ + b)]) / static_cast<double>(size(a) * size(b)));
    return out;
  }

 private:
  i64 size(i64 c) const { return begin_[index(c + 1)] - begin_[index(c)]; }
  i64 count_;
  std::vector<i64> begin_;
};

// A square matrix of bits, rows of whole words.
class BitMatrix {
 public:
  explicit BitMatrix(i64 length) : words_((length + 63) / 64), bits_(index(64 * words_ * words_), 0) {}
  i64 words() const { return words_; }
  const u64* row(i64 i) const { return &bits_[index(i * words_)]; }
  void set(i64 i, const std::vector<u8>& values) {
    u64* to = &bits_[index(i * words_)];
    for (size_t j = 0; j < values.size(); ++j) to[j / 64] |= u64{values[j]} << (j % 64);
  }
  void transpose() {
    for (i64 a = 0; a < words_; ++a)
      for (i64 b = 0; b <= a; ++b) {
        Block low = block(a, b), high = block(b, a);
        put(b, a, low);
        if (a != b) put(a, b, high);
      }
  }

 private:
  using Block = std::array<u64, 64>;
  Block block(i64 a, i64 b) const {
    Block out;
    for (i64 k = 0; k < 64; ++k) out[index(k)] = bits_[index((64 * a + k) * words_ + b)];
    return out;
  }
  // Writes the transposed block: halves of halves change places.
  void put(i64 a, i64 b, Block& x) {
    u64 mask = 0xFFFFFFFFu;
    for (size_t step = 32; step != 0; step /= 2, mask ^= mask << step)
      for (size_t k = 0; k < 64; k = ((k | step) + 1) & ~step) {
        const u64 swap = ((x[k] >> step) ^ x[k | step]) & mask;
        x[k] ^= swap << step;
        x[k | step] ^= swap;
      }
    for (i64 k = 0; k < 64; ++k) bits_[index((64 * a + k) * words_ + b)] = x[index(k)];
  }

  i64 words_;
  std::vector<u64> bits_;
};

// Who knows of whom, layer by layer: `words` of bits for each token, one bit for each source. A layer hands on what was new
// in the one before it and nothing else, so that a window takes no longer for having many layers.
class Reach {
 public:
  // queries_of: row j has the queries that see key j.
  Reach(const BitMatrix& queries_of, i64 length, i64 sources)
      : queries_of_(queries_of), length_(length), sources_(sources), words_((sources + 63) / 64) {
    known_.resize(index(length * words_), 0);
    next_ = known_;
    in_next_.resize(index(length), {0, 0});
    for (i64 s = 0; s < sources; ++s) {
      const i64 token = s * length / sources, word = s / 64;
      known_[index(token * words_ + word)] |= u64{1} << (s % 64);
      news_.push_back({token, word, word + 1});
    }
    fresh_ = known_;
    seen_.resize(index(length));
    for (i64 j = 0; j < length; ++j) seen_[index(j)] = used(queries_of.row(j), 0, queries_of.words());
  }
  // One layer; false if nothing is new.
  bool step() {
    std::vector<i64> touched;
    for (const News& n : news_) {
      const u64* from = &fresh_[index(n.token * words_)];
      const u64* queries = queries_of_.row(n.token);
      for (i64 w = seen_[index(n.token)].first; w < seen_[index(n.token)].second; ++w)
        for (u64 bits = queries[w]; bits != 0; bits &= bits - 1) {
          const i64 i = w * 64 + std::countr_zero(bits);
          Span& span = in_next_[index(i)];
          if (span.second == 0) {
            touched.push_back(i);
            span = {n.first, n.last};
          }
          span = {std::min(span.first, n.first), std::max(span.second, n.last)};
          u64* to = &next_[index(i * words_)];
          for (i64 k = n.first; k < n.last; ++k) to[k] |= from[k];
        }
    }
    news_.clear();
    for (const i64 i : touched) {
      u64 *next = &next_[index(i * words_)], *known = &known_[index(i * words_)], *fresh = &fresh_[index(i * words_)];
      Span& span = in_next_[index(i)];
      for (i64 k = span.first; k < span.second; ++k) {
        fresh[k] = next[k] & ~known[k];
        known[k] |= next[k];
        next[k] = 0;
        joined_ += std::popcount(fresh[k]);
      }
      if (const Span s = used(fresh, span.first, span.second); s.second) news_.push_back({i, s.first, s.second});
      span = {0, 0};
    }
    return !news_.empty();
  }
  // Pairs of two tokens (i, source) that are joined, and of all.
  i64 joined() const { return joined_; }
  i64 all() const { return sources_ * (length_ - 1); }

 private:
  using Span = std::pair<i64, i64>;  // words from first up to second; {0, 0}: none
  struct News {
    i64 token, first, last;
  };
  static Span used(const u64* words, i64 first, i64 last) {
    while (first < last && words[first] == 0) ++first;
    while (first < last && words[last - 1] == 0) --last;
    return first < last ? Span{first, last} : Span{0, 0};
  }

  const BitMatrix& queries_of_;
  i64 length_, sources_, words_, joined_ = 0;
  std::vector<u64> known_, fresh_, next_;
  std::vector<Span> seen_, in_next_;
  std::vector<News> news_;
};

MaskReport::Head report_head(const ReportRows& rows, i64 head, i64 length, bool with_reach) {
  MaskReport::Head r;
  const Cells cells(length);
  std::vector<i64> pairs = cells.empty();
  BitMatrix neighbours(with_reach ? length : 0);
  std::map<i64, i64> histogram;
  std::vector<u8> allowed(index(length));
  for (i64 i = 0; i < length; ++i) {
    rows.row(head, i, allowed.data());
    const i64 count = cells.add(i, allowed, pairs);
    if (with_reach) neighbours.set(i, allowed);
    ++histogram[count];
    r.pairs += count;
  }
  r.picture = {cells.count(), cells.shares(pairs)};
  r.histogram.assign(histogram.begin(), histogram.end());
  if (!histogram.empty()) {
    r.fewest = histogram.begin()->first;
    r.most = histogram.rbegin()->first;
    r.empty_rows = histogram.count(0) ? histogram[0] : 0;
    r.mean = static_cast<double>(r.pairs) / static_cast<double>(length);
  }
  if (with_reach && length > 1) {
    neighbours.transpose();
    Reach reach(neighbours, length, length <= kExactReach ? length : kSources);
    while (reach.joined() < reach.all() && reach.step())
      r.reach.push_back(static_cast<double>(reach.joined()) / static_cast<double>(reach.all()));
    r.unreachable = reach.all() - reach.joined();
  }
  return r;
}

void check_report(const MaskCall& call, i64 head = 0) {
  if (call.batch < 1) fail("mask", "a report is of batch row 0, and the call has none");
  if (head < 0 || head >= call.heads) fail("mask", "there is no head {} among {}", head, call.heads);
  if (call.queries != call.keys) fail("mask", "a report is of one sequence, not of {} queries and {} keys", call.queries, call.keys);
  if (call.queries > kLongestReport)
    fail("mask", "a report reads every pair: at most {} tokens, not {}", kLongestReport, call.queries);
}

}  // namespace

i64 MaskReport::pairs() const {
  i64 sum = 0;
  for (const Head& h : heads) sum += h.pairs;
  return static_cast<i64>(heads.size()) == num_heads ? sum : sum * num_heads;
}
double MaskReport::density() const {
  const double all = static_cast<double>(num_heads) * static_cast<double>(length) * static_cast<double>(length);
  return all > 0 ? static_cast<double>(pairs()) / all : 0;
}
double MaskReport::flops() const { return 4 * static_cast<double>(pairs()) * static_cast<double>(head_dim); }

MaskCall sequence_call(i64 length, i64 heads, bool causal, i64 shift) {
  MaskCall c{.batch = 1, .heads = heads, .queries = length, .keys = length};
  c.query_positions = c.key_positions = Positions::range(length);
  c.causal = causal;
  c.shift = shift;
  return c;
}

MaskReport mask_report(const Mask& mask, const MaskCall& call, i64 head_dim) {
  check_report(call);
  const ReportRows rows(mask, call);
  MaskReport r{.length = call.queries, .num_heads = call.heads, .head_dim = head_dim, .heads = {}};
  r.reach_known = call.queries <= kSampledReach;
  if (call.queries > kExactReach && r.reach_known) r.sources = kSources;
  for (i64 h = 0; h < (rows.by_head() ? call.heads : 1); ++h)
    r.heads.push_back(report_head(rows, h, call.queries, r.reach_known));
  if (std::all_of(r.heads.begin(), r.heads.end(), [&](const MaskReport::Head& h) { return h == r.heads.front(); })) r.heads.resize(1);
  return r;
}

std::string to_string(const MaskReport& r) {
  std::string out = fmt::format("  {} tokens: {} pairs in {} {}, density {:.4f}, {:.4g} flops forward\n", r.length, with_commas(r.pairs()),
                                r.num_heads, r.num_heads == 1 ? "head" : "heads", r.density(), r.flops());
  for (size_t n = 0; n < r.heads.size(); ++n) {
    const MaskReport::Head& h = r.heads[n];
    const std::string name = r.heads.size() == 1 ? "" : fmt::format("head {}: ", n);
    out += fmt::format("  {}{} pairs; keys per query: {} to {}, {:.4g} on average; empty rows: {}\n", name, with_commas(h.pairs), h.fewest,
                       h.most, h.mean, h.empty_rows);
    // Neighbouring counts are joined, so that at most eight groups are left.
    const size_t step = (h.histogram.size() + 7) / 8;
    std::string groups;
    for (size_t i = 0; step && i < h.histogram.size(); i += step) {
      const size_t last = std::min(i + step, h.histogram.size()) - 1;
      i64 queries = 0;
      for (size_t k = i; k <= last; ++k) queries += h.histogram[k].second;
      const std::string keys = i == last ? fmt::format("{}", h.histogram[i].first)
                                         : fmt::format("{}-{}", h.histogram[i].first, h.histogram[last].first);
      groups += fmt::format("{}{}: {}", groups.empty() ? "" : ", ", keys, queries);
    }
    if (!groups.empty()) out += fmt::format("  {}queries by number of keys: {}\n", name, groups);
    if (!r.reach_known) {
      out += fmt::format("  {}reach: not followed beyond {} tokens\n", name, kSampledReach);
      continue;
    }
    if (r.length < 2) continue;
    std::string hops;
    for (size_t k = 0; k < h.reach.size(); ++k) {
      const bool shown = k < 4 || k + 1 == h.reach.size();
      if (shown) hops += fmt::format("{}{}{} {:.4g}", hops.empty() ? "" : ", ", k >= 5 && k + 1 == h.reach.size() ? "... " : "", k + 1, h.reach[k]);
    }
    const std::string from = r.sources ? fmt::format(" (followed from {} tokens)", r.sources) : "";
    out += fmt::format("  {}reach by layers: {}{}; {}\n", name, hops.empty() ? "none" : hops, from,
                       h.full_at() ? fmt::format("all pairs are joined after {}", h.full_at())
                                   : fmt::format("{} ordered pairs are never joined", with_commas(h.unreachable)));
  }
  return out;
}

std::string picture_text(const MaskPicture& p) {
  std::string out;
  for (i64 a = 0; a < p.cells; ++a) {
    for (i64 b = 0; b < p.cells; ++b) {
      const double share = p.share[index(a * p.cells + b)];
      out += share == 0 ? "·" : share == 1 ? "█" : "▒";
    }
    out += '\n';
  }
  return out;
}

std::string picture_pgm(const MaskPicture& p) {
  std::string out = fmt::format("P2\n{} {}\n255\n", p.cells, p.cells);
  for (i64 a = 0; a < p.cells; ++a) {
    for (i64 b = 0; b < p.cells; ++b)
      out += fmt::format("{}{}", b ? " " : "", static_cast<int>(255.5 - 255 * p.share[index(a * p.cells + b)]));
    out += '\n';
  }
  return out;
}

MaskDifference mask_difference(const Mask& before, const Mask& after, const MaskCall& call, i64 head) {
  check_report(call, head);
  const ReportRows first(before, call), second(after, call);
  const Cells cells(call.queries);
  std::vector<i64> kept = cells.empty(), gone = kept, added = kept;
  std::vector<u8> a(index(call.keys)), b(index(call.keys));
  MaskDifference d{.cells = cells.count(), .kept = {}, .gone = {}, .added = {}};
  std::vector<u8> both(index(call.keys));
  for (i64 i = 0; i < call.queries; ++i) {
    first.row(head, i, a.data());
    second.row(head, i, b.data());
    for (size_t j = 0; j < both.size(); ++j) {
      both[j] = a[j] & b[j];
      a[j] ^= both[j];
      b[j] ^= both[j];
    }
    d.kept_pairs += cells.add(i, both, kept);
    d.gone_pairs += cells.add(i, a, gone);
    d.added_pairs += cells.add(i, b, added);
  }
  d.kept = cells.shares(kept);
  d.gone = cells.shares(gone);
  d.added = cells.shares(added);
  return d;
}

std::string picture_text(const MaskDifference& d) {
  std::string out;
  for (i64 a = 0; a < d.cells; ++a) {
    for (i64 b = 0; b < d.cells; ++b) {
      const size_t at = index(a * d.cells + b);
      out += d.gone[at] > 0 && d.added[at] > 0 ? "±"
             : d.gone[at] > 0                  ? "-"
             : d.added[at] > 0                 ? "+"
             : d.kept[at] == 1                 ? "█"
             : d.kept[at] > 0                  ? "▒"
                                               : "·";
    }
    out += '\n';
  }
  return out;
}

}  // namespace waymark::nn
