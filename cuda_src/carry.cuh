// Montgomery arithmetic on 64-bit limbs, for a CPU. The device's counterpart is mont32.cuh.
//
// Every function takes and gives N = words / 2 little-endian limbs of canonical residues (< p). All moduli
// here leave the top bit of the top limb free (p < 2^(64 N - 1)), which the chains below rely on: a + b never
// overflows N limbs, and the product needs no limb beyond N + 1.
#pragma once
#include <cstdint>

#include "dialect.cuh"
#include "limb.cuh"
#include "x86_64.cuh"

namespace freshproof {

using Wide = unsigned __int128;

// a + b + carry; the carry out replaces `carry`.
FRESHPROOF_ALWAYS_INLINE uint64_t add_carry(uint64_t a, uint64_t b, unsigned char& carry) {
#ifdef FRESHPROOF_X86_64
  unsigned long long sum;
  carry = __builtin_ia32_addcarryx_u64(carry, a, b, &sum);
  return sum;
#else
  Wide sum = Wide(a) + b + carry;
  carry = static_cast<unsigned char>(sum >> 64);
  return uint64_t(sum);
#endif
}

// a - b - borrow; the borrow out replaces `borrow`.
FRESHPROOF_ALWAYS_INLINE uint64_t sub_borrow(uint64_t a, uint64_t b, unsigned char& borrow) {
#ifdef FRESHPROOF_X86_64
  unsigned long long difference;
  borrow = __builtin_ia32_sbb_u64(borrow, a, b, &difference);
  return difference;
#else
  Wide difference = Wide(a) - b - borrow;
  borrow = static_cast<unsigned char>((difference >> 64) & 1);
  return uint64_t(difference);
#endif
}

// t + a * b + carry; the high limb replaces `carry`. Cannot overflow: (2^64-1)^2 + 2 (2^64-1) = 2^128 - 1.
FRESHPROOF_ALWAYS_INLINE uint64_t multiply_add(uint64_t t, uint64_t a, uint64_t b, uint64_t& carry) {
  Wide sum = Wide(a) * b + t + carry;
  carry = uint64_t(sum >> 64);
  return uint64_t(sum);
}

// out = t mod p for t < 2p, without a branch.
template <class P> FRESHPROOF_ALWAYS_INLINE void limbs_reduce(Limb* out, const uint64_t (&t)[P::words / 2]) {
#ifdef FRESHPROOF_X86_64
  x86_reduce(out, t, modulus_limbs<P>.limb);
#else
  constexpr unsigned N = P::words / 2;
  uint64_t reduced[N];
  unsigned char borrow = 0;
  for (unsigned i = 0; i < N; ++i) reduced[i] = sub_borrow(t[i], modulus_limbs<P>.limb[i], borrow);
  const uint64_t keep = -uint64_t(borrow);
  for (unsigned i = 0; i < N; ++i) out[i] = reduced[i] ^ ((reduced[i] ^ t[i]) & keep);
#endif
}

// out = a + b mod p.
template <class P> FRESHPROOF_ALWAYS_INLINE void limbs_add(Limb* out, const Limb* a, const Limb* b) {
  constexpr unsigned N = P::words / 2;
  uint64_t sum[N];
  unsigned char carry = 0;
  for (unsigned i = 0; i < N; ++i) sum[i] = add_carry(a[i], b[i], carry);
  limbs_reduce<P>(out, sum);
}

// out = a - b mod p.
template <class P> FRESHPROOF_ALWAYS_INLINE void limbs_sub(Limb* out, const Limb* a, const Limb* b) {
  constexpr unsigned N = P::words / 2;
  uint64_t difference[N];
  unsigned char borrow = 0;
  for (unsigned i = 0; i < N; ++i) difference[i] = sub_borrow(a[i], b[i], borrow);
  const uint64_t mask = -uint64_t(borrow);
  unsigned char carry = 0;
  for (unsigned i = 0; i < N; ++i) out[i] = add_carry(difference[i], modulus_limbs<P>.limb[i] & mask, carry);
}

// out = a * b / R mod p: operand scanning with the reduction interleaved (CIOS; Koc, Acar, Kaliski,
// "Analyzing and Comparing Montgomery Multiplication Algorithms", IEEE Micro 1996). Because p's top bit is
// free, the two carries of a row meet in one limb without overflow. Cost: 2 N^2 + N multiplications.
template <class P>
__attribute__((noinline)) void limbs_mul_portable(Limb* out, const Limb* a, const Limb* b) {
  constexpr unsigned N = P::words / 2;
  uint64_t t[N] = {};
  for (unsigned i = 0; i < N; ++i) {
    uint64_t product_carry = 0, reduce_carry = 0;
    t[0] = multiply_add(t[0], a[0], b[i], product_carry);
    const uint64_t m = t[0] * P::negative_inverse64;
    multiply_add(t[0], m, modulus_limbs<P>.limb[0], reduce_carry);
    for (unsigned j = 1; j < N; ++j) {
      t[j] = multiply_add(t[j], a[j], b[i], product_carry);
      t[j - 1] = multiply_add(t[j], m, modulus_limbs<P>.limb[j], reduce_carry);
    }
    t[N - 1] = product_carry + reduce_carry;
  }
  limbs_reduce<P>(out, t);
}

// out = a * b / R mod p. Out of line: the multiplication wants every register for itself.
template <class P> __attribute__((noinline)) void limbs_mul(Limb* out, const Limb* a, const Limb* b) {
#ifdef FRESHPROOF_X86_64
  if (use_adx) {
    uint64_t t[P::words / 2];
    adx_mul<P::negative_inverse64>(t, a, b, modulus_limbs<P>.limb);
    return limbs_reduce<P>(out, t);
  }
#endif
  limbs_mul_portable<P>(out, a, b);
}

}  // namespace freshproof
