// Kernels over the groups of Bn254 that make and check keys. See kernels/setup_kernels.cuh.
#include "params_bn254.cuh"
#define FRESHPROOF_CURVE Bn254
#include "kernels/setup_kernels.cuh"
