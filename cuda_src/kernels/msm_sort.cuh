// The pairs (bucket, signed point index) of an MSM, grouped by bucket: a two-pass counting sort of our own.
//
// A bucket's number splits into a bin (high bits) and a low part. Pass 1 (count, scan, partition) takes digits
// straight from the scalars, so zero digits are never written, and leaves each bin's pairs in one stretch. Pass 2
// (count, starts, place) handles stretches in tiles of equal size, each inside one bin, so no distribution of
// scalars makes a block work longer than others; it writes the values alone: a value's place tells its bucket.
// Within a bucket the order is that of the atomic reservations: any, and not the same twice.
//
// A bucket's stretch starts at a multiple of 2^align entries and is filled up with NONE: the passes of msm_pair.cuh
// then add neighbours without asking where buckets end.
//
// Cost: scalars read twice; 6 bytes a pair written once, read 1 1/3 times; 4 bytes written: 20 bytes a pair.
#pragma once
#include "msm_digits.cuh"

namespace freshproof {
namespace msm {

constexpr uint32_t NONE = 0xffffffffu;  // an empty entry; the sign bit with index 2^31 - 1, which no point has
constexpr uint32_t SIGN = 0x80000000u;

// Scalars in one tile of `partition` for blocks of `threads`.
constexpr uint32_t SCALARS_A_THREAD = 4;

// histogram[bin] += 1 for each nonzero digit, over the whole grid; bin_counts += the block's histogram (shared memory,
// `bins` words). bin_counts: zero before.
template <class Fr>
__device__ __forceinline__ void count_bins(const uint4* scalars, uint32_t n, const Windows& windows, uint32_t low_bits,
                                           uint32_t bins, uint32_t* bin_counts) {
  uint32_t* histogram = dynamic_shared();
  for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x) histogram[b] = 0;
  __syncthreads();
  for (uint32_t i = global_thread(); i < n; i += grid_threads()) {
    for_each_digit<Fr>(scalars + 2 * size_t(i), windows,
                       [&](const Digit& d) { atomicAdd(&histogram[d.bucket >> low_bits], 1u); });
  }
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x) {
    if (histogram[b] != 0) atomicAdd(&bin_counts[b], histogram[b]);
  }
}

// One block: starts[0..bins] and cursors from the bins' counts, and tile_starts[0..bins], the number of tiles of `tile`
// pairs before each bin's first.
__device__ __forceinline__ void scan_bins(const uint32_t* bin_counts, uint32_t bins, uint32_t tile,
                                          uint32_t* bin_starts, uint32_t* bin_cursors, uint32_t* tile_starts) {
  uint32_t* scratch = dynamic_shared();
  const uint32_t share = divide_up(bins, blockDim.x);
  const uint32_t first = min(threadIdx.x * share, bins), last = min(first + share, bins);
  uint32_t pairs = 0, tiles = 0, total_pairs, total_tiles;
  for (uint32_t b = first; b < last; ++b) {
    pairs += bin_counts[b];
    tiles += divide_up(bin_counts[b], tile);
  }
  pairs = block_prefix(pairs, scratch, total_pairs);
  tiles = block_prefix(tiles, scratch, total_tiles);
  for (uint32_t b = first; b < last; ++b) {
    bin_starts[b] = bin_cursors[b] = pairs;
    tile_starts[b] = tiles;
    pairs += bin_counts[b];
    tiles += divide_up(bin_counts[b], tile);
  }
  if (threadIdx.x == 0) {
    bin_starts[bins] = total_pairs;
    tile_starts[bins] = total_tiles;
  }
}

// A block's tile of scalars: count its digits by bin, reserve a stretch in each bin, write the pairs there.
// lows[k], values[k]: the pair's low bucket bits, and table * n + i with the digit's sign.
template <class Fr>
__device__ __forceinline__ void partition(const uint4* scalars, uint32_t n, const Windows& windows, uint32_t low_bits,
                                          uint32_t bins, uint32_t* bin_cursors, uint16_t* lows, uint32_t* values) {
  uint32_t* places = dynamic_shared();
  for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x) places[b] = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * blockDim.x * SCALARS_A_THREAD + threadIdx.x;
  for (uint32_t j = 0; j < SCALARS_A_THREAD; ++j) {
    const uint32_t i = first + j * blockDim.x;
    if (i >= n) break;
    for_each_digit<Fr>(scalars + 2 * size_t(i), windows,
                       [&](const Digit& d) { atomicAdd(&places[d.bucket >> low_bits], 1u); });
  }
  __syncthreads();
  for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x) {
    if (places[b] != 0) places[b] = atomicAdd(&bin_cursors[b], places[b]);
  }
  __syncthreads();
  for (uint32_t j = 0; j < SCALARS_A_THREAD; ++j) {
    const uint32_t i = first + j * blockDim.x;
    if (i >= n) break;
    for_each_digit<Fr>(scalars + 2 * size_t(i), windows, [&](const Digit& d) {
      const uint32_t place = atomicAdd(&places[d.bucket >> low_bits], 1u);
      lows[place] = uint16_t(d.bucket & ((1u << low_bits) - 1));
      values[place] = (d.table * n + i) | (d.negative ? SIGN : 0);
    });
  }
}

// The pairs [first, last) of one bin that this block handles; none when there are fewer tiles than blocks.
struct Tile {
  uint32_t bin, first, last;
};

__device__ __forceinline__ Tile find_tile(const uint32_t* bin_starts, const uint32_t* tile_starts, uint32_t bins,
                                          uint32_t tile) {
  if (blockIdx.x >= tile_starts[bins]) return {0, 0, 0};
  uint32_t low = 0, high = bins;  // tile_starts[low] <= blockIdx.x < tile_starts[high]
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (tile_starts[middle] <= blockIdx.x) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint32_t first = bin_starts[low] + (blockIdx.x - tile_starts[low]) * tile;
  return {low, first, min(first + tile, bin_starts[low + 1])};
}

// places[low] = the tile's pairs with these low bits. Shared memory: 2^low_bits words.
__device__ __forceinline__ void count_tile(const Tile& tile, const uint16_t* lows, uint32_t low_bits,
                                           uint32_t* places) {
  for (uint32_t b = threadIdx.x; b < 1u << low_bits; b += blockDim.x) places[b] = 0;
  __syncthreads();
  for (uint32_t k = tile.first + threadIdx.x; k < tile.last; k += blockDim.x) atomicAdd(&places[lows[k]], 1u);
  __syncthreads();
}

// counts[bucket] += the tile's pairs of that bucket. counts: zero before.
__device__ __forceinline__ void count_buckets(const Tile& tile, const uint16_t* lows, uint32_t low_bits,
                                              uint32_t* counts) {
  if (tile.first == tile.last) return;
  uint32_t* places = dynamic_shared();
  count_tile(tile, lows, low_bits, places);
  for (uint32_t b = threadIdx.x; b < 1u << low_bits; b += blockDim.x) {
    if (places[b] != 0) atomicAdd(&counts[(tile.bin << low_bits) + b], places[b]);
  }
}

__device__ __forceinline__ uint32_t align_up(uint32_t count, uint32_t align) {
  return (count + (1u << align) - 1) >> align << align;
}

// A block a bin: bin_sizes[bin] = the bin's entries with the filling.
__device__ __forceinline__ void measure_bins(const uint32_t* counts, uint32_t low_bits, uint32_t align,
                                             uint32_t* bin_sizes) {
  uint32_t* scratch = dynamic_shared();
  uint32_t sum = 0, total;
  for (uint32_t b = threadIdx.x; b < 1u << low_bits; b += blockDim.x) {
    sum += align_up(counts[(blockIdx.x << low_bits) + b], align);
  }
  block_prefix(sum, scratch, total);
  if (threadIdx.x == 0) bin_sizes[blockIdx.x] = total;
}

// A block a bin: starts[bucket], cursors[bucket], and NONE in the filling of each bucket. The last bin also writes
// starts[buckets], the number of entries.
__device__ __forceinline__ void start_buckets(const uint32_t* counts, const uint32_t* bin_sizes, uint32_t low_bits,
                                              uint32_t align, uint32_t* starts, uint32_t* cursors,
                                              uint32_t* entries) {
  uint32_t* scratch = dynamic_shared();
  uint32_t before = 0, base, size;
  for (uint32_t b = threadIdx.x; b < blockIdx.x; b += blockDim.x) before += bin_sizes[b];
  block_prefix(before, scratch, base);
  const uint32_t share = divide_up(1u << low_bits, blockDim.x);
  const uint32_t first = min(threadIdx.x * share, 1u << low_bits), last = min(first + share, 1u << low_bits);
  const uint32_t* own = counts + (blockIdx.x << low_bits);
  uint32_t sum = 0;
  for (uint32_t b = first; b < last; ++b) sum += align_up(own[b], align);
  uint32_t start = base + block_prefix(sum, scratch, size);
  for (uint32_t b = first; b < last; ++b) {
    const uint32_t bucket = (blockIdx.x << low_bits) + b, end = start + align_up(own[b], align);
    starts[bucket] = cursors[bucket] = start;
    for (uint32_t k = start + own[b]; k < end; ++k) entries[k] = NONE;
    start = end;
  }
  if (blockIdx.x + 1 == gridDim.x && threadIdx.x == 0) starts[gridDim.x << low_bits] = base + size;
}

// A tile's values to their buckets' stretches.
__device__ __forceinline__ void place(const Tile& tile, const uint16_t* lows, const uint32_t* values,
                                      uint32_t low_bits, uint32_t* cursors, uint32_t* entries) {
  if (tile.first == tile.last) return;
  uint32_t* places = dynamic_shared();
  count_tile(tile, lows, low_bits, places);
  for (uint32_t b = threadIdx.x; b < 1u << low_bits; b += blockDim.x) {
    if (places[b] != 0) places[b] = atomicAdd(&cursors[(tile.bin << low_bits) + b], places[b]);
  }
  __syncthreads();
  for (uint32_t k = tile.first + threadIdx.x; k < tile.last; k += blockDim.x) {
    entries[atomicAdd(&places[lows[k]], 1u)] = values[k];
  }
}

}  // namespace msm
}  // namespace freshproof
