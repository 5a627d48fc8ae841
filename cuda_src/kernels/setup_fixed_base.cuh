// Many multiples of one point, for making keys: a table of the point's multiples by every digit of a scalar.
//
// A scalar is 32 digits of 8 bits: k P = sum_w T[w][digit_w], T[w][d] = d 2^(8 w) P. At most 32 mixed additions a
// scalar and no doubling. Source: Brickell, Gordon, McCurley and Wilson, "Fast Exponentiation with Precomputation"
// (EUROCRYPT 1992). Secret scalars leave traces in timing and memory: these are test keys.
#pragma once
#include "../curve.cuh"
#ifdef __CUDACC__
#include "batch_inverse.cuh"
#endif

namespace freshproof {
namespace setup {

// 1 / a: by division steps on a GPU, where Fermat's power would be most of the work.
template <class F> __host__ __device__ __forceinline__ F inverse_of(const F& a) {
#ifdef __CUDA_ARCH__
  return fast_inverse(a);
#else
  return a.inverse();
#endif
}

// p with its denominators' inverse, 1 / zzz, already known.
template <class F> __host__ __device__ __forceinline__ Affine<F> affine_by(const Xyzz<F>& p, const F& cube) {
  return {p.x * (cube * p.zz).sqr(), p.y * cube};
}

constexpr unsigned digit_bits = 8;
constexpr unsigned digits = 32;
constexpr unsigned row = (1u << digit_bits) - 1;  // digit 0 adds nothing and has no entry
constexpr unsigned table_points = digits * row;

// T[w][d] at k = row w + d - 1.
template <class F> __host__ __device__ Affine<F> table_entry(const Affine<F>& point, uint32_t k) {
  const uint32_t w = k / row, d = k % row + 1;
  Xyzz<F> sum = Xyzz<F>::identity();
#pragma unroll 1
  for (unsigned step = 0; step < digit_bits * (w + 1); ++step) {  // the digit's bits from the top, then zeros
    sum = dbl(sum);
    if (step < digit_bits && d >> (digit_bits - 1 - step) & 1) sum = add(sum, point);
  }
  return affine_by(sum, inverse_of(sum.zzz));  // r divides no d 2^(8 w): never the identity
}

// scalar * point. scalar: 8 words, standard form.
template <class F> __host__ __device__ Xyzz<F> multiple(const Affine<F>* table, const uint32_t* scalar) {
  Xyzz<F> sum = Xyzz<F>::identity();
#pragma unroll 1
  for (unsigned w = 0; w < digits; ++w) {
    const uint32_t d = scalar[w / 4] >> (w % 4 * digit_bits) & row;
    if (d > 0) sum = add(sum, table[w * row + d - 1]);
  }
  return sum;
}

// out[start], out[start + step], ... below n: the affine forms of the same points of in, by one inversion
// (Montgomery's trick). The products of all earlier denominators wait in out[..].x. Cost: 5 multiplications a
// point beside the two of to_affine.
template <class F>
__host__ __device__ void batch_to_affine(Affine<F>* out, const Xyzz<F>* in, uint32_t start, uint32_t step, uint32_t n) {
  F product = F::one();
  uint32_t last = start;
  for (uint32_t k = start; k < n; k += step) {
    out[k].x = product;
    if (!in[k].is_identity()) product = product * in[k].zzz;
    last = k;
  }
  F inverse = inverse_of(product);
  for (uint32_t k = last; start < n; k -= step) {
    const Xyzz<F> p = in[k];
    if (p.is_identity()) {
      out[k] = Affine<F>::identity();
    } else {
      const F cube = inverse * out[k].x;  // 1 / zzz
      inverse = inverse * p.zzz;
      out[k] = affine_by(p, cube);
    }
    if (k == start) break;
  }
}

}  // namespace setup
}  // namespace freshproof
