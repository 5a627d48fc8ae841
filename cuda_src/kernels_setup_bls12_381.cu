// Kernels over the groups of Bls12_381 that make and check keys. See kernels/setup_kernels.cuh.
#include "params_bls12_381.cuh"
#define FRESHPROOF_CURVE Bls12_381
#include "kernels/setup_kernels.cuh"
