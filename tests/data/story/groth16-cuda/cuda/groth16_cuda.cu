#include "params.cuh"
__global__ void msm(int *p) { *p = WINDOW; }
extern "C" int prove_on_device() { msm<<<1, 1>>>(nullptr); return 88; }
