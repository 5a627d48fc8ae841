// The host library of BN254.
#include "params_bn254.cuh"
#define FRESHPROOF_CURVE Bn254
#include "host/library.cuh"
