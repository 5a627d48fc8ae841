// Sums of a few multiples on a CPU: one chain of doublings for all of them (Straus 1964).
//
//   sum s_i P_i = sum_j 2^(c j) sum_i d_ij P_i,   d_ij in [-2^(c-1), 2^(c-1)]
//
// The d_ij P_i come from a table of the multiples of each point: there are too few points for buckets. A term costs
// 2^(c-1) mixed and bits / c full additions; least at c = 5 for scalars of 254 and 255 bits.
#pragma once
#include <cstdint>
#include <vector>

#include "../curve.cuh"
#include "bytes.cuh"
#include "windows.cuh"

namespace freshproof {

constexpr unsigned few_terms = 16;  // at most: with some twenty, buckets take as long
constexpr unsigned few_window = 5;

template <class F> class FewTerms {
 public:
  explicit FewTerms(unsigned scalar_bits) : windows_(few_window, scalar_bits) {}

  void add_term(const Affine<F>& point, const ShiftedScalar& scalar) {
    Xyzz<F> multiple = Xyzz<F>::from_affine(point);
    for (uint32_t k = 0; k < windows_.buckets(); ++k) {
      multiples_.push_back(multiple);
      multiple = add(multiple, point);
    }
    scalars_.push_back(windows_.shift(scalar));
  }

  Xyzz<F> sum() const {
    Xyzz<F> total = Xyzz<F>::identity();
    for (unsigned j = windows_.count; j-- > 0;) {
      for (unsigned i = 0; i < windows_.c && !total.is_identity(); ++i) total = dbl(total);
      for (size_t term = 0; term < scalars_.size(); ++term) {
        const int32_t digit = windows_.digit(scalars_[term], j);
        if (digit == 0) continue;
        const uint32_t size = digit < 0 ? -digit : digit;
        const Xyzz<F>& part = multiples_[windows_.buckets() * term + size - 1];
        total = add(total, digit < 0 ? part.neg() : part);
      }
    }
    return total;
  }

 private:
  Windows windows_;
  std::vector<Xyzz<F>> multiples_;  // those of a point side by side, from 1 to 2^(c-1)
  SecretVector<ShiftedScalar> scalars_;
};

}  // namespace freshproof
