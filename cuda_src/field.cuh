// A prime field in Montgomery form, the same type on host and device.
//
// Layout: little-endian 32-bit words, as in snarkjs files; R = 2^(32 words). Every value is canonical (< p)
// before and after each operation, so equality is equality of words. Arithmetic runs on 64-bit limbs on a CPU
// (carry.cuh) and on 32-bit carry chains on a GPU or in its emulation (mont32.cuh).
#pragma once
#include <cstdint>

#include "dialect.cuh"
#ifdef FRESHPROOF_WORDS32
#include "mont32.cuh"
#else
#include "carry.cuh"
#include "inverse.cuh"
#endif

namespace freshproof {

template <class P> struct alignas(16) Field {
  using Params = P;
  static constexpr unsigned words = P::words;
  static constexpr unsigned bytes = 4 * P::words;

  uint32_t w[P::words];

  static __host__ __device__ __forceinline__ Field zero() { return Field{}; }

  static __host__ __device__ __forceinline__ Field one() { return from_words(P::one); }

  // The element whose i-th word is word(i); the words are taken as they are.
  template <class Word> static __host__ __device__ __forceinline__ Field from_words(Word word) {
    Field out;
    for (unsigned i = 0; i < words; ++i) out.w[i] = word(i);
    return out;
  }

  __host__ __device__ __forceinline__ bool is_zero() const {
    uint32_t any = 0;
    for (unsigned i = 0; i < words; ++i) any |= w[i];
    return any == 0;
  }

  friend __host__ __device__ __forceinline__ bool operator==(const Field& a, const Field& b) {
    uint32_t differ = 0;
    for (unsigned i = 0; i < words; ++i) differ |= a.w[i] ^ b.w[i];
    return differ == 0;
  }

  friend __host__ __device__ __forceinline__ bool operator!=(const Field& a, const Field& b) {
    return !(a == b);
  }

  // Whether the words are a canonical residue (< p). True of every result here; asked of words from a file.
  __host__ __device__ __forceinline__ bool is_canonical() const {
    for (unsigned i = words; i-- > 0;) {
      if (w[i] != P::modulus(i)) return w[i] < P::modulus(i);
    }
    return false;
  }

#ifdef FRESHPROOF_WORDS32
  friend __host__ __device__ __forceinline__ Field operator+(const Field& a, const Field& b) {
    Field out;
    device_add<P>(out.w, a.w, b.w);
    return out;
  }

  friend __host__ __device__ __forceinline__ Field operator-(const Field& a, const Field& b) {
    Field out;
    device_sub<P>(out.w, a.w, b.w);
    return out;
  }

  friend __host__ __device__ __forceinline__ Field operator*(const Field& a, const Field& b) {
    Field out;
    device_mul<P>(out.w, a.w, b.w);
    return out;
  }

  __host__ __device__ __forceinline__ Field sqr() const {
    Field out;
    device_sqr<P>(out.w, w);
    return out;
  }

  // a b - c d, with one reduction.
  static __host__ __device__ __forceinline__ Field mul_sub(const Field& a, const Field& b, const Field& c,
                                                           const Field& d) {
    Field out;
    device_mul_add<P>(out.w, a.w, b.w, c.neg().w, d.w);
    return out;
  }
#else
  friend FRESHPROOF_ALWAYS_INLINE Field operator+(const Field& a, const Field& b) {
    return by_limbs<limbs_add<P>>(a, b);
  }

  friend FRESHPROOF_ALWAYS_INLINE Field operator-(const Field& a, const Field& b) {
    return by_limbs<limbs_sub<P>>(a, b);
  }

  friend FRESHPROOF_ALWAYS_INLINE Field operator*(const Field& a, const Field& b) {
    return by_limbs<limbs_mul<P>>(a, b);
  }

  FRESHPROOF_ALWAYS_INLINE Field sqr() const { return *this * *this; }

  static FRESHPROOF_ALWAYS_INLINE Field mul_sub(const Field& a, const Field& b, const Field& c, const Field& d) {
    return a * b - c * d;
  }

  template <void operation(Limb*, const Limb*, const Limb*)>
  static FRESHPROOF_ALWAYS_INLINE Field by_limbs(const Field& a, const Field& b) {
    Field out;
    operation(reinterpret_cast<Limb*>(out.w), reinterpret_cast<const Limb*>(a.w),
              reinterpret_cast<const Limb*>(b.w));
    return out;
  }
#endif

  __host__ __device__ __forceinline__ Field neg() const { return zero() - *this; }

  __host__ __device__ __forceinline__ Field dbl() const { return *this + *this; }

  // Standard words -> Montgomery form: v * R^2 / R.
  __host__ __device__ __forceinline__ Field to_montgomery() const { return *this * from_words(P::r_squared); }

  // Montgomery form -> standard words: v R * 1 / R.
  __host__ __device__ __forceinline__ Field from_montgomery() const {
    Field unit{};
    unit.w[0] = 1;
    return *this * unit;
  }

  // This to the power of an integer of `count` 32-bit words exponent(i), from the top bit down.
  template <class Word> __host__ __device__ Field pow(Word exponent, unsigned count) const {
    Field out = one();
    for (unsigned i = 32 * count; i-- > 0;) {
      out = out.sqr();
      if (exponent(i / 32) >> (i % 32) & 1) out = out * *this;
    }
    return out;
  }

  // 1 / this, and 0 for 0.
  __host__ __device__ Field inverse() const {
#ifdef FRESHPROOF_WORDS32
    // Fermat: this^(p - 2), about 1.5 * bits multiplications. p's low word can be 1: then a borrow follows.
    return pow(
        [](unsigned i) { return i == 0 ? P::modulus(0) - 2 : P::modulus(i) - (i == 1 && P::modulus(0) < 2); },
        words);
#else
    Field out;
    limbs_inverse<P>(reinterpret_cast<Limb*>(out.w), reinterpret_cast<const Limb*>(w));
    return out;
#endif
  }
};

template <class Curve> using Fq = Field<typename Curve::FqParams>;
template <class Curve> using Fr = Field<typename Curve::FrParams>;

}  // namespace freshproof
