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

// One value a thread and step, in 16-byte pieces so arranged that a warp's access is one stretch:
// piece q of step j of thread t at words[(j * pieces + q) * threads + t].
template <class F> struct ThreadColumn {
  static constexpr unsigned pieces = sizeof(F) / 16;
  uint4* words;

  __device__ __forceinline__ void store(uint32_t step, const F& value) const {
    const uint4* from = reinterpret_cast<const uint4*>(&value);
    uint4* to = words + size_t(step) * pieces * grid_threads() + global_thread();
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) to[size_t(q) * grid_threads()] = from[q];
  }

  __device__ __forceinline__ const uint4* piece(uint32_t step, unsigned q) const {
    return words + (size_t(step) * pieces + q) * grid_threads() + global_thread();
  }

  __device__ __forceinline__ F load(uint32_t step) const {
    F value;
    uint4* to = reinterpret_cast<uint4*>(&value);
    const uint4* from = words + size_t(step) * pieces * grid_threads() + global_thread();
    FRESHPROOF_UNROLL
    for (unsigned q = 0; q < pieces; ++q) to[q] = from[size_t(q) * grid_threads()];
    return value;
  }
};

}  // namespace freshproof
