// Fq2 = Fq[u] / (u^2 + 1), for both curves: q = 3 mod 4, so -1 is no square. Layout: c0, c1 (snarkjs' order).
#pragma once
#include "field.cuh"
#ifdef FRESHPROOF_WORDS32
#include "quadratic32.cuh"
#endif

namespace freshproof {

template <class Base> struct Quadratic {
  static constexpr unsigned words = 2 * Base::words;
  static constexpr unsigned bytes = 2 * Base::bytes;

  Base c0, c1;

  static __host__ __device__ __forceinline__ Quadratic zero() { return {Base::zero(), Base::zero()}; }

  static __host__ __device__ __forceinline__ Quadratic one() { return {Base::one(), Base::zero()}; }

  __host__ __device__ __forceinline__ bool is_zero() const { return c0.is_zero() && c1.is_zero(); }

  __host__ __device__ __forceinline__ bool is_canonical() const {
    return c0.is_canonical() && c1.is_canonical();
  }

  friend __host__ __device__ __forceinline__ bool operator==(const Quadratic& a, const Quadratic& b) {
    return a.c0 == b.c0 && a.c1 == b.c1;
  }

  friend __host__ __device__ __forceinline__ bool operator!=(const Quadratic& a, const Quadratic& b) {
    return !(a == b);
  }

  friend __host__ __device__ __forceinline__ Quadratic operator+(const Quadratic& a, const Quadratic& b) {
    return {a.c0 + b.c0, a.c1 + b.c1};
  }

  friend __host__ __device__ __forceinline__ Quadratic operator-(const Quadratic& a, const Quadratic& b) {
    return {a.c0 - b.c0, a.c1 - b.c1};
  }

#ifdef FRESHPROOF_WORDS32
  friend __host__ __device__ FRESHPROOF_NOINLINE Quadratic operator*(Quadratic a, Quadratic b) {
    Quadratic out;
    device_quadratic_mul<typename Base::Params>(out.c0.w, out.c1.w, a.c0.w, a.c1.w, b.c0.w, b.c1.w);
    return out;
  }

  static __host__ __device__ FRESHPROOF_NOINLINE Quadratic square(Quadratic a) {
    Quadratic out;
    device_quadratic_sqr<typename Base::Params>(out.c0.w, out.c1.w, a.c0.w, a.c1.w);
    return out;
  }

  __host__ __device__ __forceinline__ Quadratic sqr() const { return square(*this); }
#else
  // Karatsuba, 3 multiplications: (a0 + a1)(b0 + b1) - a0 b0 - a1 b1 = a0 b1 + a1 b0.
  friend __host__ __device__ __forceinline__ Quadratic operator*(const Quadratic& a, const Quadratic& b) {
    const Base low = a.c0 * b.c0;
    const Base high = a.c1 * b.c1;
    const Base cross = (a.c0 + a.c1) * (b.c0 + b.c1);
    return {low - high, cross - low - high};
  }

  // (c0 + c1 u)^2 = (c0 + c1)(c0 - c1) + 2 c0 c1 u: 2 multiplications.
  __host__ __device__ __forceinline__ Quadratic sqr() const {
    return {(c0 + c1) * (c0 - c1), (c0 * c1).dbl()};
  }
#endif

  // a b - c d.
  static __host__ __device__ __forceinline__ Quadratic mul_sub(const Quadratic& a, const Quadratic& b,
                                                               const Quadratic& c, const Quadratic& d) {
    return a * b - c * d;
  }

  __host__ __device__ __forceinline__ Quadratic neg() const { return {c0.neg(), c1.neg()}; }

  __host__ __device__ __forceinline__ Quadratic dbl() const { return {c0.dbl(), c1.dbl()}; }

  __host__ __device__ __forceinline__ Quadratic to_montgomery() const {
    return {c0.to_montgomery(), c1.to_montgomery()};
  }

  __host__ __device__ __forceinline__ Quadratic from_montgomery() const {
    return {c0.from_montgomery(), c1.from_montgomery()};
  }

  // 1 / (c0 + c1 u) = (c0 - c1 u) / (c0^2 + c1^2), and 0 for 0: one inversion in Fq.
  __host__ __device__ Quadratic inverse() const {
    const Base scale = (c0.sqr() + c1.sqr()).inverse();
    return {c0 * scale, (c1 * scale).neg()};
  }
};

template <class Curve> using Fq2 = Quadratic<Fq<Curve>>;

}  // namespace freshproof
