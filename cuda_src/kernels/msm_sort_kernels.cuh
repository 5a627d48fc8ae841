// The kernels of an MSM that see scalars and not points. A .cu file includes this once, with FRESHPROOF_CURVE set.
#pragma once
#include "msm_sort.cuh"

namespace freshproof {
namespace msm {
using ScalarParams = FRESHPROOF_CURVE::FrParams;
}  // namespace msm
}  // namespace freshproof

// Any grid of 256 threads; shared memory 4 * bins bytes. scalars: n * 32 bytes, standard form, < r. present: a bit
// a base, see msm_find_present.
extern "C" __global__ void __launch_bounds__(256)
    msm_count_bins(const uint4* scalars, const uint32_t* present, uint32_t n, uint32_t bits, uint32_t windows,
                   uint32_t sets, uint32_t low_bits, uint32_t bins, uint32_t* bin_counts) {
  freshproof::msm::count_bins<freshproof::msm::ScalarParams>(scalars, present, n, {bits, windows, sets}, low_bits,
                                                            bins, bin_counts);
}

// One block of 1024 threads; shared memory 4096 bytes.
extern "C" __global__ void __launch_bounds__(1024)
    msm_scan_bins(const uint32_t* bin_counts, uint32_t bins, uint32_t tile, uint32_t* bin_starts,
                  uint32_t* bin_cursors, uint32_t* tile_starts) {
  freshproof::msm::scan_bins(bin_counts, bins, tile, bin_starts, bin_cursors, tile_starts);
}

// A block of 512 threads for each `scalars_a_tile` scalars; shared memory 8 * (bins + scalars_a_tile * windows) + 2048
// bytes.
extern "C" __global__ void __launch_bounds__(512)
    msm_partition(const uint4* scalars, const uint32_t* present, uint32_t n, uint32_t bits, uint32_t windows,
                  uint32_t sets, uint32_t low_bits, uint32_t bins, uint32_t scalars_a_tile, uint32_t* bin_cursors,
                  uint16_t* lows, uint32_t* values) {
  freshproof::msm::partition<freshproof::msm::ScalarParams>(scalars, present, n, {bits, windows, sets}, low_bits, bins,
                                                           scalars_a_tile, bin_cursors, lows, values);
}

// At least as many blocks of 256 threads as there are tiles; shared memory 4 * 2^low_bits bytes.
extern "C" __global__ void __launch_bounds__(256)
    msm_count_buckets(const uint16_t* lows, const uint32_t* bin_starts, const uint32_t* tile_starts, uint32_t bins,
                      uint32_t tile, uint32_t low_bits, uint32_t* counts) {
  freshproof::msm::count_buckets(freshproof::msm::find_tile(bin_starts, tile_starts, bins, tile), lows, low_bits,
                                 counts);
}

// A block of 256 threads a bin; shared memory 1024 bytes.
extern "C" __global__ void __launch_bounds__(256)
    msm_measure_bins(const uint32_t* counts, uint32_t low_bits, uint32_t align, uint32_t* bin_sizes) {
  freshproof::msm::measure_bins(counts, low_bits, align, bin_sizes);
}

// A block of 256 threads a bin; shared memory 1024 bytes.
extern "C" __global__ void __launch_bounds__(256)
    msm_start_buckets(const uint32_t* counts, const uint32_t* bin_sizes, uint32_t low_bits, uint32_t align,
                      uint32_t* starts, uint32_t* cursors, uint32_t* entries) {
  freshproof::msm::start_buckets(counts, bin_sizes, low_bits, align, starts, cursors, entries);
}

// At least as many blocks of 512 threads as there are tiles; shared memory 8 * 2^low_bits + 6 * tile + 2048 bytes.
extern "C" __global__ void __launch_bounds__(512)
    msm_place(const uint16_t* lows, const uint32_t* values, const uint32_t* bin_starts, const uint32_t* tile_starts,
              uint32_t bins, uint32_t tile, uint32_t low_bits, uint32_t* cursors, uint32_t* entries) {
  freshproof::msm::place(freshproof::msm::find_tile(bin_starts, tile_starts, bins, tile), tile, lows, values, low_bits,
                         cursors, entries);
}
