// Pairing passes: neighbours of a list are added two by two, all points affine, by batched inversion.
//
// The chord through p and q has slope s = (y_q - y_p) / (x_q - x_p); x = s^2 - x_p - x_q, y = s (x_p - x) - y_p. With
// inversions shared (batch_inverse.cuh) that is 5 M + 1 S an addition, where a mixed XYZZ addition takes 8 M + 2 S.
// Since a bucket's stretch starts at a multiple of 2^passes entries, the passes never mix two buckets, and each
// halves the list. Gaps, equal points and opposite points get a denominator of their own, so that the shared product
// is never 0.
//
// A thread takes the 2^passes entries of each sum that it makes through all passes by itself, a share of sums at a time.
// Blocks claim shares, smaller ones as the end comes near: an SM's scheduler favours some blocks by a third, and with
// equal shares the others would end alone. The warps of a block go through a share's phases together, for the code of
// all phases is more than the instruction cache holds.
//
// Memory an addition: both x, the product written and read, both points, the sum: 10 coordinates.
#pragma once
#include "batch_inverse.cuh"
#include "loose.cuh"
#include "msm_points.cuh"

namespace freshproof {
namespace msm {

constexpr uint32_t WARP = 32;
constexpr uint32_t PAIR_THREADS = 128;  // of a block; a constant, so that a place in shared memory is a base and an offset

// Where a thread is: the first of its sums, how many it makes, and passes to go with the present one.
struct Task {
  uint32_t first, sums, left;
};

// A thread's shared memory. What is under way to it: two points and a product; going up, the abscissas of two pairs; the
// entries of coming pairs. Piece q of a place at words[(place * pieces + q) * PAIR_THREADS]. And its task, which would only
// take up registers during a pass.
template <class F> struct Inbox {
  static constexpr unsigned XP = 0, YP = 1, XQ = 2, YQ = 3, PRODUCT = 4, places = 5;
  static constexpr unsigned pieces = sizeof(F) / 16;
  static constexpr unsigned TASK = places * pieces, ENTRIES = TASK + 1, total = ENTRIES + 2;

  uint4* words;

  __device__ __forceinline__ uint4* at(unsigned place, unsigned q) const {
    return words + (place * pieces + q) * PAIR_THREADS;
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

  // Where the entries of a step's pair come, two of four steps beside each other.
  __device__ __forceinline__ uint2* entries(uint32_t step) const {
    return reinterpret_cast<uint2*>(words + (ENTRIES + step / 2 % 2) * PAIR_THREADS) + step % 2;
  }

  __device__ __forceinline__ void keep(const Task& task) const {
    words[TASK * PAIR_THREADS] = {task.first, task.sums, task.left, 0};
  }

  __device__ __forceinline__ Task task() const {
    const uint4 kept = words[TASK * PAIR_THREADS];
    return {kept.x, kept.y, kept.z};
  }
};

// A thread's share of one pass. Elements of lists and sums lie 32 apart: between them are those of the warp's other lanes.
// The first pass reads a table through entries, `group` pairs of them for each sum that the last pass makes; later ones
// read the list that the pass before made.
template <class F> struct PairWork {
  Source<F> in;
  uint32_t group;
  Inbox<F> inbox;
  ThreadColumn<F> products;
  Affine<F>* out;

  __device__ __forceinline__ void order_entries(uint32_t step) const {
    if (in.entries == nullptr) return;
    const uint32_t within = step & (group - 1);
    copy_to_shared(inbox.entries(step), reinterpret_cast<const uint2*>(in.entries) + (step - within) * WARP + within);
  }

  __device__ __forceinline__ uint2 entries(uint32_t step) const {
    if (in.entries == nullptr) return uint2{2 * WARP * step, 2 * WARP * step + WARP};
    return *inbox.entries(step);
  }

  __device__ __forceinline__ const Affine<F>& point(uint32_t entry) const { return in.points[entry & ~SIGN]; }

  __device__ __forceinline__ void put(uint32_t step, const Affine<F>& sum) const { out[size_t(step) * WARP] = sum; }
};

// Whether there is no point here: no entry, or a gap in the list.
template <class F> __device__ __forceinline__ bool is_missing(uint32_t entry, const F& x) {
  return entry == NONE || is_gap(x);
}

// For points with the same x: the tangent's denominator 2 y, or 1 when there is none because the sum is the identity.
template <class F> __device__ __forceinline__ F tangent_denominator(const F& yp, const F& yq) {
  return yp == yq && !yp.is_zero() ? yp.dbl() : F::one();
}

template <class F> __device__ __forceinline__ F signed_y(uint32_t entry, const F& y) {
  return entry & SIGN ? y.neg() : y;
}

// The same, up to p (loose.cuh).
template <class F> __device__ __forceinline__ F loose_y(uint32_t entry, const F& y) {
  return entry & SIGN ? loose_neg(y) : y;
}

// Up: the product of the denominators of `steps` additions, loose, and all products on the way. Entries are ordered four
// steps ahead of their use, abscissas two.
template <class F> __device__ __forceinline__ F multiply_denominators(const PairWork<F>& work, uint32_t steps) {
  using Box = Inbox<F>;
  const auto order = [&](const uint2& pair, uint32_t step) {
    const unsigned at = step % 2 * Box::XQ;  // XP, YP and XQ, YQ by turns
    if (step < steps && pair.x != NONE) work.inbox.order(at, work.point(pair.x).x);
    if (step < steps && pair.y != NONE) work.inbox.order(at + 1, work.point(pair.y).x);
    if (step + 2 < steps) work.order_entries(step + 2);
    end_copies();
  };
  for (uint32_t step = 0; step < min(steps, 2u); ++step) work.order_entries(step);
  end_copies();
  await_copies<0>();
  uint2 pair = work.entries(0), next = work.entries(1);
  order(pair, 0);
  order(next, 1);
  F product = F::one();
  for (uint32_t step = 0; step < steps; ++step) {
    await_copies<1>();
    const unsigned at = step % 2 * Box::XQ;
    const F xp = work.inbox.take(at), xq = work.inbox.take(at + 1);
    const bool missing = is_missing(pair.x, xp) || is_missing(pair.y, xq);
    F d = loose_sub(xq, xp);
    if (missing) d = F::one();
    if (is_loose_zero(d)) {
      d = tangent_denominator(signed_y(pair.x, work.point(pair.x).y), signed_y(pair.y, work.point(pair.y).y));
    }
    pair = next;
    next = work.entries(step + 2);
    order(next, step + 2);
    if (step > 0) {
      work.products.store(step, product);
      d = loose_mul(product, d);
    }
    product = d;
  }
  return product;
}

// Down: the sums, given the inverse of the product of all denominators. What is needed more than once is read again from
// shared memory: registers are short.
template <class F> __device__ __forceinline__ void divide_and_add(const PairWork<F>& work, uint32_t steps, F inverse) {
  using Box = Inbox<F>;
  const Box& inbox = work.inbox;
  const auto order = [&](const uint2& pair, uint32_t step) {
    if (pair.x != NONE) {
      inbox.order(Box::XP, work.point(pair.x).x);
      inbox.order(Box::YP, work.point(pair.x).y);
    }
    if (pair.y != NONE) {
      inbox.order(Box::XQ, work.point(pair.y).x);
      inbox.order(Box::YQ, work.point(pair.y).y);
    }
    if (step > 0) inbox.order(Box::PRODUCT, work.products, step);
    if (step > 0) work.order_entries(step - 1);
    end_copies();
  };
  work.order_entries(steps - 1);
  end_copies();
  await_copies<0>();
  uint2 pair = work.entries(steps - 1);
  order(pair, steps - 1);
  for (uint32_t step = steps; step-- > 0;) {
    await_copies<0>();
    F d = loose_sub(inbox.take(Box::XQ), inbox.take(Box::XP));
    const bool no_p = is_missing(pair.x, inbox.take(Box::XP)), no_q = is_missing(pair.y, inbox.take(Box::XQ));
    F rise = loose_sub(loose_y(pair.y, inbox.take(Box::YQ)), loose_y(pair.x, inbox.take(Box::YP)));
    bool done = no_p || no_q;
    if (done) {
      d = F::one();
      const F x = inbox.take(no_q ? Box::XP : Box::XQ), y = inbox.take(no_q ? Box::YP : Box::YQ);
      work.put(step, no_p && no_q ? gap<F>() : Affine<F>{x, signed_y(no_q ? pair.x : pair.y, y)});
    } else if (is_loose_zero(d)) {
      d = tangent_denominator(signed_y(pair.x, inbox.take(Box::YP)), signed_y(pair.y, inbox.take(Box::YQ)));
      done = d == F::one();
      const F xx = called_sqr(inbox.take(Box::XP));
      rise = xx.dbl() + xx;
      if (done) work.put(step, gap<F>());
    }
    const F slope = loose_mul(rise, step > 0 ? loose_mul(inverse, inbox.take(Box::PRODUCT)) : inverse);
    inverse = loose_mul(inverse, d);
    const F x = slope.sqr() - inbox.take(Box::XP) - inbox.take(Box::XQ);
    const F run = loose_sub(inbox.take(Box::XP), x);
    const F yp = loose_y(pair.x, inbox.take(Box::YP));
    if (step > 0) {
      pair = work.entries(step - 1);
      order(pair, step - 1);
    }
    const F y = slope * run - yp;
    if (!done) work.put(step, {x, y});
  }
}

// A block's next share of `rounds`, each of a sum a thread: what is left divided by the blocks, but `least` to `most`
// rounds; where `least` is 0 or more than that at first, equal shares; none when all are given out. `next` counts what is: 0 at first. All threads of
// the block call this; `scratch` is theirs together.
struct Share {
  uint32_t first, rounds;
};

__device__ __forceinline__ Share claim_share(uint32_t rounds, uint32_t least, uint32_t most, uint32_t* next,
                                             uint4* scratch) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const uint32_t given = min(atomicAdd(next, 0u), rounds);
    const uint32_t equal = divide_up(rounds, gridDim.x);
    const uint32_t size = least == 0 ? equal : max((rounds - given) / gridDim.x, min(least, equal));
    const uint32_t first = min(atomicAdd(next, min(size, most)), rounds);
    *scratch = {first, min(min(size, most), rounds - first), 0, 0};
  }
  __syncthreads();
  const Share share{scratch->x, scratch->y};
  __syncthreads();
  return share;
}

// What the passes of a grid work with: for each thread `batch` products, and lists of `batch` and half as many sums.
template <class F> struct Pairing {
  Source<F> in;
  uint32_t passes, batch;
  uint4* products;
  Affine<F>*lists, *out;

  // One pass of this thread's task. All threads of the block call this.
  __device__ __forceinline__ void run(const Inbox<F>& inbox, const Task& task) const {
    const uint32_t lane = threadIdx.x % WARP, warp = blockIdx.x * (PAIR_THREADS / WARP) + threadIdx.x / WARP;
    const uint32_t steps = task.sums << (task.left - 1);
    Affine<F>* const list = lists + size_t(warp) * (batch + batch / 2) * WARP + lane;
    Affine<F>* const half = list + size_t(batch) * WARP;
    const bool odd = (passes - task.left) % 2 == 0;
    const Source<F> table{in.points, in.entries + (size_t(task.first) << passes)}, made{odd ? half : list, nullptr};
    const ThreadColumn<F> column{products + size_t(warp) * batch * ThreadColumn<F>::pieces * WARP + lane, WARP};
    const PairWork<F> work{task.left == passes ? table : made, 1u << (passes - 1), inbox, column,
                           task.left == 1 ? out + task.first : odd ? list : half};
    F product = F::one();
    if (steps > 0) product = multiply_denominators(work, steps);
    __syncthreads();
    if (steps > 0) divide_and_add(work, steps, fast_inverse(canonical(product)));
    __syncthreads();
  }
};

// out[i] = the sum of entries i 2^passes and the next 2^passes - 1 of *length entries. A thread makes up to `batch` additions
// for an inversion. Shared memory: an inbox a thread.
template <class F>
__device__ __forceinline__ void add_pairs(const Pairing<F>& pairing, const uint32_t* length, uint32_t least,
                                          uint32_t* next) {
  uint4* const shared = reinterpret_cast<uint4*>(dynamic_shared());
  const Inbox<F> inbox{shared + threadIdx.x};
  for (;;) {
    const uint32_t count = *length >> pairing.passes;  // read anew: a register for it would be one too many
    const Share share = claim_share(divide_up(count, PAIR_THREADS), least, pairing.batch >> (pairing.passes - 1), next,
                                    shared + Inbox<F>::TASK * PAIR_THREADS);
    if (share.rounds == 0) return;
    const uint32_t first = share.first * PAIR_THREADS + threadIdx.x / WARP * WARP * share.rounds + threadIdx.x % WARP;
    inbox.keep({first, first < count ? min(share.rounds, divide_up(count - first, WARP)) : 0, pairing.passes});
    for (bool more = true; more;) {
      pairing.run(inbox, inbox.task());
      Task task = inbox.task();
      more = --task.left > 0;
      inbox.keep(task);
    }
  }
}

}  // namespace msm
}  // namespace freshproof
