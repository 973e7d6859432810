// Joining, splitting and rearranging in the scalar interpreter.
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

Grid join(const std::vector<Grid>& parts, i64 dim) {
  Ints shape = parts[0].shape;
  const auto d = static_cast<size_t>(wrap(dim, parts[0].rank()));
  shape[d] = 0;
  std::vector<std::pair<size_t, i64>> source;  // part and place, for each place along d
  for (size_t p = 0; p < parts.size(); ++p) {
    shape[d] += parts[p].shape[d];
    for (i64 i = 0; i < parts[p].shape[d]; ++i) source.emplace_back(p, i);
  }
  std::vector<Num> out;
  each(shape, [&](Ints i) {
    const auto [p, place] = source[static_cast<size_t>(i[d])];
    i[d] = place;
    out.push_back(parts[p][flat(parts[p].shape, i)]);
  });
  return fresh(Kind::real, shape, out);
}
Grid with_axis(const Grid& x, i64 at) {
  Ints shape = x.shape;
  shape.insert(shape.begin() + at, 1);
  return contents(x, shape);
}
std::vector<Grid> cut(const Grid& x, i64 dim, const Ints& sizes) {
  const auto d = static_cast<size_t>(wrap(dim, x.rank()));
  std::vector<Grid> out;
  i64 start = 0;
  for (const i64 n : sizes) {
    Ints shape = x.shape;
    shape[d] = n;
    out.push_back(view(x, shape, [&](Ints i) {
      i[d] += start;
      return i;
    }));
    out.back().one_of_many = true;
    start += n;
  }
  return out;
}
std::vector<Slot> several(Maker& m, Slot first, const std::function<Slot()>& next) {
  std::vector<Slot> list{first};
  for (i64 n = m.between(0, 2); n > 0; --n) list.push_back(m.coin(0.2) ? first : next());
  return list;
}

void rearranging(OpTable& t) {
  for (const char* name : {"repeat", "tile"})
    t.add(name,
          [name](Maker& m, Instruction& in) {
            const Slot x = m.input(0, 3);
            Ints repeats(static_cast<size_t>(m.grid(x).rank() + m.between(0, 1)));
            for (i64& r : repeats) r = m.between(m.coin(0.1) ? 0 : 1, 2);
            in.set("input", x);
            in.set(name[0] == 'r' ? "repeats" : "dims", repeats);
          },
          [name](const Call& c) {
            const Grid& x = c.grid("input");
            const Ints repeats = c.list(name[0] == 'r' ? "repeats" : "dims");
            Ints padded(repeats.size() - x.shape.size(), 1), shape = repeats;
            padded.insert(padded.end(), x.shape.begin(), x.shape.end());
            for (size_t k = 0; k < shape.size(); ++k) shape[k] *= padded[k];
            const size_t front = repeats.size() - x.shape.size();
            return std::vector{gathered(x, shape, [&](const Ints& i) {
              Ints from(i.begin() + static_cast<std::ptrdiff_t>(front), i.end());
              for (size_t k = 0; k < from.size(); ++k) from[k] %= x.shape[k];
              return std::optional(from);
            }, number(0))};
          });
  t.add("repeat_interleave",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const i64 d = m.dim(x);
          in.set("input", x);
          in.set("dim", d);
          if (m.coin()) in.set("repeats", m.between(0, 2));
          else in.set("repeats", m.indices({m.extent(x, d)}, 3));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const auto d = static_cast<size_t>(wrap(c.integer("dim"), x.rank()));
          std::vector<i64> source;
          for (i64 i = 0; i < x.shape[d]; ++i) {
            const i64 n = c.is_grid("repeats") ? c.grid("repeats").integer(static_cast<size_t>(i)) : c.integer("repeats");
            source.insert(source.end(), static_cast<size_t>(n), i);
          }
          Ints shape = x.shape;
          shape[d] = static_cast<i64>(source.size());
          return std::vector{gathered(x, shape, [&](Ints i) {
            i[d] = source[static_cast<size_t>(i[d])];
            return std::optional(i);
          }, number(0))};
        });
  t.add("roll",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          in.set("input", x);
          in.set("shifts", Ints{m.between(-4, 4)});
          if (m.coin() && m.grid(x).rank() > 0) in.set("dims", Ints{m.dim(x)});
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const i64 shift = c.list("shifts")[0];
          const auto turned = [&](i64 i, i64 n) { return ((i - shift) % n + n) % n; };
          if (!c.has("dims")) {
            std::vector<Num> out;
            const auto n = static_cast<i64>(x.numel());
            for (i64 i = 0; i < n; ++i) out.push_back(x[static_cast<size_t>(turned(i, n))]);
            return std::vector{fresh(Kind::real, x.shape, out)};
          }
          const auto d = static_cast<size_t>(wrap(c.list("dims")[0], x.rank()));
          return std::vector{gathered(x, x.shape, [&](Ints i) {
            i[d] = turned(i[d], x.shape[d]);
            return std::optional(i);
          }, number(0))};
        });
  t.add("flip",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          in.set("input", x);
          in.set("dims", Ints{m.dim(x)});
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const auto d = static_cast<size_t>(wrap(c.list("dims")[0], x.rank()));
          return std::vector{gathered(x, x.shape, [&](Ints i) {
            i[d] = x.shape[d] - 1 - i[d];
            return std::optional(i);
          }, number(0))};
        });
  t.add("rot90",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input(2));
          in.set("k", m.between(-3, 5));
        },
        [](const Call& c) {
          Grid x = c.grid("input");
          for (i64 k = ((c.integer("k") % 4) + 4) % 4; k > 0; --k) {
            // A quarter turn: element (i, j) of the result was element (j, n - 1 - i).
            Ints shape = x.shape;
            std::swap(shape[0], shape[1]);
            x = gathered(x, shape, [&](Ints i) {
              const i64 row = i[0];
              i[0] = i[1];
              i[1] = x.shape[1] - 1 - row;
              return std::optional(i);
            }, number(0));
          }
          return std::vector{copy(x)};
        });
  t.add("pad",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          in.set("input", x);
          const i64 n = m.extent(x, -1), kind = m.between(0, 3);
          const char* modes[] = {"constant", "reflect", "replicate", "circular"};
          const i64 low = kind == 0 ? -1 : 0, high = kind == 1 ? n - 1 : kind == 3 ? n : 2;
          m.need(n > 1 && high >= low);
          in.set("pad", Ints{m.between(low, std::min<i64>(high, 2)), m.between(0, std::min<i64>(high, 2))});
          in.set("mode", std::string(modes[kind]));
          if (kind == 0) in.set("value", m.uniform(-1, 1));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Ints pad = c.list("pad");
          const std::string mode = c.word("mode", "constant");
          Ints shape = x.shape;
          shape.back() += pad[0] + pad[1];
          const i64 n = x.shape.back();
          return std::vector{gathered(x, shape, [&](Ints i) -> std::optional<Ints> {
            i64 p = i.back() - pad[0];
            if (mode == "constant") {
              if (p < 0 || p >= n) return std::nullopt;
            } else if (mode == "reflect") {
              p = p < 0 ? -p : p >= n ? 2 * (n - 1) - p : p;
            } else if (mode == "replicate") {
              p = std::clamp<i64>(p, 0, n - 1);
            } else {
              p = (p % n + n) % n;
            }
            i.back() = p;
            return i;
          }, number(c.number("value", 0)))};
        });
  for (const bool lower : {true, false})
    t.add(lower ? "tril" : "triu",
          [](Maker& m, Instruction& in) {
            in.set("input", m.input(2));
            in.set("diagonal", m.between(-2, 2));
          },
          [lower](const Call& c) {
            const Grid& x = c.grid("input");
            return std::vector{gathered(x, x.shape, [&](const Ints& i) -> std::optional<Ints> {
              const i64 column = i[i.size() - 1], row = i[i.size() - 2];
              const bool kept = lower ? column <= row + c.integer("diagonal") : column >= row + c.integer("diagonal");
              if (!kept) return std::nullopt;
              return i;
            }, number(0))};
          });
  t.add("diag_embed",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input(1, 3));
          in.set("offset", m.between(-1, 1));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const i64 offset = c.integer("offset"), n = x.shape.back() + std::abs(offset);
          Ints shape(x.shape.begin(), x.shape.end() - 1);
          shape.insert(shape.end(), {n, n});
          return std::vector{gathered(x, shape, [&](Ints i) -> std::optional<Ints> {
            const i64 column = i.back();
            i.pop_back();
            if (column - i.back() != offset) return std::nullopt;
            i.back() = std::min(i.back(), column);
            return i;
          }, number(0))};
        });
  t.add("trace", [](Maker& m, Instruction& in) { in.set("input", m.input(2, 2)); },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          std::vector<Num> diagonal;
          for (i64 i = 0; i < std::min(x.shape[0], x.shape[1]); ++i) diagonal.push_back(x[flat(x.shape, {i, i})]);
          return std::vector{fresh(Kind::real, {}, {sum(diagonal)})};
        });
}

}  // namespace

void add_joins(OpTable& t) {
  t.add("cat",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const i64 d = m.dim(x);
          in.set("tensors", several(m, x, [&] {
            Ints shape = m.grid(x).shape;
            if (m.coin()) shape[static_cast<size_t>(wrap(d, m.grid(x).rank()))] = m.between(0, 3);
            return m.real_of(shape);
          }));
          in.set("dim", d);
        },
        [](const Call& c) { return std::vector{join(c.grids("tensors"), c.integer("dim"))}; }, 3);
  t.add("stack",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(0, 3);
          in.set("tensors", several(m, x, [&] { return m.real_of(m.grid(x).shape); }));
          in.set("dim", m.between(-m.grid(x).rank() - 1, m.grid(x).rank()));
        },
        [](const Call& c) {
          std::vector<Grid> parts;
          const i64 at = wrap(c.integer("dim"), c.grids("tensors")[0].rank() + 1);
          for (const Grid& g : c.grids("tensors")) parts.push_back(with_axis(g, at));
          return std::vector{join(parts, at)};
        },
        2);
  for (const bool rows : {false, true})
    t.add(rows ? "vstack" : "hstack",
          [](Maker& m, Instruction& in) {
            const Slot x = m.input(0, 3);
            in.set("tensors", several(m, x, [&] { return m.real_of(m.grid(x).shape); }));
          },
          [rows](const Call& c) {
            std::vector<Grid> parts;
            for (Grid g : c.grids("tensors")) {
              if (g.shape.empty()) g = contents(g, {1});
              if (rows && g.rank() == 1) g = with_axis(g, 0);
              parts.push_back(g);
            }
            return std::vector{join(parts, rows || parts[0].rank() == 1 ? 0 : 1)};
          });
  t.add_view("split",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               const i64 d = m.dim(x), n = m.extent(x, d);
               in.set("input", x);
               in.set("dim", d);
               if (m.coin()) {
                 in.set("split_size_or_sections", Ints{m.between(1, std::max<i64>(1, n))});
               } else {
                 const i64 first = m.between(0, n);
                 in.set("split_size_or_sections", Ints{first, n - first});
               }
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 n = x.shape[static_cast<size_t>(wrap(c.integer("dim"), x.rank()))];
               if (c.list("split_size_or_sections").size() > 1) return cut(x, c.integer("dim"), c.list("split_size_or_sections"));
               Ints sizes;
               for (i64 left = n; left > 0 || sizes.empty(); left -= sizes.back())
                 sizes.push_back(std::min(left, c.list("split_size_or_sections")[0]));
               return cut(x, c.integer("dim"), sizes);
             });
  t.add_view("chunk",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               const i64 d = m.dim(x);
               m.need(m.extent(x, d) > 0);
               in.set("input", x);
               in.set("chunks", m.between(1, 4));
               in.set("dim", d);
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 n = x.shape[static_cast<size_t>(wrap(c.integer("dim"), x.rank()))], k = c.integer("chunks");
               Ints sizes;
               for (i64 left = n; left > 0; left -= sizes.back()) sizes.push_back(std::min(left, (n + k - 1) / k));
               return cut(x, c.integer("dim"), sizes);
             });
  t.add_view("tensor_split",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               in.set("input", x);
               in.set("indices_or_sections", Ints{m.between(1, 4)});
               in.set("dim", m.dim(x));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 n = x.shape[static_cast<size_t>(wrap(c.integer("dim"), x.rank()))];
               const i64 k = c.list("indices_or_sections")[0];
               Ints sizes;
               for (i64 p = 0; p < k; ++p) sizes.push_back(n / k + (p < n % k ? 1 : 0));
               return cut(x, c.integer("dim"), sizes);
             });
  t.add_view("unbind",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               const i64 d = m.dim(x);
               m.need(m.extent(x, d) > 0 && m.extent(x, d) < 6);
               in.set("input", x);
               in.set("dim", d);
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 d = wrap(c.integer("dim"), x.rank());
               std::vector<Grid> out;
               for (Grid& g : cut(x, d, Ints(static_cast<size_t>(x.shape[static_cast<size_t>(d)]), 1))) {
                 g.shape.erase(g.shape.begin() + d);
                 out.push_back(g);
               }
               return out;
             });
  t.add_view("meshgrid",
             [](Maker& m, Instruction& in) {
               const Slot a = m.real(1, 1), b = m.coin(0.2) ? a : m.real(1, 1);
               in.set("tensors", std::vector<Slot>{a, b});
               if (m.coin()) in.set("indexing", std::string("ij"));
             },
             [](const Call& c) {
               const Grid a = c.grids("tensors")[0], b = c.grids("tensors")[1];
               const Ints shape{a.shape[0], b.shape[0]};
               std::vector<Grid> out{view(a, shape, [](const Ints& i) { return Ints{i[0]}; }),
                                     view(b, shape, [](const Ints& i) { return Ints{i[1]}; })};
               for (Grid& g : out) g.one_of_many = true;
               return out;
             });
  rearranging(t);
}

}  // namespace waymark::test::graph
