// One pass of an NTT over Fr: R-point transforms down the columns of a tile, R = 2^K, K = 3 ... 9.
//
// Formula and indices: ntt_index.cuh. Elements are Montgomery words, 32 bytes; twiddles are constants for
// shoup_mul, so they are in standard form and the elements stay in Montgomery form.
//
// A thread keeps 8 rows in registers. Rounds of radix 8 need one exchange through shared memory each, 64 bytes an
// element, beside 1.5 multiplications an element: shared memory stays under a fifth of the multiplier's time.
// The trivial twiddles inside a radix-8 butterfly are skipped: 5 multiplications for its 12 butterflies.
#pragma once
#include "../field.cuh"
#include "ntt_index.cuh"
#include "ntt_roots.cuh"
#include "ntt_shoup.cuh"

namespace freshproof {
namespace ntt {

#ifndef __CUDACC__
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
#endif

// What a pass works on. All pointers are 16-byte aligned.
struct PassArguments {
  uint4* out;            // n elements; may be `in` when n = s R (the last pass)
  const uint4* in;       // n elements
  const uint4* factors;  // table of 2^(log_f + K) constants (factor_index, table_piece), or null
  const uint4* twiddles; // table of the rounds inside the tile (round_entry, table_piece)
  PassShape shape;
  unsigned log_f;
  unsigned vector;       // which of the vectors, n elements each, that lie side by side in `in` and `out`
};

template <class P> __host__ __device__ __forceinline__ Field<P> join_halves(uint4 low, uint4 high) {
  return Field<P>{{low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w}};
}

template <class P> __host__ __device__ __forceinline__ uint4 low_half(const Field<P>& v) {
  return uint4{v.w[0], v.w[1], v.w[2], v.w[3]};
}

template <class P> __host__ __device__ __forceinline__ uint4 high_half(const Field<P>& v) {
  return uint4{v.w[4], v.w[5], v.w[6], v.w[7]};
}

// v * w for entry k of a table of constants.
template <class P>
__host__ __device__ __forceinline__ Field<P> times_table(const Field<P>& v, const uint4* table, uint32_t k) {
  const uint4* entry = table + table_piece(k);
  const Field<P> w = join_halves<P>(entry[0], entry[8]);
  const Field<P> quotient = join_halves<P>(entry[16], entry[24]);
  Field<P> out;
  shoup_mul<P>(out.w, v.w, ArrayWords{w.w}, ArrayWords{quotient.w});
  return out;
}

// (a - b) w_8^k: the difference stays below 2p unreduced, as shoup_mul allows. Where the table has -w_8^k, b - a.
template <class P, unsigned k>
__host__ __device__ __forceinline__ Field<P> times_root(const Field<P>& first, const Field<P>& second) {
  const Field<P>& a = EighthRoots<P>::negated(k) ? second : first;
  const Field<P>& b = EighthRoots<P>::negated(k) ? first : second;
  uint32_t difference[P::words];
  difference[0] = ptx::sub_cc(a.w[0], b.w[0]);
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) difference[i] = ptx::subc_cc(a.w[i], b.w[i]);
  difference[0] = ptx::add_cc(difference[0], P::modulus(0));
  FRESHPROOF_UNROLL
  for (unsigned i = 1; i < P::words; ++i) difference[i] = ptx::addc_cc(difference[i], P::modulus(i));
  Field<P> out;
  shoup_mul<P>(out.w, difference, RootWords<P, k>{}, RootQuotientWords<P, k>{});
  return out;
}

// x, y <- x + y, x - y.
template <class P> __host__ __device__ __forceinline__ void butterfly(Field<P>& x, Field<P>& y) {
  const Field<P> sum = x + y;
  y = x - y;
  x = sum;
}

// x, y <- x + y, (x - y) w_8^k.
template <class P, unsigned k> __host__ __device__ __forceinline__ void twisted_butterfly(Field<P>& x, Field<P>& y) {
  const Field<P> sum = x + y;
  y = times_root<P, k>(x, y);
  x = sum;
}

// The 2^Bits-point transform of v[first], v[first + stride], ...; output t ends at reverse<Bits>(t).
template <class P, unsigned Bits> __host__ __device__ __forceinline__ void transform(Field<P>* v, unsigned first) {
  constexpr unsigned stride = 8u >> Bits;
  auto at = [&](unsigned k) -> Field<P>& { return v[first + k * stride]; };
  if constexpr (Bits == 3) {
    butterfly(at(0), at(4));
    twisted_butterfly<P, 1>(at(1), at(5));
    twisted_butterfly<P, 2>(at(2), at(6));
    twisted_butterfly<P, 3>(at(3), at(7));
  }
  if constexpr (Bits >= 2) {
    FRESHPROOF_UNROLL
    for (unsigned k = 0; k < 1u << Bits; k += 4) {
      butterfly(at(k), at(k + 2));
      twisted_butterfly<P, 2>(at(k + 1), at(k + 3));
    }
  }
  FRESHPROOF_UNROLL
  for (unsigned k = 0; k < 1u << Bits; k += 2) butterfly(at(k), at(k + 1));
}

template <unsigned Bits> __host__ __device__ __forceinline__ constexpr unsigned reverse(unsigned t) {
  return Bits == 3 ? (t & 1) << 2 | (t & 2) | t >> 2 : Bits == 2 ? (t & 1) << 1 | t >> 1 : t;
}

// The steps of a thread. `column` is the pass's column i, `lane_column` its place in the tile.
template <class P, unsigned K> struct Pass {
  using F = Field<P>;
  using T = Tile<K>;

  // Read 8 rows, multiplied by their factors if there are any.
  static __host__ __device__ __forceinline__ void load(F* v, const PassArguments& a, uint32_t column, uint32_t unit) {
    const uint4* in = a.in + (size_t(a.vector) << (a.shape.log_n + 1));
    FRESHPROOF_UNROLL
    for (unsigned j = 0; j < 8; ++j) {
      const size_t k = read_index<K>(a.shape, column, unit + j * T::units);
      v[j] = join_halves<P>(in[2 * k], in[2 * k + 1]);
    }
    if (a.factors == nullptr) return;
    FRESHPROOF_UNROLL
    for (unsigned j = 0; j < 8; ++j) {
      v[j] = times_table<P>(v[j], a.factors, factor_index(a.log_f, column, unit + j * T::units));
    }
  }

  // One round of radix 2^Bits: twiddles (none in the first round), then the butterflies.
  template <unsigned Bits>
  static __host__ __device__ __forceinline__ void round(F* v, const uint4* twiddles, unsigned log_s, uint32_t unit) {
    constexpr unsigned groups = 8u >> Bits;
    if (log_s > 0) {
      FRESHPROOF_UNROLL
      for (unsigned e = 0; e < groups; ++e) {
        const uint32_t q = group_index<K>(unit, e) & ((1u << log_s) - 1);
        FRESHPROOF_UNROLL
        for (unsigned k = 1; k < 1u << Bits; ++k) {
          F& x = v[e + groups * k];
          x = times_table<P>(x, twiddles, round_entry(log_s, k, q));
        }
      }
    }
    FRESHPROOF_UNROLL
    for (unsigned e = 0; e < groups; ++e) transform<P, Bits>(v, e);
  }

  // Hand every output of a round to place(row of the tile, element).
  template <unsigned Bits, class Place>
  static __host__ __device__ __forceinline__ void outputs(const F* v, unsigned log_s, uint32_t unit, Place place) {
    constexpr unsigned groups = 8u >> Bits;
    FRESHPROOF_UNROLL
    for (unsigned e = 0; e < groups; ++e) {
      const uint32_t group = group_index<K>(unit, e);
      FRESHPROOF_UNROLL
      for (unsigned t = 0; t < 1u << Bits; ++t) {
        place(group_row(Bits, log_s, group, t), v[e + groups * reverse<Bits>(t)]);
      }
    }
  }

  // Outputs of a radix-8 round into the exchange, and the rows of the next round out of it.
  static __host__ __device__ __forceinline__ void put(const F* v, uint4* shared, unsigned log_s, uint32_t unit,
                                                      uint32_t lane_column) {
    uint4* first = shared + slot<K>(group_row(3, log_s, unit, 0), lane_column);
    const uint32_t step = slot_step<K>(log_s);
    FRESHPROOF_UNROLL
    for (unsigned t = 0; t < 8; ++t) {
      first[t * step] = low_half(v[reverse<3>(t)]);
      first[t * step + T::slots] = high_half(v[reverse<3>(t)]);
    }
  }

  static __host__ __device__ __forceinline__ void get(F* v, const uint4* shared, uint32_t unit, uint32_t lane_column) {
    const uint4* first = shared + slot<K>(unit, lane_column);
    FRESHPROOF_UNROLL
    for (unsigned j = 0; j < 8; ++j) {
      // Where the rows lie a multiple of eight apart, so do their slots: constant offsets from the first.
      const uint32_t at = T::units % 8 == 0 ? j * slot<K>(T::units, 0)
                                            : slot<K>(unit + j * T::units, lane_column) - slot<K>(unit, lane_column);
      v[j] = join_halves<P>(first[at], first[at + T::slots]);
    }
  }

  // The last round's outputs, to where the pass writes them.
  static __host__ __device__ __forceinline__ void store(const F* v, const PassArguments& a, uint32_t column,
                                                        uint32_t unit) {
    uint4* out = a.out + (size_t(a.vector) << (a.shape.log_n + 1));
    outputs<T::last_bits>(v, K - T::last_bits, unit, [&](uint32_t row, const F& x) {
      const size_t k = write_index<K>(a.shape, column, row);
      out[2 * k] = low_half(x);
      out[2 * k + 1] = high_half(x);
    });
  }
};

#ifdef __CUDACC__
// The pass as a kernel. Launch: blocks of Tile<K>::threads, one for every Tile<K>::columns of the n / R columns;
// dynamic shared memory Tile<K>::shared_bytes. Valid result: in every thread's own elements of `out` at the end.
// Cost an element: K / 2 multiplications less the trivial ones, and one more where there are factors.
template <class P, unsigned K> __device__ __forceinline__ void pass(const PassArguments& a) {
  extern __shared__ uint4 shared[];
  using S = Pass<P, K>;
  using T = Tile<K>;
  const uint32_t lane_column = threadIdx.x % T::columns;
  const uint32_t unit = threadIdx.x / T::columns;
  const uint32_t column = blockIdx.x * T::columns + lane_column;
  const bool inside = column < 1u << (a.shape.log_n - K);  // a short transform fills no whole tile

  Field<P> v[8] = {};
  if (inside) S::load(v, a, column, unit);
  unsigned log_s = 0;
#pragma unroll 1
  while (true) {  // the radix-8 rounds: one copy of their code, so that a pass stays in the instruction cache
    S::template round<3>(v, a.twiddles, log_s, unit);
    if (T::last_bits == 3 && log_s + 3 == K) break;
    __syncthreads();  // everyone has read what the exchange held
    S::put(v, shared, log_s, unit, lane_column);
    __syncthreads();
    S::get(v, shared, unit, lane_column);
    log_s += 3;
    if (T::last_bits != 3 && log_s + T::last_bits == K) break;
  }
  if constexpr (T::last_bits != 3) S::template round<T::last_bits>(v, a.twiddles, log_s, unit);
  if (inside) S::store(v, a, column, unit);
}
#endif

}  // namespace ntt
}  // namespace freshproof
