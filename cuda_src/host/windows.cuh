// How an MSM cuts scalars into signed digits.
#pragma once
#include <algorithm>
#include <cstdint>

namespace freshproof {

// A scalar with 2^(c-1) added to every digit but the top one: then digit j is the plain bit field at c * j
// minus 2^(c-1), with no carry from the digits below, and each window can be read by itself.
struct ShiftedScalar {
  uint64_t limb[4];

  uint32_t bits(unsigned at, unsigned count) const {
    const unsigned word = at / 64, shift = at % 64;
    uint64_t field = limb[word] >> shift;
    if (shift + count > 64 && word < 3) field |= limb[word + 1] << (64 - shift);
    return uint32_t(field & ((uint64_t(1) << count) - 1));
  }
};

// Windows of c bits over scalars of `scalar_bits`. One more window than full ones: the top digit has fewer
// than c bits, so that with a carry it is at most 2^(c-1), and the offsets below it keep the sum under 2^256.
struct Windows {
  unsigned c, count;

  Windows(unsigned c, unsigned scalar_bits) : c(c), count(scalar_bits / c + 1) {}

  uint32_t buckets() const { return uint32_t(1) << (c - 1); }

  ShiftedScalar shift(const ShiftedScalar& scalar) const {
    ShiftedScalar offset{};
    for (unsigned j = 0; j + 1 < count; ++j) {
      const unsigned bit = c * j + c - 1;
      offset.limb[bit / 64] |= uint64_t(1) << bit % 64;
    }
    ShiftedScalar out;
    unsigned __int128 carry = 0;
    for (unsigned i = 0; i < 4; ++i) {
      carry += (unsigned __int128)scalar.limb[i] + offset.limb[i];
      out.limb[i] = uint64_t(carry);
      carry >>= 64;
    }
    return out;
  }

  int32_t digit(const ShiftedScalar& scalar, unsigned j) const {
    if (j + 1 == count) return int32_t(scalar.bits(c * j, std::min(c, 256 - c * j)));
    return int32_t(scalar.bits(c * j, c)) - int32_t(buckets());
  }
};

// What an MSM costs, in multiplications: 6 to add a point to a bucket, 24 to weigh a bucket (one mixed and
// one full XYZZ addition).
inline uint64_t msm_cost(const Windows& windows, uint64_t points) {
  return windows.count * (6 * points + 24 * uint64_t(windows.buckets()));
}

// The windows of least cost.
inline Windows choose_windows(uint64_t points, unsigned scalar_bits) {
  Windows best(3, scalar_bits);
  for (unsigned c = 4; c <= 20; ++c) {
    const Windows windows(c, scalar_bits);
    if (msm_cost(windows, points) < msm_cost(best, points)) best = windows;
  }
  return best;
}

}  // namespace freshproof
