// A field whose multiplications are calls, for code that is deep, rare or long rather than hot: inlined, the additions
// of a reduction take minutes to compile and overflow the instruction cache. Operands and results travel in
// registers; a call costs about a thirtieth of the multiplication.
#pragma once
#include "../curve.cuh"
#include "grid.cuh"

namespace freshproof {

template <class P> __device__ FRESHPROOF_NOINLINE Field<P> called_mul(Field<P> a, Field<P> b) { return a * b; }

template <class P> __device__ FRESHPROOF_NOINLINE Field<P> called_sqr(Field<P> a) { return a.sqr(); }

// Over Fq2 they are calls already (quadratic32.cuh).
template <class Base>
__device__ __forceinline__ Quadratic<Base> called_mul(const Quadratic<Base>& a, const Quadratic<Base>& b) {
  return a * b;
}

template <class Base> __device__ __forceinline__ Quadratic<Base> called_sqr(const Quadratic<Base>& a) {
  return a.sqr();
}

// The same values in the same layout as F.
template <class F> struct Outlined {
  F value;

  static __device__ __forceinline__ Outlined zero() { return {F::zero()}; }
  static __device__ __forceinline__ Outlined one() { return {F::one()}; }
  static __device__ __forceinline__ Outlined mul_sub(const Outlined& a, const Outlined& b, const Outlined& c,
                                                     const Outlined& d) {
    return a * b - c * d;
  }

  __device__ __forceinline__ bool is_zero() const { return value.is_zero(); }
  __device__ __forceinline__ Outlined sqr() const { return {called_sqr(value)}; }
  __device__ __forceinline__ Outlined dbl() const { return {value.dbl()}; }
  __device__ __forceinline__ Outlined neg() const { return {value.neg()}; }

  friend __device__ __forceinline__ Outlined operator+(const Outlined& a, const Outlined& b) {
    return {a.value + b.value};
  }
  friend __device__ __forceinline__ Outlined operator-(const Outlined& a, const Outlined& b) {
    return {a.value - b.value};
  }
  friend __device__ __forceinline__ Outlined operator*(const Outlined& a, const Outlined& b) {
    return {called_mul(a.value, b.value)};
  }
  friend __device__ __forceinline__ bool operator==(const Outlined& a, const Outlined& b) {
    return a.value == b.value;
  }
};

// Points with outlined coordinates: the same bytes.
template <class F> __device__ __forceinline__ Xyzz<Outlined<F>> outlined(const Xyzz<F>& p) {
  return {{p.x}, {p.y}, {p.zz}, {p.zzz}};
}

template <class F> __device__ __forceinline__ Affine<Outlined<F>> outlined(const Affine<F>& p) { return {{p.x}, {p.y}}; }

template <class F> __device__ __forceinline__ Xyzz<F> inlined(const Xyzz<Outlined<F>>& p) {
  return {p.x.value, p.y.value, p.zz.value, p.zzz.value};
}

// sum += other; complete.
template <class F> __device__ FRESHPROOF_NOINLINE void add_to(Xyzz<F>& sum, const Xyzz<F>& other) {
  sum = inlined(add(outlined(sum), outlined(other)));
}

template <class F> __device__ FRESHPROOF_NOINLINE void add_to(Xyzz<F>& sum, const Affine<F>& other) {
  sum = inlined(add(outlined(sum), outlined(other)));
}

// sum += other; complete, but that an affine `other` is not the identity. For hot loops: inline over Fq, where the sum
// stays in registers, but for the rare doubling; over Fq2 it does not fit there beside the products.
template <class P> __device__ __forceinline__ void add_hot(Xyzz<Field<P>>& sum, const Affine<Field<P>>& other) {
  if (sum.is_identity()) {
    sum = Xyzz<Field<P>>::from_affine(other);
    return;
  }
  const Field<P> h = other.x * sum.zz - sum.x;
  const Field<P> r = other.y * sum.zzz - sum.y;
  if (h.is_zero()) {
    sum = r.is_zero() ? inlined(dbl(outlined(other))) : Xyzz<Field<P>>::identity();
  } else {
    sum = add_differences(sum.x, sum.y, h, r, sum.zz, sum.zzz);
  }
}

template <class P> __device__ __forceinline__ void add_hot(Xyzz<Field<P>>& sum, const Xyzz<Field<P>>& other) {
  if (other.is_identity()) return;
  if (sum.is_identity()) {
    sum = other;
    return;
  }
  const Field<P> x = sum.x * other.zz;
  const Field<P> y = sum.y * other.zzz;
  const Field<P> h = other.x * sum.zz - x;
  const Field<P> r = other.y * sum.zzz - y;
  if (h.is_zero()) {
    sum = r.is_zero() ? inlined(dbl(outlined(sum))) : Xyzz<Field<P>>::identity();
  } else {
    sum = add_differences(x, y, h, r, sum.zz * other.zz, sum.zzz * other.zzz);
  }
}

template <class Base, class Point>
__device__ __forceinline__ void add_hot(Xyzz<Quadratic<Base>>& sum, const Point& other) {
  add_to(sum, other);
}

}  // namespace freshproof
