// Where an MSM's points come from: a table through sorted entries, or a list that an earlier pass left.
#pragma once
#include "msm_sort.cuh"
#include "outlined.cuh"

namespace freshproof {
namespace msm {

// A gap: where a list has no point. Its x ends in a word that no residue has.
template <class P> __device__ __forceinline__ uint32_t top_word(const Field<P>& a) { return a.w[P::words - 1]; }

template <class Base> __device__ __forceinline__ uint32_t top_word(const Quadratic<Base>& a) { return top_word(a.c1); }

template <class P> __device__ __forceinline__ void set_top_word(Field<P>& a, uint32_t word) { a.w[P::words - 1] = word; }

template <class Base> __device__ __forceinline__ void set_top_word(Quadratic<Base>& a, uint32_t word) {
  set_top_word(a.c1, word);
}

template <class F> __device__ __forceinline__ bool is_gap(const F& x) { return top_word(x) == 0xffffffffu; }

template <class F> __device__ __forceinline__ Affine<F> gap() {
  Affine<F> out = Affine<F>::identity();
  set_top_word(out.x, 0xffffffffu);
  return out;
}

// Entry k is, with `entries`, +-points[entries[k] without its sign] or a gap for NONE; without, points[k]. No entry is
// the identity: the sort leaves out the bases that are.
template <class F> struct Source {
  const Affine<F>* points;
  const uint32_t* entries;

  __device__ __forceinline__ uint32_t entry(uint32_t k) const { return entries == nullptr ? k : entries[k]; }

  __device__ __forceinline__ const Affine<F>* at(uint32_t entry) const {
    return points + (entries == nullptr ? entry : entry & ~SIGN);
  }

  __device__ __forceinline__ bool turned(uint32_t entry) const { return entries != nullptr && entry & SIGN; }
};

// Reads the points of a source one after the other, from `k` to before `end`, a point ahead of its use and an entry
// two ahead, so that the loads run during additions.
template <class F> class Reader {
 public:
  __device__ __forceinline__ Reader(const Source<F>& in, uint32_t k, uint32_t end) : in(in), k(k), end(end) {
    entry = entry_at(k);
    fetch();
  }

  // The next point; a gap past the end.
  __device__ __forceinline__ Affine<F> next() {
    Affine<F> point = coming;
    if (in.turned(coming_entry)) point.y = point.y.neg();
    fetch();
    return point;
  }

 private:
  __device__ __forceinline__ uint32_t entry_at(uint32_t at) const { return at < end ? in.entry(at) : NONE; }

  __device__ __forceinline__ void fetch() {
    coming_entry = entry;
    coming = entry == NONE ? gap<F>() : *in.at(entry);
    entry = entry_at(++k);
  }

  Source<F> in;
  uint32_t k, end;
  uint32_t entry, coming_entry;
  Affine<F> coming;
};

}  // namespace msm
}  // namespace freshproof
