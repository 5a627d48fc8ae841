// The point half of an MSM over Bn254's G1. See kernels/msm_group_kernels.cuh.
#include "curve.cuh"
#include "params_bn254.cuh"
#define FRESHPROOF_GROUP freshproof::G1<freshproof::Bn254>
#define FRESHPROOF_PAIR_BOUNDS 128, 4
#define FRESHPROOF_ACCUMULATE_BOUNDS 128, 2
#include "kernels/msm_group_kernels.cuh"
