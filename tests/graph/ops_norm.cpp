// Softmax family, normalisations, distances and losses in the scalar interpreter.
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

// Line by line, to a grid of the same shape.
Grid by_lines(const Grid& x, const std::vector<std::vector<size_t>>& all, const std::function<Line(const Line&, size_t)>& f) {
  Line out(x.numel());
  for (size_t r = 0; r < all.size(); ++r) {
    const Line y = f(line_of(x, all[r]), r);
    for (size_t i = 0; i < all[r].size(); ++i) out[all[r][i]] = y[i];
  }
  return fresh(Kind::real, x.shape, out);
}
double largest(const Line& x) {
  double top = -1e300;
  for (const Num v : x) top = std::max(top, primal(v));
  return top;
}
Line softmax(const Line& x) {
  if (x.empty()) return {};
  const double top = largest(x);
  Line e;
  for (const Num v : x) e.push_back(exp(v + -top));
  const Num total = sum(e);
  for (Num& v : e) v = v / total;
  return e;
}
Line log_softmax(const Line& x) {
  if (x.empty()) return {};
  const double top = largest(x);
  Line e;
  for (const Num v : x) e.push_back(exp(v + -top));
  const Num total = log(sum(e)) + top;
  Line y;
  for (const Num v : x) y.push_back(v - total);
  return y;
}
Line standardised(const Line& x, double eps) {
  const Num m = mean(x);
  Line d, squares;
  for (const Num v : x) d.push_back(v - m);
  for (const Num v : d) squares.push_back(v * v);
  const Num var = mean(squares);
  if (primal(var) < 0.02) throw Unsuitable{};  // else the derivatives are steep
  const Num root = sqrt(var + eps);
  for (Num& v : d) v = v / root;
  return d;
}
Num length(const Line& x) {
  Line squares;
  for (const Num v : x) squares.push_back(v * v);
  const Num s = sum(squares);
  if (primal(s) < 0.02) throw Unsuitable{};
  return sqrt(s);
}
Num inner(const Line& a, const Line& b) {
  Line terms;
  for (size_t i = 0; i < a.size(); ++i) terms.push_back(a[i] * b[i]);
  return sum(terms);
}
// The trailing axes as one line.
std::vector<std::vector<size_t>> trailing(const Grid& x, size_t axes) {
  Ints dims;
  for (size_t k = x.shape.size() - axes; k < x.shape.size(); ++k) dims.push_back(static_cast<i64>(k));
  return groups(x.shape, dims);
}
void softmaxes(OpTable& t) {
  const auto arguments = [](Maker& m, Instruction& in) {
    const Slot x = m.input();
    in.set("input", x);
    in.set("dim", m.dim(x));
  };
  t.add("softmax", arguments, [](const Call& c) {
    const Grid& x = c.grid("input");
    return std::vector{by_lines(x, lines(x.shape, c.integer("dim")), [](const Line& v, size_t) { return softmax(v); })};
  }, 3);
  t.add("log_softmax", arguments, [](const Call& c) {
    const Grid& x = c.grid("input");
    return std::vector{by_lines(x, lines(x.shape, c.integer("dim")), [](const Line& v, size_t) { return log_softmax(v); })};
  }, 2);
  t.add("softmin", arguments, [](const Call& c) {
    const Grid& x = c.grid("input");
    return std::vector{by_lines(x, lines(x.shape, c.integer("dim")), [](const Line& v, size_t) {
      Line minus;
      for (const Num z : v) minus.push_back(z * -1.0);
      return softmax(minus);
    })};
  });
  t.add("masked_softmax",
        [arguments](Maker& m, Instruction& in) {
          arguments(m, in);
          in.set("keep", m.mask(m.grid(std::get<Slot>(*in.find("input"))).shape));
          if (m.coin()) in.set("scale", m.uniform(0.3, 1.5));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Grid keep = expanded(c.grid("keep"), x.shape);
          const auto all = lines(x.shape, c.integer("dim"));
          return std::vector{by_lines(x, all, [&](const Line& v, size_t r) {
            Line kept;
            for (size_t i = 0; i < v.size(); ++i)
              if (keep.value(all[r][i]) != 0) kept.push_back(v[i] * c.number("scale", 1));
            const Line y = softmax(kept);
            Line out;
            size_t next = 0;
            for (size_t i = 0; i < v.size(); ++i) out.push_back(keep.value(all[r][i]) != 0 ? y[next++] : number(0));
            return out;
          })};
        },
        2);
}

}  // namespace

void add_normalisations(OpTable& t) {
  softmaxes(t);
  for (const bool root_mean_square : {false, true})
    t.add(root_mean_square ? "rms_norm" : "layer_norm",
          [root_mean_square](Maker& m, Instruction& in) {
            const Slot x = m.input(1);
            const Grid& g = m.grid(x);
            const auto axes = static_cast<size_t>(m.between(1, std::min<i64>(2, g.rank())));
            const Ints shape(g.shape.end() - static_cast<std::ptrdiff_t>(axes), g.shape.end());
            m.need(product(shape) > 1);
            in.set("input", x);
            in.set("normalized_shape", shape);
            if (m.coin(0.7)) in.set("weight", m.real_of(shape));
            if (!root_mean_square && m.coin(0.7) && in.find("weight")) in.set("bias", m.real_of(shape));
            if (m.coin()) in.set("eps", 1e-3);
          },
          [root_mean_square](const Call& c) {
            const Grid& x = c.grid("input");
            const double eps = c.number("eps", root_mean_square ? 0x1p-52 : 1e-5);
            return std::vector{by_lines(x, trailing(x, c.list("normalized_shape").size()), [&](const Line& v, size_t) {
              Line y;
              if (root_mean_square) {
                Line squares;
                for (const Num z : v) squares.push_back(z * z);
                const Num ms = mean(squares);
                if (primal(ms) < 0.02) throw Unsuitable{};
                const Num root = sqrt(ms + eps);
                for (const Num z : v) y.push_back(z / root);
              } else {
                y = standardised(v, eps);
              }
              for (size_t i = 0; i < y.size(); ++i) {
                if (c.has("weight")) y[i] = y[i] * c.grid("weight")[i];
                if (c.has("bias")) y[i] = y[i] + c.grid("bias")[i];
              }
              return y;
            })};
          },
          2);
  t.add("group_norm",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(2);
          const Grid& g = m.grid(x);
          const i64 groups = g.shape[1] % 2 == 0 ? 2 : 1;
          m.need(g.shape[1] > 0 && static_cast<i64>(g.numel()) > groups * g.shape[0]);
          in.set("input", x);
          in.set("num_groups", groups);
          if (m.coin(0.7)) {
            in.set("weight", m.real_of({g.shape[1]}));
            in.set("bias", m.real_of({m.grid(x).shape[1]}));
          }
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const i64 n = x.shape[0] * c.integer("num_groups");
          const auto all = n > 0 ? groups({n, static_cast<i64>(x.numel()) / n}, {1}) : std::vector<std::vector<size_t>>{};
          return std::vector{by_lines(x, all, [&](const Line& v, size_t r) {
            Line y = standardised(v, 1e-5);
            const auto per_channel = static_cast<i64>(x.numel()) / (x.shape[0] * x.shape[1]);
            for (size_t i = 0; i < y.size() && c.has("weight"); ++i) {
              const i64 channel = static_cast<i64>(all[r][i]) / per_channel % x.shape[1];
              y[i] = y[i] * c.grid("weight")[static_cast<size_t>(channel)] + c.grid("bias")[static_cast<size_t>(channel)];
            }
            return y;
          })};
        });
  t.add("normalize",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          in.set("input", x);
          in.set("dim", m.dim(x));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          return std::vector{by_lines(x, lines(x.shape, c.integer("dim")), [](const Line& v, size_t) {
            if (v.empty()) return Line{};
            const Num n = length(v);
            Line y;
            for (const Num z : v) y.push_back(z / n);
            return y;
          })};
        });
  t.add("cosine_similarity",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const i64 d = m.dim(x);
          m.need(m.extent(x, d) > 0);
          in.set("x1", x);
          in.set("x2", m.real_of(m.grid(x).shape));
          in.set("dim", d);
        },
        [](const Call& c) {
          const Grid &x = c.grid("x1"), &y = c.grid("x2");
          Line out;
          for (const auto& g : lines(x.shape, c.integer("dim"))) {
            const Line a = line_of(x, g), b = line_of(y, g);
            out.push_back(inner(a, b) / (length(a) * length(b)));
          }
          return std::vector{fresh(Kind::real, reduced_shape(x.shape, {c.integer("dim")}, false), out)};
        });
  t.add("cdist",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(2, 2);
          m.need(m.grid(x).shape[1] > 0);
          in.set("x1", x);
          in.set("x2", m.real_of({m.between(1, 3), m.grid(x).shape[1]}));
        },
        [](const Call& c) {
          const Grid &x = c.grid("x1"), &y = c.grid("x2");
          Line out;
          const Ints shape{x.shape[0], y.shape[0]};
          each(shape, [&](const Ints& i) {
            Line difference;
            for (i64 k = 0; k < x.shape[1]; ++k)
              difference.push_back(x[flat(x.shape, {i[0], k})] - y[flat(y.shape, {i[1], k})]);
            out.push_back(length(difference));
          });
          return std::vector{fresh(Kind::real, shape, out)};
        });
  t.add("scaled_dot_product_attention",
        [](Maker& m, Instruction& in) {
          const Slot q = m.input(4, 4);
          const Ints s = m.grid(q).shape;
          const i64 keys = m.between(1, 3);
          m.need(product(s) > 0);
          in.set("query", q);
          in.set("key", m.real_of({s[0], s[1], keys, s[3]}));
          in.set("value", m.real_of({s[0], s[1], keys, m.between(1, 2)}));
          const i64 kind = m.between(0, 3);
          if (kind == 1) in.set("attn_mask", m.mask({s[2], keys}));
          if (kind == 2) in.set("attn_mask", m.real_of({s[2], keys}));
          if (kind == 3) in.set("is_causal", true);
          if (m.coin(0.3)) in.set("scale", m.uniform(0.2, 1));
        },
        [](const Call& c) {
          const Grid &q = c.grid("query"), &k = c.grid("key"), &v = c.grid("value");
          const double scale = c.number("scale", 1 / std::sqrt(static_cast<double>(q.shape[3])));
          const i64 keys = k.shape[2];
          Line out;
          each({q.shape[0], q.shape[1], q.shape[2]}, [&](const Ints& i) {
            Line scores;
            std::vector<i64> kept;
            for (i64 j = 0; j < keys; ++j) {
              if (c.flag("is_causal", false) && j > i[2]) continue;
              Line terms;
              for (i64 d = 0; d < q.shape[3]; ++d)
                terms.push_back(q[flat(q.shape, {i[0], i[1], i[2], d})] * k[flat(k.shape, {i[0], i[1], j, d})]);
              Num score = sum(terms) * scale;
              if (c.has("attn_mask")) {
                const Grid mask = expanded(c.grid("attn_mask"), {q.shape[2], keys});
                const size_t at = flat(mask.shape, {i[2], j});
                if (mask.kind == Kind::boolean && mask.value(at) == 0) continue;
                if (mask.kind == Kind::real) score = score + mask[at];
              }
              scores.push_back(score);
              kept.push_back(j);
            }
            const Line w = softmax(scores);
            for (i64 d = 0; d < v.shape[3]; ++d) {
              Line terms;
              for (size_t n = 0; n < kept.size(); ++n) terms.push_back(w[n] * v[flat(v.shape, {i[0], i[1], kept[n], d})]);
              out.push_back(sum(terms));
            }
          });
          return std::vector{fresh(Kind::real, {q.shape[0], q.shape[1], q.shape[2], v.shape[3]}, out)};
        },
        2);
}

void add_losses(OpTable& t) {
  const auto finish = [](const Call& c, const Ints& shape, const Line& each_one) {
    const std::string reduction = c.word("reduction", "mean");
    if (reduction == "none") return std::vector{fresh(Kind::real, shape, each_one)};
    const Num total = sum(each_one);
    return std::vector{fresh(Kind::real, {}, {reduction == "sum" ? total : total * (1 / static_cast<double>(each_one.size()))})};
  };
  const auto reduction = [](Maker& m, Instruction& in) {
    const char* kinds[] = {"mean", "sum", "none"};
    if (m.coin(0.8)) in.set("reduction", std::string(kinds[m.between(0, 2)]));
  };
  const auto pairs = [&](const std::string& name, const char* parameter, auto f) {
    t.add(name,
          [=](Maker& m, Instruction& in) {
            const Slot x = m.input();
            m.need(m.grid(x).numel() > 0);
            in.set("input", x);
            in.set("target", m.real_of(m.grid(x).shape));
            reduction(m, in);
            if (parameter && m.coin()) in.set(parameter, m.uniform(0.3, 1.5));
          },
          [=](const Call& c) {
            const double p = parameter ? c.number(parameter, 1) : 1;
            const Grid y = elementwise([f, p](auto a, auto b) { return f(a, b, p); }, c.grid("input"), c.grid("target"));
            Line all;
            for (size_t i = 0; i < y.numel(); ++i) all.push_back(y[i]);
            return finish(c, y.shape, all);
          });
  };
  pairs("mse_loss", nullptr, [](auto x, auto y, double) { return (x - y) * (x - y); });
  pairs("l1_loss", nullptr, [](auto x, auto y, double) { return absolute(x - y); });
  pairs("smooth_l1_loss", "beta", [](auto x, auto y, double beta) {
    const auto d = absolute(x - y);
    return choose(beta - primal(d), d * d / (2 * beta), d - 0.5 * beta);
  });
  pairs("huber_loss", "delta", [](auto x, auto y, double delta) {
    const auto d = absolute(x - y);
    return choose(delta - primal(d), d * d * 0.5, (d - 0.5 * delta) * delta);
  });
  pairs("binary_cross_entropy_with_logits", nullptr, [](auto x, auto y, double) {
    return (1.0 - y) * x + log(exp(-x) + 1.0);
  });
  for (const bool from_logits : {true, false})
    t.add(from_logits ? "cross_entropy" : "nll_loss",
          [=](Maker& m, Instruction& in) {
            const Slot x = m.input(2, 2);
            const Ints s = m.grid(x).shape;
            m.need(product(s) > 0);
            in.set("input", x);
            in.set("target", m.indices({s[0]}, s[1]));
            reduction(m, in);
            if (from_logits && m.coin()) in.set("label_smoothing", m.uniform(0, 0.5));
          },
          [=](const Call& c) {
            const Grid& x = c.grid("input");
            const double smoothing = c.number("label_smoothing", 0);
            const auto classes = static_cast<double>(x.shape[1]);
            Line out;
            size_t row = 0;
            for (const auto& g : lines(x.shape, 1)) {
              const Line p = from_logits ? log_softmax(line_of(x, g)) : line_of(x, g);
              const auto target = static_cast<size_t>(c.grid("target").integer(row++));
              out.push_back(p[target] * (smoothing - 1) + sum(p) * (-smoothing / classes));
            }
            return finish(c, {x.shape[0]}, out);
          });
}

}  // namespace waymark::test::graph
