// The scalar half of an MSM over Bn254's scalar field. See kernels/msm_sort.cuh.
#include "params_bn254.cuh"
#define FRESHPROOF_CURVE Bn254
#include "kernels/msm_sort_kernels.cuh"
