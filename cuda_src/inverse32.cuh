// Inversion modulo a prime on 32-bit words, without data-dependent branches inside a round, for a GPU.
//
// Bernstein and Yang, "Fast constant-time gcd computation and modular inversion" (TCHES 2019), with the half-integer
// start delta = 1/2 that Wuille found. A round makes 28 division steps on the low words of f and g alone, collects
// them in a 2x2 matrix with entries of at most 2^28, and applies it to f, g and, modulo p, to d, e, for which
// d = f * scale / x and e = g * scale / x hold throughout. Rounds end when g = 0; then f = +-1.
//
// Cost for 381 bits: about 30 rounds of 28 * 16 simple instructions and 14 * 10 wide multiplications, a twentieth of
// a Fermat inversion (570 field multiplications) on the multiply pipe.
#pragma once
#include <cstdint>

#include "mont32.cuh"

namespace freshproof {

// A signed integer of 28-bit limbs, little-endian; all but the top limb are in [0, 2^28).
template <class P> struct Limbs28 {
  static constexpr unsigned count = (P::bits + 2 + 27) / 28;
  static constexpr uint32_t mask = (1u << 28) - 1;

  int32_t limb[count];

  template <class Words> static __host__ __device__ __forceinline__ Limbs28 from_words(const Words& word) {
    Limbs28 out;
    FRESHPROOF_UNROLL
    for (unsigned i = 0; i < count; ++i) {
      const unsigned at = 28 * i / 32, shift = 28 * i % 32;
      uint32_t bits = at < P::words ? word(at) >> shift : 0;
      if (shift > 4 && at + 1 < P::words) bits |= word(at + 1) << (32 - shift);
      out.limb[i] = int32_t(bits & mask);
    }
    return out;
  }

  // The low words of a value in [0, 2^(28 count)).
  __host__ __device__ __forceinline__ void to_words(uint32_t* out) const {
    FRESHPROOF_UNROLL
    for (unsigned k = 0; k < P::words; ++k) {
      const unsigned at = 32 * k / 28, shift = 32 * k % 28;
      uint32_t bits = uint32_t(limb[at]) >> shift;
      if (at + 1 < count) bits |= uint32_t(limb[at + 1]) << (28 - shift);
      if (shift > 24 && at + 2 < count) bits |= uint32_t(limb[at + 2]) << (56 - shift);
      out[k] = bits;
    }
  }

  __host__ __device__ __forceinline__ bool is_zero() const {
    int32_t any = 0;
    FRESHPROOF_UNROLL
    for (unsigned i = 0; i < count; ++i) any |= limb[i];
    return any == 0;
  }

  // this = (negate ? -this : this) + (add & p), limbs brought back into range.
  __host__ __device__ __forceinline__ void adjust(const Limbs28& p, int32_t negate, int32_t add) {
    int32_t carry = 0;
    FRESHPROOF_UNROLL
    for (unsigned i = 0; i < count; ++i) {
      const int32_t sum = ((limb[i] ^ negate) - negate) + (p.limb[i] & add) + carry;
      limb[i] = i + 1 < count ? int32_t(uint32_t(sum) & mask) : sum;
      carry = sum >> 28;
    }
  }
};

// Rows (u, v) and (q, r): after the steps, 2^28 (f, g) = (u f + v g, q f + r g).
struct Transition {
  int32_t u, v, q, r;
};

// 14 division steps. The entries stay within 2^14, so a row is one word: u + 2^16 v.
__host__ __device__ __forceinline__ Transition half_round(uint32_t& f, uint32_t& g, int32_t& zeta) {
  uint32_t top = 1, bottom = 1u << 16;
  FRESHPROOF_UNROLL
  for (unsigned i = 0; i < 14; ++i) {
    const bool odd = g & 1;
    const bool swap = odd && zeta < 0;
    const uint32_t old_f = f, old_top = top;
    f = swap ? g : f;
    top = swap ? bottom : top;
    g = swap ? 0 - old_f : g;
    bottom = swap ? 0 - old_top : bottom;
    zeta = (swap ? ~zeta : zeta) - 1;
    g = (g + (odd ? f : 0)) >> 1;
    bottom += odd ? top : 0;
    top <<= 1;
  }
  const int32_t u = int16_t(top), q = int16_t(bottom);
  return {u, int32_t(top - uint32_t(u)) >> 16, q, int32_t(bottom - uint32_t(q)) >> 16};
}

// 28 division steps from the low words of f and g; zeta = -(delta + 1/2).
__host__ __device__ __forceinline__ Transition division_steps(uint32_t f, uint32_t g, int32_t& zeta) {
  const Transition a = half_round(f, g, zeta);
  const Transition b = half_round(f, g, zeta);
  return {b.u * a.u + b.v * a.q, b.u * a.v + b.v * a.r, b.q * a.u + b.r * a.q, b.q * a.v + b.r * a.r};
}

// (f, g) = t (f, g) / 2^28, exactly.
template <class P>
__host__ __device__ __forceinline__ void transform_values(Limbs28<P>& f, Limbs28<P>& g, const Transition& t) {
  constexpr unsigned count = Limbs28<P>::count;
  int64_t next_f = (int64_t(t.u) * f.limb[0] + int64_t(t.v) * g.limb[0]) >> 28;
  int64_t next_g = (int64_t(t.q) * f.limb[0] + int64_t(t.r) * g.limb[0]) >> 28;
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < count; ++i) {
    next_f += int64_t(t.u) * f.limb[i] + int64_t(t.v) * g.limb[i];
    next_g += int64_t(t.q) * f.limb[i] + int64_t(t.r) * g.limb[i];
    f.limb[i - 1] = int32_t(uint32_t(next_f) & Limbs28<P>::mask);
    g.limb[i - 1] = int32_t(uint32_t(next_g) & Limbs28<P>::mask);
    next_f >>= 28;
    next_g >>= 28;
  }
  f.limb[count - 1] = int32_t(next_f);
  g.limb[count - 1] = int32_t(next_g);
}

// p^-1 mod 2^28 from -p^-1 mod 2^32.
template <class P> __host__ __device__ constexpr uint32_t inverse28() {
  return (0u - P::negative_inverse32) & ((1u << 28) - 1);
}

// (d, e) = t (d, e) / 2^28 mod p; both stay in (-2p, p): a multiple of p clears the low limb, and another one,
// from the signs, keeps the range.
template <class P>
__host__ __device__ __forceinline__ void transform_residues(Limbs28<P>& d, Limbs28<P>& e, const Limbs28<P>& p,
                                                            const Transition& t) {
  constexpr unsigned count = Limbs28<P>::count;
  constexpr uint32_t mask = Limbs28<P>::mask;
  const int32_t sign_d = d.limb[count - 1] >> 31, sign_e = e.limb[count - 1] >> 31;
  int32_t multiple_d = (t.u & sign_d) + (t.v & sign_e), multiple_e = (t.q & sign_d) + (t.r & sign_e);
  int64_t next_d = int64_t(t.u) * d.limb[0] + int64_t(t.v) * e.limb[0];
  int64_t next_e = int64_t(t.q) * d.limb[0] + int64_t(t.r) * e.limb[0];
  multiple_d -= int32_t((inverse28<P>() * uint32_t(next_d) + uint32_t(multiple_d)) & mask);
  multiple_e -= int32_t((inverse28<P>() * uint32_t(next_e) + uint32_t(multiple_e)) & mask);
  next_d = (next_d + int64_t(p.limb[0]) * multiple_d) >> 28;
  next_e = (next_e + int64_t(p.limb[0]) * multiple_e) >> 28;
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < count; ++i) {
    next_d += int64_t(t.u) * d.limb[i] + int64_t(t.v) * e.limb[i] + int64_t(p.limb[i]) * multiple_d;
    next_e += int64_t(t.q) * d.limb[i] + int64_t(t.r) * e.limb[i] + int64_t(p.limb[i]) * multiple_e;
    d.limb[i - 1] = int32_t(uint32_t(next_d) & mask);
    e.limb[i - 1] = int32_t(uint32_t(next_e) & mask);
    next_d >>= 28;
    next_e >>= 28;
  }
  d.limb[count - 1] = int32_t(next_d);
  e.limb[count - 1] = int32_t(next_e);
}

// out = R^2 / a mod p: the inverse of a residue in Montgomery form, in Montgomery form. 0 for a = 0.
template <class P> __host__ __device__ void device_inverse(uint32_t* out, const uint32_t* a) {
  const Limbs28<P> p = Limbs28<P>::from_words(ModulusWords<P>{});
  Limbs28<P> f = p;
  Limbs28<P> g = Limbs28<P>::from_words(ArrayWords{a});
  Limbs28<P> d = {};
  Limbs28<P> e = Limbs28<P>::from_words([](unsigned i) { return P::r_squared(i); });
  int32_t zeta = -1;
  while (!g.is_zero()) {
    const Transition t = division_steps(uint32_t(f.limb[0]) | uint32_t(f.limb[1]) << 28,
                                        uint32_t(g.limb[0]) | uint32_t(g.limb[1]) << 28, zeta);
    transform_residues<P>(d, e, p, t);
    transform_values<P>(f, g, t);
  }
  constexpr unsigned top = Limbs28<P>::count - 1;
  d.adjust(p, 0, d.limb[top] >> 31);
  d.adjust(p, f.limb[top] >> 31, 0);
  d.adjust(p, 0, d.limb[top] >> 31);
  d.to_words(out);
}

}  // namespace freshproof
