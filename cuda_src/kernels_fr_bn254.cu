// Kernels over the scalar field of Bn254: NTT, sparse products, quotient. See kernels/fr_kernels.cuh.
#include "params_bn254.cuh"
#define FRESHPROOF_CURVE Bn254
#include "kernels/fr_kernels.cuh"
