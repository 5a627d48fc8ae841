// Scalars as signed digits: s = sum_w d_w 2^(c w), |d_w| <= 2^(c-1), so that c-bit windows need 2^(c-1) buckets.
//
// A scalar above r/2 is replaced by r - s with all signs turned: the magnitude has one bit less than r, and `windows`
// windows suffice when c * windows >= bits(r). Without that the last digit could carry out of the top window.
//
// Window w = sets * j + k belongs to bucket set k and takes the point from table j, which holds 2^(c sets j) P:
// with sets = windows there is one table, the points themselves; with sets = 1 a table for each window.
#pragma once
#include "../field.cuh"
#include "grid.cuh"

namespace freshproof {
namespace msm {

struct Windows {
  uint32_t bits;   // c
  uint32_t count;  // windows
  uint32_t sets;   // bucket sets, each of 2^(c-1) buckets
};

// One digit: bucket 0 .. sets 2^(c-1) - 1 (digit +-1 of set 0 is bucket 0), the table, and the digit's sign.
struct Digit {
  uint32_t bucket, table, negative;
};

// min(s, r - s), and whether that is r - s. Needs s < r.
template <class Fr> __device__ __forceinline__ uint32_t fold_scalar(uint32_t* s) {
  uint32_t opposite[8];
  opposite[0] = ptx::sub_cc(Fr::modulus(0), s[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < 8; ++i) opposite[i] = ptx::subc_cc(Fr::modulus(i), s[i]);
  ptx::sub_cc(opposite[0], s[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < 8; ++i) ptx::subc_cc(opposite[i], s[i]);
  const uint32_t smaller = ptx::subc(0, 0);
  FRESHPROOF_UNROLL
  for (unsigned i = 0; i < 8; ++i) s[i] = smaller ? opposite[i] : s[i];
  return smaller & 1;
}

// visit(Digit) for every digit of the scalar that is not 0, lowest first.
template <class Fr, class Visit>
__device__ __forceinline__ void for_each_digit(const uint4* scalar, const Windows& windows, const Visit& visit) {
  const uint4 low = scalar[0], high = scalar[1];
  uint32_t s[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  const uint32_t sign = fold_scalar<Fr>(s);
  const uint32_t c = windows.bits, half = 1u << (c - 1);
  uint32_t carry = 0, set = 0, table = 0;
  for (uint32_t w = 0; w < windows.count; ++w) {
    const uint32_t raw = (s[0] & (2 * half - 1)) + carry;
    FRESHPROOF_UNROLL
    for (unsigned i = 0; i < 7; ++i) s[i] = uint32_t((uint64_t(s[i + 1]) << 32 | s[i]) >> c);
    s[7] >>= c;
    carry = raw > half;
    const uint32_t size = carry ? 2 * half - raw : raw;
    if (size != 0) visit(Digit{set * half + size - 1, table, sign ^ carry});
    if (++set == windows.sets) {
      set = 0;
      ++table;
    }
  }
}

}  // namespace msm
}  // namespace freshproof
