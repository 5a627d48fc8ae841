// Compiled by make.sh into the small objects beside this file, which the fast tests read.
#include <cstdio>

extern "C" __device__ __attribute__((used)) const char freshproof_stamp_sample[] =
    "freshproof:0000000000000000000000000000000000000000000000000000000000000000";

__constant__ int table[8] = {1, 2, 3};
__device__ int counter = 7;

__device__ __noinline__ int twice(int x) { return x * 2 + counter; }

// Shared memory, launch bounds, a template.
template <class T>
__global__ void __launch_bounds__(128, 2) add(T *a, const T *b, int n) {
    __shared__ T s[128];
    s[threadIdx.x] = b[threadIdx.x];
    __syncthreads();
    if (n > 0) a[threadIdx.x] += s[127 - threadIdx.x] + table[n & 7];
}
template __global__ void add<float>(float *, const float *, int);

// A device string, reached through printf.
extern "C" __global__ void hello(int n) { printf("pin_abc %d\n", n); }

// A call, and a global variable behind it.
extern "C" __global__ void calls(int *p) { *p = twice(*p); }

// More live values than 24 registers hold: spills.
extern "C" __global__ void __maxnreg__(24) spills(int *p) {
    int r[24];
    for (int i = 0; i < 24; i++) r[i] = p[i * 32];
    __syncthreads();
    for (int i = 0; i < 24; i++) p[i * 32] = r[i] * r[(i + 5) % 24];
}
