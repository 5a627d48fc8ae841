// What kernels say to the grid they run in. A program that emulates a GPU on a CPU defines FRESHPROOF_EMULATED_GRID
// and supplies the same names itself.
#pragma once
#include <cstdint>

#include "../dialect.cuh"

#ifndef FRESHPROOF_EMULATED_GRID

namespace freshproof {

// The launch's dynamic shared memory.
__device__ __forceinline__ uint32_t* dynamic_shared() {
  extern __shared__ uint4 freshproof_dynamic_shared[];
  return reinterpret_cast<uint32_t*>(freshproof_dynamic_shared);
}

// `value` of the lane `distance` above; the own value in the lanes that have none. For whole, converged warps.
template <class T> __device__ __forceinline__ T shuffle_down(const T& value, unsigned distance) {
  static_assert(sizeof(T) % 4 == 0, "whole words");
  T out;
  const uint32_t* from = reinterpret_cast<const uint32_t*>(&value);
  uint32_t* to = reinterpret_cast<uint32_t*>(&out);
#pragma unroll
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) to[i] = __shfl_down_sync(0xffffffffu, from[i], distance);
  return out;
}

// `value` of lane `from` of the own four lanes, which all call this.
template <class T> __device__ __forceinline__ T quad_get(const T& value, unsigned from) {
  static_assert(sizeof(T) % 4 == 0, "whole words");
  T out;
  const uint32_t* words = reinterpret_cast<const uint32_t*>(&value);
  uint32_t* to = reinterpret_cast<uint32_t*>(&out);
  const uint32_t lanes = 0xfu << (threadIdx.x & 28);
#pragma unroll
  for (unsigned i = 0; i < sizeof(T) / 4; ++i) to[i] = __shfl_sync(lanes, words[i], from, 4);
  return out;
}

// Starts copying 16 or 8 bytes to shared memory, past the registers. `end_copies` makes the thread's copies since the last such
// call a group, `await_copies` waits for all its groups but the last `later` ones.
__device__ __forceinline__ void copy_to_shared(uint4* to, const uint4* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(uint32_t(__cvta_generic_to_shared(to))), "l"(from)
               : "memory");
}

__device__ __forceinline__ void copy_to_shared(uint2* to, const uint2* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(uint32_t(__cvta_generic_to_shared(to))), "l"(from)
               : "memory");
}

__device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <unsigned later> __device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(later) : "memory");
}

}  // namespace freshproof

#endif

namespace freshproof {

__device__ __forceinline__ uint32_t global_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__device__ __forceinline__ uint32_t grid_threads() { return gridDim.x * blockDim.x; }

__host__ __device__ __forceinline__ constexpr uint32_t divide_up(uint32_t a, uint32_t b) {
  return a / b + (a % b != 0);
}

// The sum of `value` over the threads before this one; `total` becomes the sum over the block. All threads of the
// block call this; `scratch` holds blockDim.x words. Hillis and Steele: log2(blockDim.x) steps.
__device__ __forceinline__ uint32_t block_prefix(uint32_t value, uint32_t* scratch, uint32_t& total) {
  const uint32_t t = threadIdx.x;
  uint32_t sum = value;
  scratch[t] = sum;
  __syncthreads();
  for (uint32_t step = 1; step < blockDim.x; step *= 2) {
    const uint32_t left = t >= step ? scratch[t - step] : 0;
    __syncthreads();
    sum += left;
    scratch[t] = sum;
    __syncthreads();
  }
  total = scratch[blockDim.x - 1];
  __syncthreads();
  return sum - value;
}

}  // namespace freshproof
