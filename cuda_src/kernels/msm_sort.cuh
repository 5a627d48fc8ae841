// The pairs (bucket, signed point index) of an MSM, grouped by bucket: a two-pass counting sort of our own.
//
// A bucket's number splits into a bin (high bits) and a low part. Pass 1 (count, scan, partition) takes digits
// straight from the scalars, so zero digits and digits of identity bases are never written, and leaves each bin's pairs in one stretch. Pass 2
// (count, starts, place) handles stretches in tiles of equal size, each inside one bin, so no distribution of
// scalars makes a block work longer than others; it writes the values alone: a value's place tells its bucket.
// Both passes order a tile in shared memory first and then write it out, neighbours to neighbours: written where it
// belongs at once, each value would cost a sector of its own. Within a bucket the order is that of the atomic
// reservations: any, and not the same twice.
//
// A bucket's stretch starts at a multiple of 2^align entries and is filled up with NONE: the passes of msm_pair.cuh
// then add neighbours without asking where buckets end.
//
// Cost: scalars read three times; 6 bytes a pair written, 8 read, 4 written.
#pragma once
#include "msm_digits.cuh"

namespace freshproof {
namespace msm {

constexpr uint32_t NONE = 0xffffffffu;  // an empty entry; the sign bit with index 2^31 - 1, which no point has
constexpr uint32_t SIGN = 0x80000000u;

// Whether base i takes part: bit i of `present`, unset for the identity.
__device__ __forceinline__ bool takes_part(const uint32_t* present, uint32_t i) { return present[i / 32] >> i % 32 & 1; }

// histogram[bin] += 1 for each nonzero digit, over the whole grid; bin_counts += the block's histogram (shared memory,
// `bins` words). bin_counts: zero before.
template <class Fr>
__device__ __forceinline__ void count_bins(const uint4* scalars, const uint32_t* present, uint32_t n, const Windows& windows, uint32_t low_bits,
                                           uint32_t bins, uint32_t* bin_counts) {
  uint32_t* histogram = dynamic_shared();
  for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x) histogram[b] = 0;
  __syncthreads();
  for (uint32_t i = global_thread(); i < n; i += grid_threads()) {
    if (!takes_part(present, i)) continue;
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

// counts[k], k < size, in shared memory, become the places where a tile's k-th class starts in the tile; shifts[k], what
// to add to a place in the tile to have the place in memory, where cursors[k] gives each class a stretch. Returns the
// tile's size. All threads of the block call this; `scratch` holds a word a thread.
__device__ __forceinline__ uint32_t reserve(uint32_t* counts, uint32_t* shifts, uint32_t size, uint32_t* cursors,
                                            uint32_t* scratch) {
  const uint32_t share = divide_up(size, blockDim.x);
  const uint32_t first = min(threadIdx.x * share, size), last = min(first + share, size);
  uint32_t sum = 0, total;
  for (uint32_t k = first; k < last; ++k) sum += counts[k];
  uint32_t start = block_prefix(sum, scratch, total);
  for (uint32_t k = first; k < last; ++k) {
    const uint32_t count = counts[k];
    counts[k] = start;
    if (count != 0) shifts[k] = atomicAdd(&cursors[k], count) - start;
    start += count;
  }
  __syncthreads();
  return total;
}

// A block's tile of `scalars_a_tile` scalars: order its digits by bin, reserve a stretch in each bin, write them there.
// lows[k], values[k]: the pair's low bucket bits, and table * n + i with the digit's sign. Shared memory: two words a bin,
// one a thread, two for each of the scalars_a_tile * windows digits.
template <class Fr>
__device__ __forceinline__ void partition(const uint4* scalars, const uint32_t* present, uint32_t n, const Windows& windows, uint32_t low_bits,
                                          uint32_t bins, uint32_t scalars_a_tile, uint32_t* bin_cursors,
                                          uint16_t* lows, uint32_t* values) {
  uint32_t* counts = dynamic_shared();
  uint32_t* shifts = counts + bins;
  uint32_t* scratch = shifts + bins;
  uint32_t* tile_buckets = scratch + blockDim.x;
  uint32_t* tile_values = tile_buckets + scalars_a_tile * windows.count;
  for (uint32_t b = threadIdx.x; b < bins; b += blockDim.x) counts[b] = 0;
  __syncthreads();
  const uint32_t first = blockIdx.x * scalars_a_tile, last = min(first + scalars_a_tile, n);
  for (uint32_t i = first + threadIdx.x; i < last; i += blockDim.x) {
    if (!takes_part(present, i)) continue;
    for_each_digit<Fr>(scalars + 2 * size_t(i), windows,
                       [&](const Digit& d) { atomicAdd(&counts[d.bucket >> low_bits], 1u); });
  }
  __syncthreads();
  const uint32_t size = reserve(counts, shifts, bins, bin_cursors, scratch);
  for (uint32_t i = first + threadIdx.x; i < last; i += blockDim.x) {
    if (!takes_part(present, i)) continue;
    for_each_digit<Fr>(scalars + 2 * size_t(i), windows, [&](const Digit& d) {
      const uint32_t place = atomicAdd(&counts[d.bucket >> low_bits], 1u);
      tile_buckets[place] = d.bucket;
      tile_values[place] = (d.table * n + i) | (d.negative ? SIGN : 0);
    });
  }
  __syncthreads();
  for (uint32_t k = threadIdx.x; k < size; k += blockDim.x) {
    const uint32_t bucket = tile_buckets[k], place = k + shifts[bucket >> low_bits];
    lows[place] = uint16_t(bucket & ((1u << low_bits) - 1));
    values[place] = tile_values[k];
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

// counts[low] = the tile's pairs with these low bits. Shared memory: 2^low_bits words.
__device__ __forceinline__ void count_tile(const Tile& tile, const uint16_t* lows, uint32_t low_bits,
                                           uint32_t* counts) {
  for (uint32_t b = threadIdx.x; b < 1u << low_bits; b += blockDim.x) counts[b] = 0;
  __syncthreads();
  for (uint32_t k = tile.first + threadIdx.x; k < tile.last; k += blockDim.x) atomicAdd(&counts[lows[k]], 1u);
  __syncthreads();
}

// counts[bucket] += the tile's pairs of that bucket. counts: zero before.
__device__ __forceinline__ void count_buckets(const Tile& tile, const uint16_t* lows, uint32_t low_bits,
                                              uint32_t* counts) {
  if (tile.first == tile.last) return;
  uint32_t* own = dynamic_shared();
  count_tile(tile, lows, low_bits, own);
  for (uint32_t b = threadIdx.x; b < 1u << low_bits; b += blockDim.x) {
    if (own[b] != 0) atomicAdd(&counts[(tile.bin << low_bits) + b], own[b]);
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

// A tile's values to their buckets' stretches. Shared memory: two words for each of 2^low_bits buckets, one a thread, one
// and a half for each of `most` pairs, the size of a full tile.
__device__ __forceinline__ void place(const Tile& tile, uint32_t most, const uint16_t* lows, const uint32_t* values,
                                      uint32_t low_bits, uint32_t* cursors, uint32_t* entries) {
  if (tile.first == tile.last) return;
  uint32_t* counts = dynamic_shared();
  uint32_t* shifts = counts + (1u << low_bits);
  uint32_t* scratch = shifts + (1u << low_bits);
  uint32_t* tile_values = scratch + blockDim.x;
  uint16_t* tile_lows = reinterpret_cast<uint16_t*>(tile_values + most);
  count_tile(tile, lows, low_bits, counts);
  const uint32_t size = reserve(counts, shifts, 1u << low_bits, cursors + (tile.bin << low_bits), scratch);
  for (uint32_t k = tile.first + threadIdx.x; k < tile.last; k += blockDim.x) {
    const uint16_t low = lows[k];
    const uint32_t place = atomicAdd(&counts[low], 1u);
    tile_lows[place] = low;
    tile_values[place] = values[k];
  }
  __syncthreads();
  for (uint32_t k = threadIdx.x; k < size; k += blockDim.x) entries[k + shifts[tile_lows[k]]] = tile_values[k];
}

}  // namespace msm
}  // namespace freshproof
