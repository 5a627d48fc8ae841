// Bucket sums: sums[b] = sum of the entries of bucket b, XYZZ.
//
// The list of entries is cut into equal chunks, one a thread, without regard to buckets, so every thread has the same
// work whatever the scalars are. A thread whose chunk begins inside a bucket keeps that bucket's first sum as a
// partial; each other bucket it meets it writes itself: each bucket has one writer, the thread where it starts.
// Then `add_partials` adds the partials of each bucket, 4 to 1 a level, so that a bucket that spans all threads takes
// 8 levels and an ordinary one ends with the first. In a small MSM these levels are most of a bucket's chain of additions,
// and threads are idle: so four lanes share a point (quad.cuh).
//
// Cost: 8 M + 2 S an entry. Buckets without entries are not written: readers ask `starts`.
#pragma once
#include "msm_points.cuh"
#include "quad.cuh"

namespace freshproof {
namespace msm {

// Entries and buckets of an MSM after `passes` pairing passes: bucket b's entries are start(b) .. start(b + 1) - 1.
struct Stretches {
  const uint32_t* starts;
  uint32_t buckets, passes, threads, least_chunk;

  __device__ __forceinline__ uint32_t start(uint32_t bucket) const { return starts[bucket] >> passes; }

  __device__ __forceinline__ uint32_t length() const { return start(buckets); }

  // Entries a thread.
  __device__ __forceinline__ uint32_t chunk() const { return max(divide_up(length(), threads), least_chunk); }

  // The bucket that entry k belongs to: the last that starts at or before k.
  __device__ __forceinline__ uint32_t bucket_of(uint32_t k) const {
    uint32_t low = 0, high = buckets;  // start(low) <= k < start(high)
    while (high - low > 1) {
      const uint32_t middle = (low + high) / 2;
      if (start(middle) <= k) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

template <class F>
__device__ __forceinline__ void accumulate(const Source<F>& in, const Stretches& stretches, Xyzz<F>* sums,
                                           Xyzz<F>* partials, uint32_t* partial_buckets) {
  const uint32_t thread = global_thread();
  const uint32_t length = stretches.length(), chunk = stretches.chunk();
  partial_buckets[thread] = NONE;
  if (uint64_t(thread) * chunk >= length) return;
  const uint32_t begin = thread * chunk, end = length - begin > chunk ? begin + chunk : length;
  uint32_t bucket = stretches.bucket_of(begin);
  uint32_t next = stretches.start(bucket + 1);
  Xyzz<F>* target = sums + bucket;
  if (stretches.start(bucket) < begin) {
    target = partials + thread;
    partial_buckets[thread] = bucket;
  }
  Xyzz<F> sum = Xyzz<F>::identity();
  Reader<F> points(in, begin, end);
  for (uint32_t k = begin; k < end; ++k) {
    if (k == next) {
      *target = sum;
      sum = Xyzz<F>::identity();
      next = stretches.start(++bucket + 1);
      if (next == k) {  // empty buckets may be many: no walk over them
        bucket = stretches.bucket_of(k);
        next = stretches.start(bucket + 1);
      }
      target = sums + bucket;
    }
    const Affine<F> point = points.next();
    if (!is_gap(point.x)) add_hot(sum, point);
  }
  *target = sum;
}

constexpr uint32_t FAN_IN = 4;  // partials that one quad adds at one level: 3 additions deep, 8 levels for 2^16

// A quad for each thread that accumulated. Level with stride 1, 4, 16, ..: partials number k, k + stride, .. of a bucket
// (k = 1, 1 + 4 stride, ..) become one; the last that is left joins the bucket's sum. A bucket that starts in thread s's
// chunk has partials s + 1, s + 2, ..
template <class F>
__device__ __forceinline__ void add_partials(const Stretches& stretches, uint32_t stride, Xyzz<F>* sums,
                                             Xyzz<F>* partials, const uint32_t* partial_buckets) {
  const uint32_t thread = global_thread() / QUAD;
  const uint32_t bucket = partial_buckets[thread];
  if (bucket == NONE) return;
  const uint32_t chunk = stretches.chunk();
  const uint32_t starter = stretches.start(bucket) / chunk;
  const uint32_t run = (stretches.start(bucket + 1) - 1) / chunk - starter;  // the bucket's partials
  const uint32_t number = thread - starter - 1;
  if (number % (FAN_IN * stride) != 0 || (stride > 1 && run <= stride)) return;
  F sum = quad_load(partials[thread]);
  for (uint32_t m = 1; m < FAN_IN && number + m * stride < run; ++m) {
    sum = quad_add(sum, quad_load(partials[thread + m * stride]));
  }
  if (run <= FAN_IN * stride) {
    quad_store(sums[bucket], quad_add(quad_load(sums[bucket]), sum));
  } else {
    quad_store(partials[thread], sum);
  }
}

}  // namespace msm
}  // namespace freshproof
