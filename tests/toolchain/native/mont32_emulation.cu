// The device's field arithmetic on 32-bit words, with PTX's carry chains emulated. Built with -DFRESHPROOF_EMULATE_PTX.
// Every function takes up to four operands; t is the widest result.
#include "inverse32.cuh"
#include "params_bls12_381.cuh"
#include "params_bn254.cuh"
#include "quadratic32.cuh"

using namespace freshproof;

#define EXPORT(field, P)                                                                                             \
  extern "C" {                                                                                                       \
  void add_##field(uint32_t* t, const uint32_t* a, const uint32_t* b) { device_add<P>(t, a, b); }                    \
  void sub_##field(uint32_t* t, const uint32_t* a, const uint32_t* b) { device_sub<P>(t, a, b); }                    \
  void mul_##field(uint32_t* t, const uint32_t* a, const uint32_t* b) { device_mul<P>(t, a, b); }                    \
  void sqr_##field(uint32_t* t, const uint32_t* a) { device_sqr<P>(t, a); }                                          \
  void inverse_##field(uint32_t* t, const uint32_t* a) { device_inverse<P>(t, a); }                                  \
  void wide_mul_##field(uint32_t* t, const uint32_t* a, const uint32_t* b) { wide_mul<P::words>(t, a, b); }          \
  void wide_sqr_##field(uint32_t* t, const uint32_t* a) { wide_sqr<P::words>(t, a); }                                \
  void reduce_##field(uint32_t* t, const uint32_t* a) { reduce<P>(t, a); }                                           \
  }

// What needs two bits to spare above the modulus.
#define EXPORT_ROOMY(field, P)                                                                                       \
  extern "C" {                                                                                                       \
  void loose_mul_##field(uint32_t* t, const uint32_t* a, const uint32_t* b) { device_loose_mul<P>(t, a, b); }        \
  void loose_sub_##field(uint32_t* t, const uint32_t* a, const uint32_t* b) { device_loose_sub<P>(t, a, b); }        \
  void loose_neg_##field(uint32_t* t, const uint32_t* a) { device_loose_neg<P>(t, a); }                              \
  void mul_add_##field(uint32_t* t, const uint32_t* a, const uint32_t* b, const uint32_t* c, const uint32_t* d) {    \
    device_mul_add<P>(t, a, b, c, d);                                                                                \
  }                                                                                                                  \
  void quadratic_mul_##field(uint32_t* t, const uint32_t* a0, const uint32_t* a1, const uint32_t* b0,                \
                             const uint32_t* b1) {                                                                   \
    device_quadratic_mul<P>(t, t + P::words, a0, a1, b0, b1);                                                        \
  }                                                                                                                  \
  void quadratic_sqr_##field(uint32_t* t, const uint32_t* a0, const uint32_t* a1) {                                  \
    device_quadratic_sqr<P>(t, t + P::words, a0, a1);                                                                \
  }                                                                                                                  \
  }

EXPORT(bn254_q, Bn254::FqParams)
EXPORT(bn254_r, Bn254::FrParams)
EXPORT(bls12_381_q, Bls12_381::FqParams)
EXPORT(bls12_381_r, Bls12_381::FrParams)
EXPORT_ROOMY(bn254_q, Bn254::FqParams)
EXPORT_ROOMY(bls12_381_q, Bls12_381::FqParams)
