// Arithmetic on loose residues: any representative up to 2 p, for values that only go into further products. A product then
// needs no final subtraction and a difference no look at its sign: a third less work beside the multiplications, and chains
// half as deep.
//
// With a, b <= 2 p a product's window ends below p + 4 p^2 / R, which is below 2 p as 4 p < R; a square's, too. Over Fq2
// products are reduced as they are (quadratic32.cuh), and loose means canonical.
#pragma once
#include "../tower.cuh"

namespace freshproof {

// a b, loose, of loose factors.
template <class P> __device__ __forceinline__ Field<P> loose_mul(const Field<P>& a, const Field<P>& b) {
  Field<P> out;
  device_loose_mul<P>(out.w, a.w, b.w);
  return out;
}

// a - b, loose, of residues up to p: 0 only comes out as p.
template <class P> __device__ __forceinline__ Field<P> loose_sub(const Field<P>& a, const Field<P>& b) {
  Field<P> out;
  device_loose_sub<P>(out.w, a.w, b.w);
  return out;
}

// -a as p - a: a residue up to p, canonical unless a = 0.
template <class P> __device__ __forceinline__ Field<P> loose_neg(const Field<P>& a) {
  Field<P> out;
  device_loose_neg<P>(out.w, a.w);
  return out;
}

// Whether a difference that `loose_sub` made is 0.
template <class P> __device__ __forceinline__ bool is_loose_zero(const Field<P>& difference) {
  return difference == Field<P>::from_words(P::modulus);
}

template <class P> __device__ __forceinline__ Field<P> canonical(const Field<P>& loose) {
  Field<P> out;
  subtract_modulus<P>(out.w, loose.w);
  return out;
}

template <class Base>
__device__ __forceinline__ Quadratic<Base> loose_mul(const Quadratic<Base>& a, const Quadratic<Base>& b) {
  return a * b;
}

template <class Base>
__device__ __forceinline__ Quadratic<Base> loose_sub(const Quadratic<Base>& a, const Quadratic<Base>& b) {
  return a - b;
}

template <class Base> __device__ __forceinline__ Quadratic<Base> loose_neg(const Quadratic<Base>& a) { return a.neg(); }

template <class Base> __device__ __forceinline__ bool is_loose_zero(const Quadratic<Base>& difference) {
  return difference.is_zero();
}

template <class Base> __device__ __forceinline__ Quadratic<Base> canonical(const Quadratic<Base>& a) { return a; }

}  // namespace freshproof
