// Tensor's methods that change shapes, rearrange and index: each is the free function of the same name.
#include "core/ops/index.h"
#include "core/ops/join.h"
#include "core/ops/rearrange.h"
#include "core/ops/shape.h"

namespace waymark {

#define SELF Arg(*this, loc)

Tensor Tensor::unflatten(i64 dim, const Shape& sizes, Loc loc) const { return waymark::unflatten(SELF, dim, sizes); }
Tensor Tensor::ravel(Loc loc) const { return waymark::ravel(SELF); }
Tensor Tensor::t(Loc loc) const { return waymark::t(SELF); }
Tensor Tensor::movedim(i64 source, i64 destination, Loc loc) const {
  return waymark::movedim(SELF, source, destination);
}
Tensor Tensor::movedim(const std::vector<i64>& source, const std::vector<i64>& destination, Loc loc) const {
  return waymark::movedim(SELF, source, destination);
}
Tensor Tensor::swapaxes(i64 axis0, i64 axis1, Loc loc) const { return waymark::swapaxes(SELF, axis0, axis1); }
Tensor Tensor::expand_as(const Tensor& o, Loc loc) const { return waymark::expand_as(SELF, Arg(o, loc)); }
Tensor Tensor::broadcast_to(const Shape& size, Loc loc) const { return waymark::broadcast_to(SELF, size); }
Tensor Tensor::repeat(const Shape& repeats, Loc loc) const { return waymark::repeat(SELF, repeats); }
Tensor Tensor::tile(const Shape& repeats, Loc loc) const { return waymark::tile(SELF, repeats); }
Tensor Tensor::repeat_interleave(i64 n, std::optional<i64> dim, Loc loc) const {
  return waymark::repeat_interleave(SELF, n, dim);
}
Tensor Tensor::repeat_interleave(const Tensor& counts, std::optional<i64> dim, Loc loc) const {
  return waymark::repeat_interleave(SELF, Arg(counts, loc), dim);
}
std::vector<Tensor> Tensor::split(i64 split_size, i64 dim, Loc loc) const {
  return waymark::split(SELF, split_size, dim);
}
std::vector<Tensor> Tensor::split(const std::vector<i64>& sizes, i64 dim, Loc loc) const {
  return waymark::split(SELF, sizes, dim);
}
std::vector<Tensor> Tensor::chunk(i64 chunks, i64 dim, Loc loc) const { return waymark::chunk(SELF, chunks, dim); }
std::vector<Tensor> Tensor::tensor_split(i64 sections, i64 dim, Loc loc) const {
  return waymark::tensor_split(SELF, sections, dim);
}
std::vector<Tensor> Tensor::tensor_split(const std::vector<i64>& indices, i64 dim, Loc loc) const {
  return waymark::tensor_split(SELF, indices, dim);
}
std::vector<Tensor> Tensor::unbind(i64 dim, Loc loc) const { return waymark::unbind(SELF, dim); }
Tensor Tensor::roll(const std::vector<i64>& shifts, const std::vector<i64>& dims, Loc loc) const {
  return waymark::roll(SELF, shifts, dims);
}
Tensor Tensor::flip(const std::vector<i64>& dims, Loc loc) const { return waymark::flip(SELF, dims); }
Tensor Tensor::rot90(i64 k, const std::vector<i64>& dims, Loc loc) const { return waymark::rot90(SELF, k, dims); }
Tensor Tensor::tril(i64 diagonal, Loc loc) const { return waymark::tril(SELF, diagonal); }
Tensor Tensor::triu(i64 diagonal, Loc loc) const { return waymark::triu(SELF, diagonal); }
Tensor Tensor::diag(i64 diagonal, Loc loc) const { return waymark::diag(SELF, diagonal); }
Tensor Tensor::diagonal(i64 offset, i64 dim1, i64 dim2, Loc loc) const {
  return waymark::diagonal(SELF, offset, dim1, dim2);
}
Tensor Tensor::diag_embed(i64 offset, i64 dim1, i64 dim2, Loc loc) const {
  return waymark::diag_embed(SELF, offset, dim1, dim2);
}
Tensor Tensor::trace(Loc loc) const { return waymark::trace(SELF); }
Tensor Tensor::unfold(i64 dim, i64 size, i64 step, Loc loc) const { return waymark::unfold(SELF, dim, size, step); }
Tensor Tensor::as_strided(const Shape& size, const Shape& stride, std::optional<i64> storage_offset, Loc loc) const {
  return waymark::as_strided(SELF, size, stride, storage_offset);
}

Tensor Tensor::index(const std::vector<IndexItem>& indices, Loc loc) const { return waymark::index(SELF, indices); }
Tensor Tensor::index_select(i64 dim, const Tensor& i, Loc loc) const {
  return waymark::index_select(SELF, dim, Arg(i, loc));
}
Tensor Tensor::gather(i64 dim, const Tensor& i, Loc loc) const { return waymark::gather(SELF, dim, Arg(i, loc)); }
Tensor Tensor::take(const Tensor& i, Loc loc) const { return waymark::take(SELF, Arg(i, loc)); }
Tensor Tensor::take_along_dim(const Tensor& i, std::optional<i64> dim, Loc loc) const {
  return waymark::take_along_dim(SELF, Arg(i, loc), dim);
}
Tensor Tensor::masked_select(const Tensor& mask, Loc loc) const { return waymark::masked_select(SELF, Arg(mask, loc)); }
Tensor Tensor::nonzero(Loc loc) const { return waymark::nonzero(SELF); }
Tensor Tensor::argwhere(Loc loc) const { return waymark::argwhere(SELF); }
Tensor Tensor::scatter(i64 dim, const Tensor& i, const Tensor& src, Loc loc) const {
  return waymark::scatter(SELF, dim, Arg(i, loc), Arg(src, loc));
}
Tensor Tensor::scatter(i64 dim, const Tensor& i, Scalar value, Loc loc) const {
  return waymark::scatter(SELF, dim, Arg(i, loc), value);
}
Tensor Tensor::scatter_add(i64 dim, const Tensor& i, const Tensor& src, Loc loc) const {
  return waymark::scatter_add(SELF, dim, Arg(i, loc), Arg(src, loc));
}
Tensor Tensor::scatter_reduce(i64 dim, const Tensor& i, const Tensor& src, std::string_view reduce, bool include_self,
                              Loc loc) const {
  return waymark::scatter_reduce(SELF, dim, Arg(i, loc), Arg(src, loc), reduce, include_self);
}
Tensor Tensor::index_add(i64 dim, const Tensor& i, const Tensor& source, Scalar alpha, Loc loc) const {
  return waymark::index_add(SELF, dim, Arg(i, loc), Arg(source, loc), alpha);
}
Tensor Tensor::index_copy(i64 dim, const Tensor& i, const Tensor& source, Loc loc) const {
  return waymark::index_copy(SELF, dim, Arg(i, loc), Arg(source, loc));
}
Tensor Tensor::index_fill(i64 dim, const Tensor& i, Scalar value, Loc loc) const {
  return waymark::index_fill(SELF, dim, Arg(i, loc), value);
}
Tensor Tensor::index_fill(i64 dim, const Tensor& i, const Tensor& value, Loc loc) const {
  return waymark::index_fill(SELF, dim, Arg(i, loc), Arg(value, loc));
}
Tensor Tensor::index_put(const std::vector<IndexItem>& indices, const Tensor& values, bool accumulate, Loc loc) const {
  return waymark::index_put(SELF, indices, Arg(values, loc), accumulate);
}
Tensor Tensor::masked_scatter(const Tensor& mask, const Tensor& source, Loc loc) const {
  return waymark::masked_scatter(SELF, Arg(mask, loc), Arg(source, loc));
}
const Tensor& Tensor::index_put_(const std::vector<IndexItem>& indices, const Tensor& values, bool accumulate,
                                 Loc loc) const {
  return waymark::index_put_(*this, indices, Arg(values, loc), accumulate);
}
const Tensor& Tensor::index_add_(i64 dim, const Tensor& i, const Tensor& source, Scalar alpha, Loc loc) const {
  return waymark::index_add_(*this, dim, Arg(i, loc), Arg(source, loc), alpha);
}
const Tensor& Tensor::index_copy_(i64 dim, const Tensor& i, const Tensor& source, Loc loc) const {
  return waymark::index_copy_(*this, dim, Arg(i, loc), Arg(source, loc));
}
const Tensor& Tensor::index_fill_(i64 dim, const Tensor& i, Scalar value, Loc loc) const {
  return waymark::index_fill_(*this, dim, Arg(i, loc), value);
}
const Tensor& Tensor::index_fill_(i64 dim, const Tensor& i, const Tensor& value, Loc loc) const {
  return waymark::index_fill_(*this, dim, Arg(i, loc), Arg(value, loc));
}
const Tensor& Tensor::scatter_(i64 dim, const Tensor& i, const Tensor& src, Loc loc) const {
  return waymark::scatter_(*this, dim, Arg(i, loc), Arg(src, loc));
}
const Tensor& Tensor::scatter_(i64 dim, const Tensor& i, Scalar value, Loc loc) const {
  return waymark::scatter_(*this, dim, Arg(i, loc), value);
}
const Tensor& Tensor::scatter_add_(i64 dim, const Tensor& i, const Tensor& src, Loc loc) const {
  return waymark::scatter_add_(*this, dim, Arg(i, loc), Arg(src, loc));
}

#undef SELF

}  // namespace waymark
