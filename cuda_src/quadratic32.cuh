// Products in Fq2 = Fq[u] / (u^2 + 1) on 32-bit words: 3 wide products and 2 reductions instead of 3 multiplications.
//
// On a GPU these are calls. Inlined, an addition of points over Fq2 is some 40 field multiplications of code, more than
// the instruction cache holds, and its temporaries do not fit in registers; a call's way through the stack costs
// a fortieth of the product's multiplications and none of the multiply pipe.
#pragma once
#include "mont32.cuh"

namespace freshproof {

// out[0..N) = a + b, not reduced. Needs the sum to fit.
template <unsigned N>
__host__ __device__ __forceinline__ void add_words(uint32_t* out, const uint32_t* a, const uint32_t* b) {
  out[0] = ptx::add_cc(a[0], b[0]);
  FRESHPROOF_UNROLL
  for (unsigned k = 1; k < N; ++k) out[k] = ptx::addc_cc(a[k], b[k]);
}

// out[0..N) = a - b; all ones if that is negative, else 0.
template <unsigned N>
__host__ __device__ __forceinline__ uint32_t sub_words(uint32_t* out, const uint32_t* a, const uint32_t* b) {
  out[0] = ptx::sub_cc(a[0], b[0]);
  FRESHPROOF_UNROLL
  for (unsigned k = 1; k < N; ++k) out[k] = ptx::subc_cc(a[k], b[k]);
  return ptx::subc(0, 0);
}

// c0 = a0 b0 - a1 b1, c1 = (a0 + a1)(b0 + b1) - a0 b0 - a1 b1, each / R mod p. A negative difference gets p R, which
// does not change it mod p and brings it into the range of `reduce`; the other is at most 2 p^2. Needs 2 p < R.
template <class P>
__host__ __device__ __forceinline__ void device_quadratic_mul(uint32_t* c0, uint32_t* c1, const uint32_t* a0,
                                                              const uint32_t* a1, const uint32_t* b0,
                                                              const uint32_t* b1) {
  static_assert(P::bits + 2 <= 32 * P::words, "2 p^2 must be below p R");
  constexpr unsigned N = P::words;
  uint32_t low[2 * N], high[2 * N], difference[2 * N], cross[2 * N], a[N], b[N];
  add_words<N>(a, a0, a1);
  add_words<N>(b, b0, b1);
  wide_mul<N>(low, a0, b0);
  wide_mul<N>(high, a1, b1);
  const uint32_t negative = sub_words<2 * N>(difference, low, high);
  difference[N] = ptx::add_cc(difference[N], negative & P::modulus(0));
  FRESHPROOF_UNROLL
  for (unsigned k = 1; k < N; ++k) difference[N + k] = ptx::addc_cc(difference[N + k], negative & P::modulus(k));
  add_words<2 * N>(low, low, high);
  reduce<P>(c0, difference);
  wide_mul<N>(cross, a, b);
  sub_words<2 * N>(cross, cross, low);
  reduce<P>(c1, cross);
}

// c0 = (a0 + a1)(a0 - a1), c1 = 2 a0 a1, each / R mod p; the sums are not reduced, which `device_mul` allows for one
// factor.
template <class P>
__host__ __device__ __forceinline__ void device_quadratic_sqr(uint32_t* c0, uint32_t* c1, const uint32_t* a0,
                                                              const uint32_t* a1) {
  static_assert(P::bits + 2 <= 32 * P::words, "a factor of 2 p must be allowed");
  constexpr unsigned N = P::words;
  uint32_t sum[N], difference[N], twice[N];
  add_words<N>(sum, a0, a1);
  device_sub<P>(difference, a0, a1);
  add_words<N>(twice, a0, a0);
  device_mul<P>(c1, twice, a1);
  device_mul<P>(c0, sum, difference);
}

}  // namespace freshproof
