// Random tensors. Every draw is a pure function of (seed, stream, draw number, coordinates of
// the element): growing a tensor changes no earlier element, nor does the number of threads. The stream of each call
// is "user" unless said. No gradient flows to parameters of a distribution (bernoulli(p): zero).
#pragma once

#include "core/ops/create.h"
#include "core/random/generator.h"  // manual_seed, RandomScope, streams

namespace waymark {

// Uniform on [0, 1), standard normal, Gumbel. f32 or f64.
[[nodiscard]] WAYMARK_API Tensor rand(const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor randn(const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor gumbel(const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] inline Tensor rand(const Shape& shape, DType t) { return rand(shape, TensorOptions{.dtype = t}); }
[[nodiscard]] inline Tensor randn(const Shape& shape, DType t) { return randn(shape, TensorOptions{.dtype = t}); }
[[nodiscard]] inline Tensor gumbel(const Shape& shape, DType t) { return gumbel(shape, TensorOptions{.dtype = t}); }
[[nodiscard]] WAYMARK_API Tensor rand_like(const Tensor& x, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor randn_like(const Tensor& x, const TensorOptions& options = {});
// mean + std·randn; std >= 0. Of tensors: broadcast, one draw for each element.
[[nodiscard]] WAYMARK_API Tensor normal(double mean, double std, const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor normal(Arg mean, Arg std, const TensorOptions& options = {});
// Integers in [low, high), i64 unless options say otherwise.
[[nodiscard]] WAYMARK_API Tensor randint(i64 low, i64 high, const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor randint(i64 high, const Shape& shape, const TensorOptions& options = {});
[[nodiscard]] WAYMARK_API Tensor randint_like(const Tensor& x, i64 low, i64 high, const TensorOptions& options = {});
// A permutation of 0 .. n-1.
[[nodiscard]] WAYMARK_API Tensor randperm(i64 n, const TensorOptions& options = {});
// 1 with probability p, element by element, else 0; of p's dtype. p outside [0, 1] is an Error.
[[nodiscard]] WAYMARK_API Tensor bernoulli(Arg p, std::string_view stream = "user");
[[nodiscard]] WAYMARK_API Tensor bernoulli(Arg x, double p, std::string_view stream = "user");  // of x's shape and dtype
// `num_samples` classes for each row of weights ([C] or [R, C]; they need not sum to 1), i64. Without replacement in
// the order drawn. Errors: negative, non-finite or all-zero weights; more samples than non-zero weights (without
// replacement).
[[nodiscard]] WAYMARK_API Tensor multinomial(Arg weights, i64 num_samples, bool replacement = false, std::string_view stream = "user");

// In place. uniform_: [low, high). trunc_normal_: normal(mean, std) cut to [a, b].
WAYMARK_API const Tensor& uniform_(const Tensor& x, double low = 0, double high = 1, std::string_view stream = "user", Loc loc = Loc::here());
WAYMARK_API const Tensor& normal_(const Tensor& x, double mean = 0, double std = 1, std::string_view stream = "user", Loc loc = Loc::here());
WAYMARK_API const Tensor& bernoulli_(const Tensor& x, double p = 0.5, std::string_view stream = "user", Loc loc = Loc::here());
WAYMARK_API const Tensor& exponential_(const Tensor& x, double lambd = 1, std::string_view stream = "user", Loc loc = Loc::here());
WAYMARK_API const Tensor& trunc_normal_(const Tensor& x, double mean = 0, double std = 1, double a = -2, double b = 2,
                                        std::string_view stream = "user", Loc loc = Loc::here());

}  // namespace waymark
