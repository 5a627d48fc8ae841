// Many inversions for one, thread by thread (Montgomery, "Speeding the Pollard and Elliptic Curve Methods of
// Factorization", 1987): running products p_0 = 1, p_(j+1) = p_j d_j going up, one inversion, and going down
// 1 / d_j = p_j / (d_0 .. d_j). Three multiplications an element, and an inversion a thread.
#pragma once
#include "../inverse32.cuh"
#include "../tower.cuh"
#include "grid.cuh"

namespace freshproof {

// 1 / a, and 0 for 0.
template <class P> __device__ __forceinline__ Field<P> fast_inverse(const Field<P>& a) {
  Field<P> out;
  device_inverse<P>(out.w, a.w);
  return out;
}

// 1 / (c0 + c1 u) = (c0 - c1 u) / (c0^2 + c1^2).
template <class Base> __device__ __forceinline__ Quadratic<Base> fast_inverse(const Quadratic<Base>& a) {
  const Base scale = fast_inverse(a.c0.sqr() + a.c1.sqr());
  return {a.c0 * scale, (a.c1 * scale).neg()};
}

// A thread's values, one a step, in 16-byte pieces so arranged that a warp's access is one stretch: piece q of step j at
// words[(j * pieces + q) * stride], and the next thread's beside it.
template <class F> struct ThreadColumn {
  static constexpr unsigned pieces = sizeof(F) / 16;
  uint4* words;
  uint32_t stride;

  // This thread's column where each thread of the grid has one.
  static __device__ __forceinline__ ThreadColumn of_grid(uint4* words) {
    return {words + global_thread(), grid_threads()};
  }

  __device__ __forceinline__ uint4* piece(uint32_t step, unsigned q) const {
    return words + (size_t(step) * pieces + q) * stride;
  }

  __device__ __forceinline__ void store(uint32_t step, const F& value) const {
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) *piece(step, q) = reinterpret_cast<const uint4*>(&value)[q];
  }

  __device__ __forceinline__ F load(uint32_t step) const {
    F value;
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) reinterpret_cast<uint4*>(&value)[q] = *piece(step, q);
    return value;
  }
};

}  // namespace freshproof
