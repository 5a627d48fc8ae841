// Where an MSM's points come from: a table through sorted entries, or a list that an earlier pass left.
#pragma once
#include "../curve.cuh"
#include "msm_sort.cuh"

namespace freshproof {
namespace msm {

// Entry k is, with `entries`, +-points[entries[k] without its sign] or the identity for NONE; without, points[k].
template <class F> struct Source {
  const Affine<F>* points;
  const uint32_t* entries;

  __device__ __forceinline__ F x(uint32_t k) const {
    if (entries == nullptr) return points[k].x;
    const uint32_t entry = entries[k];
    return entry == NONE ? F::zero() : points[entry & ~SIGN].x;
  }

  __device__ __forceinline__ Affine<F> point(uint32_t k) const {
    if (entries == nullptr) return points[k];
    const uint32_t entry = entries[k];
    if (entry == NONE) return Affine<F>::identity();
    Affine<F> p = points[entry & ~SIGN];
    if (entry & SIGN) p.y = p.y.neg();
    return p;
  }
};

// Additions as calls, for the narrow and deep parts: inlined a dozen times they would take minutes to compile and
// overflow the instruction cache. The operands' way through local memory is short beside 14 multiplications.
template <class F> __device__ __noinline__ void add_to(Xyzz<F>& sum, const Xyzz<F>& other) { sum = add(sum, other); }

template <class F> __device__ __noinline__ void add_to(Xyzz<F>& sum, const Affine<F>& other) { sum = add(sum, other); }

template <class F> __device__ __noinline__ void double_times(Xyzz<F>& p, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i) p = dbl(p);
}

}  // namespace msm
}  // namespace freshproof
