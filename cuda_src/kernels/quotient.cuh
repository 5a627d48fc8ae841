// Element by element: the product of two vectors, and the quotient's values as scalars for an MSM.
#pragma once
#include "../field.cuh"

namespace freshproof {

// a b - c, taken out of Montgomery form: the value of A.w * B.w - C.w at one point, ready for the MSM of h_query.
// Cost: two multiplications.
template <class P>
__host__ __device__ __forceinline__ Field<P> quotient_scalar(const Field<P>& a, const Field<P>& b, const Field<P>& c) {
  return (a * b - c).from_montgomery();
}

}  // namespace freshproof
