// Sums of many affine points, run by run, with one inversion for thousands of additions.
//
// Affine addition costs 2 M + 1 S and one inversion of x2 - x1. Points are added in pairs within each run,
// all pairs of all runs at once: their denominators are multiplied up, the product is inverted, and the
// inverses are taken apart again (Montgomery's trick, 3 M each). A round halves every run, so runs of any
// length, and one run of all the points, need log2(longest) rounds. 5 M + 1 S an addition, against 8 M + 2 S
// in XYZZ coordinates.
#pragma once
#include <cstdint>
#include <vector>

#include "../curve.cuh"

namespace freshproof {

// What the addition of two affine points divides by. 1 where nothing is to be divided: one of them is the
// identity, or they are opposite (or a doubling would divide by 0: no point of order 2 is on these curves,
// but bytes may be).
template <class F> inline F denominator(const Affine<F>& a, const Affine<F>& b) {
  if (a.is_identity() || b.is_identity()) return F::one();
  const F difference = b.x - a.x;
  if (!difference.is_zero()) return difference;
  return a.y == b.y && !a.y.is_zero() ? a.y.dbl() : F::one();
}

// a + b, given 1 / denominator(a, b).
template <class F>
inline Affine<F> add_with_inverse(const Affine<F>& a, const Affine<F>& b, const F& inverse) {
  if (a.is_identity()) return b;
  if (b.is_identity()) return a;
  F slope;
  if (a.x != b.x) {
    slope = (b.y - a.y) * inverse;
  } else if (a.y == b.y && !a.y.is_zero()) {
    const F xx = a.x.sqr();
    slope = (xx.dbl() + xx) * inverse;
  } else {
    return Affine<F>::identity();
  }
  const F x = slope.sqr() - a.x - b.x;
  return {x, slope * (a.x - x) - a.y};
}

// Points in consecutive runs: run r is the next lengths[r] points.
template <class F> struct Runs {
  std::vector<Affine<F>> points;
  std::vector<uint32_t> lengths;

  void clear() {
    points.clear();
    lengths.clear();
  }
};

// Adds up each run: afterwards every length is 1. `denominators` and `products` are scratch.
template <class F> class RunAdder {
 public:
  void sum(Runs<F>& runs) {
    while (add_pairs(runs)) {
    }
  }

 private:
  // One round. False if every run had one point already.
  bool add_pairs(Runs<F>& runs) {
    denominators_.clear();
    const Affine<F>* point = runs.points.data();
    for (const uint32_t length : runs.lengths) {
      for (uint32_t i = 0; i + 1 < length; i += 2)
        denominators_.push_back(denominator(point[i], point[i + 1]));
      point += length;
    }
    if (denominators_.empty()) return false;
    invert_all();
    // The results go to the front of the same array: never beyond what has been read.
    const F* inverse = denominators_.data();
    point = runs.points.data();
    Affine<F>* out = runs.points.data();
    for (uint32_t& length : runs.lengths) {
      for (uint32_t i = 0; i + 1 < length; i += 2)
        *out++ = add_with_inverse(point[i], point[i + 1], *inverse++);
      if (length % 2 == 1) *out++ = point[length - 1];
      point += length;
      length = (length + 1) / 2;
    }
    runs.points.resize(out - runs.points.data());
    return true;
  }

  // denominators_[i] = 1 / denominators_[i]; none is 0. Two chains of products, over the even and the odd
  // places: a multiplication waits for the one before it, and a processor has room for two.
  void invert_all() {
    const size_t n = denominators_.size();
    products_.resize(n);
    F chain[2] = {F::one(), F::one()};
    for (size_t i = 0; i < n; ++i) {
      products_[i] = chain[i % 2];
      chain[i % 2] = chain[i % 2] * denominators_[i];
    }
    const F inverse = (chain[0] * chain[1]).inverse();
    F rest[2] = {inverse * chain[1], inverse * chain[0]};
    for (size_t i = n; i-- > 0;) {
      const F own = products_[i] * rest[i % 2];
      rest[i % 2] = rest[i % 2] * denominators_[i];
      denominators_[i] = own;
    }
  }

  std::vector<F> denominators_, products_;
};

// p times a small integer.
template <class F> Xyzz<F> multiple(const Xyzz<F>& p, uint32_t times) {
  Xyzz<F> out = Xyzz<F>::identity();
  for (unsigned i = 32 - (times ? __builtin_clz(times) : 32); i-- > 0;) {
    out = dbl(out);
    if (times >> i & 1) out = add(out, p);
  }
  return out;
}

// sum of k * bucket[k], buckets given from the highest k down: with S_k the sum of the buckets from k up, it
// is sum of S_k over all k >= 1. Gaps between buckets repeat the same S_k.
template <class F> class WeightedSum {
 public:
  void add_bucket(uint32_t k, const Affine<F>& sum) {
    move_to(k);
    above_ = add(above_, sum);
  }

  Xyzz<F> finish() {
    move_to(0);
    return total_;
  }

 private:
  void move_to(uint32_t k) {
    const uint32_t steps = at_ - k;
    if (steps > 0 && !above_.is_identity())
      total_ = add(total_, steps == 1 ? above_ : multiple(above_, steps));
    at_ = k;
  }

  Xyzz<F> above_ = Xyzz<F>::identity(), total_ = Xyzz<F>::identity();
  uint32_t at_ = ~0u;
};

}  // namespace freshproof
