// Element-wise operations on vectors of Fr, and the sparse products that turn a witness into A.w and B.w.
#pragma once
#include <cstdint>
#include <stdexcept>

#include "../field.cuh"
#include "bytes.cuh"
#include "parallel.cuh"

namespace freshproof {

constexpr uint64_t vector_slice = 4096;

template <class F> void multiply(const F* a, const F* b, F* out, uint64_t n, unsigned threads) {
  parallel_slices(threads, n, vector_slice, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) out[i] = a[i] * b[i];
  });
}

template <class F> void quotient(const F* a, const F* b, const F* c, F* out, uint64_t n, unsigned threads) {
  parallel_slices(threads, n, vector_slice, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end; ++i) out[i] = (a[i] * b[i] - c[i]).from_montgomery();
  });
}

// One matrix entry as it lies in a .zkey, 44 bytes.
struct MatrixEntry {
  static constexpr uint64_t bytes = 44;
  const uint8_t* at;

  uint32_t matrix() const { return load<uint32_t>(at, 0); }
  uint32_t row() const { return load<uint32_t>(at, 1); }
  uint32_t wire() const { return load<uint32_t>(at, 2); }
  template <class F> F value() const { return load<F>(at + 12, 0); }
};

// A counting sort by (matrix, row), stable. order: n_entries; starts: 2 * domain + 1.
inline void sort_entries(const uint8_t* entries, uint32_t n_entries, uint64_t domain, uint32_t* order,
                         uint32_t* starts) {
  const auto key = [&](uint32_t i) {
    const MatrixEntry entry{entries + MatrixEntry::bytes * i};
    if (entry.matrix() > 1 || entry.row() >= domain)
      throw std::invalid_argument("a matrix entry is out of range");
    return entry.matrix() * domain + entry.row();
  };
  std::fill(starts, starts + 2 * domain + 1, 0);
  for (uint32_t i = 0; i < n_entries; ++i) ++starts[key(i) + 1];
  for (uint64_t k = 0; k < 2 * domain; ++k) starts[k + 1] += starts[k];
  // starts[k] is now where row k begins; it moves to where row k ends, and one shift puts it back.
  for (uint32_t i = 0; i < n_entries; ++i) order[starts[key(i)]++] = i;
  for (uint64_t k = 2 * domain; k > 0; --k) starts[k] = starts[k - 1];
  starts[0] = 0;
}

// rows[k] = sum of value * witness[wire] over the entries of row k, for all 2 * domain rows of A and B.
// (coef R^2) * w / R = coef w R: the product of the two stored forms is in Montgomery form.
template <class F> void sparse_products(const uint8_t* entries, const uint32_t* order, const uint32_t* starts,
                                        uint64_t domain, const uint8_t* witness, uint64_t n_vars, F* a, F* b,
                                        unsigned threads) {
  parallel_slices(threads, 2 * domain, vector_slice, [&](uint64_t begin, uint64_t end) {
    for (uint64_t k = begin; k < end; ++k) {
      F sum = F::zero();
      for (uint32_t i = starts[k]; i < starts[k + 1]; ++i) {
        const MatrixEntry entry{entries + MatrixEntry::bytes * order[i]};
        if (entry.wire() >= n_vars) throw std::invalid_argument("a matrix entry's wire is out of range");
        const F w = load<F>(witness, entry.wire());
        if (!w.is_zero()) sum = sum + entry.template value<F>() * w;
      }
      (k < domain ? a[k] : b[k - domain]) = sum;
    }
  });
}

}  // namespace freshproof
