// Inversion mod p on a CPU by division steps, about a tenth of the time of Fermat's power.
//
// Bernstein and Yang, "Fast constant-time gcd computation and modular inversion" (TCHES 2019), in the
// variable-time form with eta = -delta: 62 steps at a time look at the low 64 bits of f and g only and give a
// 2x2 matrix of integers below 2^62, which is then applied to the whole f, g and, modulo p, to d, e.
// Throughout, d * x = f and e * x = g (mod p), up to the factor that e starts from; when g is 0, f is 1 or
// -1. Time depends on the value: not for secrets that an attacker can time.
#pragma once
#include <cstdint>

#include "dialect.cuh"
#include "limb.cuh"

namespace freshproof {

// A signed integer in limbs of 62 bits; all but the top one are in [0, 2^62).
template <unsigned L> struct Signed62 {
  int64_t limb[L];
};

constexpr int64_t mask62 = (int64_t(1) << 62) - 1;

// Limbs of 62 bits that hold integers in (-2p, 2p) for a p of N limbs of 64 bits.
template <unsigned N> constexpr unsigned limbs62 = (64 * N + 2 + 61) / 62;

template <unsigned N> constexpr Signed62<limbs62<N>> to_signed62(const uint64_t* limb) {
  Signed62<limbs62<N>> out{};
  for (unsigned i = 0; i < limbs62<N>; ++i) {
    const unsigned word = 62 * i / 64, shift = 62 * i % 64;
    uint64_t bits = word < N ? limb[word] >> shift : 0;
    if (shift > 2 && word + 1 < N) bits |= limb[word + 1] << (64 - shift);
    out.limb[i] = int64_t(bits & uint64_t(mask62));
  }
  return out;
}

// 2^62 times the linear map of 62 division steps: f' = (u f + v g) / 2^62, g' = (q f + r g) / 2^62.
struct DivisionSteps {
  int64_t u, v, q, r;
};

// Runs 62 steps on the low bits of f (odd) and g; eta is carried over. Runs of zero bits of g are one shift,
// and up to six bits of g are cleared at once by adding the right multiple of f.
inline DivisionSteps divide_62(int64_t& eta, uint64_t f, uint64_t g) {
  uint64_t u = 1, v = 0, q = 0, r = 1;
  int left = 62;
  for (;;) {
    const int zeros = __builtin_ctzll(g | ~uint64_t(0) << left);
    g >>= zeros, u <<= zeros, v <<= zeros;
    eta -= zeros, left -= zeros;
    if (left == 0) break;
    if (eta < 0) {
      eta = -eta;
      uint64_t old = f;
      f = g, g = -old;
      old = u, u = q, q = -old;
      old = v, v = r, r = -old;
    }
    // The swap's condition cannot come up again within eta + 1 steps. f (f^2 - 2) = -1 / f mod 64.
    const int64_t steps = eta + 1 < left ? eta + 1 : left;
    const uint64_t low_bits = steps < 6 ? (uint64_t(1) << steps) - 1 : 63;
    const uint64_t multiple = (g * f * (f * f - 2)) & low_bits;
    g += f * multiple, q += u * multiple, r += v * multiple;
  }
  return {int64_t(u), int64_t(v), int64_t(q), int64_t(r)};
}

// f, g = the map of f, g; exact: the low 62 bits of both vanish.
template <unsigned L> void apply_exactly(const DivisionSteps& t, Signed62<L>& f, Signed62<L>& g) {
  using Wide = __int128;
  Wide cf = Wide(t.u) * f.limb[0] + Wide(t.v) * g.limb[0];
  Wide cg = Wide(t.q) * f.limb[0] + Wide(t.r) * g.limb[0];
  cf >>= 62, cg >>= 62;
  for (unsigned i = 1; i < L; ++i) {
    const int64_t fi = f.limb[i], gi = g.limb[i];
    cf += Wide(t.u) * fi + Wide(t.v) * gi;
    cg += Wide(t.q) * fi + Wide(t.r) * gi;
    f.limb[i - 1] = int64_t(cf) & mask62, g.limb[i - 1] = int64_t(cg) & mask62;
    cf >>= 62, cg >>= 62;
  }
  f.limb[L - 1] = int64_t(cf), g.limb[L - 1] = int64_t(cg);
}

// d, e = the map of d, e mod p. In and out: (-2p, p). A multiple of p makes the low 62 bits vanish; another,
// for negative entries, keeps the range.
template <unsigned L> void apply_modulo(const DivisionSteps& t, Signed62<L>& d, Signed62<L>& e,
                                        const Signed62<L>& p, uint64_t p_inverse) {
  using Wide = __int128;
  const int64_t d_sign = d.limb[L - 1] >> 63, e_sign = e.limb[L - 1] >> 63;
  int64_t md = (t.u & d_sign) + (t.v & e_sign), me = (t.q & d_sign) + (t.r & e_sign);
  Wide cd = Wide(t.u) * d.limb[0] + Wide(t.v) * e.limb[0];
  Wide ce = Wide(t.q) * d.limb[0] + Wide(t.r) * e.limb[0];
  md -= int64_t((p_inverse * uint64_t(cd) + uint64_t(md)) & uint64_t(mask62));
  me -= int64_t((p_inverse * uint64_t(ce) + uint64_t(me)) & uint64_t(mask62));
  cd += Wide(p.limb[0]) * md, ce += Wide(p.limb[0]) * me;
  cd >>= 62, ce >>= 62;
  for (unsigned i = 1; i < L; ++i) {
    const int64_t di = d.limb[i], ei = e.limb[i];
    cd += Wide(t.u) * di + Wide(t.v) * ei + Wide(p.limb[i]) * md;
    ce += Wide(t.q) * di + Wide(t.r) * ei + Wide(p.limb[i]) * me;
    d.limb[i - 1] = int64_t(cd) & mask62, e.limb[i - 1] = int64_t(ce) & mask62;
    cd >>= 62, ce >>= 62;
  }
  d.limb[L - 1] = int64_t(cd), e.limb[L - 1] = int64_t(ce);
}

// a = sign * a + multiple * p, limbs brought back into [0, 2^62).
template <unsigned L> void adjust(Signed62<L>& a, int64_t sign, int64_t multiple, const Signed62<L>& p) {
  int64_t carry = 0;
  for (unsigned i = 0; i < L; ++i) {
    carry += sign * a.limb[i] + multiple * p.limb[i];
    if (i + 1 < L) {
      a.limb[i] = carry & mask62;
      carry >>= 62;
    } else {
      a.limb[i] = carry;
    }
  }
}

// out = R^2 / a mod p, and 0 for 0: if a is x in Montgomery form (x R), that is 1 / x in Montgomery form.
template <class P> void limbs_inverse(Limb* out, const Limb* a) {
  constexpr unsigned N = P::words / 2, L = limbs62<N>;
  constexpr Signed62<L> p = to_signed62<N>(modulus_limbs<P>.limb);
  constexpr Limbs<N> r_squared = limbs_of<N>(P::r_squared);
  uint64_t value[N];
  for (unsigned i = 0; i < N; ++i) value[i] = a[i];
  Signed62<L> f = p, g = to_signed62<N>(value), d{}, e = to_signed62<N>(r_squared.limb);
  int64_t eta = -1;
  for (;;) {
    int64_t any = 0;
    for (unsigned i = 0; i < L; ++i) any |= g.limb[i];
    if (any == 0) break;
    const DivisionSteps t = divide_62(eta, uint64_t(f.limb[0]) | uint64_t(f.limb[1]) << 62,
                                      uint64_t(g.limb[0]) | uint64_t(g.limb[1]) << 62);
    apply_modulo<L>(t, d, e, p, -P::negative_inverse64);
    apply_exactly<L>(t, f, g);
  }
  // f = 1 or -1 (or p, for a = 0, where d = 0): d in (-2p, p) becomes the residue of d * f.
  const bool negate = f.limb[L - 1] < 0;
  if (d.limb[L - 1] < 0) adjust<L>(d, 1, 1, p);
  adjust<L>(d, negate ? -1 : 1, 0, p);
  if (d.limb[L - 1] < 0) adjust<L>(d, 1, 1, p);
  for (unsigned i = 0; i < N; ++i) {
    const unsigned at = 64 * i / 62, shift = 64 * i % 62;
    uint64_t bits = uint64_t(d.limb[at]) >> shift;
    if (at + 1 < L) bits |= uint64_t(d.limb[at + 1]) << (62 - shift);
    if (shift > 60 && at + 2 < L) bits |= uint64_t(d.limb[at + 2]) << (124 - shift);
    out[i] = bits;
  }
}

}  // namespace freshproof
