// The host library of BLS12-381.
#include "params_bls12_381.cuh"
#define FRESHPROOF_CURVE Bls12_381
#include "host/library.cuh"
