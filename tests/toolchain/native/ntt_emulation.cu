// The threads of the NTT kernels, run one after the other on a CPU between their barriers, with the device's own
// 32-bit arithmetic emulated. Built with -DFRESHPROOF_EMULATE_PTX.
#include <cstring>
#include <vector>

#include "kernels/ntt_tables.cuh"
#include "kernels/quotient.cuh"
#include "params_bls12_381.cuh"
#include "params_bn254.cuh"

using namespace freshproof;
using ntt::PassArguments;
using ntt::Tile;
using ntt::uint4;

template <class P, unsigned K> struct Thread {
  Field<P> v[8] = {};
  uint32_t lane_column, unit, column;
};

// One block: what ntt::pass does, with a loop over the threads in place of each stretch between two barriers.
template <class P, unsigned K> static void run_block(const PassArguments& a, uint32_t block) {
  using S = ntt::Pass<P, K>;
  using T = Tile<K>;
  std::vector<uint4> shared(2 * T::slots + 1);
  std::vector<Thread<P, K>> threads(T::threads);
  for (uint32_t k = 0; k < T::threads; ++k) {
    Thread<P, K>& t = threads[k];
    t.lane_column = k % T::columns;
    t.unit = k / T::columns;
    t.column = block * T::columns + t.lane_column;
    if (t.column < 1u << (a.shape.log_n - K)) S::load(t.v, a, t.column, t.unit);
  }
  unsigned log_s = 0;
  for (; log_s + T::last_bits < K; log_s += 3) {
    memset(shared.data(), 0xff, shared.size() * sizeof(uint4));  // a slot read but not written shows
    for (auto& t : threads) {
      S::template round<3>(t.v, a.twiddles, log_s, t.unit);
      S::put(t.v, shared.data(), log_s, t.unit, t.lane_column);
    }
    for (auto& t : threads) S::get(t.v, shared.data(), t.unit, t.lane_column);
  }
  for (auto& t : threads) {
    S::template round<T::last_bits>(t.v, a.twiddles, log_s, t.unit);
    if (t.column < 1u << (a.shape.log_n - K)) S::store(t.v, a, t.column, t.unit);
  }
}

template <class P, unsigned K> static void run_pass(const PassArguments& a) {
  const uint32_t columns = 1u << (a.shape.log_n - K);
  for (uint32_t block = 0; block * Tile<K>::columns < columns; ++block) run_block<P, K>(a, block);
}

template <class P> static int pass(unsigned bits, const PassArguments& a) {
  switch (bits) {
    case 3: run_pass<P, 3>(a); return 0;
    case 4: run_pass<P, 4>(a); return 0;
    case 5: run_pass<P, 5>(a); return 0;
    case 6: run_pass<P, 6>(a); return 0;
    case 7: run_pass<P, 7>(a); return 0;
    case 8: run_pass<P, 8>(a); return 0;
    case 9: run_pass<P, 9>(a); return 0;
    default: return 1;
  }
}

template <class P>
static void factors(uint4* out, const void* low, const void* high, const void* scale, unsigned log_low,
                    unsigned log_entries, unsigned log_f, uint32_t alpha, uint32_t beta) {
  const auto* element = static_cast<const Field<P>*>(scale);
  const ntt::Powers<P> power{static_cast<const Field<P>*>(low), static_cast<const Field<P>*>(high), log_low, *element};
  for (uint32_t k = 0; k < 1u << log_entries; ++k) {
    ntt::factor_entry<P>(out, log_f, alpha, beta, power, k);
  }
}

using Bn = Bn254::FrParams;
using Bls = Bls12_381::FrParams;

// curve: 0 = BN254, 1 = BLS12-381. Pointers are 16-byte aligned.
extern "C" {

int emulate_pass(int curve, unsigned bits, uint4* out, const uint4* in, const uint4* factors, const uint4* twiddles,
                 unsigned log_n, unsigned log_s, unsigned log_f, int flip) {
  const PassArguments a{out, in, factors, twiddles, {log_n, log_s, flip != 0}, log_f, 0};
  return curve == 0 ? pass<Bn>(bits, a) : pass<Bls>(bits, a);
}

void emulate_factors(int curve, uint4* out, const void* low, const void* high, const void* scale, unsigned log_low,
                     unsigned log_entries, unsigned log_f, uint32_t alpha, uint32_t beta) {
  if (curve == 0) {
    factors<Bn>(out, low, high, scale, log_low, log_entries, log_f, alpha, beta);
  } else {
    factors<Bls>(out, low, high, scale, log_low, log_entries, log_f, alpha, beta);
  }
}

void emulate_direct(int curve, uint4* data, const uint4* factors, const void* roots, unsigned log_n, int flip) {
  if (curve == 0) {
    ntt::direct<Bn>(data, factors, static_cast<const Field<Bn>*>(roots), log_n, flip != 0);
  } else {
    ntt::direct<Bls>(data, factors, static_cast<const Field<Bls>*>(roots), log_n, flip != 0);
  }
}

void emulate_shoup(int curve, uint32_t* out, const uint32_t* x, const uint32_t* w, const uint32_t* q, unsigned count) {
  for (unsigned k = 0; k < 8 * count; k += 8) {
    if (curve == 0) {
      shoup_mul<Bn>(out + k, x + k, ArrayWords{w + k}, ArrayWords{q + k});
    } else {
      shoup_mul<Bls>(out + k, x + k, ArrayWords{w + k}, ArrayWords{q + k});
    }
  }
}

}  // extern "C"
