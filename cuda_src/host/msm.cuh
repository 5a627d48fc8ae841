// Multi-scalar multiplication on a CPU: Pippenger's buckets with signed digits.
//
//   sum s_i P_i = sum_j 2^(c j) W_j,   W_j = sum_i d_ij P_i = sum_k k B_jk
//   B_jk = sum of +-P_i over the i with |d_ij| = k: a bucket
//
// c = bits of a window, d_ij in [-2^(c-1), 2^(c-1)]. Phases: select (which scalars count: circuits give many
// 0 and 1), then one task a window and bucket range (sort its points by bucket; sum each bucket; weigh), then
// combine. Nothing is shared between tasks. Buckets are summed in affine coordinates (buckets.cuh). A few points
// go another way (few.cuh).
#pragma once
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "buckets.cuh"
#include "bytes.cuh"
#include "few.cuh"
#include "parallel.cuh"
#include "windows.cuh"

namespace freshproof {

// The terms of an MSM that need work.
struct Terms {
  SecretVector<uint32_t> ones;          // points whose scalar is 1
  SecretVector<uint32_t> points;        // points with another scalar, and
  SecretVector<ShiftedScalar> scalars;  // these scalars
};

template <class F, class Scalar> class Msm {
 public:
  Msm(const uint8_t* points, const uint8_t* scalars, uint64_t n, unsigned threads)
      : points_(points), scalars_(scalars), n_(n), threads_(threads) {}

  Affine<F> run(unsigned window) {
    select();
    const uint64_t points = terms_.points.size();
    constexpr unsigned bits = Scalar::Params::bits;
    if (window == 0 && points <= few_terms && terms_.ones.size() <= direct) return to_affine(sum_of_few(bits));
    const Windows windows = window > 0 ? Windows(window, bits) : choose_windows(points, bits);
    for (ShiftedScalar& scalar : terms_.scalars) scalar = windows.shift(scalar);
    // To start a thread takes as long as some thousand multiplications.
    threads_ = unsigned(
        std::min<uint64_t>(threads_, 1 + (msm_cost(windows, points) + 6 * terms_.ones.size()) / 16384));
    return to_affine(combine(windows));
  }

 private:
  // Points that are added up at a time. They and their denominators fit in the second-level cache.
  static constexpr uint32_t chunk = sizeof(F) <= 32 ? 8192 : 4096;

  // Points of a window that are added one by one: an inversion takes as long as 70 mixed additions, and affine
  // ones save a third of each, but need an inversion a round.
  static constexpr uint32_t direct = 128;

  // Fills terms_. Throws std::invalid_argument for a scalar that is not below r.
  void select() {
    constexpr uint64_t slice = 1 << 14;
    std::vector<Terms> parts((n_ + slice - 1) / slice);
    parallel_slices(threads_, n_, slice, [&](uint64_t begin, uint64_t end) {
      Terms& part = parts[begin / slice];
      for (uint64_t i = begin; i < end; ++i) select_one(part, uint32_t(i));
    });
    for (const Terms& part : parts) {
      terms_.ones.insert(terms_.ones.end(), part.ones.begin(), part.ones.end());
      terms_.points.insert(terms_.points.end(), part.points.begin(), part.points.end());
      terms_.scalars.insert(terms_.scalars.end(), part.scalars.begin(), part.scalars.end());
    }
  }

  void select_one(Terms& terms, uint32_t i) const {
    const ShiftedScalar scalar = load<ShiftedScalar>(scalars_, i);
    const uint64_t high = scalar.limb[1] | scalar.limb[2] | scalar.limb[3];
    if (high == 0 && scalar.limb[0] == 0) return;
    if (!load<Scalar>(scalars_, i).is_canonical()) throw std::invalid_argument("a scalar is not below r");
    if (load<Affine<F>>(points_, i).is_identity()) return;
    if (high == 0 && scalar.limb[0] == 1) {
      terms.ones.push_back(i);
    } else {
      terms.points.push_back(i);
      terms.scalars.push_back(scalar);
    }
  }

  Xyzz<F> combine(const Windows& windows) const {
    // More threads than windows: cut the buckets of each window into ranges. Every task reads all digits of
    // its window, which is little next to the additions.
    const uint32_t ranges =
        std::min<uint32_t>(windows.buckets(), threads_ <= 2 ? 1 : 2 * threads_ / windows.count + 1);
    const uint64_t window_tasks = uint64_t(windows.count) * ranges;
    const uint64_t one_tasks = (terms_.ones.size() + chunk - 1) / chunk;
    std::vector<Xyzz<F>> sums(window_tasks + one_tasks, Xyzz<F>::identity());
    parallel_for(threads_, sums.size(), [&](uint64_t task) {
      sums[task] = task < window_tasks ? window_sum(windows, unsigned(task / ranges), task % ranges, ranges)
                                       : sum_of_ones((task - window_tasks) * chunk);
    });
    Xyzz<F> total = Xyzz<F>::identity();
    for (unsigned j = windows.count; j-- > 0;) {
      for (unsigned i = 0; i < windows.c && !total.is_identity(); ++i) total = dbl(total);
      for (uint32_t range = 0; range < ranges; ++range)
        total = add(total, sums[uint64_t(j) * ranges + range]);
    }
    for (uint64_t task = window_tasks; task < sums.size(); ++task) total = add(total, sums[task]);
    return total;
  }

  // A point of a window with the sign of its digit in the top bit.
  using Entry = uint32_t;
  static constexpr Entry negative = uint32_t(1) << 31;

  Affine<F> point(Entry entry) const {
    const Affine<F> p = load<Affine<F>>(points_, entry & ~negative);
    return entry & negative ? p.neg() : p;
  }

  // The part of W_j that comes from one range of buckets.
  Xyzz<F> window_sum(const Windows& windows, unsigned j, uint32_t range, uint32_t ranges) const {
    const uint32_t low = uint64_t(windows.buckets()) * range / ranges;
    const uint32_t high = uint64_t(windows.buckets()) * (range + 1) / ranges;
    SecretVector<Entry> entries;
    SecretVector<uint32_t> ends(high - low + 1);
    sort_by_bucket(windows, j, low, high, entries, ends);

    WeightedSum<F> weighted;
    if (entries.size() <= direct) {
      uint32_t at = 0;
      for (uint32_t slot = 0; slot < high - low; ++slot)
        for (; at < ends[slot]; ++at) weighted.add_bucket(high - slot, point(entries[at]));
      return weighted.finish();
    }
    RunAdder<F> adder;
    Runs<F> runs;
    std::vector<uint32_t> run_buckets;
    runs.points.reserve(chunk);
    // Bucket k in (low, high] ends at ends[high - k]; its points may be spread over several chunks.
    uint32_t at = 0;
    for (uint32_t slot = 0; slot < high - low;) {
      const uint32_t end = std::min<uint64_t>(ends[slot], at + (chunk - runs.points.size()));
      if (at < end) {
        if (run_buckets.empty() || run_buckets.back() != high - slot) {
          run_buckets.push_back(high - slot);
          runs.lengths.push_back(0);
        }
        runs.lengths.back() += end - at;
        append(runs, entries, at, end);
        at = end;
      }
      if (at == ends[slot]) ++slot;
      if (runs.points.size() == chunk) flush(runs, run_buckets, adder, weighted, true);
    }
    flush(runs, run_buckets, adder, weighted, false);
    return weighted.finish();
  }

  // entries = the points with a digit in this range, highest bucket first; bucket high - s ends at ends[s].
  void sort_by_bucket(const Windows& windows, unsigned j, uint32_t low, uint32_t high,
                      SecretVector<Entry>& entries, SecretVector<uint32_t>& ends) const {
    const auto each = [&](const auto& body) {
      for (size_t i = 0; i < terms_.scalars.size(); ++i) {
        const int32_t digit = windows.digit(terms_.scalars[i], j);
        const uint32_t bucket = digit < 0 ? -digit : digit;
        if (bucket > low && bucket <= high)
          body(high - bucket, terms_.points[i] | (digit < 0 ? negative : 0));
      }
    };
    each([&](uint32_t slot, Entry) { ++ends[slot + 1]; });
    for (uint32_t slot = 0; slot < high - low; ++slot) ends[slot + 1] += ends[slot];
    entries.resize(ends[high - low]);
    each([&](uint32_t slot, Entry entry) { entries[ends[slot]++] = entry; });
  }

  void append(Runs<F>& runs, const SecretVector<Entry>& entries, uint32_t begin, uint32_t end) const {
    constexpr uint32_t ahead = 8;  // hides the wait for a point in main memory behind the copies of others
    for (uint32_t i = begin; i < end; ++i) {
      if (i + ahead < entries.size()) {
        __builtin_prefetch(points_ + sizeof(Affine<F>) * uint64_t(entries[i + ahead] & ~negative));
      }
      runs.points.push_back(point(entries[i]));
    }
  }

  // Adds up the runs and weighs them; if `more`, the last one's sum is the first point of the next chunk.
  static void flush(Runs<F>& runs, std::vector<uint32_t>& run_buckets, RunAdder<F>& adder,
                    WeightedSum<F>& weighted, bool more) {
    adder.sum(runs);
    const size_t done = runs.points.size() - (more ? 1 : 0);
    for (size_t i = 0; i < done; ++i) weighted.add_bucket(run_buckets[i], runs.points[i]);
    if (more) {
      runs.points = {runs.points.back()};
      runs.points.reserve(chunk);
      runs.lengths = {1};
      run_buckets = {run_buckets.back()};
    } else {
      runs.clear();
      run_buckets.clear();
    }
  }

  Xyzz<F> sum_of_few(unsigned scalar_bits) const {
    FewTerms<F> few(scalar_bits);
    for (size_t i = 0; i < terms_.points.size(); ++i) few.add_term(point(terms_.points[i]), terms_.scalars[i]);
    Xyzz<F> total = few.sum();
    for (const uint32_t one : terms_.ones) total = add(total, point(one));
    return total;
  }

  Xyzz<F> sum_of_ones(uint64_t begin) const {
    const uint64_t end = std::min<uint64_t>(terms_.ones.size(), begin + chunk);
    Runs<F> runs;
    for (uint64_t i = begin; i < end; ++i) runs.points.push_back(point(terms_.ones[i]));
    runs.lengths.push_back(uint32_t(end - begin));
    RunAdder<F>().sum(runs);
    return Xyzz<F>::from_affine(runs.points[0]);
  }

  const uint8_t* points_;
  const uint8_t* scalars_;
  uint64_t n_;
  unsigned threads_;
  Terms terms_;
};

// n < 2^31: an entry has one bit for the sign. Throws std::invalid_argument for a scalar that is not below r.
template <class F, class Scalar>
Affine<F> msm(const uint8_t* points, const uint8_t* scalars, uint64_t n, unsigned window, unsigned threads) {
  return Msm<F, Scalar>(points, scalars, n, threads).run(window);
}

}  // namespace freshproof
