// Tensor's methods that reduce, scan and sort: each is the free function of the same name.
#include "core/ops/counts.h"
#include "core/ops/extremes.h"
#include "core/ops/moments.h"
#include "core/ops/order.h"
#include "core/ops/reduce.h"
#include "core/ops/scan.h"

namespace waymark {

#define SELF Arg(*this, loc)

Tensor Tensor::nansum(Dims dim, bool keepdim, Loc loc) const { return waymark::nansum(SELF, std::move(dim), keepdim); }
Tensor Tensor::nanmean(Dims dim, bool keepdim, Loc loc) const {
  return waymark::nanmean(SELF, std::move(dim), keepdim);
}
Tensor Tensor::prod(Loc loc) const { return waymark::prod(SELF); }
Tensor Tensor::prod(i64 dim, bool keepdim, Loc loc) const { return waymark::prod(SELF, dim, keepdim); }
Tensor Tensor::var(Dims dim, i64 correction, bool keepdim, Loc loc) const {
  return waymark::var(SELF, std::move(dim), correction, keepdim);
}
Tensor Tensor::std(Dims dim, i64 correction, bool keepdim, Loc loc) const {
  return waymark::std(SELF, std::move(dim), correction, keepdim);
}
Tensor Tensor::amax(Dims dim, bool keepdim, Loc loc) const { return waymark::amax(SELF, std::move(dim), keepdim); }
Tensor Tensor::amin(Dims dim, bool keepdim, Loc loc) const { return waymark::amin(SELF, std::move(dim), keepdim); }
Tensor Tensor::max(Loc loc) const { return waymark::max(SELF); }
Tensor Tensor::min(Loc loc) const { return waymark::min(SELF); }
ValuesIndices Tensor::max(i64 dim, bool keepdim, Loc loc) const { return waymark::max(SELF, dim, keepdim); }
ValuesIndices Tensor::min(i64 dim, bool keepdim, Loc loc) const { return waymark::min(SELF, dim, keepdim); }
Tensor Tensor::max(const Tensor& o, Loc loc) const { return waymark::max(SELF, Arg(o, loc)); }
Tensor Tensor::min(const Tensor& o, Loc loc) const { return waymark::min(SELF, Arg(o, loc)); }
MinMax Tensor::aminmax(std::optional<i64> dim, bool keepdim, Loc loc) const {
  return waymark::aminmax(SELF, dim, keepdim);
}
Tensor Tensor::median(Loc loc) const { return waymark::median(SELF); }
Tensor Tensor::nanmedian(Loc loc) const { return waymark::nanmedian(SELF); }
ValuesIndices Tensor::median(i64 dim, bool keepdim, Loc loc) const { return waymark::median(SELF, dim, keepdim); }
ValuesIndices Tensor::nanmedian(i64 dim, bool keepdim, Loc loc) const { return waymark::nanmedian(SELF, dim, keepdim); }
Tensor Tensor::argmax(std::optional<i64> dim, bool keepdim, Loc loc) const {
  return waymark::argmax(SELF, dim, keepdim);
}
Tensor Tensor::argmin(std::optional<i64> dim, bool keepdim, Loc loc) const {
  return waymark::argmin(SELF, dim, keepdim);
}
ValuesIndices Tensor::kthvalue(i64 k, i64 dim, bool keepdim, Loc loc) const {
  return waymark::kthvalue(SELF, k, dim, keepdim);
}
Tensor Tensor::quantile(double q, std::optional<i64> dim, bool keepdim, Loc loc) const {
  return waymark::quantile(SELF, q, dim, keepdim);
}
Tensor Tensor::quantile(const std::vector<double>& q, std::optional<i64> dim, bool keepdim, Loc loc) const {
  return waymark::quantile(SELF, q, dim, keepdim);
}
Tensor Tensor::logsumexp(Dims dim, bool keepdim, Loc loc) const {
  return waymark::logsumexp(SELF, std::move(dim), keepdim);
}
Tensor Tensor::all(Dims dim, bool keepdim, Loc loc) const { return waymark::all(SELF, std::move(dim), keepdim); }
Tensor Tensor::any(Dims dim, bool keepdim, Loc loc) const { return waymark::any(SELF, std::move(dim), keepdim); }
Tensor Tensor::count_nonzero(Dims dim, Loc loc) const { return waymark::count_nonzero(SELF, std::move(dim)); }
Tensor Tensor::bincount(i64 minlength, Loc loc) const { return waymark::bincount(SELF, minlength); }
Tensor Tensor::bincount(const Tensor& weights, i64 minlength, Loc loc) const {
  return waymark::bincount(SELF, Arg(weights, loc), minlength);
}
Tensor Tensor::histc(i64 bins, double min, double max, Loc loc) const { return waymark::histc(SELF, bins, min, max); }
Unique Tensor::unique(bool sorted, bool return_inverse, bool return_counts, Loc loc) const {
  return waymark::unique(SELF, sorted, return_inverse, return_counts);
}
Tensor Tensor::cumsum(i64 dim, Loc loc) const { return waymark::cumsum(SELF, dim); }
Tensor Tensor::cumprod(i64 dim, Loc loc) const { return waymark::cumprod(SELF, dim); }
Tensor Tensor::logcumsumexp(i64 dim, Loc loc) const { return waymark::logcumsumexp(SELF, dim); }
ValuesIndices Tensor::cummax(i64 dim, Loc loc) const { return waymark::cummax(SELF, dim); }
ValuesIndices Tensor::cummin(i64 dim, Loc loc) const { return waymark::cummin(SELF, dim); }
Tensor Tensor::diff(i64 n, i64 dim, Loc loc) const { return waymark::diff(SELF, n, dim); }
ValuesIndices Tensor::sort(i64 dim, bool descending, Loc loc) const { return waymark::sort(SELF, dim, descending); }
Tensor Tensor::argsort(i64 dim, bool descending, Loc loc) const { return waymark::argsort(SELF, dim, descending); }
ValuesIndices Tensor::topk(i64 k, i64 dim, bool largest, bool sorted, Loc loc) const {
  return waymark::topk(SELF, k, dim, largest, sorted);
}

#undef SELF

}  // namespace waymark
