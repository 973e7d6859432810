#include "core/engine/checkpoint.h"

#include "core/autograd/meta.h"
#include "core/autograd/state.h"
#include "core/random/generator.h"

namespace waymark {
namespace {

using Data = Intrusive<TensorImpl>;
using Fill = std::function<Data()>;

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

// One call of checkpoint(): the function, its inputs, and the values that its nodes did not keep.
class Group : public std::enable_shared_from_this<Group> {
 public:
  Group(TupleFunction f, const std::vector<Tensor>& inputs)
      : f_(std::move(f)), scope_(thread_state().scope) {
    SaveSink* const outer = thread_state().sink;
    for (const Tensor& t : inputs) {
      Input in;
      in.requires_grad = t.defined() && t.requires_grad();
      if (t.defined()) {
        in.version = t.version();
        // Inside another checkpoint the inputs of this one are values that the outer run recomputes.
        if (outer) in.fill = outer->put(t);
        else in.data = Data(alias(t).impl());
      }
      inputs_.push_back(std::move(in));
    }
  }

  // Registers a value of the first run.
  size_t add(const Tensor& t) {
    cells_.push_back({t.shape(), t.dtype(), {}, false});
    return cells_.size() - 1;
  }

  Data take(size_t k) {
    if (!cells_[k].filled) recompute();
    return std::exchange(cells_[k].data, nullptr);
  }

  // A value of the second run: the next cell.
  void fill(const Tensor& t) {
    if (next_ >= cells_.size()) throw AllFilled{};
    Cell& c = cells_[next_];
    if (c.shape != t.shape() || c.dtype != t.dtype())
      fail("checkpoint", "the function is not deterministic: saved value {} was {} {}, now {} {}", next_, c.shape,
           name_of(c.dtype), t.shape(), name_of(t.dtype()));
    c.data = Data(alias(t).impl());
    c.filled = true;
    if (++next_ == cells_.size()) throw AllFilled{};
  }

 private:
  struct Input {
    Data data;
    Fill fill;
    u32 version = 0;
    bool requires_grad = false;
  };
  struct Cell {
    Shape shape;
    DType dtype;
    Data data;
    bool filled;
  };
  class Second final : public SaveSink {
   public:
    explicit Second(Group& group) : group_(group) {}
    Fill put(const Tensor& t) override {
      group_.fill(t);
      return [] () -> Data { fail("checkpoint", "a value of the recomputation was asked for after it ended"); };
    }

   private:
    Group& group_;
  };

  void recompute() {
    std::vector<Tensor> x;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Input& in = inputs_[i];
      if (in.fill) {
        in.data = in.fill();
        in.fill = nullptr;
        in.version = in.data->storage->version();
      }
      if (!in.data) {
        x.emplace_back();
        continue;
      }
      if (in.data->storage->version() != in.version)
        fail("checkpoint", "input {} ({} {}) was changed in place since the forward pass (version {}, now {}); clone() before the change",
             i, in.data->shape, name_of(in.data->dtype), in.version, in.data->storage->version());
      x.push_back(alias(Tensor(in.data)));
      if (in.requires_grad) ensure_meta(x.back()).requires_grad = true;
    }
    next_ = 0;
    const EnableGrad on;
    const Scope scope(scope_);
    const ReplayScope draws(draws_);
    Second sink(*this);
    const SinkScope sinks(&sink);
    try {
      f_(x);
    } catch (const AllFilled&) {
    }
    if (next_ != cells_.size())
      fail("checkpoint", "the function is not deterministic: it kept {} values, now {}", cells_.size(), next_);
  }

  TupleFunction f_;
  u32 scope_;
  RandomSnapshot draws_;  // where the streams stood
  std::vector<Input> inputs_;
  std::vector<Cell> cells_;
  size_t next_ = 0;
};

// Values of the first run: placeholders.
class First final : public SaveSink {
 public:
  explicit First(std::shared_ptr<Group> group) : group_(std::move(group)) {}
  Fill put(const Tensor& t) override {
    return [group = group_, k = group_->add(t)] { return group->take(k); };
  }

 private:
  std::shared_ptr<Group> group_;
};

}  // namespace

std::vector<Tensor> checkpoint(const TupleFunction& f, const std::vector<Tensor>& inputs) {
  if (!grad_enabled()) return f(inputs);
  First sink(std::make_shared<Group>(f, inputs));
  const SinkScope sinks(&sink);
  return f(inputs);
}

Tensor checkpoint(const SingleFunction& f, const Tensor& input) {
  return checkpoint([f](const std::vector<Tensor>& v) { return std::vector<Tensor>{f(v[0])}; }, {input})[0];
}

}  // namespace waymark
