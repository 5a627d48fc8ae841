// 64-bit limbs: how a CPU sees a field element's 32-bit words.
#pragma once
#include <cstdint>

namespace freshproof {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "pairs of 32-bit words are read as 64-bit limbs in place");

// A limb in memory that is also written and read as two 32-bit words: without may_alias, a compiler may move
// a read of the one before a write of the other. (A template argument drops the attribute: name the type.)
using Limb __attribute__((may_alias)) = uint64_t;

template <unsigned N> struct Limbs {
  uint64_t limb[N];
};

// The limbs of the 2 N words that word(i) gives.
template <unsigned N> constexpr Limbs<N> limbs_of(uint32_t (*word)(unsigned)) {
  Limbs<N> out{};
  for (unsigned i = 0; i < N; ++i) out.limb[i] = uint64_t(word(2 * i)) | uint64_t(word(2 * i + 1)) << 32;
  return out;
}

template <class P> inline constexpr Limbs<P::words / 2> modulus_limbs = limbs_of<P::words / 2>(P::modulus);

}  // namespace freshproof
