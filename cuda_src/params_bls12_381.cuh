// BLS12-381: y^2 = x^3 + 4 over Fq, and its sextic twist y^2 = x^3 + 4 (1 + u) over Fq2 = Fq[u] / (u^2 + 1).
// Family: Barreto, Lynn and Scott, "Constructing Elliptic Curves with Prescribed Embedding Degrees"
// (SCN 2002), with x = -0xd201000000010000. Arrays hold little-endian 32-bit words.
#pragma once
#include <cstdint>

#include "dialect.cuh"

namespace freshproof {

struct Bls12_381 {
  static constexpr const char* name() { return "bls12_381"; }

  // The base field.
  struct FqParams {
    static constexpr unsigned words = 12;
    static constexpr unsigned bits = 381;
    // q = (x - 1)^2 (x^4 - x^2 + 1) / 3 + x.
    __host__ __device__ static constexpr uint32_t modulus(unsigned i) {
      constexpr uint32_t value[12] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe,
                                      0xf6b0f624, 0x6730d2a0, 0xf38512bf, 0x64774b84,
                                      0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
      return value[i];
    }
    // R mod p, R = 2^384: the Montgomery form of 1.
    __host__ __device__ static constexpr uint32_t one(unsigned i) {
      constexpr uint32_t value[12] = {0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b,
                                      0x53c758ba, 0x5f489857, 0x70525745, 0x77ce5853,
                                      0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};
      return value[i];
    }
    // R^2 mod p: one Montgomery multiplication by it enters Montgomery form.
    __host__ __device__ static constexpr uint32_t r_squared(unsigned i) {
      constexpr uint32_t value[12] = {0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6,
                                      0x4c95b6d5, 0x8de5476c, 0x939d83c0, 0x67eb88a9,
                                      0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5};
      return value[i];
    }
    // -p^-1 mod 2^32 and mod 2^64.
    static constexpr uint32_t negative_inverse32 = 0xfffcfffdu;
    static constexpr uint64_t negative_inverse64 = 0x89f3fffcfffcfffdull;
  };

  // The scalar field.
  struct FrParams {
    static constexpr unsigned words = 8;
    static constexpr unsigned bits = 255;
    // r = x^4 - x^2 + 1.
    __host__ __device__ static constexpr uint32_t modulus(unsigned i) {
      constexpr uint32_t value[8] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                                     0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
      return value[i];
    }
    // R mod p, R = 2^256: the Montgomery form of 1.
    __host__ __device__ static constexpr uint32_t one(unsigned i) {
      constexpr uint32_t value[8] = {0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
                                     0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159};
      return value[i];
    }
    // R^2 mod p: one Montgomery multiplication by it enters Montgomery form.
    __host__ __device__ static constexpr uint32_t r_squared(unsigned i) {
      constexpr uint32_t value[8] = {0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb,
                                     0x7254398f, 0x05d31496, 0x9f59ff11, 0x0748d9d9};
      return value[i];
    }
    // -p^-1 mod 2^32 and mod 2^64.
    static constexpr uint32_t negative_inverse32 = 0xffffffffu;
    static constexpr uint64_t negative_inverse64 = 0xfffffffeffffffffull;
    // 2^32 divides r - 1.
    static constexpr unsigned two_adicity = 32;
    // 5^((r - 1) / 2^32) in Montgomery form: of order 2^32. 5 is the smallest non-residue.
    __host__ __device__ static constexpr uint32_t root_of_unity(unsigned i) {
      constexpr uint32_t value[8] = {0x0c17f47c, 0x9cab6d5c, 0xfd4b71e5, 0x1ce1e93d,
                                     0x471dd505, 0x0d6db230, 0x743a3b6a, 0x3f0ee990};
      return value[i];
    }
  };

  // 4 in Montgomery form: the curve's b.
  __host__ __device__ static constexpr uint32_t b(unsigned i) {
    constexpr uint32_t value[12] = {0x000cfff3, 0xaa270000, 0xfc34000a, 0x53cc0032,
                                    0x6b0a807f, 0x478fe97a, 0xe6ba24d7, 0xb1d37ebe,
                                    0xbf78ab2f, 0x8ec9733b, 0x3d83de7e, 0x09d64551};
    return value[i];
  }
  // 4 (1 + u) in Montgomery form, c0 and c1: the twist's b.
  __host__ __device__ static constexpr uint32_t b2_c0(unsigned i) {
    constexpr uint32_t value[12] = {0x000cfff3, 0xaa270000, 0xfc34000a, 0x53cc0032,
                                    0x6b0a807f, 0x478fe97a, 0xe6ba24d7, 0xb1d37ebe,
                                    0xbf78ab2f, 0x8ec9733b, 0x3d83de7e, 0x09d64551};
    return value[i];
  }
  __host__ __device__ static constexpr uint32_t b2_c1(unsigned i) {
    constexpr uint32_t value[12] = {0x000cfff3, 0xaa270000, 0xfc34000a, 0x53cc0032,
                                    0x6b0a807f, 0x478fe97a, 0xe6ba24d7, 0xb1d37ebe,
                                    0xbf78ab2f, 0x8ec9733b, 0x3d83de7e, 0x09d64551};
    return value[i];
  }
};

}  // namespace freshproof
