// Indexing, gathering and scattering in the scalar interpreter.
#include "tests/graph/interpreter.h"

namespace waymark::test::graph {

namespace {

// Result shape of x[index] and, for each of its elements, the place in x.
struct Picked {
  Ints shape;
  std::vector<Ints> from;
};

Picked picked(const Call& c, const Grid& x, const std::vector<IndexPart>& index) {
  // Every part becomes an axis of its own or a share in the joint axes of the tensor indices.
  struct Axis {
    i64 extent = 1;
    std::vector<std::pair<size_t, Ints>> source;  // axis of x, and its place for each step
  };
  const i64 fixed = [&] {
    i64 n = 0;
    for (const IndexPart& p : index) {
      if (std::holds_alternative<NewAxis>(p) || std::holds_alternative<Dots>(p)) continue;
      const Slot* s = std::get_if<Slot>(&p);
      n += s && c.at(*s).kind == Kind::boolean ? c.at(*s).rank() : 1;
    }
    return n;
  }();
  std::vector<Axis> axes;
  Ints base(x.shape.size(), 0);
  std::vector<std::pair<size_t, Grid>> tensors;  // axis of x and its index, not yet broadcast
  std::optional<size_t> joint_at;
  bool apart = false, gap = false;
  size_t axis = 0;
  const auto whole = [&](size_t a) {
    Ints steps;
    for (i64 i = 0; i < x.shape[a]; ++i) steps.push_back(i);
    axes.push_back({x.shape[a], {{a, steps}}});
  };
  const auto tensor_index = [&](size_t a, const Grid& places) {
    if (joint_at && gap) apart = true;
    if (!joint_at) joint_at = axes.size();
    gap = false;
    tensors.emplace_back(a, places);
  };
  for (const IndexPart& p : index) {
    if (const i64* i = std::get_if<i64>(&p)) {
      base[axis] = *i < 0 ? *i + x.shape[axis] : *i;
      ++axis;
      continue;
    }
    if (const Slot* s = std::get_if<Slot>(&p)) {
      const Grid& g = c.at(*s);
      if (g.kind == Kind::integer && g.shape.empty()) {  // as a plain integer
        base[axis] = wrap(g.integer(0), x.shape[axis]);
        ++axis;
        continue;
      }
      if (g.kind == Kind::integer) {
        std::vector<double> wrapped;
        for (size_t k = 0; k < g.numel(); ++k) wrapped.push_back(static_cast<double>(wrap(g.integer(k), x.shape[axis])));
        tensor_index(axis++, fresh_numbers(Kind::integer, g.shape, wrapped));
        continue;
      }
      // A mask stands for the places of its true elements, one index for each of its axes.
      std::vector<std::vector<double>> places(g.shape.size());
      size_t k = 0;
      each(g.shape, [&](const Ints& i) {
        if (g.value(k++) != 0)
          for (size_t d = 0; d < i.size(); ++d) places[d].push_back(static_cast<double>(i[d]));
      });
      for (const auto& list : places)
        tensor_index(axis++, fresh_numbers(Kind::integer, {static_cast<i64>(list.size())}, list));
      continue;
    }
    gap = true;
    if (std::holds_alternative<NewAxis>(p)) {
      axes.push_back({});
    } else if (std::holds_alternative<Dots>(p)) {
      for (i64 n = x.rank() - fixed; n > 0; --n) whole(axis++);
    } else {
      const Range& r = std::get<Range>(p);
      Ints steps;
      const i64 n = x.shape[axis], stop = std::clamp<i64>(r.stop < 0 ? r.stop + n : r.stop, 0, n);
      for (i64 i = std::clamp<i64>(r.start < 0 ? r.start + n : r.start, 0, n); i < stop; i += r.step) steps.push_back(i);
      axes.push_back({static_cast<i64>(steps.size()), {{axis, steps}}});
      ++axis;
    }
  }
  while (axis < x.shape.size()) whole(axis++);
  Ints joint;
  for (const auto& [a, g] : tensors) {
    const auto s = broadcast_shape(joint, g.shape);
    if (!s) throw Unsuitable{};
    joint = *s;
  }
  if (!tensors.empty()) {
    const size_t at = apart ? 0 : *joint_at;
    std::vector<Axis> joined(joint.size());
    for (size_t k = 0; k < joint.size(); ++k) joined[k].extent = joint[k];
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(at), joined.begin(), joined.end());
    joint_at = at;
    for (auto& [a, g] : tensors) g = expanded(g, joint);
  }
  Picked out;
  for (const Axis& a : axes) out.shape.push_back(a.extent);
  each(out.shape, [&](const Ints& i) {
    Ints from = base;
    for (size_t k = 0; k < axes.size(); ++k)
      for (const auto& [a, steps] : axes[k].source) from[a] = steps[static_cast<size_t>(i[k])];
    if (!tensors.empty()) {
      const auto first = i.begin() + static_cast<std::ptrdiff_t>(*joint_at);
      const Ints place(first, first + static_cast<std::ptrdiff_t>(joint.size()));
      for (const auto& [a, g] : tensors) from[a] = g.integer(flat(joint, place));
    }
    out.from.push_back(from);
  });
  return out;
}

std::vector<IndexPart> random_index(Maker& m, Slot x) {
  std::vector<IndexPart> out;
  const Grid g = m.grid(x);
  const Ints common = m.shape(m.between(0, 2));
  for (size_t a = 0; a < g.shape.size(); ++a) {
    const i64 n = g.shape[a];
    switch (m.between(0, 7)) {
      case 0:
        if (n > 0) out.push_back(m.between(-n, n - 1));
        else out.push_back(Range{0, n, 1});
        break;
      case 1: out.push_back(Range{m.between(-n, n), m.between(-n, n), m.between(1, 2)}); break;
      case 2: out.push_back(NewAxis{}); [[fallthrough]];
      case 3: out.push_back(Range{0, n, 1}); break;
      case 4:
        if (n == 0) return out;
        out.push_back(m.leaf(Kind::boolean, {n}, [&] {
          std::vector<double> bits;
          for (i64 i = 0; i < n; ++i) bits.push_back(m.coin());
          return bits;
        }(), false));
        break;
      case 5: {
        out.push_back(Dots{});
        return out;
      }
      default:
        if (n == 0) return out;
        out.push_back(m.indices(m.coin(0.3) ? Ints{} : common, n));
    }
  }
  return out;
}
// Writes of the same place by several sources are decided by the last: not of interest here, so places are distinct.
void need_distinct(const std::vector<Ints>& from, const Ints& shape) {
  std::vector<size_t> places;
  for (const Ints& i : from) places.push_back(flat(shape, i));
  std::sort(places.begin(), places.end());
  if (std::adjacent_find(places.begin(), places.end()) != places.end()) throw Unsuitable{};
}

// Along one dim with an index tensor of the rank of x: gather and its relatives.
struct Along {
  size_t dim;
  std::vector<Ints> target;  // for each element of the index
  Along(const Grid& x, i64 d, const Grid& index) : dim(static_cast<size_t>(wrap(d, x.rank()))) {
    size_t k = 0;
    each(index.shape, [&](Ints i) {
      if (!i.empty()) i[dim] = index.integer(k);
      ++k;
      target.push_back(i);
    });
  }
};
// An index for gather (any length along dim) and scatter.
void index_along_dim(Maker& m, Instruction& in, Slot x) {
  const i64 d = m.dim(x), n = m.extent(x, d);
  m.need(n > 0);
  Ints shape = m.grid(x).shape;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (static_cast<i64>(k) == wrap(d, m.grid(x).rank())) shape[k] = m.between(0, 4);
    else if (m.coin(0.3)) shape[k] = m.between(std::min<i64>(1, shape[k]), shape[k]);
  }
  in.set("input", x);
  in.set("dim", d);
  in.set("index", m.indices(shape, n));
}
Ints shape_of_index(Maker& m, const Instruction& in) { return m.grid(std::get<Slot>(*in.find("index"))).shape; }
Grid with_values(const Grid& x, std::vector<Num> values) { return fresh(Kind::real, x.shape, std::move(values)); }
std::vector<Num> values_of(const Grid& x) {
  std::vector<Num> out;
  for (size_t i = 0; i < x.numel(); ++i) out.push_back(x[i]);
  return out;
}

void scatters(OpTable& t) {
  const auto arguments = [](Maker& m, Instruction& in) {
    const Slot x = m.input();
    index_along_dim(m, in, x);
    in.set("src", m.real_of(shape_of_index(m, in)));
  };
  t.add("scatter", arguments, [](const Call& c) {
    const Grid& x = c.grid("input");
    const Along a(x, c.integer("dim"), c.grid("index"));
    need_distinct(a.target, x.shape);
    std::vector<Num> out = values_of(x);
    for (size_t k = 0; k < a.target.size(); ++k) out[flat(x.shape, a.target[k])] = c.grid("src")[k];
    return std::vector{with_values(x, out)};
  });
  t.add("scatter_add", arguments, [](const Call& c) {
    const Grid& x = c.grid("input");
    const Along a(x, c.integer("dim"), c.grid("index"));
    std::vector<Num> out = values_of(x);
    for (size_t k = 0; k < a.target.size(); ++k) {
      Num& to = out[flat(x.shape, a.target[k])];
      to = to + c.grid("src")[k];
    }
    return std::vector{with_values(x, out)};
  });
  t.add("scatter_reduce",
        [arguments](Maker& m, Instruction& in) {
          arguments(m, in);
          const char* kinds[] = {"sum", "mean", "prod", "amax", "amin"};
          in.set("reduce", std::string(kinds[m.between(0, 4)]));
          if (m.coin()) in.set("include_self", m.coin());
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const std::string kind = c.word("reduce");
          const Along a(x, c.integer("dim"), c.grid("index"));
          std::vector<std::vector<Num>> lists(x.numel());
          for (size_t k = 0; k < a.target.size(); ++k) lists[flat(x.shape, a.target[k])].push_back(c.grid("src")[k]);
          std::vector<Num> out;
          for (size_t i = 0; i < x.numel(); ++i) {
            auto& list = lists[i];
            if (list.empty()) {
              out.push_back(x[i]);
              continue;
            }
            if (c.flag("include_self", true)) list.insert(list.begin(), x[i]);
            Num r = list[0];
            for (size_t k = 1; k < list.size(); ++k) {
              const double gap = primal(list[k]) - primal(r);
              if (kind == "sum" || kind == "mean") r = r + list[k];
              else if (kind == "prod") r = r * list[k];
              else if (near(gap); kind == "amax" ? gap > 0 : gap < 0) r = list[k];
            }
            out.push_back(kind == "mean" ? r * (1 / static_cast<double>(list.size())) : r);
          }
          return std::vector{with_values(x, out)};
        });
  // Whole slices along one dim.
  const auto slices = [](bool distinct, const char* source) {
    return [=](Maker& m, Instruction& in) {
      const Slot x = m.input(1);
      const i64 d = m.dim(x), n = m.extent(x, d), count = m.between(0, distinct ? std::min<i64>(n, 3) : 4);
      m.need(n > 0);
      in.set("input", x);
      in.set("dim", d);
      in.set("index", distinct ? m.distinct_indices(count, n) : m.indices({count}, n));
      Ints shape = m.grid(x).shape;
      shape[static_cast<size_t>(wrap(d, m.grid(x).rank()))] = count;
      if (source) in.set(source, m.real_of(shape));
    };
  };
  const auto change = [](const Call& c, const std::function<Num(Num, const Ints&)>& f) {
    const Grid& x = c.grid("input");
    const auto d = static_cast<size_t>(wrap(c.integer("dim"), x.rank()));
    std::vector<Num> out = values_of(x);
    const Grid& index = c.grid("index");
    for (size_t k = 0; k < index.numel(); ++k) {
      Ints shape = x.shape;
      shape[d] = 1;
      each(shape, [&](Ints i) {
        i[d] = index.integer(k);
        Num& to = out[flat(x.shape, i)];
        i[d] = static_cast<i64>(k);
        to = f(to, i);
      });
    }
    return std::vector{with_values(x, out)};
  };
  t.add("index_add",
        [slices](Maker& m, Instruction& in) {
          slices(false, "source")(m, in);
          if (m.coin()) in.set("alpha", m.uniform(-1, 1));
        },
        [change](const Call& c) {
          const Grid& s = c.grid("source");
          return change(c, [&](Num old, const Ints& i) { return old + s[flat(s.shape, i)] * c.number("alpha", 1); });
        });
  t.add("index_copy", slices(true, "source"), [change](const Call& c) {
    const Grid& s = c.grid("source");
    return change(c, [&](Num, const Ints& i) { return s[flat(s.shape, i)]; });
  });
  t.add("index_fill",
        [slices](Maker& m, Instruction& in) {
          slices(true, nullptr)(m, in);
          in.set("value", m.uniform(-1, 1));
        },
        [change](const Call& c) { return change(c, [&](Num, const Ints&) { return number(c.number("value")); }); });
}

}  // namespace

void add_indexing(OpTable& t) {
  t.add("index",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const auto index = random_index(m, x);
          in.set("input", x);
          // A plain index is a view.
          bool tensors = false;
          for (const IndexPart& p : index)
            if (const Slot* s = std::get_if<Slot>(&p)) tensors |= m.grid(*s).kind == Kind::boolean || m.grid(*s).rank() > 0;
          m.need(tensors);
          in.set("indices", index);
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Picked p = picked(c, x, c.index("indices"));
          std::vector<Num> out;
          for (const Ints& i : p.from) out.push_back(x[flat(x.shape, i)]);
          return std::vector{fresh(Kind::real, p.shape, out)};
        },
        4);
  t.add("index_put",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const auto index = random_index(m, x);
          in.set("input", x);
          in.set("indices", index);
          Instruction probe;
          const Call c(probe, m.slots);
          Picked p = picked(c, m.grid(x), index);
          in.set("values", m.smaller(p.shape));
          in.set("accumulate", m.coin());
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Picked p = picked(c, x, c.index("indices"));
          const Grid v = expanded(c.grid("values"), p.shape);
          const bool accumulate = c.flag("accumulate", false);
          if (!accumulate) need_distinct(p.from, x.shape);
          std::vector<Num> out = values_of(x);
          for (size_t k = 0; k < p.from.size(); ++k) {
            Num& to = out[flat(x.shape, p.from[k])];
            to = accumulate ? to + v[k] : v[k];
          }
          return std::vector{with_values(x, out)};
        },
        2);
  t.add("index_select",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input(1);
          const i64 d = m.dim(x), n = m.extent(x, d);
          m.need(n > 0);
          in.set("input", x);
          in.set("dim", d);
          in.set("index", m.indices({m.between(0, 4)}, n));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const auto d = static_cast<size_t>(wrap(c.integer("dim"), x.rank()));
          Ints shape = x.shape;
          shape[d] = c.grid("index").shape[0];
          return std::vector{gathered(x, shape, [&](Ints i) {
            i[d] = c.grid("index").integer(static_cast<size_t>(i[d]));
            return std::optional(i);
          }, number(0))};
        },
        2);
  for (const char* name : {"gather", "take_along_dim"}) {
    const bool along = name[0] == 't';
    t.add(name,
          [along](Maker& m, Instruction& in) {
            const Slot x = m.input(along ? 1 : 0);
            if (!along) return index_along_dim(m, in, x);
            const i64 d = m.dim(x), n = m.extent(x, d);
            m.need(n > 0);
            Ints shape = m.grid(x).shape;
            shape[static_cast<size_t>(wrap(d, m.grid(x).rank()))] = m.between(1, 4);
            in.set("input", x);
            in.set("indices", m.indices(shape, n));
            in.set("dim", d);
          },
          [along](const Call& c) {
            const Grid &x = c.grid("input"), &index = c.grid(along ? "indices" : "index");
            std::vector<Num> out;
            for (const Ints& i : Along(x, c.integer("dim"), index).target) out.push_back(x[flat(x.shape, i)]);
            return std::vector{fresh(Kind::real, index.shape, out)};
          });
  }
  t.add("take",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          m.need(m.grid(x).numel() > 0);
          in.set("input", x);
          in.set("index", m.indices(m.shape(m.between(0, 2)), static_cast<i64>(m.grid(x).numel())));
        },
        [](const Call& c) {
          const Grid &x = c.grid("input"), &index = c.grid("index");
          std::vector<Num> out;
          for (size_t k = 0; k < index.numel(); ++k) out.push_back(x[static_cast<size_t>(index.integer(k))]);
          return std::vector{fresh(Kind::real, index.shape, out)};
        });
  t.add("masked_select",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          in.set("input", x);
          in.set("mask", m.mask(m.grid(x).shape));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Ints shape = *broadcast_shape(x.shape, c.grid("mask").shape);
          const Grid wide = expanded(x, shape), mask = expanded(c.grid("mask"), shape);
          std::vector<Num> out;
          for (size_t i = 0; i < wide.numel(); ++i)
            if (mask.value(i) != 0) out.push_back(wide[i]);
          const auto n = static_cast<i64>(out.size());
          return std::vector{fresh(Kind::real, {n}, std::move(out))};
        });
  t.add("masked_scatter",
        [](Maker& m, Instruction& in) {
          const Slot x = m.input();
          in.set("input", x);
          in.set("mask", m.mask(m.grid(x).shape));
          in.set("source", m.real_of({static_cast<i64>(m.grid(x).numel())}));
        },
        [](const Call& c) {
          const Grid& x = c.grid("input");
          const Grid mask = expanded(c.grid("mask"), x.shape);
          std::vector<Num> out;
          size_t next = 0;
          for (size_t i = 0; i < x.numel(); ++i) out.push_back(mask.value(i) != 0 ? c.grid("source")[next++] : x[i]);
          return std::vector{with_values(x, out)};
        });
  t.add("embedding",
        [](Maker& m, Instruction& in) {
          const Slot w = m.input(2, 2);
          m.need(m.grid(w).shape[0] > 0);
          in.set("input", m.indices(m.shape(m.between(0, 2)), m.grid(w).shape[0]));
          in.set("weight", w);
        },
        [](const Call& c) {
          const Grid &w = c.grid("weight"), &ids = c.grid("input");
          Ints shape = ids.shape;
          shape.push_back(w.shape[1]);
          return std::vector{gathered(w, shape, [&](Ints i) {
            const i64 column = i.back();
            i.pop_back();
            return std::optional(Ints{ids.integer(flat(ids.shape, i)), column});
          }, number(0))};
        });
  scatters(t);
}

}  // namespace waymark::test::graph
