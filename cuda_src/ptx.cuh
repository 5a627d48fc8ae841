// The carry chain instructions of PTX, one function each.
//
// Chains pass their carry from call to call in the CC.CF flag, so the calls of one chain must follow each other;
// `volatile` keeps that order, and no plain C++ operation writes the flag. A `mad_lo_cc(a, b, c)` followed by
// `madc_hi_cc(a, b, d)` is what ptxas fuses into one IMAD.WIDE.U32.X (seen in the SASS of sm_90, CUDA 13.0).
//
// Under FRESHPROOF_EMULATE_PTX a host runs the same chains with an explicit flag, so a machine without a GPU tests
// the very algorithm. Semantics: PTX ISA 9.0, section 9.7.2, "Extended-Precision Integer Arithmetic Instructions".
#pragma once
#include <cstdint>

#include "dialect.cuh"

namespace freshproof {
namespace ptx {

#ifdef __CUDA_ARCH__

#define FRESHPROOF_CHAIN2(name, instruction)                                                                 \
  __device__ __forceinline__ uint32_t name(uint32_t a, uint32_t b) {                                         \
    uint32_t out;                                                                                            \
    asm volatile(instruction ".u32 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));                               \
    return out;                                                                                              \
  }

#define FRESHPROOF_CHAIN3(name, instruction)                                                                 \
  __device__ __forceinline__ uint32_t name(uint32_t a, uint32_t b, uint32_t c) {                             \
    uint32_t out;                                                                                            \
    asm volatile(instruction ".u32 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));                   \
    return out;                                                                                              \
  }

FRESHPROOF_CHAIN2(add_cc, "add.cc")
FRESHPROOF_CHAIN2(addc_cc, "addc.cc")
FRESHPROOF_CHAIN2(addc, "addc")
FRESHPROOF_CHAIN2(sub_cc, "sub.cc")
FRESHPROOF_CHAIN2(subc_cc, "subc.cc")
FRESHPROOF_CHAIN2(subc, "subc")
FRESHPROOF_CHAIN3(mad_lo_cc, "mad.lo.cc")
FRESHPROOF_CHAIN3(madc_lo_cc, "madc.lo.cc")
FRESHPROOF_CHAIN3(madc_hi_cc, "madc.hi.cc")

#undef FRESHPROOF_CHAIN2
#undef FRESHPROOF_CHAIN3

// a * b as two words.
__device__ __forceinline__ void mul_wide(uint32_t& low, uint32_t& high, uint32_t a, uint32_t b) {
  asm volatile("{ .reg .u64 product; mul.wide.u32 product, %2, %3; mov.b64 {%0, %1}, product; }"
               : "=r"(low), "=r"(high)
               : "r"(a), "r"(b));
}

// -a, in a way that ptxas does not see as a negation: of a negated operand it makes no IMAD.WIDE but two
// multiplications (CUDA 13.0).
__device__ __forceinline__ uint32_t negate(uint32_t a) {
  uint32_t out;
  asm volatile("{ .reg .u32 complement; lop3.b32 complement, %1, 0, 0, 0x0f; add.u32 %0, complement, 1; }"
               : "=r"(out)
               : "r"(a));
  return out;
}

#else  // the host's emulation

inline thread_local uint32_t carry_flag = 0;

// The low word of `sum`; its high word, 0 or 1, becomes the flag.
__forceinline__ uint32_t keep(uint64_t sum) {
  carry_flag = uint32_t(sum >> 32) & 1;
  return uint32_t(sum);
}

inline uint32_t add_cc(uint32_t a, uint32_t b) { return keep(uint64_t(a) + b); }
inline uint32_t addc_cc(uint32_t a, uint32_t b) { return keep(uint64_t(a) + b + carry_flag); }
inline uint32_t addc(uint32_t a, uint32_t b) { return a + b + carry_flag; }
inline uint32_t sub_cc(uint32_t a, uint32_t b) { return keep(uint64_t(a) - b); }
inline uint32_t subc_cc(uint32_t a, uint32_t b) { return keep(uint64_t(a) - b - carry_flag); }
inline uint32_t subc(uint32_t a, uint32_t b) { return a - b - carry_flag; }
inline uint32_t mad_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return keep(uint64_t(a * b) + c); }
inline uint32_t madc_lo_cc(uint32_t a, uint32_t b, uint32_t c) { return keep(uint64_t(a * b) + c + carry_flag); }
inline uint32_t madc_hi_cc(uint32_t a, uint32_t b, uint32_t c) {
  return keep((uint64_t(a) * b >> 32) + c + carry_flag);
}

inline uint32_t negate(uint32_t a) { return 0 - a; }

inline void mul_wide(uint32_t& low, uint32_t& high, uint32_t a, uint32_t b) {
  const uint64_t product = uint64_t(a) * b;
  low = uint32_t(product);
  high = uint32_t(product >> 32);
}

#endif

}  // namespace ptx
}  // namespace freshproof
