// The scalar half of an MSM over Bls12_381's scalar field. See kernels/msm_sort.cuh.
#include "params_bls12_381.cuh"
#define FRESHPROOF_CURVE Bls12_381
#include "kernels/msm_sort_kernels.cuh"
