// The kernels of an MSM over one group. A .cu file includes this once, with FRESHPROOF_GROUP set, and for the
// heavy kernels the threads of a block and the least number of blocks an SM, which bound the registers.
#pragma once
#include "msm_accumulate.cuh"
#include "msm_pair.cuh"
#include "msm_reduce.cuh"
#include "msm_table.cuh"

namespace freshproof {
namespace msm {
using F = FRESHPROOF_GROUP::F;
}  // namespace msm
}  // namespace freshproof

using freshproof::msm::F;

// out[i] = 2^doublings in[i]. See msm_table.cuh: double_points.
extern "C" __global__ void __launch_bounds__(FRESHPROOF_ACCUMULATE_BOUNDS)
    msm_double_points(const freshproof::Affine<F>* in, uint32_t n, uint32_t doublings, uint4* denominators,
                      uint4* products, freshproof::Affine<F>* out) {
  using Column = freshproof::ThreadColumn<F>;
  freshproof::msm::double_points<F>(in, n, doublings, Column::of_grid(denominators), Column::of_grid(products), out);
}

// present: a bit a point, in words of 32; a thread a word. See msm_table.cuh: find_present.
extern "C" __global__ void __launch_bounds__(128)
    msm_find_present(const freshproof::Affine<F>* points, uint32_t n, uint32_t* present) {
  freshproof::msm::find_present<F>(points, n, present);
}

// list: the sums of 2^passes neighbours of *length entries. next: 0. products: `batch` coordinates a thread; lists: one and a
// half times as many points. Any grid of 128 threads; shared memory: 5 coordinates and 48 bytes a thread. See msm_pair.cuh: add_pairs.
extern "C" __global__ void __launch_bounds__(FRESHPROOF_PAIR_BOUNDS)
    msm_add_pairs(const freshproof::Affine<F>* points, const uint32_t* entries, const uint32_t* length, uint32_t passes,
                  uint32_t batch, uint32_t least, uint32_t* next, uint4* products, freshproof::Affine<F>* lists,
                  freshproof::Affine<F>* list) {
  freshproof::msm::add_pairs<F>({{points, entries}, passes, batch, products, lists, list}, length, least, next);
}

// sums, partials: XYZZ; partials and partial_buckets: one a thread. See msm_accumulate.cuh.
extern "C" __global__ void __launch_bounds__(FRESHPROOF_ACCUMULATE_BOUNDS)
    msm_accumulate(const freshproof::Affine<F>* points, const uint32_t* entries, const uint32_t* starts,
                   uint32_t buckets, uint32_t passes, uint32_t least_chunk, freshproof::Xyzz<F>* sums,
                   freshproof::Xyzz<F>* partials, uint32_t* partial_buckets) {
  freshproof::msm::accumulate<F>({points, entries},
                                 {starts, buckets, passes, freshproof::grid_threads(), least_chunk}, sums, partials,
                                 partial_buckets);
}

// Four times the grid of msm_accumulate, once for each stride 1, 4, 16, .. below its number of threads.
extern "C" __global__ void __launch_bounds__(128)
    msm_add_partials(const uint32_t* starts, uint32_t buckets, uint32_t passes, uint32_t least_chunk, uint32_t stride,
                     freshproof::Xyzz<F>* sums, freshproof::Xyzz<F>* partials, const uint32_t* partial_buckets) {
  const uint32_t threads = freshproof::grid_threads() / freshproof::QUAD;
  freshproof::msm::add_partials<F>({starts, buckets, passes, threads, least_chunk}, stride, sums, partials,
                                   partial_buckets);
}

// A warp for each of the arrays * 2^(column_bits + 1) lines, in blocks of 128. See msm_reduce.cuh: sum_lines.
extern "C" __global__ void __launch_bounds__(128, 2)
    msm_sum_lines(const freshproof::Xyzz<F>* in, const uint32_t* starts, uint32_t arrays, uint32_t row_bits,
                  uint32_t column_bits, freshproof::Xyzz<F>* out) {
  freshproof::msm::sum_lines<F>(in, starts, arrays, row_bits, column_bits, out);
}

// As msm_sum_lines, for short lines; `starts` may be null where all sums are there. See msm_reduce.cuh: sum_short_lines.
extern "C" __global__ void __launch_bounds__(128)
    msm_sum_short_lines(const freshproof::Xyzz<F>* in, const uint32_t* starts, uint32_t arrays, uint32_t row_bits,
                        uint32_t column_bits, freshproof::Xyzz<F>* out) {
  freshproof::msm::sum_short_lines<F>(in, starts, arrays, row_bits, column_bits, out);
}

// A block of 256 threads a set; shared memory: 64 XYZZ points. See msm_reduce.cuh: sum_weighted.
extern "C" __global__ void __launch_bounds__(256)
    msm_sum_weighted(const freshproof::Xyzz<F>* in, uint32_t first_bits, uint32_t bits, freshproof::Xyzz<F>* out) {
  freshproof::msm::sum_weighted<F>(in, first_bits, bits, out);
}

// Four threads. out: the MSM, affine. See msm_reduce.cuh: combine.
extern "C" __global__ void __launch_bounds__(32)
    msm_combine(const freshproof::Xyzz<F>* sums, uint32_t sets, uint32_t bits, freshproof::Affine<F>* out) {
  freshproof::msm::combine<F>(sums, sets, bits, out);
}
