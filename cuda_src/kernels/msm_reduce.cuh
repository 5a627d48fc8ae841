// From bucket sums to the MSM: sum over buckets b of a set of (b + 1) S_b, then over the sets.
//
// With b = C row + column, sum b S_b = C sum row R_row + sum column K_column, where R and K are the sums of rows and
// columns: plain sums, so they run in parallel and deep chains stay short. Done twice, 2^23 buckets become four
// lists of at most 64, whose weighted sums come from suffix sums. Last, the sets' sums meet by Horner's rule with
// `bits` doublings between them. All but the first round of a large MSM is short of points: there four lanes share one
// (quad.cuh).
//
// Cost: 2 additions of 12 M + 2 S a bucket; about 25 additions and 20 doublings deep.
#pragma once
#include "batch_inverse.cuh"
#include "msm_points.cuh"
#include "quad.cuh"

namespace freshproof {
namespace msm {

constexpr uint32_t LANES = 32;

// The elements of a line: first, first + stride, .. , `count` of them.
struct Line {
  uint32_t array, first, stride, count;
};

// Line number `line` of arrays of 2^row_bits rows of 2^column_bits sums. An array has 2^column_bits row lines (empty past
// 2^row_bits) and as many column lines, in this order. row_bits <= column_bits.
__device__ __forceinline__ Line find_line(uint32_t line, uint32_t row_bits, uint32_t column_bits) {
  const uint32_t columns = 1u << column_bits, rows = 1u << row_bits;
  const uint32_t array = line / (2 * columns), number = line % (2 * columns);
  const uint32_t base = array << (row_bits + column_bits);
  if (number >= columns) return {array, base + number - columns, columns, rows};
  return {array, base + number * columns, 1, number < rows ? columns : 0};
}

// A warp a line: out[line] = the line's sum. `starts` tells which buckets were written: those with entries.
template <class F>
__device__ __forceinline__ void sum_lines(const Xyzz<F>* in, const uint32_t* starts, uint32_t arrays,
                                          uint32_t row_bits, uint32_t column_bits, Xyzz<F>* out) {
  const uint32_t lane = threadIdx.x % LANES, number = global_thread() / LANES;
  const Line line = find_line(number, row_bits, column_bits);
  if (line.array >= arrays) return;
  // Rounds of the line's own sums, then of halving the lanes: one addition in the code for both.
  const uint32_t rounds = divide_up(line.count, LANES);
  Xyzz<F> sum = Xyzz<F>::identity();
  for (uint32_t i = lane, distance = LANES; distance > 1; i += LANES) {
    Xyzz<F> other = Xyzz<F>::identity();
    if (i - lane < rounds * LANES) {
      const uint32_t bucket = line.first + i * line.stride;
      if (i < line.count && starts[bucket] != starts[bucket + 1]) other = in[bucket];
    } else {
      distance /= 2;
      other = shuffle_down(sum, distance);
      if (lane >= distance) other = Xyzz<F>::identity();
    }
    add_hot(sum, other);
  }
  if (lane == 0) out[number] = sum;
}

// As sum_lines, for lines of a few dozen sums: a warp a line, eight quads. starts null: all sums are there.
template <class F>
__device__ __forceinline__ void sum_short_lines(const Xyzz<F>* in, const uint32_t* starts, uint32_t arrays,
                                                uint32_t row_bits, uint32_t column_bits, Xyzz<F>* out) {
  const uint32_t lane = threadIdx.x % LANES, number = global_thread() / LANES;
  const Line line = find_line(number, row_bits, column_bits);
  if (line.array >= arrays) return;
  F sum = F::zero();
  for (uint32_t i = lane / QUAD; i < line.count; i += LANES / QUAD) {
    const uint32_t at = line.first + i * line.stride;
    if (starts == nullptr || starts[at] != starts[at + 1]) sum = quad_add(sum, quad_load(in[at]));
  }
  for (uint32_t distance = LANES / 2; distance >= QUAD; distance /= 2) {
    const F other = shuffle_down(sum, distance);
    if (lane < distance) sum = quad_add(sum, other);
  }
  if (lane < QUAD) quad_store(out[number], sum);
}

constexpr uint32_t QUADS_A_LIST = 16;  // in sum_weighted

// A block of 64 quads a set, 16 a list. in: the set's four lists of 2^bits sums that sum_short_lines left: rows of rows,
// columns of rows, rows of columns, columns of columns. out[set] = sum (b + 1) S_b. first_bits: column_bits of the first
// round. bits <= 6. Shared memory: 64 points.
//
// A quad has m = 2^bits / 16 neighbours, or one. sum i X_i over a list = sum over quads k of (sum over its own of
// i X_i) + m k (sum of its own), and sum k s_k = the sum of the suffixes s_k + s_(k+1) + .. from k = 1 on.
template <class F>
__device__ __forceinline__ void sum_weighted(const Xyzz<F>* in, uint32_t first_bits, uint32_t bits, Xyzz<F>* out) {
  Xyzz<F>* points = reinterpret_cast<Xyzz<F>*>(dynamic_shared());
  const uint32_t quad = threadIdx.x / QUAD, list = quad / QUADS_A_LIST, k = quad % QUADS_A_LIST;
  const uint32_t own_bits = bits > 4 ? bits - 4 : 0;
  const Xyzz<F>* own = in + ((blockIdx.x * 4 + list) << bits) + (k << own_bits);
  F suffix = F::zero(), weighted = F::zero();
  if (k < 1u << bits) {
    for (uint32_t i = 1u << own_bits; i-- > 0;) {
      suffix = quad_add(suffix, quad_load(own[i]));
      if (i > 0) weighted = quad_add(weighted, suffix);
    }
  }
  for (uint32_t distance = 1; distance < QUADS_A_LIST; distance *= 2) {
    quad_store(points[quad], suffix);
    __syncthreads();
    if (k + distance < QUADS_A_LIST) suffix = quad_add(suffix, quad_load(points[quad + distance]));
    __syncthreads();
  }
  if (k > 0) weighted = quad_add(weighted, quad_double_times(suffix, own_bits));
  for (uint32_t distance = QUADS_A_LIST / 2; distance > 0; distance /= 2) {
    quad_store(points[quad], weighted);
    __syncthreads();
    if (k < distance) weighted = quad_add(weighted, quad_load(points[quad + distance]));
    __syncthreads();
  }
  if (k == 0) {
    weighted = quad_double_times(weighted, (list < 2 ? first_bits : 0) + (list % 2 == 0 ? bits : 0));
    if (list == 3) weighted = quad_add(weighted, suffix);  // b + 1 instead of b: once more the sum of all buckets
    quad_store(points[quad], weighted);
  }
  __syncthreads();
  if (quad == 0) {
    for (uint32_t l = 1; l < 4; ++l) weighted = quad_add(weighted, quad_load(points[l * QUADS_A_LIST]));
    quad_store(out[blockIdx.x], weighted);
  }
}

// One quad: out = sum over sets k of 2^(bits k) sums[k], affine.
template <class F>
__device__ __forceinline__ void combine(const Xyzz<F>* sums, uint32_t sets, uint32_t bits, Affine<F>* out) {
  F sum = quad_load(sums[sets - 1]);
  for (uint32_t k = sets - 1; k-- > 0;) sum = quad_add(quad_double_times(sum, bits), quad_load(sums[k]));
  // x = X / ZZ and y = Y / ZZZ; with ZZ = z^2 and ZZZ = z^3, ZZ / ZZZ = 1 / z. The identity's inverse is 0, and so are x, y.
  const F zz = quad_get(sum, 2);
  const F cube = fast_inverse(quad_get(sum, 3));
  const F factor = quad_lane() == 0 ? called_sqr(called_mul(cube, zz)) : cube;
  if (zz.is_zero()) sum = F::zero();
  const F coordinate = called_mul(sum, factor);
  if (quad_lane() == 0) out->x = coordinate;
  if (quad_lane() == 1) out->y = coordinate;
}

}  // namespace msm
}  // namespace freshproof
