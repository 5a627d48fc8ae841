// Operations on many points at once: tests of the group law, checks of keys, multiples of one base.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "../curve.cuh"
#include "bytes.cuh"
#include "parallel.cuh"

namespace freshproof {

// The index of the first point that is not on the curve, n if all are.
template <class Group> uint64_t first_off_curve(const uint8_t* points, uint64_t n, unsigned threads) {
  using Point = Affine<typename Group::F>;
  std::atomic<uint64_t> first{n};
  parallel_slices(threads, n, 4096, [&](uint64_t begin, uint64_t end) {
    for (uint64_t i = begin; i < end && i < first.load(std::memory_order_relaxed); ++i) {
      if (is_on_curve<Group>(load<Point>(points, i))) continue;
      uint64_t least = first.load();
      while (i < least && !first.compare_exchange_weak(least, i)) {
      }
    }
  });
  return first.load();
}

// Affine forms of n points by one inversion.
template <class F> void to_affine(const Xyzz<F>* points, Affine<F>* out, uint64_t n) {
  std::vector<F> products(n);
  F product = F::one();
  for (uint64_t i = 0; i < n; ++i) {
    products[i] = product;
    if (!points[i].is_identity()) product = product * points[i].zzz;
  }
  F inverse = product.inverse();
  for (uint64_t i = n; i-- > 0;) {
    if (points[i].is_identity()) {
      out[i] = Affine<F>::identity();
      continue;
    }
    const F cube = inverse * products[i];
    inverse = inverse * points[i].zzz;
    out[i] = {points[i].x * (cube * points[i].zz).sqr(), points[i].y * cube};
  }
}

// table[255 w + d - 1] = d * 256^w * base for d = 1 .. 255: a multiple of base is 32 additions.
template <class F> std::vector<Affine<F>> byte_table(const Affine<F>& base) {
  std::vector<Xyzz<F>> rows;
  rows.reserve(32 * 255);
  Xyzz<F> unit = Xyzz<F>::from_affine(base);
  for (unsigned w = 0; w < 32; ++w) {
    Xyzz<F> row = unit;
    for (unsigned d = 1; d <= 255; ++d) {
      rows.push_back(row);
      row = add(row, unit);
    }
    unit = row;
  }
  std::vector<Affine<F>> out(rows.size());
  to_affine(rows.data(), out.data(), rows.size());
  return out;
}

// out[i] = scalars[i] * base.
template <class F>
void multiples(const Affine<F>& base, const uint8_t* scalars, uint8_t* out, uint64_t n, unsigned threads) {
  const std::vector<Affine<F>> table = byte_table(base);
  constexpr uint64_t slice = 256;
  parallel_slices(threads, n, slice, [&](uint64_t begin, uint64_t end) {
    std::vector<Xyzz<F>> sums(end - begin, Xyzz<F>::identity());
    for (uint64_t i = begin; i < end; ++i) {
      for (unsigned w = 0; w < 32; ++w) {
        const unsigned digit = scalars[32 * i + w];
        if (digit > 0) sums[i - begin] = add(sums[i - begin], table[255 * w + digit - 1]);
      }
    }
    std::vector<Affine<F>> affine(sums.size());
    to_affine(sums.data(), affine.data(), sums.size());
    memcpy(out + sizeof(Affine<F>) * begin, affine.data(), sizeof(Affine<F>) * affine.size());
  });
}

// The same point with denominators z^2 and z^3.
template <class F> Xyzz<F> rescaled(const Affine<F>& p, const F& z) {
  const F zz = z.sqr(), zzz = zz * z;
  return p.is_identity() ? Xyzz<F>::identity() : Xyzz<F>{p.x * zz, p.y * zzz, zz, zzz};
}

}  // namespace freshproof
