// Pairing passes: out[i] = in[2 i] + in[2 i + 1], all points affine, by batched inversion.
//
// The chord through p and q has slope s = (y_q - y_p) / (x_q - x_p); x = s^2 - x_p - x_q, y = s (x_p - x) - y_p. With
// inversions shared (batch_inverse.cuh) that is 5 M + 1 S an addition, where a mixed XYZZ addition takes 8 M + 2 S.
// Since a bucket's stretch starts at a multiple of 2^align entries, `align` passes never mix two buckets, and each
// halves the list. Equal points, opposite points and the identity get a denominator of their own, so that the shared
// product is never 0.
//
// Memory an addition: both x, the product written and read, both points, the sum: 10 coordinates.
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
  const F xx = called_sqr(p.x);
  return {xx.dbl() + xx, p.y.dbl(), Sum::slope};
}

template <class F> __device__ __forceinline__ Chord<F> chord(const Affine<F>& p, const Affine<F>& q) {
  const F difference = q.x - p.x;
  if (needs_care(p.x, q.x, difference)) return careful_chord(p, q);
  return {q.y - p.y, difference, Sum::slope};
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

// A thread's places in shared memory for what is under way to it: piece q at words[q * blockDim.x].
template <class F> class Inbox {
 public:
  static constexpr unsigned pieces = sizeof(F) / 16;
  static constexpr unsigned places = 5 * pieces;  // two points and a product

  __device__ __forceinline__ explicit Inbox(uint4* shared) : words(shared + threadIdx.x) {}

  // Element `place` of the five, from consecutive pieces.
  __device__ __forceinline__ void order(unsigned place, const F* from) const {
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) {
      copy_to_shared(at(place * pieces + q), reinterpret_cast<const uint4*>(from) + q);
    }
  }

  __device__ __forceinline__ void order(unsigned place, const ThreadColumn<F>& from, uint32_t step) const {
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) copy_to_shared(at(place * pieces + q), from.piece(step, q));
  }

  __device__ __forceinline__ F take(unsigned place) const {
    F value;
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) reinterpret_cast<uint4*>(&value)[q] = *at(place * pieces + q);
    return value;
  }

 private:
  __device__ __forceinline__ uint4* at(unsigned piece) const { return words + piece * blockDim.x; }

  uint4* words;
};

// The outputs first, first + stride, .. of one thread: `steps` of them.
struct Lane {
  uint32_t first, stride, steps;
  __device__ __forceinline__ uint32_t output(uint32_t step) const { return first + step * stride; }
};

// Up: the running products of the denominators of steps from .. to - 1. Abscissas come a step ahead of their use.
template <class F>
__device__ __forceinline__ F multiply_denominators(const Source<F>& in, const Lane& lane, uint32_t from, uint32_t to,
                                                   const Inbox<F>& inbox, const ThreadColumn<F>& products) {
  const auto order = [&](const uint2& pair) {
    if (pair.x != NONE) inbox.order(0, &in.at(pair.x)->x);
    if (pair.y != NONE) inbox.order(1, &in.at(pair.y)->x);
  };
  uint2 pair = in.entry_pair(lane.output(from));
  order(pair);
  F product = F::one();
  for (uint32_t step = from; step < to; ++step) {
    await_copies();
    const F xp = pair.x == NONE ? F::zero() : inbox.take(0);
    const F xq = pair.y == NONE ? F::zero() : inbox.take(1);
    const uint2 own = pair;
    if (step + 1 < to) {
      pair = in.entry_pair(lane.output(step + 1));
      order(pair);
    }
    F d = xq - xp;
    if (needs_care(xp, xq, d)) d = careful_chord(in.point(own.x), in.point(own.y)).denominator;
    if (step == from) {
      product = d;
    } else {
      products.store(step - from, product);
      product = product * d;
    }
  }
  return product;
}

// Down: the sums of steps to - 1 .. from, given the inverse of all their denominators' product.
template <class F>
__device__ __forceinline__ void divide_and_add(const Source<F>& in, const Lane& lane, uint32_t from, uint32_t to,
                                               const Inbox<F>& inbox, const ThreadColumn<F>& products, F inverse,
                                               Affine<F>* out) {
  const auto order = [&](const uint2& pair, uint32_t step) {
    if (pair.x != NONE) {
      inbox.order(0, &in.at(pair.x)->x);
      inbox.order(1, &in.at(pair.x)->y);
    }
    if (pair.y != NONE) {
      inbox.order(2, &in.at(pair.y)->x);
      inbox.order(3, &in.at(pair.y)->y);
    }
    if (step > from) inbox.order(4, products, step - from);
  };
  uint2 pair = in.entry_pair(lane.output(to - 1));
  order(pair, to - 1);
  for (uint32_t step = to; step-- > from;) {
    await_copies();
    const Affine<F> p = in.signed_point(pair.x, {inbox.take(0), inbox.take(1)});
    const Affine<F> q = in.signed_point(pair.y, {inbox.take(2), inbox.take(3)});
    F reciprocal = inverse;
    if (step > from) {
      reciprocal = inverse * inbox.take(4);
      pair = in.entry_pair(lane.output(step - 1));
      order(pair, step - 1);
    }
    const Chord<F> c = chord(p, q);
    out[lane.output(step)] = finish(p, q, c, reciprocal);
    if (step > from) inverse = inverse * c.denominator;
  }
}

// out[i] = in[2 i] + in[2 i + 1] for i < count. A thread handles `batch` outputs for each inversion; `products` holds as
// many. Going up is bound by memory and going down by arithmetic, so blocks that share an SM should not go together:
// the first batch of every fourth `neighbours` blocks is shorter by quarters.
template <class F>
__device__ __forceinline__ void add_pairs(const Source<F>& in, uint32_t count, uint32_t batch, uint32_t neighbours,
                                          const ThreadColumn<F>& products, Affine<F>* out) {
  if (global_thread() >= count) return;
  const Lane lane{global_thread(), grid_threads(), divide_up(count - global_thread(), grid_threads())};
  const Inbox<F> inbox(reinterpret_cast<uint4*>(dynamic_shared()));
  uint32_t size = max(1u, batch - batch / 4 * (blockIdx.x / neighbours % 4));
  for (uint32_t from = 0; from < lane.steps; from += size, size = batch) {
    size = min(size, lane.steps - from);
    const F product = multiply_denominators(in, lane, from, from + size, inbox, products);
    divide_and_add(in, lane, from, from + size, inbox, products, fast_inverse(product), out);
  }
}

// How many of the outputs first .. first + limit - 1 there are when the pass leaves `length` points.
__device__ __forceinline__ uint32_t outputs_from(uint32_t length, uint32_t first, uint32_t limit) {
  return length <= first ? 0 : min(length - first, limit);
}

}  // namespace msm
}  // namespace freshproof
