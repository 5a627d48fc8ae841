// Kernels over the scalar field of Bls12_381: NTT, sparse products, quotient. See kernels/fr_kernels.cuh.
#include "params_bls12_381.cuh"
#define FRESHPROOF_CURVE Bls12_381
#include "kernels/fr_kernels.cuh"
