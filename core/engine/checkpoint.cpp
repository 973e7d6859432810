#include "core/engine/checkpoint.h"

#include "core/autograd/meta.h"
#include "core/autograd/state.h"
#include "core/parallel/parallel.h"
#include "core/random/generator.h"

namespace waymark {
namespace {

using Data = Intrusive<TensorImpl>;

// Thrown by the sink of the second run when nothing is missing any more; never leaves this file.
struct AllFilled {};

class SinkScope {
 public:
  explicit SinkScope(SaveSink* sink) : before_(std::exchange(thread_state().sink, sink)) {}
  ~SinkScope() { thread_state().sink = before_; }
  SinkScope(const SinkScope&) = delete;
  SinkScope& operator=(const SinkScope&) = delete;

 private:
  SaveSink* before_;
};

// Restores how ops run: fused or not, denormals flushed or not.
class ModeScope {
 public:
  ModeScope(bool explain, bool flush)
      : denormals_(flush), before_(std::exchange(thread_state().explain, explain)) {}
  ~ModeScope() { thread_state().explain = before_; }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  DenormalGuard denormals_;
  bool before_;
};

// Parameters and other leaves live anyway: a node keeps them itself, and so sees by their version when somebody changes
// them before backward.
bool is_leaf_with_grad(const Tensor& t) {
  const AutogradMeta* m = meta_of(t);
  return m && m->requires_grad && !m->history.node;
}

// One call of checkpoint(): the function, its inputs, and the values that its nodes did not keep.
class Group : public std::enable_shared_from_this<Group> {
 public:
  Group(TupleFunction f, const std::vector<Tensor>& inputs)
      : f_(std::move(f)), scope_(thread_state().scope), explain_(explain_mode()), flush_(denormals_flushed()) {
    SaveSink* const outer = thread_state().sink;
    for (const Tensor& t : inputs) {
      Input in;
      if (t.defined()) {
        in.requires_grad = t.requires_grad();
        in.leaf = is_leaf_with_grad(t);
        in.version = t.version();
        // Inside another checkpoint the inputs of this one are values that the outer run recomputes.
        if (outer) in.lazy = outer->put(t);
        if (!in.lazy) in.data = Data(alias(t).impl());
      }
      inputs_.push_back(std::move(in));
    }
  }

  // A value of the first run that is not kept.
  Intrusive<Placeholder> add(const Tensor& t) {
    cells_.push_back({t.shape(), t.dtype(), {}, false, false});
    return Intrusive<Placeholder>(new CellOf(shared_from_this(), cells_.size() - 1));
  }

 private:
  struct Input {
    Data data;
    Intrusive<Placeholder> lazy;
    u32 version = 0;
    bool requires_grad = false, leaf = false;
  };
  struct Cell {
    Shape shape;
    DType dtype;
    Data data;
    bool filled, dropped;  // dropped: its node was released, nobody will ask
  };
  class CellOf final : public Placeholder {
   public:
    CellOf(std::shared_ptr<Group> group, size_t k) : group_(std::move(group)), k_(k) {}
    ~CellOf() override {
      group_->cells_[k_].dropped = true;
      group_->cells_[k_].data = nullptr;
    }
    Data fill() override { return group_->take(k_); }

   private:
    std::shared_ptr<Group> group_;
    size_t k_;
  };
  class Second final : public SaveSink {
   public:
    explicit Second(Group& group) : group_(group) {}
    Intrusive<Placeholder> put(const Tensor& t) override { return group_.put_again(t); }

   private:
    Group& group_;
  };

  Data take(size_t k) {
    if (!cells_[k].filled) recompute();
    return std::exchange(cells_[k].data, nullptr);
  }

  // A value of the second run: the next cell.
  Intrusive<Placeholder> put_again(const Tensor& t) {
    const TensorImpl* impl = t.impl();
    bool kept = is_leaf_with_grad(t);
    for (size_t i = 0; i < again_.size(); ++i)
      if (again_[i].impl() == impl) kept = inputs_[i].leaf;  // in the second run every input is a leaf
    if (kept) return {};
    if (next_ >= cells_.size()) throw AllFilled{};
    Cell& c = cells_[next_];
    if (c.shape != t.shape() || c.dtype != t.dtype())
      fail("checkpoint", "the function is not deterministic: saved value {} was {} {}, now {} {}", next_, c.shape,
           name_of(c.dtype), t.shape(), name_of(t.dtype()));
    if (!c.dropped) c.data = Data(alias(t).impl());
    c.filled = true;
    if (++next_ == cells_.size()) throw AllFilled{};
    return {};
  }

  // The inputs of the second run: aliases without history.
  void take_inputs() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Input& in = inputs_[i];
      if (in.lazy) {
        in.data = std::exchange(in.lazy, nullptr)->fill();
        in.version = in.data->storage->version();
      }
      if (!in.data) {
        again_.emplace_back();
        continue;
      }
      const Storage& storage = *in.data->storage;
      if (storage.version() != in.version) {
        const Writer& w = storage.last_writer();
        const std::string where = w.place();
        fail("checkpoint",
             "backward needs input {} ({} {}) as it was at version {}, but {} wrote to it (version {})\n{}  clone() before the change",
             i, in.data->shape, name_of(in.data->dtype), in.version, w.name(), storage.version(),
             where.empty() ? "" : fmt::format("  {} at {}\n", w.name(), where));
      }
      again_.push_back(alias(Tensor(in.data)));
      if (in.requires_grad) ensure_meta(again_.back()).requires_grad = true;
    }
  }

  void recompute() {
    again_.clear();
    take_inputs();
    next_ = 0;
    const EnableGrad on;
    const ModeScope mode(explain_, flush_);
    const Scope scope(scope_);
    const ReplayScope draws(draws_);
    Second sink(*this);
    {
      const SinkScope sinks(&sink);
      try {
        f_(again_);
      } catch (const AllFilled&) {
      }
    }
    again_.clear();
    if (next_ != cells_.size())
      fail("checkpoint", "the function is not deterministic: it kept {} values, now {}", cells_.size(), next_);
  }

  TupleFunction f_;
  u32 scope_;
  bool explain_, flush_;
  RandomSnapshot draws_;  // where the streams stood
  std::vector<Input> inputs_;
  std::vector<Cell> cells_;
  std::vector<Tensor> again_;  // inputs of the second run, while it lasts
  size_t next_ = 0;
};

// Values of the first run: placeholders.
class First final : public SaveSink {
 public:
  explicit First(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  Intrusive<Placeholder> put(const Tensor& t) override {
    return is_leaf_with_grad(t) ? Intrusive<Placeholder>() : group_->add(t);
  }

 private:
  std::shared_ptr<Group> group_;
};

}  // namespace

std::vector<Tensor> checkpoint(const TupleFunction& f, const std::vector<Tensor>& inputs) {
  if (!f) fail("checkpoint", "the function is empty");
  if (!grad_enabled()) return f(inputs);
  First sink(std::make_shared<Group>(f, inputs));
  const SinkScope sinks(&sink);
  return f(inputs);
}

Tensor checkpoint(const SingleFunction& f, const Tensor& input) {
  if (!f) fail("checkpoint", "the function is empty");
  return checkpoint([f](const std::vector<Tensor>& v) { return std::vector<Tensor>{f(v[0])}; }, {input})[0];
}

}  // namespace waymark
