// The eighth roots of unity w_8^k, k = 1, 2, 3, of both scalar fields: the constants of a radix-8 butterfly.
//
// w_8 = 5^((r - 1) / 8), as in snarkjs. Each, or its negative where that is shorter, comes in standard form with
// floor(w 2^256 / r), for shoup_mul; as constants of the code they are immediates and cost no load. The square root of
// -1, w_8^2, is +-x^3 or a short polynomial in the curve's parameter x: 192 bits. Little-endian 32-bit words.
#pragma once
#include "../params_bls12_381.cuh"
#include "../params_bn254.cuh"
#include "ntt_shoup.cuh"

namespace freshproof {
namespace ntt {

template <class P> struct EighthRoots;

template <> struct EighthRoots<Bn254::FrParams> {
  // Whether entry k is -w_8^k.
  __host__ __device__ static constexpr bool negated(unsigned k) { return k == 2; }
  __host__ __device__ static constexpr uint32_t root(unsigned k, unsigned i) {
    constexpr uint32_t value[3][8] = {{0xc1bd5e80, 0x948dad4a, 0xf8170a0a, 0x52627366,
                                       0x96afef36, 0xec9b9e2f, 0xc8c14f22, 0x2b337de1},
                                      {0x608fc9cb, 0x20cff123, 0x7c4604a5, 0xcb49c351,
                                       0x41a91758, 0xb3c4d79d, 0x00000000, 0x00000000},
                                      {0xe846a566, 0xb8d01be8, 0x3852513a, 0x07c2d99b,
                                       0x50893a6f, 0xbd157ac8, 0x49b959cc, 0x1d593761}};
    return value[k - 1][i];
  }
  __host__ __device__ static constexpr uint32_t quotient(unsigned k, unsigned i) {
    constexpr uint32_t value[3][8] = {{0x5a5283c1, 0xdd8afcc5, 0xffd81d31, 0x6d3e4a2d,
                                       0x2ed0370f, 0x74b83bc6, 0x9d809d8a, 0xe48a5eea},
                                      {0x4edcef8a, 0xd13d8934, 0x88786761, 0x689edebc,
                                       0x2517057b, 0xb7012940, 0x00000003, 0x00000000},
                                      {0x8da29e9a, 0x6fd8ed2b, 0x5fedd0d9, 0xe5a47a83,
                                       0x33448e64, 0x2c9100ba, 0xb0622cd5, 0x9b420ab1}};
    return value[k - 1][i];
  }
};

template <> struct EighthRoots<Bls12_381::FrParams> {
  // Whether entry k is -w_8^k.
  __host__ __device__ static constexpr bool negated(unsigned) { return false; }
  __host__ __device__ static constexpr uint32_t root(unsigned k, unsigned i) {
    constexpr uint32_t value[3][8] = {{0x688bc087, 0x8dd702cb, 0x78eaa4fe, 0xa0328240,
                                       0x98ca5b22, 0xa733b23a, 0x25a31660, 0x3f96405d},
                                      {0x00000000, 0x00010000, 0x76030000, 0xec030002,
                                       0x760304d0, 0x8d51ccce, 0x00000000, 0x00000000},
                                      {0x5166afd3, 0x9fc8017d, 0x6b4e0c26, 0xc54913cc,
                                       0x3f1b189f, 0x787d7d08, 0xccbc6d03, 0x60b9f524}};
    return value[k - 1][i];
  }
  __host__ __device__ static constexpr uint32_t quotient(unsigned k, unsigned i) {
    constexpr uint32_t value[3][8] = {{0x2c42eff7, 0x9b12398d, 0xe66603dc, 0xde0a24a2,
                                       0xbdb45a32, 0xcef49e9f, 0xabca6948, 0x8c6a9fff},
                                      {0x5576304f, 0x61c5d9da, 0x3e76ec2a, 0x33cfcc0d,
                                       0x56cd56b5, 0x381204ca, 0x00000001, 0x00000000},
                                      {0x3eb2a8dc, 0x4fd2411f, 0x1ac8363c, 0xfa7a5326,
                                       0x55f15b13, 0x2fb113e8, 0x4189885d, 0xd598dc6c}};
    return value[k - 1][i];
  }
};

template <class P, unsigned k> struct RootWords {
  __host__ __device__ __forceinline__ uint32_t operator()(unsigned i) const { return EighthRoots<P>::root(k, i); }
};

template <class P, unsigned k> struct RootQuotientWords {
  __host__ __device__ __forceinline__ uint32_t operator()(unsigned i) const { return EighthRoots<P>::quotient(k, i); }
};

}  // namespace ntt

template <class P, unsigned k> struct KnownWords<ntt::RootWords<P, k>> {
  static constexpr bool value = true;
};

template <class P, unsigned k> struct KnownWords<ntt::RootQuotientWords<P, k>> {
  static constexpr bool value = true;
};

}  // namespace freshproof
