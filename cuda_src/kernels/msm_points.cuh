// Where an MSM's points come from: a table through sorted entries, or a list that an earlier pass left.
#pragma once
#include "msm_sort.cuh"
#include "outlined.cuh"

namespace freshproof {
namespace msm {

// Entry k is, with `entries`, +-points[entries[k] without its sign] or the identity for NONE; without, points[k].
template <class F> struct Source {
  const Affine<F>* points;
  const uint32_t* entries;

  __device__ __forceinline__ uint32_t entry(uint32_t k) const { return entries == nullptr ? k : entries[k]; }

  // Entries 2 i and 2 i + 1.
  __device__ __forceinline__ uint2 entry_pair(uint32_t i) const {
    if (entries == nullptr) return uint2{2 * i, 2 * i + 1};
    return reinterpret_cast<const uint2*>(entries)[i];
  }

  __device__ __forceinline__ const Affine<F>* at(uint32_t entry) const {
    return points + (entries == nullptr ? entry : entry & ~SIGN);
  }

  // The point of an entry, given the table's point (anything for NONE).
  __device__ __forceinline__ Affine<F> signed_point(uint32_t entry, Affine<F> point) const {
    if (entries == nullptr) return point;
    if (entry == NONE) return Affine<F>::identity();
    if (entry & SIGN) point.y = point.y.neg();
    return point;
  }

  __device__ __forceinline__ Affine<F> point(uint32_t entry) const {
    if (entry == NONE) return Affine<F>::identity();
    return signed_point(entry, *at(entry));
  }
};

// Reads the points of a source one after the other, from `k` to before `end`, a point ahead of its use and an entry
// two ahead, so that the loads run during additions.
template <class F> class Reader {
 public:
  __device__ __forceinline__ Reader(const Source<F>& in, uint32_t k, uint32_t end) : in(in), k(k), end(end) {
    entry = entry_at(k);
    fetch();
  }

  // The next point; the identity past the end.
  __device__ __forceinline__ Affine<F> next() {
    const Affine<F> point = in.signed_point(coming_entry, coming);
    fetch();
    return point;
  }

 private:
  __device__ __forceinline__ uint32_t entry_at(uint32_t at) const { return at < end ? in.entry(at) : NONE; }

  __device__ __forceinline__ void fetch() {
    coming_entry = entry;
    coming = entry == NONE ? Affine<F>::identity() : *in.at(entry);
    entry = entry_at(++k);
  }

  Source<F> in;
  uint32_t k, end;
  uint32_t entry, coming_entry;
  Affine<F> coming;
};

}  // namespace msm
}  // namespace freshproof
