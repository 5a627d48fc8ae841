// Pairing passes: out[i] = in[2 i] + in[2 i + 1], all points affine, by batched inversion.
//
// The chord through p and q has slope s = (y_q - y_p) / (x_q - x_p); x = s^2 - x_p - x_q, y = s (x_p - x) - y_p. With
// inversions shared (batch_inverse.cuh) that is 5 M + 1 S an addition, where a mixed XYZZ addition takes 8 M + 2 S.
// Since a bucket's stretch starts at a multiple of 2^align entries, `align` passes never mix two buckets, and each
// halves the list. Gaps, equal points and opposite points get a denominator of their own, so that the shared product
// is never 0.
//
// Memory an addition: both x, the product written and read, both points, the sum: 10 coordinates.
#pragma once
#include "batch_inverse.cuh"
#include "msm_points.cuh"

namespace freshproof {
namespace msm {

// What is under way to a thread, in shared memory: two points and a product, and two points more, so that the next ones can
// come while these are read. Piece q at words[q * blockDim.x].
template <class F> struct Inbox {
  static constexpr unsigned XP = 0, YP = 1, XQ = 2, YQ = 3, SECOND = 4, PRODUCT = 8, places = 9;
  static constexpr unsigned pieces = sizeof(F) / 16;

  uint4* words;

  __device__ __forceinline__ uint4* at(unsigned place, unsigned q) const {
    return words + (place * pieces + q) * blockDim.x;
  }

  __device__ __forceinline__ void order(unsigned place, const F& from) const {
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) copy_to_shared(at(place, q), reinterpret_cast<const uint4*>(&from) + q);
  }

  __device__ __forceinline__ void order(unsigned place, const ThreadColumn<F>& from, uint32_t step) const {
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) copy_to_shared(at(place, q), from.piece(step, q));
  }

  __device__ __forceinline__ F take(unsigned place) const {
    F value;
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) reinterpret_cast<uint4*>(&value)[q] = *at(place, q);
    return value;
  }
};

// A thread's share of a pass: every output that is its number modulo the number of threads.
template <class F> struct PairWork {
  Source<F> in;
  Inbox<F> inbox;
  ThreadColumn<F> products;
  Affine<F>* out;

  __device__ __forceinline__ uint32_t output(uint32_t step) const { return global_thread() + step * grid_threads(); }

  __device__ __forceinline__ uint2 entries(uint32_t step) const { return in.entry_pair(output(step)); }
};

// Whether there is no point here: no entry, or a gap in the list.
template <class F> __device__ __forceinline__ bool is_missing(uint32_t entry, const F& x) {
  return entry == NONE || is_gap(x);
}

// For points with the same x: the tangent's denominator 2 y, or 1 when there is none because the sum is the identity.
template <class F> __device__ __forceinline__ F tangent_denominator(const F& yp, const F& yq) {
  return yp == yq && !yp.is_zero() ? yp.dbl() : F::one();
}

template <class F> __device__ __forceinline__ F signed_y(const Source<F>& in, uint32_t entry, const F& y) {
  return in.turned(entry) ? y.neg() : y;
}

// Up: the product of the denominators of steps from .. to - 1, and all products on the way. Entries are two steps ahead of
// their use, abscissas one.
template <class F>
__device__ __forceinline__ F multiply_denominators(const PairWork<F>& work, uint32_t from, uint32_t to) {
  const Source<F>& in = work.in;
  const auto order = [&](const uint2& pair) {
    if (pair.x != NONE) work.inbox.order(Inbox<F>::XP, in.at(pair.x)->x);
    if (pair.y != NONE) work.inbox.order(Inbox<F>::XQ, in.at(pair.y)->x);
  };
  uint2 pair = work.entries(from), coming = pair;
  order(pair);
  if (from + 1 < to) coming = work.entries(from + 1);
  F product = F::one();
  for (uint32_t step = from; step < to; ++step) {
    await_copies();
    const F xp = work.inbox.take(Inbox<F>::XP), xq = work.inbox.take(Inbox<F>::XQ);
    const bool missing = is_missing(pair.x, xp) || is_missing(pair.y, xq);
    F d = xq - xp;
    if (missing) d = F::one();
    if (d.is_zero()) {
      d = tangent_denominator(signed_y(in, pair.x, in.at(pair.x)->y), signed_y(in, pair.y, in.at(pair.y)->y));
    }
    pair = coming;
    if (step + 1 < to) order(pair);
    if (step + 2 < to) coming = work.entries(step + 2);
    if (step == from) {
      product = d;
    } else {
      work.products.store(step - from, product);
      product = product * d;
    }
  }
  return product;
}

// Down: the sums of steps to - 1 .. from, given the inverse of the product of all their denominators. What is needed more
// than once is read again from shared memory: registers are short.
template <class F>
__device__ __forceinline__ void divide_and_add(const PairWork<F>& work, uint32_t from, uint32_t to, F inverse) {
  using Box = Inbox<F>;
  const Source<F>& in = work.in;
  const Box& inbox = work.inbox;
  const auto order = [&](const uint2& pair, uint32_t step) {
    const unsigned at = step % 2 * Box::SECOND;
    if (pair.x != NONE) {
      inbox.order(at + Box::XP, in.at(pair.x)->x);
      inbox.order(at + Box::YP, in.at(pair.x)->y);
    }
    if (pair.y != NONE) {
      inbox.order(at + Box::XQ, in.at(pair.y)->x);
      inbox.order(at + Box::YQ, in.at(pair.y)->y);
    }
    if (step > from) inbox.order(Box::PRODUCT, work.products, step - from);
  };
  uint2 coming = work.entries(to - 1);
  order(coming, to - 1);
  uint2 pair = coming;
  if (to - 1 > from) coming = work.entries(to - 2);
  for (uint32_t step = to; step-- > from;) {
    await_copies();
    const unsigned at = step % 2 * Box::SECOND;
    const F reciprocal = step > from ? inverse * inbox.take(Box::PRODUCT) : inverse;
    const uint2 next = coming;
    if (step > from) {
      order(next, step - 1);
      if (step > from + 1) coming = work.entries(step - 2);
    }
    F d = inbox.take(at + Box::XQ) - inbox.take(at + Box::XP);
    const bool no_p = is_missing(pair.x, inbox.take(at + Box::XP));
    const bool no_q = is_missing(pair.y, inbox.take(at + Box::XQ));
    const F yp = signed_y(in, pair.x, inbox.take(at + Box::YP));
    const F yq = signed_y(in, pair.y, inbox.take(at + Box::YQ));
    F rise = yq - yp;
    bool done = no_p || no_q;
    if (done) {
      d = F::one();
      work.out[work.output(step)] = no_p ? no_q ? gap<F>() : Affine<F>{inbox.take(at + Box::XQ), yq}
                                         : Affine<F>{inbox.take(at + Box::XP), yp};
    } else if (d.is_zero()) {
      d = tangent_denominator(yp, yq);
      done = d == F::one();
      const F xx = called_sqr(inbox.take(at + Box::XP));
      rise = xx.dbl() + xx;
      if (done) work.out[work.output(step)] = gap<F>();
    }
    inverse = inverse * d;
    const F slope = rise * reciprocal;
    const F x = slope.sqr() - inbox.take(at + Box::XP) - inbox.take(at + Box::XQ);
    const F y = slope * (inbox.take(at + Box::XP) - x) - signed_y(in, pair.x, inbox.take(at + Box::YP));
    if (!done) work.out[work.output(step)] = {x, y};
    pair = next;
  }
}

// out[i] = in[2 i] + in[2 i + 1] for i < count. A thread handles `batch` outputs for each inversion; `products` holds as
// many. Shared memory: an inbox a thread.
template <class F>
__device__ __forceinline__ void add_pairs(const Source<F>& in, uint32_t count, uint32_t batch,
                                          const ThreadColumn<F>& products, Affine<F>* out) {
  if (global_thread() >= count) return;
  const PairWork<F> work{in, {reinterpret_cast<uint4*>(dynamic_shared()) + threadIdx.x}, products, out};
  const uint32_t steps = divide_up(count - global_thread(), grid_threads());
  for (uint32_t from = 0; from < steps; from += batch) {
    const uint32_t to = min(from + batch, steps);
    divide_and_add(work, from, to, fast_inverse(multiply_denominators(work, from, to)));
  }
}

// How many of the outputs first .. first + limit - 1 there are when the pass leaves `length` points.
__device__ __forceinline__ uint32_t outputs_from(uint32_t length, uint32_t first, uint32_t limit) {
  return length <= first ? 0 : min(length - first, limit);
}

}  // namespace msm
}  // namespace freshproof
