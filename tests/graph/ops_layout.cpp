// Layout ops of the scalar interpreter: each is a map from places of the result to places of the input.
#include <numeric>

#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

Ints shuffled(Maker& m, i64 n) {
  Ints order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), m.rng);
  return order;
}
// Any dim from the front or from the back.
i64 disguised(Maker& m, i64 dim, i64 rank) { return m.coin(0.3) ? dim - std::max<i64>(rank, 1) : dim; }

// A random factorisation of n with 1 to 3 factors.
Ints random_shape_of(Maker& m, i64 n) {
  if (n == 0) return m.coin() ? Ints{0} : Ints{2, 0};
  Ints out;
  i64 left = n;
  for (i64 k = m.between(0, 2); k > 0; --k) {
    Ints divisors;
    for (i64 d = 1; d <= left; ++d)
      if (left % d == 0) divisors.push_back(d);
    const i64 d = divisors[static_cast<size_t>(m.between(0, static_cast<i64>(divisors.size()) - 1))];
    out.push_back(d);
    left /= d;
  }
  if (left > 1 || out.empty()) out.insert(out.begin() + m.between(0, static_cast<i64>(out.size())), left);
  return out;
}
Ints complete(Ints shape, size_t numel) {
  i64 known = 1;
  for (const i64 e : shape)
    if (e >= 0) known *= e;
  for (i64& e : shape)
    if (e < 0) e = static_cast<i64>(numel) / known;
  return shape;
}
Grid permuted(const Grid& x, const Ints& dims) {
  Ints shape;
  for (const i64 d : dims) shape.push_back(x.shape[static_cast<size_t>(wrap(d, x.rank()))]);
  return view(x, shape, [&](const Ints& i) {
    Ints from(i.size());
    for (size_t k = 0; k < i.size(); ++k) from[static_cast<size_t>(wrap(dims[k], x.rank()))] = i[k];
    return from;
  });
}
Grid swapped(const Grid& x, i64 a, i64 b) {
  Ints dims(x.shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  if (!dims.empty()) std::swap(dims[static_cast<size_t>(wrap(a, x.rank()))], dims[static_cast<size_t>(wrap(b, x.rank()))]);
  return permuted(x, dims);
}
Grid same_order(const Grid& x, const Ints& shape) {
  Grid g = x;
  g.shape = shape;
  return g;
}

void windows(OpTable& t) {
  t.add_view("slice",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               const i64 d = m.dim(x), n = m.extent(x, d);
               in.set("input", x);
               in.set("dim", d);
               if (m.coin(0.7)) in.set("start", m.between(-n - 1, n));
               if (m.coin(0.7)) in.set("end", m.between(-n - 1, n + 1));
               if (m.coin()) in.set("step", m.coin(0.4) ? -m.between(1, 3) : m.between(1, 3));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const auto d = static_cast<size_t>(wrap(c.integer("dim"), x.rank()));
               const i64 n = x.shape[d], step = c.integer("step", 1);
               const auto bound = [&](std::string_view name, i64 absent) {
                 if (!c.has(name)) return absent;
                 const i64 b = c.integer(name);
                 const i64 from_front = b < 0 ? b + n : b;
                 return step > 0 ? std::clamp<i64>(from_front, 0, n) : std::clamp<i64>(from_front, -1, n - 1);
               };
               const i64 start = bound("start", step > 0 ? 0 : n - 1), stop = bound("end", step > 0 ? n : -1);
               i64 count = 0;
               for (i64 i = start; step > 0 ? i < stop : i > stop; i += step) ++count;
               Ints shape = x.shape;
               shape[d] = count;
               return std::vector{view(x, shape, [&](Ints i) {
                 i[d] = start + i[d] * step;
                 return i;
               })};
             });
  t.add_view("narrow",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               const i64 d = m.dim(x), n = m.extent(x, d), start = m.between(0, n);
               in.set("input", x);
               in.set("dim", d);
               in.set("start", start);
               in.set("length", m.between(0, n - start));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const auto d = static_cast<size_t>(wrap(c.integer("dim"), x.rank()));
               Ints shape = x.shape;
               shape[d] = c.integer("length");
               return std::vector{view(x, shape, [&](Ints i) {
                 i[d] += c.integer("start");
                 return i;
               })};
             });
  t.add_view("select",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               const i64 d = m.dim(x), n = m.extent(x, d);
               m.need(n > 0);
               in.set("input", x);
               in.set("dim", d);
               in.set("index", m.between(-n, n - 1));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 d = wrap(c.integer("dim"), x.rank()), at = c.integer("index");
               Ints shape = x.shape;
               shape.erase(shape.begin() + d);
               return std::vector{view(x, shape, [&](Ints i) {
                 i.insert(i.begin() + d, at < 0 ? at + x.shape[static_cast<size_t>(d)] : at);
                 return i;
               })};
             });
  t.add_view("unfold",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1, 3);
               const i64 d = m.dim(x), n = m.extent(x, d);
               m.need(n > 0);
               in.set("input", x);
               in.set("dimension", d);
               in.set("size", m.between(1, std::min<i64>(n, 3)));
               in.set("step", m.between(1, 3));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const auto d = static_cast<size_t>(wrap(c.integer("dimension"), x.rank()));
               Ints shape = x.shape;
               shape[d] = (shape[d] - c.integer("size")) / c.integer("step") + 1;
               shape.push_back(c.integer("size"));
               return std::vector{view(x, shape, [&](Ints i) {
                 const i64 within = i.back();
                 i.pop_back();
                 i[d] = i[d] * c.integer("step") + within;
                 return i;
               })};
             });
  t.add_view("diagonal",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(2);
               const Ints two = shuffled(m, m.grid(x).rank());
               in.set("input", x);
               if (m.coin()) in.set("offset", m.between(-2, 2));
               in.set("dim1", disguised(m, two[0], m.grid(x).rank()));
               in.set("dim2", disguised(m, two[1], m.grid(x).rank()));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const auto a = static_cast<size_t>(wrap(c.integer("dim1"), x.rank()));
               const auto b = static_cast<size_t>(wrap(c.integer("dim2"), x.rank()));
               const i64 offset = c.integer("offset", 0);
               const i64 rows = x.shape[a] - std::max<i64>(0, -offset), columns = x.shape[b] - std::max<i64>(0, offset);
               Ints shape;
               for (size_t k = 0; k < x.shape.size(); ++k)
                 if (k != a && k != b) shape.push_back(x.shape[k]);
               shape.push_back(std::max<i64>(0, std::min(rows, columns)));
               return std::vector{view(x, shape, [&](const Ints& i) {
                 Ints from;
                 size_t next = 0;
                 for (size_t k = 0; k < x.shape.size(); ++k) {
                   if (k == a) from.push_back(i.back() + std::max<i64>(0, -offset));
                   else if (k == b) from.push_back(i.back() + std::max<i64>(0, offset));
                   else from.push_back(i[next++]);
                 }
                 return from;
               })};
             });
}

}  // namespace

void add_layouts(OpTable& t) {
  windows(t);
  for (const char* name : {"reshape", "view"}) {
    const bool is_view = name[0] == 'v';
    t.add_view(name,
               [is_view](Maker& m, Instruction& in) {
                 const Slot x = m.input();
                 const Grid& g = m.grid(x);
                 // Where it is known how things lie in memory.
                 if (is_view) {
                   m.need(g.store->row_major);
                   for (size_t i = 0; i < g.numel(); ++i) m.need(g.at[i] == g.at[0] + i);
                 }
                 Ints shape = random_shape_of(m, static_cast<i64>(g.numel()));
                 if (m.coin(0.3) && g.numel() > 0 && !shape.empty())
                   shape[static_cast<size_t>(m.between(0, static_cast<i64>(shape.size()) - 1))] = -1;
                 in.set("input", x);
                 in.set("shape", shape);
               },
               [](const Call& c) {
                 const Grid& x = c.grid("input");
                 return std::vector{same_order(x, complete(c.list("shape"), x.numel()))};
               },
               !is_view);
  }
  t.add_view("flatten",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input();
               const i64 r = std::max<i64>(1, m.grid(x).rank()), first = m.between(0, r - 1);
               in.set("input", x);
               in.set("start_dim", first);
               in.set("end_dim", disguised(m, m.between(first, r - 1), r));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 a = wrap(c.integer("start_dim"), x.rank()), b = wrap(c.integer("end_dim"), x.rank());
               if (x.shape.empty()) return std::vector{same_order(x, {1})};
               Ints shape(x.shape.begin(), x.shape.begin() + a);
               shape.push_back(product(Ints(x.shape.begin() + a, x.shape.begin() + b + 1)));
               shape.insert(shape.end(), x.shape.begin() + b + 1, x.shape.end());
               return std::vector{same_order(x, shape)};
             },
             true);
  t.add_view("ravel", [](Maker& m, Instruction& in) { in.set("input", m.input()); },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               return std::vector{same_order(x, {static_cast<i64>(x.numel())})};
             },
             true);
  t.add_view("contiguous", [](Maker& m, Instruction& in) { in.set("input", m.input()); },
             [](const Call& c) { return std::vector{c.grid("input")}; }, true);
  t.add_view("unflatten",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               const i64 d = m.dim(x), n = m.extent(x, d);
               m.need(n > 0);
               in.set("input", x);
               in.set("dim", d);
               in.set("sizes", random_shape_of(m, n));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 d = wrap(c.integer("dim"), x.rank());
               Ints shape = x.shape;
               shape.erase(shape.begin() + d);
               const Ints sizes = c.list("sizes");
               shape.insert(shape.begin() + d, sizes.begin(), sizes.end());
               return std::vector{same_order(x, shape)};
             },
             true);
  t.add_view("permute",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input();
               Ints dims = shuffled(m, m.grid(x).rank());
               for (i64& d : dims) d = disguised(m, d, m.grid(x).rank());
               in.set("input", x);
               in.set("dims", dims);
             },
             [](const Call& c) { return std::vector{permuted(c.grid("input"), c.list("dims"))}; });
  for (const bool swap : {false, true})
    t.add_view(swap ? "swapaxes" : "transpose",
               [swap](Maker& m, Instruction& in) {
                 const Slot x = m.input();
                 in.set("input", x);
                 in.set(swap ? "axis0" : "dim0", m.dim(x));
                 in.set(swap ? "axis1" : "dim1", m.dim(x));
               },
               [swap](const Call& c) {
                 return std::vector{swapped(c.grid("input"), c.integer(swap ? "axis0" : "dim0"),
                                            c.integer(swap ? "axis1" : "dim1"))};
               });
  t.add_view("mT", [](Maker& m, Instruction& in) { in.set("input", m.input(2)); },
             [](const Call& c) { return std::vector{swapped(c.grid("input"), -1, -2)}; });
  t.add_view("t", [](Maker& m, Instruction& in) { in.set("input", m.input(0, 2)); },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               return std::vector{x.rank() == 2 ? swapped(x, 0, 1) : x};
             });
  t.add_view("movedim",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(1);
               in.set("input", x);
               in.set("source", Ints{m.dim(x)});
               in.set("destination", Ints{m.dim(x)});
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               const i64 from = wrap(c.list("source")[0], x.rank()), to = wrap(c.list("destination")[0], x.rank());
               Ints dims(x.shape.size());
               std::iota(dims.begin(), dims.end(), 0);
               dims.erase(dims.begin() + from);
               dims.insert(dims.begin() + to, from);
               return std::vector{permuted(x, dims)};
             });
  t.add_view("squeeze",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input();
               in.set("input", x);
               if (m.coin()) in.set("dim", Ints{m.dim(x)});
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               Ints shape;
               for (i64 k = 0; k < x.rank(); ++k)
                 if (x.shape[static_cast<size_t>(k)] != 1 || (c.has("dim") && wrap(c.list("dim")[0], x.rank()) != k))
                   shape.push_back(x.shape[static_cast<size_t>(k)]);
               return std::vector{same_order(x, shape)};
             });
  t.add_view("unsqueeze",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input();
               in.set("input", x);
               in.set("dim", m.between(-m.grid(x).rank() - 1, m.grid(x).rank()));
             },
             [](const Call& c) {
               const Grid& x = c.grid("input");
               Ints shape = x.shape;
               shape.insert(shape.begin() + wrap(c.integer("dim"), x.rank() + 1), 1);
               return std::vector{same_order(x, shape)};
             });
  for (const char* name : {"expand", "broadcast_to"})
    t.add_view(name,
               [](Maker& m, Instruction& in) {
                 const Slot x = m.input(0, 3);
                 Ints size = m.grid(x).shape;
                 for (i64& e : size)
                   if (e == 1 && m.coin(0.7)) e = m.between(1, 4);
                   else if (m.coin(0.2)) e = -1;
                 if (m.coin()) size.insert(size.begin(), m.between(1, 3));
                 in.set("input", x);
                 in.set("size", size);
               },
               [](const Call& c) {
                 const Grid& x = c.grid("input");
                 Ints size = c.list("size");
                 for (size_t k = 1; k <= x.shape.size(); ++k)
                   if (size[size.size() - k] == -1) size[size.size() - k] = x.shape[x.shape.size() - k];
                 return std::vector{expanded(x, size)};
               });
  t.add_view("expand_as",
             [](Maker& m, Instruction& in) {
               const Slot x = m.input(), other = m.real();
               m.need(broadcast_shape(m.grid(x).shape, m.grid(other).shape) == m.grid(other).shape);
               in.set("input", x);
               in.set("other", other);
             },
             [](const Call& c) { return std::vector{expanded(c.grid("input"), c.grid("other").shape)}; });
}

}  // namespace waymark::test::graph
