// Pairing passes: out[i] = in[2 i] + in[2 i + 1], all points affine, by batched inversion.
//
// The chord through p and q has slope s = (y_q - y_p) / (x_q - x_p); x = s^2 - x_p - x_q, y = s (x_p - x) - y_p. With
// inversions shared (batch_inverse.cuh) that is 5 M + 1 S an addition, where a mixed XYZZ addition takes 8 M + 2 S.
// Since a bucket's stretch starts at a multiple of 2^align entries, `align` passes never mix two buckets, and each
// halves the list. Equal points, opposite points and the identity get a denominator of their own, so that the shared
// product is never 0.
//
// Memory an addition: both x, 2 pieces for the running product, both points, the sum (6 and 3 coordinates' worth).
#pragma once
#include "batch_inverse.cuh"
#include "msm_points.cuh"

namespace freshproof {
namespace msm {

// How p + q comes out of numerator / denominator: a slope, or one of the points, or nothing.
enum class Sum : uint32_t { slope, first, second, identity };

template <class F> struct Chord {
  F numerator, denominator;
  Sum sum;
};

// Whether x_p, x_q may be more than two different, finite abscissas. An x of 0 is either the identity's or a point's.
template <class F> __device__ __forceinline__ bool needs_care(const F& xp, const F& xq, const F& difference) {
  return difference.is_zero() || xp.is_zero() || xq.is_zero();
}

// The chord or tangent in every case; the denominator is never 0.
template <class F> __device__ __forceinline__ Chord<F> careful_chord(const Affine<F>& p, const Affine<F>& q) {
  if (q.is_identity()) return {F::zero(), F::one(), Sum::first};
  if (p.is_identity()) return {F::zero(), F::one(), Sum::second};
  const F difference = q.x - p.x;
  if (!difference.is_zero()) return {q.y - p.y, difference, Sum::slope};
  if (p.y != q.y || p.y.is_zero()) return {F::zero(), F::one(), Sum::identity};
  const F xx = p.x.sqr();
  return {xx.dbl() + xx, p.y.dbl(), Sum::slope};
}

template <class F> __device__ __forceinline__ Chord<F> chord(const Affine<F>& p, const Affine<F>& q) {
  const F difference = q.x - p.x;
  if (needs_care(p.x, q.x, difference)) return careful_chord(p, q);
  return {q.y - p.y, difference, Sum::slope};
}

template <class F> __device__ __forceinline__ F denominator(const Source<F>& in, uint32_t i) {
  const F xp = in.x(2 * i), xq = in.x(2 * i + 1);
  const F difference = xq - xp;
  if (needs_care(xp, xq, difference)) return careful_chord(in.point(2 * i), in.point(2 * i + 1)).denominator;
  return difference;
}

// p + q, given 1 / denominator.
template <class F>
__device__ __forceinline__ Affine<F> finish(const Affine<F>& p, const Affine<F>& q, const Chord<F>& c,
                                            const F& inverse) {
  if (c.sum == Sum::first) return p;
  if (c.sum == Sum::second) return q;
  if (c.sum == Sum::identity) return Affine<F>::identity();
  const F slope = c.numerator * inverse;
  const F x = slope.sqr() - p.x - q.x;
  return {x, slope * (p.x - x) - p.y};
}

// out[i] = in[2 i] + in[2 i + 1] for i < count; `products`: divide_up(count, threads) values a thread.
template <class F>
__device__ __forceinline__ void add_pairs(const Source<F>& in, uint32_t count, const ThreadColumn<F>& products,
                                          Affine<F>* out) {
  const uint32_t threads = grid_threads(), first = global_thread();
  if (first >= count) return;
  F product = denominator(in, first);
  uint32_t step = 0, i = first;
  while (count - i > threads) {
    i += threads;
    products.store(++step, product);
    product = product * denominator(in, i);
  }
  F inverse = fast_inverse(product);
  for (;; i -= threads, --step) {
    const Affine<F> p = in.point(2 * i), q = in.point(2 * i + 1);
    const Chord<F> c = chord(p, q);
    out[i] = finish(p, q, c, step == 0 ? inverse : inverse * products.load(step));
    if (step == 0) break;
    inverse = inverse * c.denominator;
  }
}

// How many of the outputs first .. first + limit - 1 there are when the pass leaves `length` points.
__device__ __forceinline__ uint32_t outputs_from(uint32_t length, uint32_t first, uint32_t limit) {
  return length <= first ? 0 : min(length - first, limit);
}

}  // namespace msm
}  // namespace freshproof
