// Products, convolution and pooling in the scalar interpreter.
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

Grid with_shape(const Grid& x, const Ints& shape) { return contents(x, shape); }
// [..., m, k] x [..., k, n] with batch axes that broadcast.
Grid product_of(const Grid& a, const Grid& b) {
  const auto batch = broadcast_shape(Ints(a.shape.begin(), a.shape.end() - 2), Ints(b.shape.begin(), b.shape.end() - 2));
  if (!batch) throw Unsuitable{};
  const i64 k = a.shape.back();
  Ints sa = *batch, sb = *batch, shape = *batch;
  sa.insert(sa.end(), a.shape.end() - 2, a.shape.end());
  sb.insert(sb.end(), b.shape.end() - 2, b.shape.end());
  shape.push_back(a.shape[a.shape.size() - 2]);
  shape.push_back(b.shape.back());
  if (product(shape) * k > 2000) throw Unsuitable{};
  const Grid wa = expanded(a, sa), wb = expanded(b, sb);
  std::vector<Num> out;
  each(shape, [&](const Ints& i) {
    std::vector<Num> terms;
    for (i64 p = 0; p < k; ++p) {
      Ints ia = i, ib = i;
      ia.back() = p;
      ib[ib.size() - 2] = p;
      terms.push_back(wa[flat(sa, ia)] * wb[flat(sb, ib)]);
    }
    out.push_back(sum(terms));
  });
  return fresh(Kind::real, shape, out);
}
Grid matmul(const Grid& x, const Grid& y) {
  Ints sx = x.shape, sy = y.shape;
  if (sx.size() == 1) sx.insert(sx.begin(), 1);
  if (sy.size() == 1) sy.push_back(1);
  const Grid p = product_of(with_shape(x, sx), with_shape(y, sy));
  Ints shape = p.shape;
  if (y.rank() == 1) shape.pop_back();
  if (x.rank() == 1) shape.erase(shape.end() - (y.rank() == 1 ? 1 : 2));
  return with_shape(p, shape);
}
Grid scaled_sum(const Grid& c, const Grid& p, double beta, double alpha) {
  return elementwise([=](auto x, auto y) { return x * beta + y * alpha; }, c, p);
}
Grid swapped_last(const Grid& x) {
  Ints shape = x.shape;
  std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
  return view(x, shape, [](Ints i) {
    std::swap(i[i.size() - 1], i[i.size() - 2]);
    return i;
  });
}

void matrix_products(OpTable& t) {
  const auto two = [](i64 low_a, i64 high_a, const std::function<Ints(Maker&, const Ints&)>& other, const char* name) {
    return [=](Maker& m, Instruction& in) {
      const Slot a = m.input(low_a, high_a);
      in.set("input", a);
      const Ints shape = other(m, m.grid(a).shape);
      // The product with itself, transposed or not, is a case of its own.
      in.set(name, m.grid(a).shape == shape && m.coin(0.3) ? a : m.real_of(shape));
    };
  };
  const auto evaluate_matmul = [](const char* name) {
    return [name](const Call& c) { return std::vector{matmul(c.grid("input"), c.grid(name))}; };
  };
  t.add("matmul",
        two(1, 4,
            [](Maker& m, const Ints& a) {
              if (m.coin(0.2)) return Ints{a.back()};
              Ints shape{a.back(), m.between(1, 4)};
              if (m.coin(0.3)) shape.insert(shape.begin(), m.coin() || a.size() < 3 ? m.between(1, 2) : a[a.size() - 3]);
              return shape;
            },
            "other"),
        evaluate_matmul("other"), 6);
  t.add("mm", two(2, 2, [](Maker& m, const Ints& a) { return Ints{a[1], m.between(1, 4)}; }, "mat2"),
        evaluate_matmul("mat2"), 2);
  t.add("bmm", two(3, 3, [](Maker& m, const Ints& a) { return Ints{a[0], a[2], m.between(1, 4)}; }, "mat2"),
        evaluate_matmul("mat2"));
  t.add("mv", two(2, 2, [](Maker&, const Ints& a) { return Ints{a[1]}; }, "vec"), evaluate_matmul("vec"));
  t.add("dot", two(1, 1, [](Maker&, const Ints& a) { return a; }, "tensor"), evaluate_matmul("tensor"));
  t.add("outer", two(1, 1, [](Maker& m, const Ints&) { return Ints{m.between(1, 5)}; }, "vec2"), [](const Call& c) {
    const Grid &x = c.grid("input"), &y = c.grid("vec2");
    return std::vector{
        elementwise([](auto a, auto b) { return a * b; }, contents(x, {x.shape[0], 1}), contents(y, {1, y.shape[0]}))};
  });
  for (const bool batched : {false, true})
    t.add(batched ? "baddbmm" : "addmm",
          [batched](Maker& m, Instruction& in) {
            const Slot a = m.real(batched ? 3 : 2, batched ? 3 : 2);
            const Ints s = m.grid(a).shape;
            Ints b{s.back(), m.between(1, 4)}, out{s[s.size() - 2], b[1]};
            if (batched) {
              b.insert(b.begin(), s[0]);
              out.insert(out.begin(), s[0]);
            }
            const Slot second = m.real_of(b);
            in.set("input", m.smaller(out));
            in.set(batched ? "batch1" : "mat1", a);
            in.set(batched ? "batch2" : "mat2", second);
            if (m.coin()) in.set("beta", m.coin(0.2) ? 0.0 : m.uniform(-1, 1));
            if (m.coin()) in.set("alpha", m.uniform(-1, 1));
          },
          [batched](const Call& c) {
            const Grid p = product_of(c.grid(batched ? "batch1" : "mat1"), c.grid(batched ? "batch2" : "mat2"));
            return std::vector{scaled_sum(c.grid("input"), p, c.number("beta", 1), c.number("alpha", 1))};
          });
  t.add("linear",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const i64 out = m.between(1, 4);
          in.set("input", x);
          in.set("weight", m.real_of({out, m.grid(x).shape.back()}));
          if (m.coin(0.7)) in.set("bias", m.real_of({out}));
        },
        [](const Call& c) {
          const Grid p = matmul(c.grid("input"), swapped_last(c.grid("weight")));
          return std::vector{c.has("bias") ? scaled_sum(p, c.grid("bias"), 1, 1) : p};
        },
        3);
  t.add("kron",
        [](Maker& m, Instruction& in) {
          in.set("input", m.input(2, 2));
          in.set("other", m.real_of({m.between(1, 2), m.between(1, 3)}));
        },
        [](const Call& c) {
          const Grid &a = c.grid("input"), &b = c.grid("other");
          std::vector<Num> out;
          const Ints shape{a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]};
          each(shape, [&](const Ints& i) {
            out.push_back(a[flat(a.shape, {i[0] / b.shape[0], i[1] / b.shape[1]})] *
                          b[flat(b.shape, {i[0] % b.shape[0], i[1] % b.shape[1]})]);
          });
          return std::vector{fresh(Kind::real, shape, out)};
        });
  t.add("tensordot",
        [](Maker& m, Instruction& in) {
          const Slot a = m.input(1, 3);
          const Ints s = m.grid(a).shape;
          in.set("a", a);
          in.set("b", m.real_of({s.back(), m.between(1, 3)}));
          in.set("dims", i64{1});
        },
        [](const Call& c) { return std::vector{matmul(c.grid("a"), c.grid("b"))}; });
  // One letter per axis; sums over letters that the output lacks.
  t.add("einsum",
        [](Maker& m, Instruction& in) {
          const char* equations[] = {"ij,jk->ik", "ij,kj->ik", "ij,ij->", "i,j->ji", "ij->j", "ij,j->i", "ij,ij->ij",
                                     "bij,bjk->bik", "bij,kj->bik", "ij,jk,kl->il", "ii->i", "ii"};
          const std::string equation = equations[m.between(0, 11)];
          std::map<char, i64> extents;
          std::vector<Slot> operands;
          const std::string left = equation.substr(0, equation.find('-'));
          for (size_t at = 0; at <= left.size();) {
            const size_t end = std::min(left.find(',', at), left.size());
            Ints shape;
            for (const char letter : left.substr(at, end - at)) {
              if (!extents.count(letter)) extents[letter] = m.between(1, 3);
              shape.push_back(extents[letter]);
            }
            operands.push_back(m.real_of(shape));
            at = end + 1;
          }
          in.set("equation", equation);
          in.set("operands", operands);
        },
        [](const Call& c) {
          const std::string equation = c.word("equation");
          const size_t arrow = equation.find("->");
          const std::string left = equation.substr(0, arrow), right = arrow == std::string::npos ? "" : equation.substr(arrow + 2);
          const std::vector<Grid> operands = c.grids("operands");
          std::vector<std::string> names(1);
          for (const char letter : left) {
            if (letter == ',') names.emplace_back();
            else names.back() += letter;
          }
          std::map<char, i64> extents;
          for (size_t k = 0; k < names.size(); ++k)
            for (size_t a = 0; a < names[k].size(); ++a) extents[names[k][a]] = operands[k].shape[a];
          Ints outer, all;
          std::string order = right;
          for (const char letter : right) outer.push_back(extents[letter]);
          for (const auto& [letter, n] : extents)
            if (right.find(letter) == std::string::npos) order += letter;
          for (const char letter : order) all.push_back(extents[letter]);
          std::vector<std::vector<Num>> terms(static_cast<size_t>(product(outer)));
          each(all, [&](const Ints& i) {
            Num p = number(1);
            for (size_t k = 0; k < names.size(); ++k) {
              Ints at;
              for (const char letter : names[k]) at.push_back(i[order.find(letter)]);
              p = p * operands[k][flat(operands[k].shape, at)];
            }
            terms[flat(outer, Ints(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(outer.size())))].push_back(p);
          });
          std::vector<Num> out;
          for (const auto& list : terms) out.push_back(sum(list));
          return std::vector{fresh(Kind::real, outer, out)};
        },
        3);
  t.maybe_a_view();  // a single operand may be permuted, or its diagonal taken
  t.add("inv",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(2);
          const Ints& s = m.grid(x).shape;
          m.need(s.back() == 2 && s[s.size() - 2] == 2);
          in.set("A", x);
        },
        [](const Call& c) {
          const Grid& x = c.grid("A");
          std::vector<Num> out;
          for (size_t k = 0; k < x.numel(); k += 4) {
            const Num det = x[k] * x[k + 3] - x[k + 1] * x[k + 2];
            if (std::abs(primal(det)) < 0.2) throw Unsuitable{};
            out.insert(out.end(), {x[k + 3] / det, x[k + 1] * -1.0 / det, x[k + 2] * -1.0 / det, x[k] / det});
          }
          return std::vector{fresh(Kind::real, x.shape, out)};
        });
}

}  // namespace

void add_products(OpTable& t) { matrix_products(t); }

void add_windows(OpTable& t) {
  t.add("conv1d",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(3, 3);
          const Ints s = m.grid(x).shape;
          const i64 groups = s[1] % 2 == 0 && s[1] > 0 && m.coin(0.4) ? 2 : 1, kernel = m.between(1, 3);
          const i64 dilation = m.between(1, 2), padding = m.between(0, 2), out = groups * m.between(1, 2);
          m.need(s[1] > 0 && s[2] + 2 * padding >= dilation * (kernel - 1) + 1);
          in.set("input", x);
          in.set("weight", m.real_of({out, s[1] / groups, kernel}));
          if (m.coin()) in.set("bias", m.real_of({out}));
          in.set("stride", m.between(1, 2));
          in.set("padding", padding);
          in.set("dilation", dilation);
          in.set("groups", groups);
        },
        [](const Call& c) {
          const Grid &x = c.grid("input"), &w = c.grid("weight");
          const i64 stride = c.integer("stride"), padding = c.integer("padding"), dilation = c.integer("dilation");
          const i64 kernel = w.shape[2], inner = w.shape[1], per_group = w.shape[0] / c.integer("groups");
          const i64 length = (x.shape[2] + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
          const Ints shape{x.shape[0], w.shape[0], length};
          std::vector<Num> out;
          each(shape, [&](const Ints& i) {
            std::vector<Num> terms;
            for (i64 a = 0; a < inner; ++a)
              for (i64 k = 0; k < kernel; ++k) {
                const i64 at = i[2] * stride + k * dilation - padding;
                if (at < 0 || at >= x.shape[2]) continue;
                terms.push_back(x[flat(x.shape, {i[0], i[1] / per_group * inner + a, at})] * w[flat(w.shape, {i[1], a, k})]);
              }
            if (c.has("bias")) terms.push_back(c.grid("bias")[static_cast<size_t>(i[1])]);
            out.push_back(sum(terms));
          });
          return std::vector{fresh(Kind::real, shape, out)};
        },
        2);
  for (const bool largest : {false, true})
    t.add(largest ? "max_pool1d" : "avg_pool1d",
          [](Maker& m, Instruction& in) {
            const Slot x = m.input(2, 3);
            const i64 n = m.grid(x).shape.back(), kernel = m.between(1, 3), padding = m.between(0, kernel / 2);
            m.need(n > 0 && n + 2 * padding >= kernel);
            in.set("input", x);
            in.set("kernel_size", kernel);
            in.set("stride", m.between(1, 2));
            in.set("padding", padding);
          },
          [largest](const Call& c) {
            const Grid& x = c.grid("input");
            const i64 kernel = c.integer("kernel_size"), stride = c.integer("stride"), padding = c.integer("padding");
            Ints shape = x.shape;
            shape.back() = (x.shape.back() + 2 * padding - kernel) / stride + 1;
            std::vector<Num> out;
            each(shape, [&](const Ints& i) {
              std::vector<Num> window;
              for (i64 k = 0; k < kernel; ++k) {
                Ints from = i;
                from.back() = i.back() * stride + k - padding;
                if (from.back() >= 0 && from.back() < x.shape.back()) window.push_back(x[flat(x.shape, from)]);
              }
              if (!largest) return out.push_back(sum(window) * (1 / static_cast<double>(kernel)));
              Num best = window[0];
              for (size_t k = 1; k < window.size(); ++k) {
                near(primal(window[k]) - primal(best));
                if (primal(window[k]) > primal(best)) best = window[k];
              }
              out.push_back(best);
            });
            return std::vector{fresh(Kind::real, shape, out)};
          });
  // Real Fourier transform: pairs (re, im).
  t.add("rfft",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1, 3);
          m.need(m.grid(x).shape.back() > 0);
          in.set("input", x);
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const i64 n = x.shape.back();
          Ints shape = x.shape;
          shape.back() = n / 2 + 1;
          shape.push_back(2);
          std::vector<Num> out;
          each(shape, [&](Ints i) {
            const bool imaginary = i.back() == 1;
            i.pop_back();
            const i64 frequency = i.back();
            std::vector<Num> terms;
            for (i64 s = 0; s < n; ++s) {
              i.back() = s;
              const double angle = -2 * M_PI * static_cast<double>(frequency * s % n) / static_cast<double>(n);
              terms.push_back(x[flat(x.shape, i)] * (imaginary ? std::sin(angle) : std::cos(angle)));
            }
            out.push_back(sum(terms));
          });
          return std::vector{fresh(Kind::real, shape, out)};
        });
}

}  // namespace waymark::test::graph
