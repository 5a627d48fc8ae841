// From bucket sums to the MSM: sum over buckets b of a set of (b + 1) S_b, then over the sets.
//
// With b = C row + column, sum b S_b = C sum row R_row + sum column K_column, where R and K are the sums of rows and
// columns: plain sums, so they run in parallel and deep chains stay short. Done twice, 2^23 buckets become four
// lists of at most 64, whose weighted sums one warp each makes by suffix sums. Last, the sets' sums meet by Horner's
// rule with `bits` doublings between them.
//
// Cost: 2 additions of 12 M + 2 S a bucket; about 50 additions deep.
#pragma once
#include "batch_inverse.cuh"
#include "msm_points.cuh"

namespace freshproof {
namespace msm {

constexpr uint32_t LANES = 32;

// The sum over the warp, valid in lane 0.
template <class F> __device__ __forceinline__ Xyzz<F> warp_sum(Xyzz<F> sum) {
  for (uint32_t distance = LANES / 2; distance > 0; distance /= 2) {
    const Xyzz<F> other = shuffle_down(sum, distance);
    if (threadIdx.x % LANES < distance) add_to(sum, other);
  }
  return sum;
}

// A warp a line. in: `arrays` arrays of 2^row_bits rows of 2^column_bits sums. out, for each array: 2^column_bits row
// sums (identities past 2^row_bits) and 2^column_bits column sums. `starts`, where given, tells which buckets were
// written: those with entries. row_bits <= column_bits.
template <class F>
__device__ __forceinline__ void sum_lines(const Xyzz<F>* in, const uint32_t* starts, uint32_t arrays,
                                          uint32_t row_bits, uint32_t column_bits, Xyzz<F>* out) {
  const uint32_t warp = global_thread() / LANES, lane = threadIdx.x % LANES;
  const uint32_t columns = 1u << column_bits, rows = 1u << row_bits;
  const uint32_t array = warp / (2 * columns), line = warp % (2 * columns);
  if (array >= arrays) return;
  const uint32_t base = array << (row_bits + column_bits);
  const bool is_row = line < columns;
  const uint32_t first = is_row ? base + line * columns : base + line - columns;
  const uint32_t stride = is_row ? 1 : columns;
  const uint32_t count = is_row ? (line < rows ? columns : 0) : rows;
  Xyzz<F> sum = Xyzz<F>::identity();
  for (uint32_t i = lane; i < count; i += LANES) {
    const uint32_t bucket = first + i * stride;
    if (starts == nullptr || starts[bucket] != starts[bucket + 1]) add_hot(sum, in[bucket]);
  }
  sum = warp_sum(sum);
  if (lane == 0) out[warp] = sum;
}

// A block of four warps a set. in: the set's four lists of 2^bits sums that `sum_lines` left in its second round:
// rows of rows, columns of rows, rows of columns, columns of columns. out[set] = sum (b + 1) S_b.
// first_bits: column_bits of the first round. bits <= 6. Shared memory: 4 points.
template <class F>
__device__ __forceinline__ void sum_weighted(const Xyzz<F>* in, uint32_t first_bits, uint32_t bits, Xyzz<F>* out) {
  Xyzz<F>* parts = reinterpret_cast<Xyzz<F>*>(dynamic_shared());
  const uint32_t lane = threadIdx.x % LANES, list = threadIdx.x / LANES;
  const Xyzz<F>* own = in + ((blockIdx.x * 4 + list) << bits);
  const Xyzz<F> even = 2 * lane < 1u << bits ? own[2 * lane] : Xyzz<F>::identity();
  const Xyzz<F> odd = 2 * lane + 1 < 1u << bits ? own[2 * lane + 1] : Xyzz<F>::identity();
  Xyzz<F> suffix = even;
  add_to(suffix, odd);  // becomes the sum of this lane's and all later lanes' pairs
  for (uint32_t distance = 1; distance < LANES; distance *= 2) {
    const Xyzz<F> other = shuffle_down(suffix, distance);
    if (lane + distance < LANES) add_to(suffix, other);
  }
  // sum of i X_i = 2 sum of l (X_2l + X_(2l+1)) + sum of X_(2l+1), and sum of l s_l = sum of the suffixes from 1 on.
  Xyzz<F> part = odd;
  if (lane > 0) {
    Xyzz<F> twice = suffix;
    double_times(twice, 1);
    add_to(part, twice);
  }
  part = warp_sum(part);
  if (lane == 0) {
    double_times(part, (list < 2 ? first_bits : 0) + (list % 2 == 0 ? bits : 0));
    if (list == 3) add_to(part, suffix);  // b + 1 instead of b: once more the sum of all buckets
    parts[list] = part;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (uint32_t k = 1; k < 4; ++k) add_to(parts[0], parts[k]);
    out[blockIdx.x] = parts[0];
  }
}

// One thread: sum over sets k of 2^(bits k) sums[k], affine.
template <class F>
__device__ __forceinline__ Affine<F> combine(const Xyzz<F>* sums, uint32_t sets, uint32_t bits) {
  Xyzz<F> sum = sums[sets - 1];
  for (uint32_t k = sets - 1; k-- > 0;) {
    double_times(sum, bits);
    add_to(sum, sums[k]);
  }
  if (sum.is_identity()) return Affine<F>::identity();
  const F cube = fast_inverse(sum.zzz);
  return {called_mul(sum.x, called_sqr(called_mul(cube, sum.zz))), called_mul(sum.y, cube)};
}

}  // namespace msm
}  // namespace freshproof
