// The C interface of a host library. One library holds one curve; all libraries export the same names.
//
// Layouts are those of snarkjs files. Field elements: little-endian, Montgomery form (Fq, Fq2 = c0, c1, and
// Fr); scalars: 32 bytes, standard form, below r; points: affine x, y, all zero bytes = the identity. `const
// uint8_t*` may have any alignment, so a mapped file serves as it is; vectors of Fr that are written (Vector)
// must be aligned to 16 bytes. Buffers may not overlap unless a comment allows it. The caller vouches for
// every length.
//
// `threads` = 0 means one a processor. Calls are independent of each other and keep no state.
// Every function returns a Status; on any but OK the output is unspecified.
#pragma once
#include <cstdint>

extern "C" {

enum FreshproofStatus : int32_t {
  FRESHPROOF_OK = 0,
  FRESHPROOF_INVALID = 1,  // an argument out of range, an unaligned vector, a scalar that is not below r
  FRESHPROOF_NO_MEMORY = 2,
  FRESHPROOF_FAILED = 3,  // anything else, such as the system refusing a lock
};

enum FreshproofField : uint32_t { FRESHPROOF_FQ = 0, FRESHPROOF_FR = 1, FRESHPROOF_FQ2 = 2 };
enum FreshproofGroup : uint32_t { FRESHPROOF_G1 = 1, FRESHPROOF_G2 = 2 };

enum FreshproofFieldOperation : uint32_t {
  FRESHPROOF_ADD = 0,
  FRESHPROOF_SUB = 1,
  FRESHPROOF_MUL = 2,
  FRESHPROOF_SQR = 3,
  FRESHPROOF_NEG = 4,
  FRESHPROOF_DBL = 5,
  FRESHPROOF_INVERSE = 6,  // 0 for 0
  FRESHPROOF_TO_MONTGOMERY = 7,
  FRESHPROOF_FROM_MONTGOMERY = 8,
};

enum FreshproofGroupOperation : uint32_t {
  FRESHPROOF_MIXED_ADD = 0,  // XYZZ + affine
  FRESHPROOF_XYZZ_ADD = 1,   // XYZZ + XYZZ, with different denominators
  FRESHPROOF_AFFINE_DBL = 2,
  FRESHPROOF_XYZZ_DBL = 3,
};

typedef uint8_t* FreshproofVector;

// The version of this interface: a caller refuses any but its own.
uint32_t freshproof_abi_version(void);

// "bn254" or "bls12_381".
const char* freshproof_curve(void);

// out[i] = a[i] op b[i] for n elements; operations of one operand leave b unread. out may be a or b.
int32_t freshproof_field(uint32_t field, uint32_t operation, const uint8_t* a, const uint8_t* b, uint8_t* out,
                         uint64_t n);

// out[i] = a[i] op b[i] for n affine points, computed in the coordinates that the operation names.
int32_t freshproof_group(uint32_t group, uint32_t operation, const uint8_t* a, const uint8_t* b, uint8_t* out,
                         uint64_t n);

// *first_bad = the index of the first point that is not on its curve (or has a coordinate >= q), n if none.
int32_t freshproof_check_points(uint32_t group, const uint8_t* points, uint64_t n, uint32_t threads,
                                uint64_t* first_bad);

// out[i] = scalars[i] * base.
int32_t freshproof_multiples(uint32_t group, const uint8_t* base, const uint8_t* scalars, uint8_t* out,
                             uint64_t n, uint32_t threads);

// *out = sum of scalars[i] * points[i]. n < 2^31. window = bits of a digit, 3 to 20, or 0 to choose by n.
int32_t freshproof_msm(uint32_t group, const uint8_t* points, const uint8_t* scalars, uint64_t n,
                       uint32_t window, uint32_t threads, uint8_t* out);

// Fills the 2^(log_n + 1) elements of Fr that the transforms of size n = 2^log_n read; log_n < two_adicity.
int32_t freshproof_domain(FreshproofVector tables, uint32_t log_n, uint32_t threads);

// In place, natural order: values[i] = sum_j values[j] w^(ij), or the inverse of that map. w = w[log_n] as
// snarkjs has it.
int32_t freshproof_ntt(FreshproofVector values, uint32_t log_n, const FreshproofVector tables,
                       uint32_t inverse, uint32_t threads);

// In place: the values of a polynomial on the domain -> its values on the odd points of the domain of size
// 2n, w[log_n + 1]^(2i + 1).
int32_t freshproof_to_coset(FreshproofVector values, uint32_t log_n, const FreshproofVector tables,
                            uint32_t threads);

// Sorts the entries of a .zkey's matrices by (matrix, row): order[starts[m * domain + row]] and on are the
// entries of that row. order: n_entries; starts: 2 * domain + 1. Checks matrix < 2 and row < domain.
int32_t freshproof_sort_entries(const uint8_t* entries, uint32_t n_entries, uint64_t domain, uint32_t* order,
                                uint32_t* starts);

// a = A.w, b = B.w over the domain, Montgomery form. Entries are 44 bytes: u32 matrix, u32 row, u32 wire, and
// the coefficient times R^2 mod r. witness: n_vars scalars. Checks wire < n_vars.
int32_t freshproof_sparse_products(const uint8_t* entries, const uint32_t* order, const uint32_t* starts,
                                   uint64_t domain, const uint8_t* witness, uint64_t n_vars,
                                   FreshproofVector a, FreshproofVector b, uint32_t threads);

// out = a * b element-wise. out may be a or b.
int32_t freshproof_multiply(const FreshproofVector a, const FreshproofVector b, FreshproofVector out,
                            uint64_t n, uint32_t threads);

// out = a * b - c element-wise, in standard form. out may be any of them.
int32_t freshproof_quotient(const FreshproofVector a, const FreshproofVector b, const FreshproofVector c,
                            FreshproofVector out, uint64_t n, uint32_t threads);
}
