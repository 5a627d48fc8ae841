// The groups G1 (over Fq) and G2 (over Fq2): points of y^2 = x^3 + b, in affine and XYZZ coordinates.
//
// XYZZ: x = X / ZZ, y = Y / ZZZ with ZZ^3 = ZZZ^2; ZZ = 0 is the identity. Formulas: Explicit-Formulas
// Database, "XYZZ coordinates for short Weierstrass curves" (madd-2008-s, add-2008-s, dbl-2008-s-1,
// mdbl-2008-s-1; a = 0). Every addition is complete: right for equal and opposite points and the identity.
#pragma once
#include "tower.cuh"

namespace freshproof {

// x, y in Montgomery form as in a .zkey; the identity is all zero bytes: as b is not 0, (0, 0) is no point.
template <class F> struct Affine {
  F x, y;

  static __host__ __device__ __forceinline__ Affine identity() { return {F::zero(), F::zero()}; }

  __host__ __device__ __forceinline__ bool is_identity() const { return x.is_zero() && y.is_zero(); }

  __host__ __device__ __forceinline__ Affine neg() const { return {x, y.neg()}; }

  friend __host__ __device__ __forceinline__ bool operator==(const Affine& a, const Affine& b) {
    return a.x == b.x && a.y == b.y;
  }
};

template <class F> struct Xyzz {
  F x, y, zz, zzz;

  static __host__ __device__ __forceinline__ Xyzz identity() {
    return {F::zero(), F::zero(), F::zero(), F::zero()};
  }

  static __host__ __device__ __forceinline__ Xyzz from_affine(const Affine<F>& p) {
    return p.is_identity() ? identity() : Xyzz{p.x, p.y, F::one(), F::one()};
  }

  __host__ __device__ __forceinline__ bool is_identity() const { return zz.is_zero(); }

  __host__ __device__ __forceinline__ Xyzz neg() const { return {x, y.neg(), zz, zzz}; }
};

// 2 p for an affine p. Cost: 3 M + 3 S.
template <class F> __host__ __device__ __forceinline__ Xyzz<F> dbl(const Affine<F>& p) {
  const F u = p.y.dbl();
  const F v = u.sqr();
  const F w = u * v;
  const F s = p.x * v;
  const F xx = p.x.sqr();
  const F m = xx.dbl() + xx;
  const F x = m.sqr() - s.dbl();
  return {x, F::mul_sub(m, s - x, w, p.y), v, w};
}

// 2 p. The identity stays the identity: zz stays 0. Cost: 6 M + 3 S.
template <class F> __host__ __device__ __forceinline__ Xyzz<F> dbl(const Xyzz<F>& p) {
  const F u = p.y.dbl();
  const F v = u.sqr();
  const F w = u * v;
  const F s = p.x * v;
  const F xx = p.x.sqr();
  const F m = xx.dbl() + xx;
  const F x = m.sqr() - s.dbl();
  return {x, F::mul_sub(m, s - x, w, p.y), v * p.zz, w * p.zzz};
}

// The tail that both additions share: p's coordinates brought to a common denominator as x1, y1, the
// differences h = x2 - x1 and r = y2 - y1, and the product of the denominators.
template <class F> __host__ __device__ __forceinline__ Xyzz<F> add_differences(const F& x1, const F& y1,
                                                                               const F& h, const F& r,
                                                                               const F& zz, const F& zzz) {
  const F hh = h.sqr();
  const F hhh = h * hh;
  const F q = x1 * hh;
  const F x = r.sqr() - hhh - q.dbl();
  return {x, F::mul_sub(r, q - x, y1, hhh), zz * hh, zzz * hhh};
}

// p + q, complete ("mixed addition"). Cost: 8 M + 2 S.
template <class F> __host__ __device__ __forceinline__ Xyzz<F> add(const Xyzz<F>& p, const Affine<F>& q) {
  if (q.is_identity()) return p;
  if (p.is_identity()) return Xyzz<F>::from_affine(q);
  const F h = q.x * p.zz - p.x;
  const F r = q.y * p.zzz - p.y;
  if (h.is_zero()) return r.is_zero() ? dbl(q) : Xyzz<F>::identity();
  return add_differences(p.x, p.y, h, r, p.zz, p.zzz);
}

// p + q, complete. Cost: 12 M + 2 S.
template <class F> __host__ __device__ __forceinline__ Xyzz<F> add(const Xyzz<F>& p, const Xyzz<F>& q) {
  if (q.is_identity()) return p;
  if (p.is_identity()) return q;
  const F x1 = p.x * q.zz;
  const F y1 = p.y * q.zzz;
  const F h = q.x * p.zz - x1;
  const F r = q.y * p.zzz - y1;
  if (h.is_zero()) return r.is_zero() ? dbl(p) : Xyzz<F>::identity();
  return add_differences(x1, y1, h, r, p.zz * q.zz, p.zzz * q.zzz);
}

// The affine form, by one inversion: with zz = z^2 and zzz = z^3, zz / zzz = 1 / z.
template <class F> __host__ __device__ Affine<F> to_affine(const Xyzz<F>& p) {
  if (p.is_identity()) return Affine<F>::identity();
  const F cube = p.zzz.inverse();
  return {p.x * (cube * p.zz).sqr(), p.y * cube};
}

// The two groups of a curve: the field of their coordinates, and b.
template <class Curve> struct G1 {
  using F = Fq<Curve>;
  static __host__ __device__ __forceinline__ F b() { return F::from_words(Curve::b); }
};

template <class Curve> struct G2 {
  using F = Fq2<Curve>;
  static __host__ __device__ __forceinline__ F b() {
    return {Fq<Curve>::from_words(Curve::b2_c0), Fq<Curve>::from_words(Curve::b2_c1)};
  }
};

// Whether p's words are canonical and p is the identity or satisfies y^2 = x^3 + b. Its order may be any.
template <class Group> __host__ __device__ bool is_on_curve(const Affine<typename Group::F>& p) {
  if (!p.x.is_canonical() || !p.y.is_canonical()) return false;
  return p.is_identity() || p.y.sqr() == p.x.sqr() * p.x + Group::b();
}

}  // namespace freshproof
