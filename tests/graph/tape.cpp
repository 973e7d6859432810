#include "tests/graph/tape.h"

namespace waymark::test::graph {

std::vector<D1> Tape::sweep(const std::vector<std::pair<Num, double>>& seeds, D1& scale) const {
  std::vector<D1> adjoint(nodes_.size());
  for (const auto& [node, seed] : seeds) adjoint[static_cast<size_t>(node.id)].v += seed;
  for (size_t i = nodes_.size(); i-- > 0;) {
    const size_t first = i == 0 ? 0 : nodes_[i - 1].end;
    for (size_t e = first; e < nodes_[i].end; ++e) {
      const D1& p = edges_[e].partial;
      const D1 c = adjoint[i] * p;
      scale.v = std::max(scale.v, std::abs(c.v));
      scale.d = std::max(scale.d, std::abs(adjoint[i].v * p.d) + std::abs(adjoint[i].d * p.v));
      D1& to = adjoint[static_cast<size_t>(edges_[e].parent)];
      to = to + c;
    }
  }
  return adjoint;
}

bool Tape::moderate_since(Mark m) const {
  for (size_t e = m.edges; e < edges_.size(); ++e) {
    const D1& p = edges_[e].partial;
    if (!(std::abs(p.v) < 100) || !(std::abs(p.d) < 1000)) return false;
  }
  for (size_t i = m.nodes; i < nodes_.size(); ++i)
    if (!(std::abs(nodes_[i].value.v) < 1000) || !(std::abs(nodes_[i].value.d) < 1000)) return false;
  return true;
}

}  // namespace waymark::test::graph
