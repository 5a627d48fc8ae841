// Tables for points that stay: table j holds 2^(c sets j) P for every point P, affine, each made from the one before.
//
// Doubling in Jacobian coordinates (x = X / Z^2, y = Y / Z^3; Explicit-Formulas Database, dbl-2009-l, a = 0: 2 M + 5 S),
// then one batched inversion of the Z (batch_inverse.cuh).
#pragma once
#include "../curve.cuh"
#include "batch_inverse.cuh"

namespace freshproof {
namespace msm {

template <class F> struct Jacobian {
  F x, y, z;
};

template <class F> __device__ __forceinline__ Jacobian<F> dbl(const Jacobian<F>& p) {
  const F xx = p.x.sqr();
  const F yy = p.y.sqr();
  const F yyyy = yy.sqr();
  const F s = ((p.x + yy).sqr() - xx - yyyy).dbl();
  const F m = xx.dbl() + xx;
  const F x = m.sqr() - s.dbl();
  return {x, m * (s - x) - yyyy.dbl().dbl().dbl(), (p.y * p.z).dbl()};
}

// out[i] = 2^doublings in[i] for i < n. `denominators`, `products`: divide_up(n, threads) values a thread each.
template <class F>
__device__ __forceinline__ void double_points(const Affine<F>* in, uint32_t n, uint32_t doublings,
                                              const ThreadColumn<F>& denominators, const ThreadColumn<F>& products,
                                              Affine<F>* out) {
  const uint32_t threads = grid_threads(), first = global_thread();
  if (first >= n) return;
  const uint32_t steps = divide_up(n - first, threads);
  F product = F::one();
  for (uint32_t step = 0; step < steps; ++step) {
    const uint32_t i = first + step * threads;
    Jacobian<F> p{in[i].x, in[i].y, F::one()};
    for (uint32_t d = 0; d < doublings; ++d) p = dbl(p);
    if (p.z.is_zero()) p = {F::zero(), F::zero(), F::one()};  // the identity stays all zero
    out[i] = {p.x, p.y};
    denominators.store(step, p.z);
    products.store(step, product);
    product = product * p.z;
  }
  F inverse = fast_inverse(product);
  for (uint32_t step = steps; step-- > 0;) {
    const uint32_t i = first + step * threads;
    const F own = inverse * products.load(step);
    const F square = own.sqr();
    out[i] = {out[i].x * square, out[i].y * (square * own)};
    inverse = inverse * denominators.load(step);
  }
}

// Bit i of `present` for i < n: whether points[i] is not the identity. A thread a word.
template <class F>
__device__ __forceinline__ void find_present(const Affine<F>* points, uint32_t n, uint32_t* present) {
  const uint32_t first = 32 * global_thread();
  if (first >= n) return;
  uint32_t word = 0;
  for (uint32_t k = 0; k < min(32u, n - first); ++k) {
    if (!points[first + k].is_identity()) word |= 1u << k;
  }
  present[global_thread()] = word;
}

}  // namespace msm
}  // namespace freshproof
