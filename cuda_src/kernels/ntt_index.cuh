// Which element goes where in an NTT: the index arithmetic of ntt_pass.cuh, apart from the arithmetic of elements.
//
// A transform of n = 2^log_n points runs in passes. A pass combines R = 2^K sub-transforms of length s each into one
// of length s R, by an R-point transform in every column; the product of all R is n. It is Stockham's self-sorting
// algorithm, decimation in time (Cochran et al., "What is the fast Fourier transform?", 1967; Van Loan, "Computational
// Frameworks for the FFT", 1992, section 1.7): natural order in and out, and no pass that only permutes. With w_m a
// primitive m-th root of unity, column i = q + s p, q < s, p < n / (s R):
//
//     out[q + s (t + R p)] = sum_r  w_R^(r t) * (w_(s R)^(q r) * in[i + (n / R) r])          r, t < R
//
// Inside a block the same formula splits the R-point transform into rounds of radix 8 (the last one 2 or 4 if K
// asks for it): there n is R, and a thread holds the 8 rows u + (R / 8) j, u < R / 8 ("unit"), in every round.
#pragma once
#include <cstdint>

#include "../dialect.cuh"

namespace freshproof {
namespace ntt {

// One pass over a vector. log_s: sub-transforms' length so far. flip: read in[-k mod n] for in[k], which turns the
// transform into the inverse one but for the factor 1 / n.
struct PassShape {
  unsigned log_n;
  unsigned log_s;
  bool flip;
};

// The tile of a block: R rows by C columns, 1024 elements for 128 threads. A row of the tile is C * 32 contiguous
// bytes: 64 at least, whole sectors.
template <unsigned K> struct Tile {
  static constexpr unsigned rows = 1u << K;
  static constexpr unsigned units = rows / 8;
  static constexpr unsigned columns = 1024u / rows;
  static constexpr unsigned threads = units * columns;
  // Blocks an SM, which bound a thread's registers: 4 where 128 suffice without spilling (2.92 against 3.04 ms at 2^24,
  // passes of 2^8; 0.202 against 0.205 at 2^20). Passes of 2^9 gain more from 168 (2^18 0.061 against 0.076 ms).
  static constexpr unsigned blocks = K == 3 || K == 6 || K == 9 ? 3 : 4;
  static constexpr unsigned rounds = (K + 2) / 3;
  // Bits of the last round: 3, or what is left.
  static constexpr unsigned last_bits = K % 3 == 0 ? 3 : K % 3;
  // 16-byte slots of one plane of the exchange; two planes make an element.
  static constexpr unsigned slots = (rows + rows / 8) * columns;
  static constexpr unsigned shared_bytes = rounds > 1 ? 2 * 16 * slots : 0;
};

// Element that column i reads for row r.
template <unsigned K> __host__ __device__ __forceinline__ uint32_t read_index(const PassShape& a, uint32_t i, uint32_t r) {
  const uint32_t k = i + (r << (a.log_n - K));
  return a.flip ? (0u - k) & ((1u << a.log_n) - 1) : k;
}

// Element that column i writes for row t.
template <unsigned K> __host__ __device__ __forceinline__ uint32_t write_index(const PassShape& a, uint32_t i, uint32_t t) {
  const uint32_t q = i & ((1u << a.log_s) - 1);
  const uint32_t p = i >> a.log_s;
  return q + ((t + (p << K)) << a.log_s);
}

// Entry of the pass's factor table for column i, row r: tables of length 2^(log_f + K), where log_f is log_s for
// twiddles (entry q + s r) and log_n - K for a factor that differs in every element.
__host__ __device__ __forceinline__ uint32_t factor_index(unsigned log_f, uint32_t i, uint32_t r) {
  return (i & ((1u << log_f) - 1)) + (r << log_f);
}

// A round of radix 2^bits in a tile: a thread's 8 rows are 2^(3 - bits) groups of 2^bits. Group e consists of the
// registers j = e + 2^(3 - bits) k, k < 2^bits, and has the index u + (R / 8) e = q + s p among all groups.
template <unsigned K> __host__ __device__ __forceinline__ uint32_t group_index(uint32_t unit, unsigned e) {
  return unit + e * Tile<K>::units;
}

// Row of the tile that output t of a group goes to.
__host__ __device__ __forceinline__ uint32_t group_row(unsigned bits, unsigned log_s, uint32_t group, uint32_t t) {
  const uint32_t q = group & ((1u << log_s) - 1);
  const uint32_t p = group >> log_s;
  return q + ((t + (p << bits)) << log_s);
}

// Slot of an element in a plane of the exchange. One row of padding after every eight keeps the eight lanes of a
// 128-byte access in eight banks, whether they differ in q or in p.
template <unsigned K> __host__ __device__ __forceinline__ uint32_t slot(uint32_t row, uint32_t column) {
  return (row + (row >> 3)) * Tile<K>::columns + column;
}

// From the slot of output t of a radix-8 group to that of output t + 1, s rows on: s is 1 and t < 8 stays within the
// eight rows of the group, or s is a multiple of 8. One address then serves the eight outputs.
template <unsigned K> __host__ __device__ __forceinline__ uint32_t slot_step(unsigned log_s) {
  return (log_s == 0 ? 1u : 9u << (log_s - 3)) * Tile<K>::columns;
}

// Entry w_(s 2^bits)^(q k), k > 0, in the table of twiddles of all rounds: s (k - 1) + q after those of the radix-8
// rounds before it, from length 8 on, which have 7 entries for each q: 7 (8 + 64 + ... + s / 8) = s - 8.
__host__ __device__ __forceinline__ uint32_t round_entry(unsigned log_s, uint32_t k, uint32_t q) {
  return (k << log_s) + q - 8;
}

// Where a table keeps entry k, a constant of 64 bytes: 16-byte piece m (0, 1: w; 2, 3: its quotient) is at
// table_piece(k) + 8 m. Eight entries interleave, so that lanes with successive entries read 128 bytes at a time, and
// one address reaches all four pieces.
__host__ __device__ __forceinline__ uint32_t table_piece(uint32_t k) { return (k >> 3) * 32 + (k & 7); }

}  // namespace ntt
}  // namespace freshproof
