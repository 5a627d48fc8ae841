// XYZZ points held by four lanes, a quad: lane q of it has coordinate q of X, Y, ZZ, ZZZ.
//
// An addition is then 4 multiplications deep instead of 14, and a doubling 3 instead of 9, with the other lanes' work beside
// the longest chain. It is not less work: it is for where few points are left and latency is all. Formulas as in
// curve.cuh. The lanes of a quad go together; different quads of a warp may part.
#pragma once
#include "outlined.cuh"

namespace freshproof {

constexpr uint32_t QUAD = 4;

__device__ __forceinline__ unsigned quad_lane() { return threadIdx.x % QUAD; }

// This lane's coordinate of the point in memory.
template <class F> __device__ __forceinline__ F quad_load(const Xyzz<F>& point) {
  return reinterpret_cast<const F*>(&point)[quad_lane()];
}

template <class F> __device__ __forceinline__ void quad_store(Xyzz<F>& point, const F& own) {
  reinterpret_cast<F*>(&point)[quad_lane()] = own;
}

// own -> own of 2 p. The identity stays the identity: ZZ stays 0.
template <class F> __device__ FRESHPROOF_NOINLINE F quad_double(F own) {
  const unsigned q = quad_lane();
  const F u = q == 1 ? own.dbl() : own;
  const F squares = called_mul(u, u);  // X^2, V = (2 Y)^2
  const F xx = quad_get(squares, 0), v = quad_get(squares, 1);
  const F m = xx.dbl() + xx;
  const F second = called_mul(q == 3 ? m : u, q == 3 ? m : v);  // S = X V, W = 2 Y V, V ZZ, M^2
  const F w = quad_get(second, 1);
  const F x = quad_get(second, 3) - second.dbl();                        // in lane 0
  const F third = called_mul(q == 0 ? m : w, q == 0 ? second - x : own);  // M (S - X), W Y, -, W ZZZ
  const F y = quad_get(third, 0) - third;                                // in lane 1
  return q == 0 ? x : q == 1 ? y : q == 2 ? second : third;
}

// own coordinates of p and q -> own of p + q; complete.
template <class F> __device__ FRESHPROOF_NOINLINE F quad_add(F p, F other) {
  const unsigned q = quad_lane();
  if (quad_get(uint32_t(other.is_zero()), 2)) return p;
  if (quad_get(uint32_t(p.is_zero()), 2)) return other;
  const F first = called_mul(p, quad_get(other, q ^ 2));  // U1 = X1 ZZ2, S1 = Y1 ZZZ2, U2, S2
  const F h = quad_get(first, q ^ 2) - first;             // H = U2 - U1, R = S2 - S1 in lanes 0, 1
  const uint32_t none = h.is_zero();
  if (quad_get(none, 0)) return quad_get(none, 1) ? quad_double(p) : F::zero();
  const F second = called_mul(q < 2 ? h : p, q < 2 ? h : other);  // HH, RR, ZZ1 ZZ2, ZZZ1 ZZZ2
  const F hh = quad_get(second, 0), u1 = quad_get(first, 0);
  const F third = called_mul(q == 0 ? h : q == 1 ? u1 : second, hh);  // HHH, Q = U1 HH, ZZ, -
  const F hhh = quad_get(third, 0), s1 = quad_get(first, 1);
  const F x = second - hhh - third.dbl();  // in lane 1: RR - HHH - 2 Q
  const F fourth = called_mul(q == 0 ? s1 : q == 1 ? h : second, q == 1 ? third - x : hhh);  // S1 HHH, R (Q - X), -, ZZZ
  const F y = fourth - quad_get(fourth, 0);  // in lane 1
  const F x_to_lane_0 = quad_get(x, 1);
  return q == 0 ? x_to_lane_0 : q == 1 ? y : q == 2 ? third : fourth;
}

// own of 2^times p.
template <class F> __device__ __forceinline__ F quad_double_times(F own, uint32_t times) {
  for (uint32_t i = 0; i < times; ++i) own = quad_double(own);
  return own;
}

}  // namespace freshproof
