// Montgomery arithmetic on 32-bit words, for a GPU.
//
// A product of two words is two words wide, so products that start at even word positions and those that start at
// odd ones are kept in two accumulators ("even" and "odd"): within one of them the products of a row lie side by
// side and one carry chain adds them all, each step a fused IMAD.WIDE.U32.X. The two meet only when a word leaves
// the window at its low end. Sources: Montgomery, "Modular Multiplication Without Trial Division" (1985); chains:
// Emmart, Luitjens, Weems and Woolley, "Optimizing Modular Multiplication for NVIDIA's Maxwell GPUs" (ARITH 2016).
//
// The multiply pipe is the limit: on sm_90 an SM starts 64 IMAD a clock and an IMAD.WIDE counts as two. A product
// costs N^2 wide multiplications, a square N (N + 1) / 2, a reduction N^2 and N narrow ones.
//
// P gives words, modulus(i) and negative_inverse32; residues are canonical (< p) unless a comment says otherwise.
#pragma once
#include <cstdint>

#include "dialect.cuh"
#include "ptx.cuh"

#ifdef __CUDA_ARCH__
#define FRESHPROOF_UNROLL _Pragma("unroll")
#else
#define FRESHPROOF_UNROLL
#endif

namespace freshproof {

// The value sum even[k] B^k + sum odd[k] B^(k+1), B = 2^32.
template <unsigned N> struct Window {
  uint32_t even[N], odd[N];
};

template <class P> struct ModulusWords {
  __host__ __device__ __forceinline__ uint32_t operator()(unsigned i) const { return P::modulus(i); }
};

struct ArrayWords {
  const uint32_t* words;
  __host__ __device__ __forceinline__ uint32_t operator()(unsigned i) const { return words[i]; }
};

// window = x * y.
template <unsigned N, class Words>
__host__ __device__ __forceinline__ void set_row(Window<N>& window, const Words& y, uint32_t x) {
  FRESHPROOF_UNROLL
  for (unsigned j = 0; j < N; j += 2) {
    ptx::mul_wide(window.even[j], window.even[j + 1], y(j), x);
    ptx::mul_wide(window.odd[j], window.odd[j + 1], y(j + 1), x);
  }
}

// window.odd += x * (odd words of y), and the flag that `slide` left if Carried. No carry leaves: the total fits.
template <unsigned N, bool Carried, class Words>
__host__ __device__ __forceinline__ void add_odd_row(Window<N>& window, const Words& y, uint32_t x) {
  FRESHPROOF_UNROLL
  for (unsigned j = 0; j < N; j += 2) {
    window.odd[j] = Carried || j > 0 ? ptx::madc_lo_cc(y(j + 1), x, window.odd[j])
                                     : ptx::mad_lo_cc(y(j + 1), x, window.odd[j]);
    window.odd[j + 1] = ptx::madc_hi_cc(y(j + 1), x, window.odd[j + 1]);
  }
}

// window.even += x * (even words of y); the carry out belongs to position N, which odd[N - 1] holds.
template <unsigned N, class Words>
__host__ __device__ __forceinline__ void add_even_row(Window<N>& window, const Words& y, uint32_t x) {
  FRESHPROOF_UNROLL
  for (unsigned j = 0; j < N; j += 2) {
    window.even[j] = j > 0 ? ptx::madc_lo_cc(y(j), x, window.even[j]) : ptx::mad_lo_cc(y(j), x, window.even[j]);
    window.even[j + 1] = ptx::madc_hi_cc(y(j), x, window.even[j + 1]);
  }
  window.odd[N - 1] = ptx::addc(window.odd[N - 1], 0);
}

// window += x * y. Needs the total to fit in N + 1 words.
template <unsigned N, bool Carried, class Words>
__host__ __device__ __forceinline__ void add_row(Window<N>& window, const Words& y, uint32_t x) {
  add_odd_row<N, Carried>(window, y, x);
  add_even_row<N>(window, y, x);
}

// window += m * p for the m = -even[0] / p mod B that makes the low word 0.
template <class P, bool Carried> __host__ __device__ __forceinline__ void clear_low(Window<P::words>& window) {
  constexpr unsigned N = P::words;
  if (P::modulus(0) != 1 || P::modulus(1) != 0xffffffffu) {
    add_row<N, Carried>(window, ModulusWords<P>{}, window.even[0] * P::negative_inverse32);
    return;
  }
  // BLS12-381's Fr: m = -even[0]. m p_0 clears the low word and carries 1 into position 1 unless m = 0, and
  // m p_1 = (m - 1) B + even[0] (0 if m = 0). So a row needs six wide multiplications instead of eight.
  const uint32_t m = ptx::negate(window.even[0]);
  const uint32_t any = m != 0;
  window.odd[0] = Carried ? ptx::addc_cc(window.odd[0], window.even[0]) : ptx::add_cc(window.odd[0], window.even[0]);
  window.odd[1] = ptx::addc_cc(window.odd[1], m - any);
  FRESHPROOF_UNROLL
  for (unsigned j = 2; j < N; j += 2) {
    window.odd[j] = ptx::madc_lo_cc(P::modulus(j + 1), m, window.odd[j]);
    window.odd[j + 1] = ptx::madc_hi_cc(P::modulus(j + 1), m, window.odd[j + 1]);
  }
  window.even[1] = ptx::add_cc(window.even[1], any);
  FRESHPROOF_UNROLL
  for (unsigned j = 2; j < N; j += 2) {
    window.even[j] = ptx::madc_lo_cc(P::modulus(j), m, window.even[j]);
    window.even[j + 1] = ptx::madc_hi_cc(P::modulus(j), m, window.even[j + 1]);
  }
  window.odd[N - 1] = ptx::addc(window.odd[N - 1], 0);
}

// window = floor(window / B) after `clear_low`, or after its low word was taken out. Odd becomes even; the word that is
// left over joins the new low end, and the carry of that addition stays in the flag for position 1
// (add_odd_row<Carried>).
template <unsigned N> __host__ __device__ __forceinline__ void slide(Window<N>& window) {
  Window<N> next;
  FRESHPROOF_UNROLL
  for (unsigned k = 0; k < N; ++k) next.even[k] = window.odd[k];
  FRESHPROOF_UNROLL
  for (unsigned k = 0; k + 2 < N; ++k) next.odd[k] = window.even[k + 2];
  next.odd[N - 2] = next.odd[N - 1] = 0;
  next.even[0] = ptx::add_cc(next.even[0], window.even[1]);
  window = next;
}

// out[0..N) = window, just after `slide`, whose flag is taken up. Needs the value to fit in N words.
template <unsigned N> __host__ __device__ __forceinline__ void join(uint32_t* out, const Window<N>& window) {
  out[0] = window.even[0];
  FRESHPROOF_UNROLL
  for (unsigned k = 1; k < N; ++k) out[k] = ptx::addc_cc(window.even[k], window.odd[k - 1]);
}

// t[0..2N) = a * b.
template <unsigned N>
__host__ __device__ __forceinline__ void wide_mul(uint32_t* t, const uint32_t* a, const uint32_t* b) {
  Window<N> window;
  set_row<N>(window, ArrayWords{a}, b[0]);
  t[0] = window.even[0];
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < N; ++i) {
    slide<N>(window);
    add_row<N, true>(window, ArrayWords{a}, b[i]);
    t[i] = window.even[0];
  }
  slide<N>(window);
  join<N>(t + N, window);
}

// t[0..2N) = a^2 for a < B^N / 2. Row i holds a_i * (a_i, 2 a_(i+1), 2 a_(i+2), ...) from position 2i on; here the
// accumulators stay in place, even[k] and odd[k] at position k. After row i, positions 2i and 2i + 1 are final: they
// are joined at once, and each join's carry opens the chain that starts one position higher.
template <unsigned N> __host__ __device__ __forceinline__ void wide_sqr(uint32_t* t, const uint32_t* a) {
  uint32_t even[2 * N] = {}, odd[2 * N] = {};
  FRESHPROOF_UNROLL
  for (unsigned i = 0; i < N; ++i) {
    // a doubled, without the bits that come from words up to i.
    auto y = [&](unsigned j) { return j == i ? a[j] : a[j] << 1 | (j == i + 1 ? 0u : a[j - 1] >> 31); };
    FRESHPROOF_UNROLL
    for (unsigned j = i; j < N; j += 2) {
      even[i + j] = i + j > 0 ? ptx::madc_lo_cc(y(j), a[i], even[i + j]) : ptx::mad_lo_cc(y(j), a[i], 0);
      even[i + j + 1] = ptx::madc_hi_cc(y(j), a[i], even[i + j + 1]);
    }
    if (i % 2 == 0 && i > 0) even[i + N] = ptx::addc(0, 0);
    t[2 * i] = ptx::add_cc(even[2 * i], odd[2 * i]);
    FRESHPROOF_UNROLL
    for (unsigned j = i + 1; j < N; j += 2) {
      odd[i + j] = ptx::madc_lo_cc(y(j), a[i], odd[i + j]);
      odd[i + j + 1] = ptx::madc_hi_cc(y(j), a[i], odd[i + j + 1]);
    }
    if (i % 2 == 1 && i + 1 < N) odd[i + N] = ptx::addc(0, 0);
    t[2 * i + 1] = i + 1 < N ? ptx::add_cc(even[2 * i + 1], odd[2 * i + 1])
                             : ptx::addc_cc(even[2 * i + 1], odd[2 * i + 1]);
  }
}

// out = t mod p for t < 2p, without a branch.
template <class P> __host__ __device__ __forceinline__ void subtract_modulus(uint32_t* out, const uint32_t* t) {
  uint32_t less[P::words];
  less[0] = ptx::sub_cc(t[0], P::modulus(0));
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) less[i] = ptx::subc_cc(t[i], P::modulus(i));
  const uint32_t borrowed = ptx::subc(0, 0);
  FRESHPROOF_UNROLL
  for (unsigned i = 0; i < P::words; ++i) out[i] = borrowed ? t[i] : less[i];
}

// out = t[0..2N) / R mod p for t < p R. Each row adds the multiple of p that clears the window's low word.
// The window ends at most at p, t's high half is below p: their sum needs one subtraction.
template <class P> __host__ __device__ __forceinline__ void reduce(uint32_t* out, const uint32_t* t) {
  constexpr unsigned N = P::words;
  Window<N> window;
  FRESHPROOF_UNROLL
  for (unsigned k = 0; k < N; ++k) window.even[k] = t[k];
  FRESHPROOF_UNROLL
  for (unsigned k = 0; k < N; ++k) window.odd[k] = 0;
  FRESHPROOF_UNROLL
  for (unsigned i = 0; i < N; ++i) {
    if (i == 0) {
      clear_low<P, false>(window);
    } else {
      clear_low<P, true>(window);
    }
    slide<N>(window);
  }
  uint32_t sum[N];
  join<N>(sum, window);
  sum[0] = ptx::add_cc(sum[0], t[N]);
  FRESHPROOF_UNROLL
  for (unsigned k = 1; k < N; ++k) sum[k] = ptx::addc_cc(sum[k], t[N + k]);
  subtract_modulus<P>(out, sum);
}

// out = a + b mod p. Two moduli fit in the words: 2p < B^N.
template <class P>
__host__ __device__ __forceinline__ void device_add(uint32_t* out, const uint32_t* a, const uint32_t* b) {
  uint32_t sum[P::words];
  sum[0] = ptx::add_cc(a[0], b[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) sum[i] = ptx::addc_cc(a[i], b[i]);
  subtract_modulus<P>(out, sum);
}

// out = a - b mod p.
template <class P>
__host__ __device__ __forceinline__ void device_sub(uint32_t* out, const uint32_t* a, const uint32_t* b) {
  uint32_t difference[P::words];
  difference[0] = ptx::sub_cc(a[0], b[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) difference[i] = ptx::subc_cc(a[i], b[i]);
  const uint32_t borrowed = ptx::subc(0, 0);
  out[0] = ptx::add_cc(difference[0], borrowed & P::modulus(0));
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) out[i] = ptx::addc_cc(difference[i], borrowed & P::modulus(i));
}

// out = a b / R mod p, not fully reduced: below a b / R + p. Rows of the product and of the reduction by turns in one window:
// fewer registers than a wide product. Needs a + p to fit in N words.
template <class P>
__host__ __device__ __forceinline__ void device_loose_mul(uint32_t* out, const uint32_t* a, const uint32_t* b) {
  constexpr unsigned N = P::words;
  Window<N> window;
  set_row<N>(window, ArrayWords{a}, b[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 0; i < N; ++i) {
    if (i > 0) add_row<N, true>(window, ArrayWords{a}, b[i]);
    clear_low<P, false>(window);
    slide<N>(window);
  }
  join<N>(out, window);
}

// out = a b / R mod p where a b / R + p is below 2 p: for residues, and where 4 p < R for a, b up to 2 p.
template <class P>
__host__ __device__ __forceinline__ void device_mul(uint32_t* out, const uint32_t* a, const uint32_t* b) {
  uint32_t sum[P::words];
  device_loose_mul<P>(sum, a, b);
  subtract_modulus<P>(out, sum);
}

// out = a - b + p for a, b up to p.
template <class P>
__host__ __device__ __forceinline__ void device_loose_sub(uint32_t* out, const uint32_t* a, const uint32_t* b) {
  uint32_t difference[P::words];
  difference[0] = ptx::sub_cc(a[0], b[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) difference[i] = ptx::subc_cc(a[i], b[i]);
  out[0] = ptx::add_cc(difference[0], P::modulus(0));
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) out[i] = ptx::addc_cc(difference[i], P::modulus(i));
}

// out = p - a for a up to p.
template <class P> __host__ __device__ __forceinline__ void device_loose_neg(uint32_t* out, const uint32_t* a) {
  out[0] = ptx::sub_cc(P::modulus(0), a[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) out[i] = ptx::subc_cc(P::modulus(i), a[i]);
}

// out = a^2 / R mod p.
template <class P> __host__ __device__ __forceinline__ void device_sqr(uint32_t* out, const uint32_t* a) {
  uint32_t t[2 * P::words];
  wide_sqr<P::words>(t, a);
  reduce<P>(out, t);
}

// out = (a b + c d) / R mod p: two products, one reduction. Needs 4 p < R; the window ends below 2p.
template <class P>
__host__ __device__ __forceinline__ void device_mul_add(uint32_t* out, const uint32_t* a, const uint32_t* b,
                                                        const uint32_t* c, const uint32_t* d) {
  static_assert(P::bits + 2 <= 32 * P::words, "three rows at once and 2 p must fit the window");
  constexpr unsigned N = P::words;
  Window<N> window;
  set_row<N>(window, ArrayWords{a}, b[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 0; i < N; ++i) {
    if (i > 0) add_row<N, true>(window, ArrayWords{a}, b[i]);
    add_row<N, false>(window, ArrayWords{c}, d[i]);
    clear_low<P, false>(window);
    slide<N>(window);
  }
  uint32_t sum[N];
  join<N>(sum, window);
  subtract_modulus<P>(out, sum);
}

}  // namespace freshproof
