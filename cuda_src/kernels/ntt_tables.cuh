// The factor tables of NTT passes, computed once per domain, and the transform of the few points below one tile.
#pragma once
#include "ntt_pass.cuh"

namespace freshproof {
namespace ntt {

// Powers of one root g of unity by two short tables: g^e = low[e mod 2^log_low] * high[e >> log_low], all in
// Montgomery form. `scale` is one more factor, such as 1 / n.
template <class P> struct Powers {
  const Field<P>* low;
  const Field<P>* high;
  unsigned log_low;
  Field<P> scale;

  __host__ __device__ __forceinline__ Field<P> operator()(uint32_t e) const {
    return low[e & ((1u << log_low) - 1)] * high[e >> log_low] * scale;
  }
};

// A constant for shoup_mul from its Montgomery form v = w B^N mod p: the digits m that Montgomery reduction adds,
// v + m p = 0 mod B^N, are floor(w B^N / p), and what the reduction leaves is w.
template <class P>
__host__ __device__ __forceinline__ void shoup_constant(Field<P>& w, Field<P>& quotient, const Field<P>& v) {
  constexpr unsigned N = P::words;
  w = v;
  for (unsigned i = 0; i < N; ++i) {
    const uint32_t m = w.w[0] * P::negative_inverse32;
    quotient.w[i] = m;
    uint64_t carry = (uint64_t(m) * P::modulus(0) + w.w[0]) >> 32;
    for (unsigned k = 1; k < N; ++k) {
      carry += uint64_t(m) * P::modulus(k) + w.w[k];
      w.w[k - 1] = uint32_t(carry);
      carry >>= 32;
    }
    w.w[N - 1] = uint32_t(carry);
  }
}

// Entry k = q + 2^log_f r of a pass's factors: scale * g^(alpha q r + beta k), at table_piece(k).
//   twiddles of a pass that makes length s R, g of order m:  alpha = m / (s R), beta = 0
//   shift to the coset g D:                                  alpha = 0, beta = 1
//   scale alone:                                             alpha = beta = 0
// Launch: any grid over the entries. Cost: two multiplications and a reduction an entry.
template <class P>
__host__ __device__ __forceinline__ void factor_entry(uint4* table, unsigned log_f, uint32_t alpha, uint32_t beta,
                                                      const Powers<P>& power, uint32_t k) {
  const uint32_t q = k & ((1u << log_f) - 1);
  const uint32_t r = k >> log_f;
  Field<P> w, quotient;
  shoup_constant<P>(w, quotient, power(alpha * q * r + beta * k));
  uint4* entry = table + table_piece(k);
  entry[0] = low_half(w);
  entry[8] = high_half(w);
  entry[16] = low_half(quotient);
  entry[24] = high_half(quotient);
}

// The transform of n = 2^log_n < 8 points, by its definition, in place: out[k] = sum_j w^(j k) f_j in[+-j].
// roots: w^j in Montgomery form, j < n. One thread does it all.
template <class P>
__host__ __device__ __forceinline__ void direct(uint4* data, const uint4* factors, const Field<P>* roots, unsigned log_n,
                                                bool flip) {
  const uint32_t n = 1u << log_n;
  Field<P> in[4] = {};
  for (uint32_t j = 0; j < n; ++j) {
    const uint32_t from = flip ? (0u - j) & (n - 1) : j;
    in[j] = join_halves<P>(data[2 * from], data[2 * from + 1]);
    if (factors != nullptr) in[j] = times_table<P>(in[j], factors, j);
  }
  for (uint32_t k = 0; k < n; ++k) {
    Field<P> sum = Field<P>::zero();
    for (uint32_t j = 0; j < n; ++j) sum = sum + in[j] * roots[(j * k) & (n - 1)];
    data[2 * k] = low_half(sum);
    data[2 * k + 1] = high_half(sum);
  }
}

}  // namespace ntt
}  // namespace freshproof
