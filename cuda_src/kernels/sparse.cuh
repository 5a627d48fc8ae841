// A.w and B.w: sparse matrices in compressed rows times the witness.
//
// Rows of both matrices lie in one list, row 2 i + m for row i of A (m = 0) and of B (m = 1). An entry's value is
// coefficient * R^2 mod p ("double Montgomery", as in the key) and a witness word is in standard form, so one
// Montgomery multiplication gives their product in Montgomery form.
//
// A row of up to `limit` entries is one thread's work. A longer one is cut into segments, a block each, whose sums
// one thread adds up: a circuit may have a row of a million entries.
#pragma once
#include "../field.cuh"

namespace freshproof {
namespace sparse {

template <class P> struct Entries {
  const uint32_t* wires;     // [entries], below the witness's length
  const Field<P>* values;    // [entries]
  const Field<P>* witness;   // [wires], standard form
};

// sum of value * w over the entries start, start + step, ... below end.
template <class P>
__host__ __device__ __forceinline__ Field<P> partial_sum(const Entries<P>& entries, uint32_t start, uint32_t end,
                                                         uint32_t step) {
  Field<P> sum = Field<P>::zero();
  for (uint32_t k = start; k < end; k += step) sum = sum + entries.values[k] * entries.witness[entries.wires[k]];
  return sum;
}

// Where a row's result goes: a[i] for row 2 i, b[i] for row 2 i + 1, and b = a + n.
__host__ __device__ __forceinline__ size_t row_place(uint32_t row, uint32_t n) { return size_t(row & 1) * n + (row >> 1); }

#ifdef __CUDACC__
// out[2 n] = a, b for every row of at most `limit` entries; an empty row gives zero. row_starts: [2 n + 1].
// Launch: one thread a row, 2 n in all. Cost: one multiplication and about 96 bytes an entry.
template <class P>
__device__ __forceinline__ void rows(Field<P>* out, const uint32_t* row_starts, const Entries<P>& entries, uint32_t n,
                                     uint32_t limit) {
  const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= 2 * n) return;
  const uint32_t start = row_starts[row], end = row_starts[row + 1];
  if (end - start <= limit) out[row_place(row, n)] = partial_sum<P>(entries, start, end, 1);
}

constexpr unsigned segment_threads = 128;

// partials[block] = the sum over entries starts[block] ... ends[block] - 1. Launch: blocks of segment_threads.
template <class P>
__device__ __forceinline__ void segments(Field<P>* partials, const uint32_t* starts, const uint32_t* ends,
                                         const Entries<P>& entries) {
  __shared__ Field<P> sums[segment_threads];
  const uint32_t lane = threadIdx.x;
  sums[lane] = partial_sum<P>(entries, starts[blockIdx.x] + lane, ends[blockIdx.x], segment_threads);
  for (unsigned half = segment_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (lane < half) sums[lane] = sums[lane] + sums[lane + half];
  }
  if (lane == 0) partials[blockIdx.x] = sums[0];
}

// The long rows: long_rows[k] is a row, its segments are first[k] ... first[k + 1] - 1. Launch: a thread a row.
template <class P>
__device__ __forceinline__ void combine(Field<P>* out, const uint32_t* long_rows, const uint32_t* first, uint32_t count,
                                        const Field<P>* partials, uint32_t n) {
  const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= count) return;
  Field<P> sum = Field<P>::zero();
  for (uint32_t j = first[k]; j < first[k + 1]; ++j) sum = sum + partials[j];
  out[row_place(long_rows[k], n)] = sum;
}
#endif

}  // namespace sparse
}  // namespace freshproof
