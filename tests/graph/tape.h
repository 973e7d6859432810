// A tape of scalars, in the manner of micrograd: every number is a node that knows its parents and the derivative with
// respect to each. Values and derivatives are duals along one direction v of the leaves, so one sweep back gives the
// gradient and, in its dual parts, the Hessian times v.
#pragma once

#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/graph/dual.h"

namespace waymark::test::graph {

struct Num {
  int id = -1;
};

class Tape {
 public:
  Num constant(double v) { return add({v, 0}, false); }
  Num leaf(double v, double direction) { return add({v, direction}, true); }
  const D1& value(Num x) const { return nodes_[static_cast<size_t>(x.id)].value; }
  bool differentiable(Num x) const { return nodes_[static_cast<size_t>(x.id)].differentiable; }

  // y = f(x...), f a generic function of one number type; the derivatives come from duals of duals.
  template <class F, class... N> Num apply(const F& f, N... x) {
    if (!(differentiable(x) || ...)) return constant(f(value(x)...).v);
    const std::array<Num, sizeof...(N)> parents{x...};
    std::array<D1, sizeof...(N)> partials;
    D1 result;
    for (size_t k = 0; k < parents.size(); ++k) {
      size_t at = 0;
      const std::array<D2, sizeof...(N)> seeded{D2{value(x), {at++ == k ? 1.0 : 0.0, 0}}...};  // from left to right
      const D2 y = std::apply(f, seeded);
      result = y.v;
      partials[k] = y.d;
    }
    const Num out = add(result, true);
    for (size_t k = 0; k < parents.size(); ++k)
      if (differentiable(parents[k])) edges_.push_back({parents[k].id, partials[k]});
    nodes_.back().end = edges_.size();
    return out;
  }

  // Adjoints of all nodes for Σ seed·node. `scale`: the largest contribution that was added anywhere.
  std::vector<D1> sweep(const std::vector<std::pair<Num, double>>& seeds, D1& scale) const;

  struct Mark {
    size_t nodes, edges;
  };
  Mark mark() const { return {nodes_.size(), edges_.size()}; }
  void rewind(Mark m) {
    nodes_.resize(m.nodes);
    edges_.resize(m.edges);
  }
  // Are all derivatives since the mark finite and moderate?
  bool moderate_since(Mark m) const;

 private:
  struct Node {
    D1 value;
    size_t end = 0;  // its edges end here, and begin where those of the node before end
    bool differentiable = false;
  };
  struct Edge {
    int parent;
    D1 partial;
  };
  Num add(D1 v, bool differentiable) {
    nodes_.push_back({v, edges_.size(), differentiable});
    return {static_cast<int>(nodes_.size()) - 1};
  }
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
};

// The tape that arithmetic on Num writes to.
inline thread_local Tape* current_tape = nullptr;
inline Tape& tape() { return *current_tape; }
inline double primal(Num x) { return tape().value(x).v; }
inline Num number(double v) { return tape().constant(v); }

template <class F, class... N> Num call(const F& f, N... x) { return tape().apply(f, x...); }
inline Num operator+(Num a, Num b) { return call([](auto x, auto y) { return x + y; }, a, b); }
inline Num operator-(Num a, Num b) { return call([](auto x, auto y) { return x - y; }, a, b); }
inline Num operator*(Num a, Num b) { return call([](auto x, auto y) { return x * y; }, a, b); }
inline Num operator/(Num a, Num b) { return call([](auto x, auto y) { return x / y; }, a, b); }
inline Num operator*(Num a, double b) { return call([b](auto x) { return x * b; }, a); }
inline Num operator+(Num a, double b) { return call([b](auto x) { return x + b; }, a); }
inline Num exp(Num a) { return call([](auto x) { return exp(x); }, a); }
inline Num log(Num a) { return call([](auto x) { return log(x); }, a); }
inline Num sqrt(Num a) { return call([](auto x) { return sqrt(x); }, a); }
inline Num absolute(Num a) { return call([](auto x) { return absolute(x); }, a); }

}  // namespace waymark::test::graph
