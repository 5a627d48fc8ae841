// A field whose products are calls. Point arithmetic over Fq2 with every product inlined is some 30 thousand
// instructions an addition, and minutes of compiling; kernels that run once for a key are better off small.
#pragma once
#include "../tower.cuh"

namespace freshproof {

#ifdef __CUDACC__
#define FRESHPROOF_CALLED __noinline__
#else
#define FRESHPROOF_CALLED __attribute__((noinline))
#endif

template <class Base> __host__ __device__ FRESHPROOF_CALLED Base called_product(Base a, Base b) { return a * b; }

// Base with the same layout and the same values.
template <class Base> struct Called {
  static constexpr unsigned words = Base::words;

  Base value;

  static __host__ __device__ __forceinline__ Called zero() { return {Base::zero()}; }
  static __host__ __device__ __forceinline__ Called one() { return {Base::one()}; }
  template <class Word> static __host__ __device__ __forceinline__ Called from_words(Word word) {
    return {Base::from_words(word)};
  }

  __host__ __device__ __forceinline__ bool is_zero() const { return value.is_zero(); }
  __host__ __device__ __forceinline__ bool is_canonical() const { return value.is_canonical(); }
  __host__ __device__ __forceinline__ Called neg() const { return {value.neg()}; }
  __host__ __device__ __forceinline__ Called dbl() const { return {value.dbl()}; }
  __host__ __device__ __forceinline__ Called sqr() const { return *this * *this; }

  friend __host__ __device__ __forceinline__ bool operator==(const Called& a, const Called& b) {
    return a.value == b.value;
  }
  friend __host__ __device__ __forceinline__ bool operator!=(const Called& a, const Called& b) { return !(a == b); }
  friend __host__ __device__ __forceinline__ Called operator+(const Called& a, const Called& b) {
    return {a.value + b.value};
  }
  friend __host__ __device__ __forceinline__ Called operator-(const Called& a, const Called& b) {
    return {a.value - b.value};
  }
  friend __host__ __device__ __forceinline__ Called operator*(const Called& a, const Called& b) {
    return {called_product(a.value, b.value)};
  }

  // Fermat: this^(p - 2), and 0 for 0.
  __host__ __device__ FRESHPROOF_CALLED Called inverse() const {
    using P = typename Base::Params;
    Called out = one();
#pragma unroll 1
    for (unsigned i = 32 * words; i-- > 0;) {
      out = out.sqr();
      const uint32_t exponent = P::modulus(i / 32) - (i < 32 ? 2u : 0u);
      if (exponent >> (i % 32) & 1) out = out * *this;
    }
    return out;
  }
};

// The two groups of a curve over called fields.
template <class Curve> struct CalledG1 {
  using F = Called<Fq<Curve>>;
  static __host__ __device__ __forceinline__ F b() { return F::from_words(Curve::b); }
};

template <class Curve> struct CalledG2 {
  using Base = Called<Fq<Curve>>;
  using F = Quadratic<Base>;
  static __host__ __device__ __forceinline__ F b() { return {Base::from_words(Curve::b2_c0), Base::from_words(Curve::b2_c1)}; }
};

}  // namespace freshproof
