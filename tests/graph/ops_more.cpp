// More of the scalar interpreter: booleans and integers, windows along an axis, transforms, small systems.
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

void booleans(OpTable& t) {
  const auto two = [&](const char* name, bool (*f)(bool, bool)) {
    t.add(name,
          [](Maker& m, Instruction& in) {
            const Ints shape = m.shape(m.between(0, 3));
            in.set("input", m.mask(shape));
            in.set("other", m.mask(shape));
          },
          [f](const Call& c) {
            const auto shape = broadcast_shape(c.grid("input").shape, c.grid("other").shape);
            if (!shape) throw Unsuitable{};
            const Grid a = expanded(c.grid("input"), *shape), b = expanded(c.grid("other"), *shape);
            std::vector<double> out;
            for (size_t i = 0; i < a.numel(); ++i) out.push_back(f(a.value(i) != 0, b.value(i) != 0));
            return std::vector{fresh_numbers(Kind::boolean, *shape, out)};
          });
  };
  two("logical_and", [](bool a, bool b) { return a && b; });
  two("logical_or", [](bool a, bool b) { return a || b; });
  two("logical_xor", [](bool a, bool b) { return a != b; });
  t.add("logical_not", [](Maker& m, Instruction& in) { in.set("input", m.mask(m.shape(m.between(0, 3)))); },
        [](const Call& c) {
          std::vector<double> out;
          for (size_t i = 0; i < c.grid("input").numel(); ++i) out.push_back(c.grid("input").value(i) == 0);
          return std::vector{fresh_numbers(Kind::boolean, c.grid("input").shape, out)};
        });
  const auto count = [&](const char* name, Kind kind, double (*f)(size_t, size_t)) {
    t.add(name,
          [](Maker& m, Instruction& in) {
            const Slot x = m.mask(m.shape(m.between(0, 3)));
            in.set("input", x);
            if (m.coin()) in.set("dim", Ints{m.dim(x)});
          },
          [kind, f](const Call& c) {
            const Grid& x = c.grid("input");
            std::vector<double> out;
            for (const auto& g : groups(x.shape, c.list("dim"))) {
              size_t n = 0;
              for (const size_t i : g) n += x.value(i) != 0;
              out.push_back(f(n, g.size()));
            }
            return std::vector{fresh_numbers(kind, reduced_shape(x.shape, c.list("dim"), false), out)};
          });
  };
  count("any", Kind::boolean, [](size_t n, size_t) { return n > 0 ? 1.0 : 0.0; });
  count("all", Kind::boolean, [](size_t n, size_t all) { return n == all ? 1.0 : 0.0; });
  count("count_nonzero", Kind::integer, [](size_t n, size_t) { return static_cast<double>(n); });
  t.add("one_hot",
        [](Maker& m, Instruction& in) {
          const i64 classes = m.between(1, 4);
          in.set("input", m.indices(m.shape(m.between(0, 2)), classes));
          in.set("num_classes", classes);
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          Ints shape = x.shape;
          shape.push_back(c.integer("num_classes"));
          std::vector<double> out;
          for (size_t i = 0; i < x.numel(); ++i)
            for (i64 k = 0; k < c.integer("num_classes"); ++k) out.push_back(x.integer(i) == k);
          return std::vector{fresh_numbers(Kind::integer, shape, out)};
        });
  t.add("nonzero", [](Maker& m, Instruction& in) { in.set("input", m.mask(m.shape(m.between(1, 2)))); },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          std::vector<double> out;
          size_t k = 0;
          each(x.shape, [&](const Ints& i) {
            if (x.value(k++) != 0) out.insert(out.end(), i.begin(), i.end());
          });
          const i64 rows = x.shape.empty() ? 0 : static_cast<i64>(out.size()) / x.rank();
          return std::vector{fresh_numbers(Kind::integer, {rows, x.rank()}, out)};
        });
}

// Along the last axis, output i is Σ w[i][j]·x[j].
std::vector<Grid> mixed(const Grid& x, const std::vector<std::vector<double>>& w) {
  Ints shape = x.shape;
  shape.back() = static_cast<i64>(w.size());
  std::vector<Num> out;
  each(shape, [&](Ints i) {
    const auto& row = w[static_cast<size_t>(i.back())];
    std::vector<Num> terms;
    for (size_t j = 0; j < row.size(); ++j) {
      if (row[j] == 0) continue;
      i.back() = static_cast<i64>(j);
      terms.push_back(x[flat(x.shape, i)] * row[j]);
    }
    out.push_back(sum(terms));
  });
  return {fresh(Kind::real, shape, out)};
}

void resampling(OpTable& t) {
  t.add("adaptive_avg_pool1d",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(2, 3);
          m.need(m.grid(x).shape.back() > 0);
          in.set("input", x);
          in.set("output_size", m.between(1, 4));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const i64 n = x.shape.back(), size = c.integer("output_size");
          std::vector<std::vector<double>> w;
          for (i64 k = 0; k < size; ++k) {
            const i64 from = k * n / size, to = ((k + 1) * n + size - 1) / size;
            w.emplace_back(static_cast<size_t>(n), 0);
            for (i64 j = from; j < to; ++j) w.back()[static_cast<size_t>(j)] = 1 / static_cast<double>(to - from);
          }
          return mixed(x, w);
        });
  t.add("interpolate",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(3, 3);
          m.need(m.grid(x).numel() > 0);
          in.set("input", x);
          in.set("size", m.between(1, 5));
          if (m.coin()) {
            in.set("mode", std::string("linear"));
            in.set("align_corners", m.coin());
          }
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const i64 n = x.shape.back(), size = c.integer("size");
          std::vector<std::vector<double>> w;
          for (i64 k = 0; k < size; ++k) {
            w.emplace_back(static_cast<size_t>(n), 0);
            if (c.word("mode", "nearest") == "nearest") {
              w.back()[static_cast<size_t>(k * n / size)] = 1;
              continue;
            }
            const double ratio = static_cast<double>(n) / static_cast<double>(size);
            double place = (static_cast<double>(k) + 0.5) * ratio - 0.5;
            if (c.flag("align_corners", false))
              place = size > 1 ? static_cast<double>(k * (n - 1)) / static_cast<double>(size - 1) : 0;
            place = std::clamp(place, 0.0, static_cast<double>(n - 1));
            const double low = std::floor(place);
            w.back()[static_cast<size_t>(low)] += 1 - (place - low);
            w.back()[std::min(static_cast<size_t>(low) + 1, static_cast<size_t>(n) - 1)] += place - low;
          }
          return mixed(x, w);
        });
  t.add("conv_transpose1d",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(3, 3);
          const Ints s = m.grid(x).shape;
          m.need(product(s) > 0);
          const i64 out = m.between(1, 2), kernel = m.between(1, 3), padding = m.between(0, 1), stride = m.between(1, 2);
          m.need((s[2] - 1) * stride - 2 * padding + kernel > 0);
          in.set("input", x);
          in.set("weight", m.real_of({s[1], out, kernel}));
          if (m.coin()) in.set("bias", m.real_of({out}));
          in.set("stride", stride);
          in.set("padding", padding);
        },
        [](const Call& c) {
          const Grid &x = c.grid("input"), &w = c.grid("weight");
          const i64 stride = c.integer("stride"), padding = c.integer("padding"), kernel = w.shape[2];
          const Ints shape{x.shape[0], w.shape[1], (x.shape[2] - 1) * stride - 2 * padding + kernel};
          std::vector<Num> out;
          each(shape, [&](const Ints& i) {
            std::vector<Num> terms;
            for (i64 a = 0; a < x.shape[1]; ++a)
              for (i64 k = 0; k < kernel; ++k) {
                const i64 from = i[2] + padding - k;
                if (from < 0 || from % stride != 0 || from / stride >= x.shape[2]) continue;
                terms.push_back(x[flat(x.shape, {i[0], a, from / stride})] * w[flat(w.shape, {a, i[1], k})]);
              }
            if (c.has("bias")) terms.push_back(c.grid("bias")[static_cast<size_t>(i[1])]);
            out.push_back(sum(terms));
          });
          return std::vector{fresh(Kind::real, shape, out)};
        });
}

// Complex numbers are pairs on the last axis.
void transforms(OpTable& t) {
  for (const bool inverse : {false, true})
    t.add(inverse ? "ifft" : "fft",
          [](Maker& m, Instruction& in) {
            const i64 n = m.between(1, 5);
            in.set("input", m.coin() ? m.real_of({n, 2}) : m.real_of({m.between(1, 2), n, 2}));
          },
          [inverse](const Call& c) {
            const Grid& x = c.grid("input");
            const auto axis = x.shape.size() - 2;
            const i64 n = x.shape[axis];
            std::vector<Num> out;
            each(x.shape, [&](const Ints& i) {
              std::vector<Num> terms;
              for (i64 s = 0; s < n; ++s) {
                const double angle = (inverse ? 2 : -2) * M_PI * static_cast<double>(i[axis] * s % n) / static_cast<double>(n);
                Ints at = i;
                at[axis] = s;
                at.back() = 0;
                const Num re = x[flat(x.shape, at)];
                at.back() = 1;
                const Num im = x[flat(x.shape, at)];
                const bool real_part = i.back() == 0;
                terms.push_back(re * (real_part ? std::cos(angle) : std::sin(angle)));
                terms.push_back(im * (real_part ? -std::sin(angle) : std::cos(angle)));
              }
              out.push_back(sum(terms) * (inverse ? 1 / static_cast<double>(n) : 1));
            });
            return std::vector{fresh(Kind::real, x.shape, out)};
          });
  t.add("irfft",
        [](Maker& m, Instruction& in) {
          const i64 bins = m.between(2, 4);
          in.set("input", m.coin() ? m.real_of({bins, 2}) : m.real_of({2, bins, 2}));
          if (m.coin()) in.set("n", 2 * bins - 1);
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const auto axis = x.shape.size() - 2;
          const i64 bins = x.shape[axis], n = c.integer("n", 2 * (bins - 1));
          Ints shape(x.shape.begin(), x.shape.end() - 1);
          shape.back() = n;
          std::vector<Num> out;
          each(shape, [&](const Ints& i) {
            std::vector<Num> terms;
            for (i64 k = 0; k < bins; ++k) {
              const double angle = 2 * M_PI * static_cast<double>(k * i.back() % n) / static_cast<double>(n);
              const double twice = k == 0 || 2 * k == n ? 1 : 2;  // its mirror image counts, too
              Ints at = i;
              at.back() = k;
              at.push_back(0);
              terms.push_back(x[flat(x.shape, at)] * (twice * std::cos(angle)));
              at.back() = 1;
              if (twice == 2) terms.push_back(x[flat(x.shape, at)] * (-2 * std::sin(angle)));
            }
            out.push_back(sum(terms) * (1 / static_cast<double>(n)));
          });
          return std::vector{fresh(Kind::real, shape, out)};
        });
}

}  // namespace

void add_more(OpTable& t) {
  booleans(t);
  resampling(t);
  transforms(t);
  t.add("logit", [](Maker& m, Instruction& in) { in.set("input", m.input()); },
        [](const Call& c) {
          return std::vector{elementwise([](auto x) { return log(inside(x, 0.05, 0.95) / (1.0 - x)); }, c.grid("input"))};
        });
  t.add("dropout",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input());
          in.set("p", 0.5);
          in.set("training", false);
        },
        [](const Call& c) { return std::vector{c.grid("input")}; });
  t.maybe_a_view();
  t.add("masked_fill_tensor",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          in.set("input", x);
          in.set("mask", m.mask(m.grid(x).shape));
          in.set("value", m.real_of({}));
        },
        [](const Call& c) {
          return std::vector{elementwise([](auto k, auto x, auto v) { return primal(k) != 0 ? v : x; }, c.grid("mask"),
                                         c.grid("input"), c.grid("value"))};
        });
  t.add("sum_to_size",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          Ints size = m.grid(x).shape;
          for (i64& e : size)
            if (m.coin(0.4) && e > 0) e = 1;
          size.erase(size.begin(), size.begin() + m.between(0, static_cast<i64>(size.size())));
          in.set("input", x);
          in.set("size", size);
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Ints size = c.list("size");
          std::vector<std::vector<Num>> terms(static_cast<size_t>(product(size)));
          size_t k = 0;
          each(x.shape, [&](const Ints& i) {
            Ints to(i.end() - static_cast<std::ptrdiff_t>(size.size()), i.end());
            for (size_t a = 0; a < to.size(); ++a)
              if (size[a] == 1) to[a] = 0;
            terms[flat(size, to)].push_back(x[k++]);
          });
          std::vector<Num> out;
          for (const auto& list : terms) out.push_back(sum(list));
          return std::vector{fresh(Kind::real, size, out)};
        });
  t.maybe_a_view();
  t.add("pairwise_distance",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1, 3);
          m.need(m.grid(x).shape.back() > 0);
          in.set("x1", x);
          in.set("x2", m.real_of(m.grid(x).shape));
          in.set("keepdim", m.coin());
        },
        [](const Call& c) {
          const Grid &x = c.grid("x1"), &y = c.grid("x2");
          std::vector<Num> out;
          for (const auto& g : lines(x.shape, x.rank() - 1)) {
            std::vector<Num> squares;
            for (const size_t i : g) {
              const Num d = x[i] - y[i] + 1e-6;
              squares.push_back(d * d);
            }
            const Num s = sum(squares);
            if (primal(s) < 0.05) throw Unsuitable{};
            out.push_back(sqrt(s));
          }
          return std::vector{fresh(Kind::real, reduced_shape(x.shape, {-1}, c.flag("keepdim", false)), out)};
        });
  t.add("linalg_solve",
        [](Maker& m, Instruction& in) {
          const Slot b = m.real(2, 2);
          m.need(m.grid(b).shape[0] == 2);
          in.set("A", m.real_of({2, 2}));
          in.set("B", b);
        },
        [](const Call& c) {
          const Grid &a = c.grid("A"), &b = c.grid("B");
          const Num det = a[0] * a[3] - a[1] * a[2];
          if (std::abs(primal(det)) < 0.2) throw Unsuitable{};
          const auto columns = static_cast<size_t>(b.shape[1]);
          std::vector<Num> out(2 * columns);
          for (size_t k = 0; k < columns; ++k) {  // Cramer's rule
            out[k] = (b[k] * a[3] - a[1] * b[columns + k]) / det;
            out[columns + k] = (a[0] * b[columns + k] - b[k] * a[2]) / det;
          }
          return std::vector{fresh(Kind::real, b.shape, out)};
        });
  t.add("binary_cross_entropy",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          m.need(m.grid(x).numel() > 0);
          in.set("input", x);
          in.set("target", m.real_of(m.grid(x).shape));
          in.set("reduction", std::string(m.coin() ? "none" : "sum"));
        },
        [](const Call& c) {
          const Grid y = elementwise([](auto p, auto target) {
            inside(p, 0.05, 0.95);
            return -(target * log(p) + (1.0 - target) * log(1.0 - p));
          }, c.grid("input"), c.grid("target"));
          if (c.word("reduction") == "none") return std::vector{y};
          std::vector<Num> all;
          for (size_t i = 0; i < y.numel(); ++i) all.push_back(y[i]);
          return std::vector{fresh(Kind::real, {}, {sum(all)})};
        });
  t.add("kl_div",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          m.need(m.grid(x).numel() > 0);
          in.set("input", x);
          in.set("target", m.real_of(m.grid(x).shape));
          in.set("reduction", std::string("none"));
          in.set("log_target", m.coin());
        },
        [](const Call& c) {
          const bool logs = c.flag("log_target", false);
          return std::vector{elementwise([logs](auto q, auto target) {
            if (logs) return exp(target) * (target - q);
            return target * (log(inside(target, 0.05, 1e9)) - q);
          }, c.grid("input"), c.grid("target"))};
        });
  t.add_view("as_strided",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1, 3);
               const Grid& g = m.grid(x);
               // From the whole of the memory: what lies outside of the input gets no gradient.
               m.need(g.store->row_major && !g.store->frozen && g.numel() > 3 && g.numel() == g.store->cells.size() && !g.overlaps());
               in.set("input", x);
               in.set("size", Ints{2, m.between(1, 2)});
               in.set("stride", Ints{m.between(0, 1), m.between(1, 2)});
               in.set("storage_offset", m.between(0, static_cast<i64>(g.store->cells.size()) - 4));
             },
             [](const Call& c) {
               Grid y = c.grid("input");
               const Ints size = c.list("size"), stride = c.list("stride");
               y.shape = size;
               y.at.clear();
               each(size, [&](const Ints& i) {
                 y.at.push_back(static_cast<size_t>(c.integer("storage_offset") + i[0] * stride[0] + i[1] * stride[1]));
               });
               return std::vector{y};
             });
}

}  // namespace waymark::test::graph
