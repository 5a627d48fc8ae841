// Number-theoretic transforms over Fr on a CPU.
//
// Two flows that are each other's inverse up to the factor n (Cooley-Tukey and Gentleman-Sande, with one
// twiddle a block, so that a single table of bit-reversed powers serves every stage and is read in order):
//   scatter<w>: natural order -> bit-reversed order, blocks split:  (x, y) -> (x + t y, x - t y)
//   gather<w>:  bit-reversed order -> natural order, blocks joined: (x, y) -> (x + y, (x - y) t)
// with t = w^brv(block). scatter<w> evaluates a polynomial given by its coefficients at w^brv(i); gather<w>
// evaluates one whose coefficients lie in bit-reversed order at w^i. A change of domain is scatter<1/w>, a
// scaling of the coefficients, gather<w>: no reordering at all.
//
// Large transforms go over the memory in passes of two stages (radix 4) until a block fits in the
// second-level cache. While a block is there, a change of domain ends its scatter, scales, begins its gather.
#pragma once
#include <algorithm>
#include <cstdint>

#include "../field.cuh"
#include "parallel.cuh"

namespace freshproof {

inline uint64_t reverse_bits(uint64_t value, unsigned count) {
  uint64_t out = 0;
  for (unsigned i = 0; i < count; ++i) out |= (value >> i & 1) << (count - 1 - i);
  return out;
}

// What a transform of size n = 2^log_n reads; `table` has 2n elements.
template <class F> struct Domain {
  F* table;
  unsigned log_n;

  uint64_t size() const { return uint64_t(1) << log_n; }
  // w^brv(i) for i < n / 2, brv on log_n - 1 bits.
  F* forward() const { return table; }
  // w^-brv(i).
  F* backward() const { return table + size() / 2; }
  // shift^brv(i) / n for i < n, brv on log_n bits; shift = w[log_n + 1], a square root of w.
  F* coset() const { return table + size(); }
};

// The generator of the domain of size 2^k.
template <class F> F root_of_unity(unsigned k) {
  F root = F::from_words(F::Params::root_of_unity);
  for (unsigned i = F::Params::two_adicity; i > k; --i) root = root.sqr();
  return root;
}

// 1 / 2^k.
template <class F> F inverse_of_power_of_two(unsigned k) {
  F power = F::one();
  for (unsigned i = 0; i < k; ++i) power = power.dbl();
  return power.inverse();
}

// out[brv(i)] = first * base^i for i < 2^log_count. The upper half of each prefix is the lower one times a
// fixed power.
template <class F>
void fill_powers(F* out, unsigned log_count, const F& base, const F& first, unsigned threads) {
  out[0] = first;
  for (unsigned k = 0; k < log_count; ++k) {
    F factor = base;
    for (unsigned i = k + 1; i < log_count; ++i) factor = factor.sqr();
    const uint64_t half = uint64_t(1) << k;
    parallel_slices(half < 4096 ? 1 : threads, half, 2048, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i) out[half + i] = out[i] * factor;
    });
  }
}

template <class F> void fill_domain(const Domain<F>& domain, unsigned threads) {
  const unsigned log_n = domain.log_n;
  if (log_n > 0) {
    const F w = root_of_unity<F>(log_n);
    fill_powers(domain.forward(), log_n - 1, w, F::one(), threads);
    fill_powers(domain.backward(), log_n - 1, w.inverse(), F::one(), threads);
  }
  fill_powers(domain.coset(), log_n, root_of_unity<F>(log_n + 1), inverse_of_power_of_two<F>(log_n), threads);
}

template <class F> inline void split(F& x, F& y, const F& t) {
  const F ty = t * y;
  y = x - ty;
  x = x + ty;
}

template <class F> inline void join(F& x, F& y, const F& t) {
  const F difference = x - y;
  x = x + y;
  y = difference * t;
}

// Both of them for t = 1.
template <class F> inline void add_subtract(F& x, F& y) {
  const F difference = x - y;
  x = x + y;
  y = difference;
}

// One stage on one block of 2 * half values at x, for columns [begin, end). Block 0's twiddle is 1.
template <class F>
void split_stage(F* x, uint64_t half, uint64_t block, const F* table, uint64_t begin, uint64_t end) {
  for (uint64_t j = begin; j < end; ++j) {
    if (block > 0) {
      split(x[j], x[half + j], table[block]);
    } else {
      add_subtract(x[j], x[half + j]);
    }
  }
}

template <class F>
void join_stage(F* x, uint64_t half, uint64_t block, const F* table, uint64_t begin, uint64_t end) {
  for (uint64_t j = begin; j < end; ++j) {
    if (block > 0) {
      join(x[j], x[half + j], table[block]);
    } else {
      add_subtract(x[j], x[half + j]);
    }
  }
}

// Two stages on one block of 4 * quarter values: the block, then its two halves, column by column.
template <class F>
void split_two_stages(F* x, uint64_t quarter, uint64_t block, const F* table, uint64_t begin, uint64_t end) {
  for (uint64_t j = begin; j < end; ++j) {
    split_stage(x + j, 2 * quarter, block, table, 0, 1);
    split_stage(x + j + quarter, 2 * quarter, block, table, 0, 1);
    split_stage(x + j, quarter, 2 * block, table, 0, 1);
    split_stage(x + j + 2 * quarter, quarter, 2 * block + 1, table, 0, 1);
  }
}

template <class F>
void join_two_stages(F* x, uint64_t quarter, uint64_t block, const F* table, uint64_t begin, uint64_t end) {
  for (uint64_t j = begin; j < end; ++j) {
    join_stage(x + j, quarter, 2 * block, table, 0, 1);
    join_stage(x + j + 2 * quarter, quarter, 2 * block + 1, table, 0, 1);
    join_stage(x + j, 2 * quarter, block, table, 0, 1);
    join_stage(x + j + quarter, 2 * quarter, block, table, 0, 1);
  }
}

// All stages of the block of 2^log_size values at x, which is block number `block` of its stage.
template <class F> void split_block(F* x, unsigned log_size, uint64_t block, const F* table) {
  for (unsigned s = 0; s < log_size; ++s) {
    const uint64_t half = uint64_t(1) << (log_size - s - 1);
    for (uint64_t b = 0; b < uint64_t(1) << s; ++b) {
      split_stage(x + 2 * half * b, half, (block << s) + b, table, 0, half);
    }
  }
}

template <class F> void join_block(F* x, unsigned log_size, uint64_t block, const F* table) {
  for (unsigned s = log_size; s-- > 0;) {
    const uint64_t half = uint64_t(1) << (log_size - s - 1);
    for (uint64_t b = 0; b < uint64_t(1) << s; ++b) {
      join_stage(x + 2 * half * b, half, (block << s) + b, table, 0, half);
    }
  }
}

// How a transform is cut up: stages [0, outer) are passes over the memory, the rest is done block by block.
struct NttPlan {
  unsigned log_n, outer;

  unsigned log_block() const { return log_n - outer; }
  uint64_t blocks() const { return uint64_t(1) << outer; }
};

// Blocks of 2^13 elements are 256 KiB; smaller ones where that would leave threads without work.
inline NttPlan plan_ntt(unsigned log_n, unsigned threads) {
  unsigned log_block = 13;
  while (log_block > 10 && log_n < 63 && (uint64_t(1) << log_n >> log_block) < 2 * uint64_t(threads))
    --log_block;
  return {log_n, log_n > log_block ? log_n - log_block : 0};
}

// One pass over all blocks of stage s (two stages if `pairs`), cut into tasks of 2^10 columns.
template <class F, class Block>
void ntt_pass(F* values, unsigned log_n, unsigned s, bool pairs, unsigned threads, const Block& on_block) {
  const uint64_t size = uint64_t(1) << (log_n - s), columns = pairs ? size / 4 : size / 2;
  const uint64_t slice = std::min<uint64_t>(columns, 1024), slices = columns / slice;
  parallel_for(threads, slices << s, [&](uint64_t task) {
    const uint64_t block = task / slices, begin = task % slices * slice;
    on_block(values + block * size, columns, block, begin, begin + slice);
  });
}

template <class F> void outer_splits(F* values, const NttPlan& plan, const F* table, unsigned threads) {
  for (unsigned s = 0; s < plan.outer;) {
    const bool pairs = plan.outer - s >= 2;
    ntt_pass(values, plan.log_n, s, pairs, threads,
             [&](F* x, uint64_t columns, uint64_t block, uint64_t begin, uint64_t end) {
               (pairs ? split_two_stages<F> : split_stage<F>)(x, columns, block, table, begin, end);
             });
    s += pairs ? 2 : 1;
  }
}

template <class F> void outer_joins(F* values, const NttPlan& plan, const F* table, unsigned threads) {
  for (unsigned s = plan.outer; s > 0;) {
    const bool pairs = s >= 2;
    s -= pairs ? 2 : 1;
    ntt_pass(values, plan.log_n, s, pairs, threads,
             [&](F* x, uint64_t columns, uint64_t block, uint64_t begin, uint64_t end) {
               (pairs ? join_two_stages<F> : join_stage<F>)(x, columns, block, table, begin, end);
             });
  }
}

// Values on the domain -> values on the coset, in place.
template <class F> void to_coset(F* values, const Domain<F>& domain, unsigned threads) {
  const NttPlan plan = plan_ntt(domain.log_n, threads);
  const uint64_t size = uint64_t(1) << plan.log_block();
  outer_splits(values, plan, domain.backward(), threads);
  parallel_for(threads, plan.blocks(), [&](uint64_t block) {
    F* x = values + block * size;
    split_block(x, plan.log_block(), block, domain.backward());
    for (uint64_t i = 0; i < size; ++i) x[i] = x[i] * domain.coset()[block * size + i];
    join_block(x, plan.log_block(), block, domain.forward());
  });
  outer_joins(values, plan, domain.forward(), threads);
}

// The transform in natural order, in place: scatter, then the reordering (and 1 / n for the inverse).
template <class F> void ntt(F* values, const Domain<F>& domain, bool inverse, unsigned threads) {
  const NttPlan plan = plan_ntt(domain.log_n, threads);
  const uint64_t size = uint64_t(1) << plan.log_block();
  const F* table = inverse ? domain.backward() : domain.forward();
  const F scale = inverse ? inverse_of_power_of_two<F>(domain.log_n) : F::one();
  outer_splits(values, plan, table, threads);
  parallel_for(threads, plan.blocks(), [&](uint64_t block) {
    F* x = values + block * size;
    split_block(x, plan.log_block(), block, table);
    for (uint64_t i = 0; inverse && i < size; ++i) x[i] = x[i] * scale;
  });
  parallel_slices(threads, domain.size(), 4096, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t partner = reverse_bits(i, domain.log_n);
      if (i < partner) std::swap(values[i], values[partner]);
    }
  });
}

}  // namespace freshproof
