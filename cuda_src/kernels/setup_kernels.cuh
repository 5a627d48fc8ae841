// The kernels of one curve's groups that work on keys: multiples of a generator, and whether points are on the curve.
// A .cu file includes this once, with FRESHPROOF_CURVE set to a curve. Mathematics: setup_fixed_base.cuh, curve.cuh.
#pragma once
#include "../curve.cuh"
#include "setup_fixed_base.cuh"

namespace freshproof {
using Curve = FRESHPROOF_CURVE;
using AffineG1 = Affine<G1<Curve>::F>;
using AffineG2 = Affine<G2<Curve>::F>;
using XyzzG1 = Xyzz<G1<Curve>::F>;
using XyzzG2 = Xyzz<G2<Curve>::F>;
}  // namespace freshproof

// setup_table:    table[32 * 255] of *point. Launch: a thread an entry.
// setup_multiply: out[k] = scalars[k] * point by its table; scalars: 8 words each. Launch: a thread a scalar.
// setup_affine:   out[k] = in[k], affine; each thread inverts once for the points t, t + threads, ... .
// setup_check:    *first = min(*first, k) for every points[k] not on the curve; start with 0xffffffff. A thread a point.
#define FRESHPROOF_SETUP(group, Group)                                                                                \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      setup_table_##group(freshproof::Affine##Group* table, const freshproof::Affine##Group* point) {                 \
    const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;                                                         \
    if (k < freshproof::setup::table_points) table[k] = freshproof::setup::table_entry(*point, k);                    \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      setup_multiply_##group(freshproof::Xyzz##Group* out, const uint32_t* scalars,                                   \
                             const freshproof::Affine##Group* table, uint32_t n) {                                    \
    const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;                                                         \
    if (k < n) out[k] = freshproof::setup::multiple(table, scalars + 8 * size_t(k));                                  \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      setup_affine_##group(freshproof::Affine##Group* out, const freshproof::Xyzz##Group* in, uint32_t n) {           \
    freshproof::setup::batch_to_affine(out, in, blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x, n);    \
  }                                                                                                                   \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      setup_check_##group(uint32_t* first, const freshproof::Affine##Group* points, uint32_t n) {                     \
    const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;                                                         \
    if (k < n && !freshproof::is_on_curve<freshproof::Group<freshproof::Curve>>(points[k])) atomicMin(first, k);      \
  }

FRESHPROOF_SETUP(g1, G1)
FRESHPROOF_SETUP(g2, G2)
