// Tensor's methods that are ops: each is the free function of the same name, with the caller's line.
#include "core/ops/activation.h"
#include "core/ops/arithmetic.h"
#include "core/ops/convert.h"
#include "core/ops/einsum.h"
#include "core/ops/inplace.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"
#include "core/ops/pointwise.h"
#include "core/ops/random_ops.h"
#include "core/ops/reduce.h"
#include "core/ops/shape.h"
#include "core/ops/softmax.h"

namespace waymark {

#define SELF Arg(*this, loc)

Tensor Tensor::add(const Tensor& o, Scalar alpha, Loc loc) const { return waymark::add(SELF, Arg(o, loc), alpha); }
Tensor Tensor::sub(const Tensor& o, Scalar alpha, Loc loc) const { return waymark::sub(SELF, Arg(o, loc), alpha); }
Tensor Tensor::mul(const Tensor& o, Loc loc) const { return waymark::mul(SELF, Arg(o, loc)); }
Tensor Tensor::div(const Tensor& o, Loc loc) const { return waymark::div(SELF, Arg(o, loc)); }
Tensor Tensor::add(Scalar o, Scalar alpha, Loc loc) const { return waymark::add(SELF, o, alpha); }
Tensor Tensor::sub(Scalar o, Scalar alpha, Loc loc) const { return waymark::sub(SELF, o, alpha); }
Tensor Tensor::mul(Scalar o, Loc loc) const { return waymark::mul(SELF, o); }
Tensor Tensor::div(Scalar o, Loc loc) const { return waymark::div(SELF, o); }
Tensor Tensor::neg(Loc loc) const { return waymark::neg(SELF); }
Tensor Tensor::pow(Scalar exponent, Loc loc) const { return waymark::pow(SELF, exponent); }
Tensor Tensor::masked_fill(const Tensor& mask, Scalar v, Loc loc) const {
  return waymark::masked_fill(SELF, Arg(mask, loc), v);
}

Tensor Tensor::abs(Loc loc) const { return waymark::abs(SELF); }
Tensor Tensor::square(Loc loc) const { return waymark::square(SELF); }
Tensor Tensor::sqrt(Loc loc) const { return waymark::sqrt(SELF); }
Tensor Tensor::rsqrt(Loc loc) const { return waymark::rsqrt(SELF); }
Tensor Tensor::exp(Loc loc) const { return waymark::exp(SELF); }
Tensor Tensor::log(Loc loc) const { return waymark::log(SELF); }
Tensor Tensor::sin(Loc loc) const { return waymark::sin(SELF); }
Tensor Tensor::cos(Loc loc) const { return waymark::cos(SELF); }
Tensor Tensor::tanh(Loc loc) const { return waymark::tanh(SELF); }
Tensor Tensor::sigmoid(Loc loc) const { return waymark::sigmoid(SELF); }
Tensor Tensor::clamp(std::optional<Scalar> min, std::optional<Scalar> max, Loc loc) const {
  return waymark::clamp(SELF, min, max);
}

Tensor Tensor::matmul(const Tensor& o, Loc loc) const { return waymark::matmul(SELF, Arg(o, loc)); }
Tensor Tensor::mm(const Tensor& o, Loc loc) const { return waymark::mm(SELF, Arg(o, loc)); }
Tensor Tensor::bmm(const Tensor& o, Loc loc) const { return waymark::bmm(SELF, Arg(o, loc)); }
Tensor Tensor::mv(const Tensor& vec, Loc loc) const { return waymark::mv(SELF, Arg(vec, loc)); }
Tensor Tensor::dot(const Tensor& o, Loc loc) const { return waymark::dot(SELF, Arg(o, loc)); }
Tensor Tensor::outer(const Tensor& o, Loc loc) const { return waymark::outer(SELF, Arg(o, loc)); }
Tensor Tensor::addmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha, Loc loc) const {
  return waymark::addmm(SELF, Arg(a, loc), Arg(b, loc), beta, alpha);
}
Tensor Tensor::baddbmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha, Loc loc) const {
  return waymark::baddbmm(SELF, Arg(a, loc), Arg(b, loc), beta, alpha);
}

Tensor Tensor::kron(const Tensor& o, Loc loc) const { return waymark::kron(SELF, Arg(o, loc)); }

Tensor Tensor::prelu(const Tensor& weight, Loc loc) const { return waymark::prelu(SELF, Arg(weight, loc)); }
Tensor Tensor::relu(Loc loc) const { return waymark::relu(SELF); }
Tensor Tensor::logsigmoid(Loc loc) const { return waymark::logsigmoid(SELF); }
Tensor Tensor::softmax(i64 dim, std::optional<DType> dtype, Loc loc) const { return waymark::softmax(SELF, dim, dtype); }
Tensor Tensor::log_softmax(i64 dim, std::optional<DType> dtype, Loc loc) const {
  return waymark::log_softmax(SELF, dim, dtype);
}

Tensor Tensor::to(DType dtype, Loc loc) const { return waymark::to(SELF, dtype); }
Tensor Tensor::clone(Loc loc) const { return waymark::clone(SELF); }
Tensor Tensor::contiguous(Loc loc) const { return waymark::contiguous(SELF); }
Tensor Tensor::detach(Loc loc) const { return waymark::detach(SELF); }

Tensor Tensor::sum(Dims dim, bool keepdim, Loc loc) const { return waymark::sum(SELF, std::move(dim), keepdim); }
Tensor Tensor::norm(Scalar p, Dims dim, bool keepdim, Loc loc) const { return waymark::norm(SELF, p, std::move(dim), keepdim); }
Tensor Tensor::sum_to_size(const Shape& size, Loc loc) const { return waymark::sum_to_size(SELF, size); }
Tensor Tensor::mean(Dims dim, bool keepdim, Loc loc) const { return waymark::mean(SELF, std::move(dim), keepdim); }

Tensor Tensor::view(const Shape& shape, Loc loc) const { return waymark::view(SELF, shape); }
Tensor Tensor::reshape(const Shape& shape, Loc loc) const { return waymark::reshape(SELF, shape); }
Tensor Tensor::flatten(i64 start_dim, i64 end_dim, Loc loc) const { return waymark::flatten(SELF, start_dim, end_dim); }
Tensor Tensor::permute(const std::vector<i64>& dims, Loc loc) const { return waymark::permute(SELF, dims); }
Tensor Tensor::transpose(i64 dim0, i64 dim1, Loc loc) const { return waymark::transpose(SELF, dim0, dim1); }
Tensor Tensor::mT(Loc loc) const { return waymark::mT(SELF); }
Tensor Tensor::squeeze(Dims dim, Loc loc) const { return waymark::squeeze(SELF, std::move(dim)); }
Tensor Tensor::unsqueeze(i64 dim, Loc loc) const { return waymark::unsqueeze(SELF, dim); }
Tensor Tensor::expand(const Shape& size, Loc loc) const { return waymark::expand(SELF, size); }
Tensor Tensor::slice(i64 dim, i64 start, i64 stop, i64 step, Loc loc) const {
  return waymark::slice(SELF, dim, start, stop, step);
}
Tensor Tensor::narrow(i64 dim, i64 start, i64 length, Loc loc) const { return waymark::narrow(SELF, dim, start, length); }
Tensor Tensor::select(i64 dim, i64 index, Loc loc) const { return waymark::select(SELF, dim, index); }
Tensor Tensor::operator[](Position i) const { return waymark::select(Arg(*this, i.loc), 0, i.index); }

const Tensor& Tensor::add_(const Tensor& o, Scalar alpha, Loc loc) const { return waymark::add_(*this, Arg(o, loc), alpha); }
const Tensor& Tensor::sub_(const Tensor& o, Scalar alpha, Loc loc) const { return waymark::sub_(*this, Arg(o, loc), alpha); }
const Tensor& Tensor::mul_(const Tensor& o, Loc loc) const { return waymark::mul_(*this, Arg(o, loc)); }
const Tensor& Tensor::div_(const Tensor& o, Loc loc) const { return waymark::div_(*this, Arg(o, loc)); }
const Tensor& Tensor::add_(Scalar o, Loc loc) const { return waymark::add_(*this, o, loc); }
const Tensor& Tensor::sub_(Scalar o, Loc loc) const { return waymark::sub_(*this, o, loc); }
const Tensor& Tensor::mul_(Scalar o, Loc loc) const { return waymark::mul_(*this, o, loc); }
const Tensor& Tensor::div_(Scalar o, Loc loc) const { return waymark::div_(*this, o, loc); }
const Tensor& Tensor::fill_(Scalar v, Loc loc) const { return waymark::fill_(*this, v, loc); }
const Tensor& Tensor::zero_(Loc loc) const { return waymark::zero_(*this, loc); }
const Tensor& Tensor::copy_(const Tensor& source, Loc loc) const { return waymark::copy_(*this, Arg(source, loc)); }

Tensor Tensor::new_empty(const Shape& shape, std::optional<DType> t) const { return empty(shape, t.value_or(dtype())); }
Tensor Tensor::new_zeros(const Shape& shape, std::optional<DType> t) const { return zeros(shape, t.value_or(dtype())); }
Tensor Tensor::new_ones(const Shape& shape, std::optional<DType> t) const { return ones(shape, t.value_or(dtype())); }
Tensor Tensor::new_full(const Shape& shape, Scalar v, std::optional<DType> t) const { return full(shape, v, t.value_or(dtype())); }
Tensor Tensor::bernoulli(std::optional<double> p, Loc loc) const {
  return p ? waymark::bernoulli(SELF, *p) : waymark::bernoulli(SELF);
}
Tensor Tensor::multinomial(i64 n, bool replacement, Loc loc) const { return waymark::multinomial(SELF, n, replacement); }
const Tensor& Tensor::uniform_(double low, double high, std::string_view stream, Loc loc) const {
  return waymark::uniform_(*this, low, high, stream, loc);
}
const Tensor& Tensor::normal_(double mean, double std, std::string_view stream, Loc loc) const {
  return waymark::normal_(*this, mean, std, stream, loc);
}
const Tensor& Tensor::bernoulli_(double p, std::string_view stream, Loc loc) const {
  return waymark::bernoulli_(*this, p, stream, loc);
}
const Tensor& Tensor::exponential_(double lambd, std::string_view stream, Loc loc) const {
  return waymark::exponential_(*this, lambd, stream, loc);
}

#undef SELF

}  // namespace waymark
