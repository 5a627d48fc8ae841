// The kernels over one scalar field: NTT passes and tables, sparse products, element-wise work.
// A .cu file includes this once, with FRESHPROOF_CURVE set to a curve. Mathematics: the headers included here.
#pragma once
#include "ntt_tables.cuh"
#include "quotient.cuh"
#include "sparse.cuh"

namespace freshproof {
using P = FRESHPROOF_CURVE::FrParams;
using F = Field<P>;
}  // namespace freshproof

// One NTT pass of 2^K-point columns over gridDim.y vectors that lie side by side. See ntt_pass.cuh: pass.
#define FRESHPROOF_NTT_PASS(K)                                                                                        \
  extern "C" __global__ void __launch_bounds__(freshproof::ntt::Tile<K>::threads,                                    \
                                               freshproof::ntt::Tile<K>::blocks)                                     \
      ntt_pass_##K(uint4* out, const uint4* in, const uint4* factors, const uint4* twiddles, uint32_t log_n,          \
                   uint32_t log_s, uint32_t log_f, uint32_t flip) {                                                   \
    freshproof::ntt::pass<freshproof::P, K>(                                                                          \
        {out, in, factors, twiddles, {log_n, log_s, flip != 0}, log_f, blockIdx.y});                                  \
  }

FRESHPROOF_NTT_PASS(3)
FRESHPROOF_NTT_PASS(4)
FRESHPROOF_NTT_PASS(5)
FRESHPROOF_NTT_PASS(6)
FRESHPROOF_NTT_PASS(7)
FRESHPROOF_NTT_PASS(8)
FRESHPROOF_NTT_PASS(9)

// Fewer than 8 points, by one thread a vector. See ntt_tables.cuh: direct.
extern "C" __global__ void ntt_direct(uint4* data, const uint4* factors, const freshproof::F* roots, uint32_t log_n,
                                      uint32_t flip) {
  freshproof::ntt::direct<freshproof::P>(data + (size_t(blockIdx.y) << (log_n + 1)), factors, roots, log_n, flip != 0);
}

// table: 2^log_entries constants. See ntt_tables.cuh: factor_entry.
extern "C" __global__ void ntt_factors(uint4* table, const freshproof::F* low, const freshproof::F* high,
                                       const freshproof::F* scale, uint32_t log_low, uint32_t log_entries,
                                       uint32_t log_f, uint32_t alpha, uint32_t beta) {
  const freshproof::ntt::Powers<freshproof::P> power{low, high, log_low, *scale};
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t k = blockIdx.x * blockDim.x + threadIdx.x; k < 1u << log_entries; k += step) {
    freshproof::ntt::factor_entry<freshproof::P>(table, log_f, alpha, beta, power, k);
  }
}

extern "C" __global__ void sparse_rows(freshproof::F* out, const uint32_t* row_starts, const uint32_t* wires,
                                       const freshproof::F* values, const freshproof::F* witness, uint32_t n,
                                       uint32_t limit) {
  freshproof::sparse::rows<freshproof::P>(out, row_starts, {wires, values, witness}, n, limit);
}

extern "C" __global__ void sparse_segments(freshproof::F* partials, const uint32_t* starts, const uint32_t* ends,
                                           const uint32_t* wires, const freshproof::F* values,
                                           const freshproof::F* witness) {
  freshproof::sparse::segments<freshproof::P>(partials, starts, ends, {wires, values, witness});
}

extern "C" __global__ void sparse_combine(freshproof::F* out, const uint32_t* long_rows, const uint32_t* first,
                                          uint32_t count, const freshproof::F* partials, uint32_t n) {
  freshproof::sparse::combine<freshproof::P>(out, long_rows, first, count, partials, n);
}

// out[k] = a[k] b[k]. Launch: any grid over n.
extern "C" __global__ void fr_multiply(freshproof::F* out, const freshproof::F* a, const freshproof::F* b, uint32_t n) {
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += step) out[k] = a[k] * b[k];
}

// out[k] = a[k] b[k] - c[k] in standard form; out may be a, b or c. Launch: any grid over n.
extern "C" __global__ void fr_quotient(freshproof::F* out, const freshproof::F* a, const freshproof::F* b,
                                       const freshproof::F* c, uint32_t n) {
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += step) {
    out[k] = freshproof::quotient_scalar(a[k], b[k], c[k]);
  }
}
