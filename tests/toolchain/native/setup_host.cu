// The mathematics of the setup kernels on a CPU: the same templates, run in a loop.
#include "curve.cuh"
#include "kernels/setup_fixed_base.cuh"
#include "params_bls12_381.cuh"
#include "params_bn254.cuh"

#include <vector>

using namespace freshproof;

// out[n] = scalars[n] * point, affine, by `threads` interleaved batches.
template <class F> static void multiples(void* out, const uint32_t* scalars, const void* point, uint32_t n, uint32_t threads) {
  const auto& base = *static_cast<const Affine<F>*>(point);
  std::vector<Affine<F>> table(setup::table_points);
  for (uint32_t k = 0; k < setup::table_points; ++k) table[k] = setup::table_entry(base, k);
  std::vector<Xyzz<F>> sums(n);
  for (uint32_t k = 0; k < n; ++k) sums[k] = setup::multiple(table.data(), scalars + 8 * k);
  for (uint32_t t = 0; t < threads; ++t) {
    setup::batch_to_affine(static_cast<Affine<F>*>(out), sums.data(), t, threads, n);
  }
}

extern "C" void setup_multiples(int curve, int group, void* out, const uint32_t* scalars, const void* point, uint32_t n,
                                uint32_t threads) {
  if (curve == 0 && group == 1) multiples<G1<Bn254>::F>(out, scalars, point, n, threads);
  if (curve == 0 && group == 2) multiples<G2<Bn254>::F>(out, scalars, point, n, threads);
  if (curve == 1 && group == 1) multiples<G1<Bls12_381>::F>(out, scalars, point, n, threads);
  if (curve == 1 && group == 2) multiples<G2<Bls12_381>::F>(out, scalars, point, n, threads);
}
