// Reductions and scans of the scalar interpreter.
#include <numeric>

#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

// Places of the line's elements in ascending order of their values; the graph keeps away from ties.
std::vector<size_t> order_of(const Line& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return primal(x[a]) < primal(x[b]); });
  for (size_t i = 1; i < x.size(); ++i) near(primal(x[order[i]]) - primal(x[order[i - 1]]));
  return order;
}
Num sum_of_squares(const Line& x) {
  const Num m = mean(x);
  Line squares;
  for (const Num v : x) squares.push_back((v - m) * (v - m));
  return sum(squares);
}
Num product_of_line(const Line& x) {
  Num p = number(1);
  for (const Num v : x) p = p * v;
  return p;
}
Num log_sum_exp(const Line& x) {
  double top = -1e300;
  for (const Num v : x) top = std::max(top, primal(v));
  Line e;
  for (const Num v : x) e.push_back(exp(v + -top));
  return log(sum(e)) + top;
}
Num variance(const Line& x, i64 correction) {
  return sum_of_squares(x) * (1 / static_cast<double>(static_cast<i64>(x.size()) - correction));
}
Num root(Num x) {
  if (primal(x) < 0.01) throw Unsuitable{};
  return sqrt(x);
}

void reduction_arguments(Maker& m, Instruction& in, size_t least) {
  const Slot x = m.input();
  const Ints dims = m.dims(x);
  Ints joined = m.grid(x).shape;
  if (!dims.empty()) {
    joined.clear();
    for (const i64 d : dims) joined.push_back(m.extent(x, d));
  }
  m.need(product(joined) >= static_cast<i64>(least));
  in.set("input", x);
  if (!dims.empty()) in.set("dim", dims);
  if (!dims.empty() && m.coin()) in.set("keepdim", m.coin());
}
void reduce(OpTable& t, const std::string& name, size_t least, const std::function<Num(const Line&)>& f, int weight = 1) {
  t.add(name, [least](Maker& m, Instruction& in) { reduction_arguments(m, in, least); },
        [f](const Call& c) {
          const Grid& x = c.grid("input");
          Line out;
          for (const auto& g : groups(x.shape, c.list("dim"))) out.push_back(f(line_of(x, g)));
          return std::vector{fresh(Kind::real, reduced_shape(x.shape, c.list("dim"), c.flag("keepdim", false)), out)};
        },
        weight);
}
void moments(OpTable& t, const std::string& name, bool deviation, bool with_mean) {
  t.add(name,
        [](Maker& m, Instruction& in) {
          reduction_arguments(m, in, 2);
          if (m.coin()) in.set("correction", m.between(0, 1));
        },
        [=](const Call& c) {
          const Grid& x = c.grid("input");
          Line out, means;
          for (const auto& g : groups(x.shape, c.list("dim"))) {
            const Line v = line_of(x, g);
            const Num var = variance(v, c.integer("correction", 1));
            out.push_back(deviation ? root(var) : var);
            means.push_back(mean(v));
          }
          const Ints shape = reduced_shape(x.shape, c.list("dim"), c.flag("keepdim", false));
          std::vector<Grid> result{fresh(Kind::real, shape, out)};
          if (with_mean) result.push_back(fresh(Kind::real, shape, means));
          return result;
        });
}
// One dim, or none: the whole. Picks one element of each line; its place is the second result if there is a dim.
void pick_one(OpTable& t, const std::string& name, const std::function<size_t(const Call&, const Line&)>& which,
              const std::function<void(Maker&, Instruction&, i64)>& more = {}, bool needs_dim = false) {
  t.add(name,
        [=](Maker& m, Instruction& in) {
          const Slot x = m.input();
          in.set("input", x);
          i64 n = static_cast<i64>(m.grid(x).numel());
          if (needs_dim || m.coin(0.8)) {
            const i64 d = m.dim(x);
            in.set("dim", d);
            if (m.coin()) in.set("keepdim", m.coin());
            n = m.extent(x, d);
          }
          m.need(n > 0);
          if (more) more(m, in, n);
        },
        [=](const Call& c) {
          const Grid& x = c.grid("input");
          const Ints dims = c.has("dim") ? Ints{c.integer("dim")} : Ints{};
          Line values;
          std::vector<double> places;
          for (const auto& g : groups(x.shape, dims)) {
            const Line line = line_of(x, g);
            const size_t k = which(c, line);
            values.push_back(line[k]);
            places.push_back(static_cast<double>(k));
          }
          const Ints shape = reduced_shape(x.shape, dims, c.flag("keepdim", false));
          std::vector<Grid> result{fresh(Kind::real, shape, values)};
          if (!dims.empty()) result.push_back(fresh_numbers(Kind::integer, shape, places));
          return result;
        });
}
// An input, one of its dims that is not empty, keepdim.
void one_dim_arguments(Maker& m, Instruction& in) {
  const Slot x = m.input();
  in.set("input", x);
  const i64 d = m.dim(x);
  m.need(m.extent(x, d) > 0);
  in.set("dim", d);
  in.set("keepdim", m.coin());
}
void place_of(OpTable& t, const std::string& name, bool largest) {
  t.add(name,
        one_dim_arguments,
        [largest](const Call& c) {
          const Grid& x = c.grid("input");
          std::vector<double> out;
          for (const auto& g : lines(x.shape, c.integer("dim"))) {
            const auto order = order_of(line_of(x, g));
            out.push_back(static_cast<double>(largest ? order.back() : order.front()));
          }
          return std::vector{
              fresh_numbers(Kind::integer, reduced_shape(x.shape, {c.integer("dim")}, c.flag("keepdim", false)), out)};
        });
}
// Line by line along one dim, to a line of maybe another length, with places as second result if `places`.
void along(OpTable& t, const std::string& name, const std::function<void(Maker&, Instruction&, i64)>& more,
           const std::function<Line(const Call&, const Line&, std::vector<double>&)>& f, bool values, bool places) {
  t.add(name,
        [more](Maker& m, Instruction& in) {
          const Slot x = m.input();
          const i64 d = m.dim(x);
          in.set("input", x);
          in.set("dim", d);
          if (more) more(m, in, m.extent(x, d));
        },
        [=](const Call& c) {
          const Grid& x = c.grid("input");
          const i64 d = wrap(c.integer("dim"), x.rank());
          std::vector<Line> rows;
          std::vector<std::vector<double>> indices;
          for (const auto& g : lines(x.shape, d)) {
            indices.emplace_back();
            rows.push_back(f(c, line_of(x, g), indices.back()));
          }
          Ints shape = x.shape;
          if (!shape.empty()) {
            // No lines at all: the length comes from a line of zeros.
            std::vector<double> unused;
            const Line like(static_cast<size_t>(shape[static_cast<size_t>(d)]), number(0));
            if (rows.empty()) shape[static_cast<size_t>(d)] = static_cast<i64>(f(c, like, unused).size());
            else shape[static_cast<size_t>(d)] = static_cast<i64>(rows[0].size());
          }
          const auto where = lines(shape, d);
          Line out(static_cast<size_t>(product(shape)));
          std::vector<double> out_places(out.size());
          for (size_t r = 0; r < rows.size(); ++r)
            for (size_t i = 0; i < rows[r].size(); ++i) {
              out[where[r][i]] = rows[r][i];
              if (places) out_places[where[r][i]] = indices[r][i];
            }
          std::vector<Grid> result;
          if (values) result.push_back(fresh(Kind::real, shape, out));
          if (places) result.push_back(fresh_numbers(Kind::integer, shape, out_places));
          return result;
        });
}

}  // namespace

void add_reductions(OpTable& t) {
  reduce(t, "sum", 0, [](const Line& x) { return sum(x); }, 3);
  reduce(t, "mean", 1, mean, 2);
  reduce(t, "nansum", 0, [](const Line& x) { return sum(x); });
  reduce(t, "nanmean", 1, mean);
  reduce(t, "amax", 1, [](const Line& x) { return x[order_of(x).back()]; });
  reduce(t, "amin", 1, [](const Line& x) { return x[order_of(x).front()]; });
  moments(t, "var", false, false);
  moments(t, "std", true, false);
  moments(t, "var_mean", false, true);
  moments(t, "std_mean", true, true);
  t.add("logsumexp",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          const i64 d = m.dim(x);
          m.need(m.extent(x, d) > 0);
          in.set("input", x);
          in.set("dim", Ints{d});
          in.set("keepdim", m.coin());
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          Line out;
          for (const auto& g : groups(x.shape, c.list("dim"))) out.push_back(log_sum_exp(line_of(x, g)));
          return std::vector{fresh(Kind::real, reduced_shape(x.shape, c.list("dim"), c.flag("keepdim", false)), out)};
        },
        2);
  t.add("norm",
        [](Maker& m, Instruction& in) {
          reduction_arguments(m, in, 1);
          const i64 p = m.between(0, 3);
          if (p > 0) in.set("p", p == 3 ? Value(m.uniform(1.5, 3)) : Value(p));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const double p = c.number("p", 2);
          Line out;
          for (const auto& g : groups(x.shape, c.list("dim"))) {
            Line terms;
            for (const Num v : line_of(x, g)) {
              if (p == 2) {
                terms.push_back(v * v);
              } else {
                const Num a = absolute(v);
                if (primal(a) < 0.05) throw Unsuitable{};
                terms.push_back(call([p](auto y) { return power(y, p); }, a));
              }
            }
            const Num s = sum(terms);
            if (primal(s) < 0.05) throw Unsuitable{};
            out.push_back(call([p](auto y) { return power(y, 1 / p); }, s));
          }
          return std::vector{fresh(Kind::real, reduced_shape(x.shape, c.list("dim"), c.flag("keepdim", false)), out)};
        },
        2);
  t.add("prod",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          in.set("input", x);
          if (m.coin()) {
            in.set("dim", m.dim(x));
            in.set("keepdim", m.coin());
          }
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Ints dims = c.has("dim") ? Ints{c.integer("dim")} : Ints{};
          Line out;
          for (const auto& g : groups(x.shape, dims)) out.push_back(product_of_line(line_of(x, g)));
          return std::vector{fresh(Kind::real, reduced_shape(x.shape, dims, c.flag("keepdim", false)), out)};
        });
  const auto by_rank = [](double part) {
    return [part](const Call&, const Line& x) {
      return order_of(x)[static_cast<size_t>(part * static_cast<double>(x.size() - 1))];
    };
  };
  pick_one(t, "max", by_rank(1));
  pick_one(t, "min", by_rank(0));
  pick_one(t, "median", by_rank(0.5));
  pick_one(t, "nanmedian", by_rank(0.5));
  pick_one(t, "kthvalue",
           [](const Call& c, const Line& x) { return order_of(x)[static_cast<size_t>(c.integer("k") - 1)]; },
           [](Maker& m, Instruction& in, i64 n) { in.set("k", m.between(1, n)); }, true);
  place_of(t, "argmax", true);
  place_of(t, "argmin", false);
  t.add("aminmax",
        one_dim_arguments,
        [](const Call& c) {
          const Grid& x = c.grid("input");
          Line low, high;
          for (const auto& g : lines(x.shape, c.integer("dim"))) {
            const Line v = line_of(x, g);
            const auto order = order_of(v);
            low.push_back(v[order.front()]);
            high.push_back(v[order.back()]);
          }
          const Ints shape = reduced_shape(x.shape, {c.integer("dim")}, c.flag("keepdim", false));
          return std::vector{fresh(Kind::real, shape, low), fresh(Kind::real, shape, high)};
        });
  t.add("quantile",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          const i64 d = m.dim(x);
          m.need(m.extent(x, d) > 0);
          in.set("input", x);
          in.set("q", m.uniform(0.02, 0.98));
          in.set("dim", d);
          in.set("keepdim", m.coin());
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          Line out;
          for (const auto& g : lines(x.shape, c.integer("dim"))) {
            const Line v = line_of(x, g);
            const auto order = order_of(v);
            const double place = c.number("q") * static_cast<double>(v.size() - 1), below = std::floor(place);
            const size_t i = static_cast<size_t>(below), j = std::min(i + 1, v.size() - 1);
            near(place - std::round(place) + (v.size() == 1 ? 1 : 0));
            out.push_back(v[order[i]] * (1 - (place - below)) + v[order[j]] * (place - below));
          }
          return std::vector{fresh(Kind::real, reduced_shape(x.shape, {c.integer("dim")}, c.flag("keepdim", false)), out)};
        });
}

void add_scans(OpTable& t) {
  const std::function<void(Maker&, Instruction&, i64)> nothing;
  const auto running = [&](const std::string& name, const std::function<Num(const Line&)>& f) {
    along(t, name, nothing,
          [f](const Call&, const Line& x, std::vector<double>&) {
            Line out;
            for (size_t i = 0; i < x.size(); ++i) out.push_back(f(Line(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(i) + 1)));
            return out;
          },
          true, false);
  };
  running("cumsum", [](const Line& x) { return sum(x); });
  running("cumprod", product_of_line);
  running("logcumsumexp", log_sum_exp);
  for (const bool largest : {true, false})
    along(t, largest ? "cummax" : "cummin", nothing,
          [largest](const Call&, const Line& x, std::vector<double>& places) {
            Line out;
            size_t best = 0;
            for (size_t i = 0; i < x.size(); ++i) {
              const double gap = primal(x[i]) - primal(x[best]);
              if (i > 0) near(gap);
              if (i > 0 && (largest ? gap > 0 : gap < 0)) best = i;
              out.push_back(x[best]);
              places.push_back(static_cast<double>(best));
            }
            return out;
          },
          true, true);
  along(t, "diff",
        [](Maker& m, Instruction& in, i64 n) {
          m.need(!m.grid(std::get<Slot>(*in.find("input"))).shape.empty());
          in.set("n", m.between(1, std::clamp<i64>(n, 1, 2)));
        },
        [](const Call& c, const Line& x, std::vector<double>&) {
          Line line = x;
          for (i64 k = 0; k < c.integer("n"); ++k) {
            Line next;
            for (size_t i = 1; i < line.size(); ++i) next.push_back(line[i] - line[i - 1]);
            line = next;
          }
          return line;
        },
        true, false);
  const auto sorted = [](const Call& c, const Line& x, std::vector<double>& places) {
    auto order = order_of(x);
    if (c.flag("descending", false)) std::reverse(order.begin(), order.end());
    Line out;
    for (const size_t i : order) {
      out.push_back(x[i]);
      places.push_back(static_cast<double>(i));
    }
    return out;
  };
  const auto direction = [](Maker& m, Instruction& in, i64) {
    if (m.coin()) in.set("descending", m.coin());
  };
  along(t, "sort", direction, sorted, true, true);
  along(t, "argsort", direction, sorted, false, true);
  along(t, "topk",
        [](Maker& m, Instruction& in, i64 n) {
          const bool single = m.grid(std::get<Slot>(*in.find("input"))).shape.empty();
          in.set("k", m.between(single ? 1 : 0, n));
          if (m.coin()) in.set("largest", m.coin());
        },
        [](const Call& c, const Line& x, std::vector<double>& places) {
          auto order = order_of(x);
          if (c.flag("largest", true)) std::reverse(order.begin(), order.end());
          order.resize(static_cast<size_t>(c.integer("k")));
          Line out;
          for (const size_t i : order) {
            out.push_back(x[i]);
            places.push_back(static_cast<double>(i));
          }
          return out;
        },
        true, true);
}

}  // namespace waymark::test::graph
