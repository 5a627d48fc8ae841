// BN254 (snarkjs: bn128): y^2 = x^3 + 3 over Fq, and its sextic twist y^2 = x^3 + 3 / (9 + u) over
// Fq2 = Fq[u] / (u^2 + 1). Family: Barreto and Naehrig, "Pairing-Friendly Elliptic Curves of Prime Order"
// (SAC 2005), with x = 4965661367192848881. Arrays hold little-endian 32-bit words.
#pragma once
#include <cstdint>

#include "dialect.cuh"

namespace freshproof {

struct Bn254 {
  static constexpr const char* name() { return "bn254"; }

  // The base field.
  struct FqParams {
    static constexpr unsigned words = 8;
    static constexpr unsigned bits = 254;
    // q = 36 x^4 + 36 x^3 + 24 x^2 + 6 x + 1.
    __host__ __device__ static constexpr uint32_t modulus(unsigned i) {
      constexpr uint32_t value[8] = {0xd87cfd47, 0x3c208c16, 0x6871ca8d, 0x97816a91,
                                     0x8181585d, 0xb85045b6, 0xe131a029, 0x30644e72};
      return value[i];
    }
    // R mod p, R = 2^256: the Montgomery form of 1.
    __host__ __device__ static constexpr uint32_t one(unsigned i) {
      constexpr uint32_t value[8] = {0xc58f0d9d, 0xd35d438d, 0xf5c70b3d, 0x0a78eb28,
                                     0x7879462c, 0x666ea36f, 0x9a07df2f, 0x0e0a77c1};
      return value[i];
    }
    // R^2 mod p: one Montgomery multiplication by it enters Montgomery form.
    __host__ __device__ static constexpr uint32_t r_squared(unsigned i) {
      constexpr uint32_t value[8] = {0x538afa89, 0xf32cfc5b, 0xd44501fb, 0xb5e71911,
                                     0x0a417ff6, 0x47ab1eff, 0xcab8351f, 0x06d89f71};
      return value[i];
    }
    // -p^-1 mod 2^32 and mod 2^64.
    static constexpr uint32_t negative_inverse32 = 0xe4866389u;
    static constexpr uint64_t negative_inverse64 = 0x87d20782e4866389ull;
  };

  // The scalar field.
  struct FrParams {
    static constexpr unsigned words = 8;
    static constexpr unsigned bits = 254;
    // r = 36 x^4 + 36 x^3 + 18 x^2 + 6 x + 1.
    __host__ __device__ static constexpr uint32_t modulus(unsigned i) {
      constexpr uint32_t value[8] = {0xf0000001, 0x43e1f593, 0x79b97091, 0x2833e848,
                                     0x8181585d, 0xb85045b6, 0xe131a029, 0x30644e72};
      return value[i];
    }
    // R mod p, R = 2^256: the Montgomery form of 1.
    __host__ __device__ static constexpr uint32_t one(unsigned i) {
      constexpr uint32_t value[8] = {0x4ffffffb, 0xac96341c, 0x9f60cd29, 0x36fc7695,
                                     0x7879462e, 0x666ea36f, 0x9a07df2f, 0x0e0a77c1};
      return value[i];
    }
    // R^2 mod p: one Montgomery multiplication by it enters Montgomery form.
    __host__ __device__ static constexpr uint32_t r_squared(unsigned i) {
      constexpr uint32_t value[8] = {0xae216da7, 0x1bb8e645, 0xe35c59e3, 0x53fe3ab1,
                                     0x53bb8085, 0x8c49833d, 0x7f4e44a5, 0x0216d0b1};
      return value[i];
    }
    // -p^-1 mod 2^32 and mod 2^64.
    static constexpr uint32_t negative_inverse32 = 0xefffffffu;
    static constexpr uint64_t negative_inverse64 = 0xc2e1f593efffffffull;
    // 2^28 divides r - 1.
    static constexpr unsigned two_adicity = 28;
    // 5^((r - 1) / 2^28) in Montgomery form: of order 2^28. 5 is the smallest non-residue.
    __host__ __device__ static constexpr uint32_t root_of_unity(unsigned i) {
      constexpr uint32_t value[8] = {0x80d13d9c, 0x636e7355, 0x2445ffd6, 0xa22bf374,
                                     0x1eb203d8, 0x56452ac0, 0x2963f9e7, 0x1860ef94};
      return value[i];
    }
  };

  // 3 in Montgomery form: the curve's b.
  __host__ __device__ static constexpr uint32_t b(unsigned i) {
    constexpr uint32_t value[8] = {0x50ad28d7, 0x7a17caa9, 0xe15521b9, 0x1f6ac17a,
                                   0x696bd284, 0x334bea4e, 0xce179d8e, 0x2a1f6744};
    return value[i];
  }
  // 3 / (9 + u) in Montgomery form, c0 and c1: the twist's b.
  __host__ __device__ static constexpr uint32_t b2_c0(unsigned i) {
    constexpr uint32_t value[8] = {0x77b802a8, 0x3bf938e3, 0x3633535d, 0x020b1b27,
                                   0x49755260, 0x26b7edf0, 0x4384a86d, 0x2514c632};
    return value[i];
  }
  __host__ __device__ static constexpr uint32_t b2_c1(unsigned i) {
    constexpr uint32_t value[8] = {0xd1dcff67, 0x38e7eccc, 0x93ce0d3e, 0x65f0b37d,
                                   0x22ac00aa, 0xd749d0dd, 0x4a688d4d, 0x0141b9ce};
    return value[i];
  }
};

}  // namespace freshproof
