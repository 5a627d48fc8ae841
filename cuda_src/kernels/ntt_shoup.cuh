// x * w mod p for a constant w, by an estimate of the quotient.
//
// With w comes q = floor(w B^N / p), B = 2^32. Then t = floor(x q / B^N) is the quotient of x w by p or up to two
// less, and x w - t p needs only the low N words of both products: N (3 N + 2) / 2 + 1 wide multiplications for any
// modulus, where Montgomery's method takes 2 N^2 and N narrow ones. w is in standard form, x and the result in any
// form (both stay in it). Source: Harvey, "Faster arithmetic for number-theoretic transforms" (J. Symb. Comp. 2014),
// section 3, who credits V. Shoup.
//
// Words: a functor w(i), i < N. Constants known to the compiler say so (KnownWords); they become immediates, and their
// words 0 and 1 additions.
#pragma once
#include "../mont32.cuh"

namespace freshproof {

template <class Words> struct KnownWords {
  static constexpr bool value = false;
};

// (high, low) += y(i) x, as one step of a carry chain that Starts here or goes on.
template <bool Starts, class Words>
__host__ __device__ __forceinline__ void add_low_word(uint32_t& low, const Words& y, unsigned i, uint32_t x) {
  if (KnownWords<Words>::value && y(i) < 2) {
    low = Starts ? ptx::add_cc(low, y(i) == 0 ? 0 : x) : ptx::addc_cc(low, y(i) == 0 ? 0 : x);
  } else {
    low = Starts ? ptx::mad_lo_cc(y(i), x, low) : ptx::madc_lo_cc(y(i), x, low);
  }
}

template <class Words>
__host__ __device__ __forceinline__ void add_high_word(uint32_t& high, const Words& y, unsigned i, uint32_t x) {
  high = KnownWords<Words>::value && y(i) < 2 ? ptx::addc_cc(high, 0) : ptx::madc_hi_cc(y(i), x, high);
}

template <class Words>
__host__ __device__ __forceinline__ void add_word_product(bool starts, uint32_t& low, uint32_t& high, const Words& y,
                                                          unsigned i, uint32_t x) {
  if (starts) {
    add_low_word<true>(low, y, i, x);
  } else {
    add_low_word<false>(low, y, i, x);
  }
  add_high_word(high, y, i, x);
}

// Even and odd accumulators as in mont32.cuh, here for the upper words of a product: columns N - 2 and up.
// t = floor(x q / B^N), or one less: the columns below N - 2 are left out, which are worth under 14 / B.
// Cost: N (N + 1) / 2 + N - 1 wide multiplications.
template <unsigned N, class Words>
__host__ __device__ __forceinline__ void high_product(uint32_t* t, const uint32_t* x, const Words& q) {
  uint32_t even[N + 2] = {};  // words N - 2 ... 2N - 1
  uint32_t odd[N + 1] = {};   // words N - 1 ... 2N - 1
  FRESHPROOF_UNROLL
  for (unsigned j = 0; j < N; ++j) {
    const unsigned even_start = j + 1 == N ? 1 : N - 2 - j;
    FRESHPROOF_UNROLL
    for (unsigned i = even_start; i < N; i += 2) {
      const unsigned k = i + j - (N - 2);
      add_word_product(i == even_start, even[k], even[k + 1], q, i, x[j]);
    }
    if (j % 2 == 0 && j > 0) even[j + 2] = ptx::addc(0, 0);  // the row ended below a new pair: its carry opens it
    const unsigned odd_start = N - 1 - j;
    FRESHPROOF_UNROLL
    for (unsigned i = odd_start; i < N; i += 2) {
      const unsigned k = i + j - (N - 1);
      add_word_product(i == odd_start, odd[k], odd[k + 1], q, i, x[j]);
    }
    if (j % 2 == 1) odd[j + 1] = ptx::addc(0, 0);
  }
  ptx::add_cc(even[1], odd[0]);
  FRESHPROOF_UNROLL
  for (unsigned k = 0; k < N; ++k) t[k] = ptx::addc_cc(even[k + 2], odd[k + 1]);
}

// (even + odd B) += x * (words y(First) ... y(N - 1)) B^First, mod B^N. Here even[k] is word k, odd[k] word k + 1.
template <unsigned N, unsigned First, class Words>
__host__ __device__ __forceinline__ void add_low_product(uint32_t* even, uint32_t* odd, const uint32_t* x,
                                                         const Words& y) {
  FRESHPROOF_UNROLL
  for (unsigned j = 0; j + First < N; ++j) {
    const unsigned even_start = First + (First + j) % 2;
    FRESHPROOF_UNROLL
    for (unsigned i = even_start; i + j + 2 <= N; i += 2) {
      const unsigned k = i + j;
      add_word_product(i == even_start, even[k], even[k + 1], y, i, x[j]);
    }
    const unsigned odd_start = First + (First + j + 1) % 2;
    FRESHPROOF_UNROLL
    for (unsigned i = odd_start; i + j < N; i += 2) {
      const unsigned k = i + j - 1;
      if (i + j + 1 < N) {
        add_word_product(i == odd_start, odd[k], odd[k + 1], y, i, x[j]);
      } else if (i == odd_start) {
        add_low_word<true>(odd[k], y, i, x[j]);
      } else {
        add_low_word<false>(odd[k], y, i, x[j]);
      }
    }
  }
}

// The words of B^N - p.
template <class P> struct NegatedModulusWords {
  __host__ __device__ __forceinline__ uint32_t operator()(unsigned i) const {
    return i == 0 ? 0u - P::modulus(0) : ~P::modulus(i);  // p is odd: no carry leaves word 0
  }
};

// even + odd B = -t p mod B^N. The low words of both moduli are sums of few powers of two, and those products are
// additions, which run beside the multiply pipe:
//   BLS12-381: p = 1 + (B - 1) B + ...    -t p = -t + t B + t (words 2.. of B^N - p)      saves 13 of 64 half-products
//   BN254:     p = 1 - 2^28 + B + ...     -t p = -t + 2^28 t + t (words 1.. of B^N - p)   saves 15
template <class P>
__host__ __device__ __forceinline__ void negated_multiple(uint32_t* even, uint32_t* odd, const uint32_t* t) {
  constexpr unsigned N = P::words;
  constexpr bool one_minus_one = P::modulus(0) == 1u && P::modulus(1) == 0xffffffffu;
  constexpr bool shift_28 = P::modulus(0) == 0xf0000001u;
  static_assert(one_minus_one || shift_28, "a modulus whose low words are neither curve's");
  FRESHPROOF_UNROLL
  for (unsigned k = 0; k < N; ++k) {
    const uint32_t start = shift_28 ? t[k] << 28 | (k > 0 ? t[k - 1] >> 4 : 0u) : 0u;
    even[k] = k == 0 ? ptx::sub_cc(start, t[k]) : ptx::subc_cc(start, t[k]);
    if (k + 1 < N) odd[k] = one_minus_one ? t[k] : 0u;
  }
  add_low_product<N, one_minus_one ? 2 : 1>(even, odd, t, NegatedModulusWords<P>{});
}

// out = x w mod p, canonical, for any x < 2p. Then x q / B^N is less than x w / p by under x / B^N < 0.91, the
// estimate t by under 1 + 14 / B more, so x w - t p < 2p < B^N.
template <class P, class W, class Q>
__host__ __device__ __forceinline__ void shoup_mul(uint32_t* out, const uint32_t* x, const W& w, const Q& q) {
  constexpr unsigned N = P::words;
  uint32_t t[N], even[N], odd[N - 1], sum[N];
  high_product<N>(t, x, q);
  negated_multiple<P>(even, odd, t);
  add_low_product<N, 0>(even, odd, x, w);
  sum[0] = even[0];
  FRESHPROOF_UNROLL
  for (unsigned k = 1; k < N; ++k) {
    sum[k] = k == 1 ? ptx::add_cc(even[k], odd[k - 1]) : ptx::addc_cc(even[k], odd[k - 1]);
  }
  subtract_modulus<P>(out, sum);
}

}  // namespace freshproof
