// Defines the functions of abi.cuh for the curve that FRESHPROOF_CURVE names: bytes in, one template call,
// bytes out. Exceptions end here.
#pragma once
#include <new>
#include <stdexcept>

#include "abi.cuh"
#include "group.cuh"
#include "msm.cuh"
#include "ntt.cuh"
#include "vectors.cuh"

#define FRESHPROOF_EXPORT extern "C" __attribute__((visibility("default")))

namespace freshproof {

using TheCurve = FRESHPROOF_CURVE;
using Scalar = Fr<TheCurve>;

// Runs body() and gives a status for the way it ended.
template <class Body> int32_t guarded(const Body& body) noexcept {
  try {
    body();
    return FRESHPROOF_OK;
  } catch (const std::invalid_argument&) {
    return FRESHPROOF_INVALID;
  } catch (const std::bad_alloc&) {
    return FRESHPROOF_NO_MEMORY;
  } catch (const std::length_error&) {
    return FRESHPROOF_NO_MEMORY;
  } catch (...) {
    return FRESHPROOF_FAILED;
  }
}

inline void require(bool condition) {
  if (!condition) throw std::invalid_argument("an argument is out of range");
}

inline Scalar* vector_of(uint8_t* bytes) {
  require(reinterpret_cast<uintptr_t>(bytes) % alignof(Scalar) == 0);
  return reinterpret_cast<Scalar*>(bytes);
}

inline Domain<Scalar> domain_of(uint8_t* tables, uint32_t log_n) {
  require(log_n < Scalar::Params::two_adicity);
  return {vector_of(tables), log_n};
}

// body(tag) with a value of the field's, or a tag of the group's type.
template <class Body> void with_field(uint32_t field, const Body& body) {
  require(field <= FRESHPROOF_FQ2);
  if (field == FRESHPROOF_FQ) body(Fq<TheCurve>::zero());
  if (field == FRESHPROOF_FR) body(Fr<TheCurve>::zero());
  if (field == FRESHPROOF_FQ2) body(Fq2<TheCurve>::zero());
}

template <class Body> void with_group(uint32_t group, const Body& body) {
  require(group == FRESHPROOF_G1 || group == FRESHPROOF_G2);
  if (group == FRESHPROOF_G1) body(G1<TheCurve>{});
  if (group == FRESHPROOF_G2) body(G2<TheCurve>{});
}

template <class F> F field_operation(uint32_t operation, const uint8_t* a, const uint8_t* b, uint64_t i) {
  const F x = load<F>(a, i);
  switch (operation) {
    case FRESHPROOF_ADD: return x + load<F>(b, i);
    case FRESHPROOF_SUB: return x - load<F>(b, i);
    case FRESHPROOF_MUL: return x * load<F>(b, i);
    case FRESHPROOF_SQR: return x.sqr();
    case FRESHPROOF_NEG: return x.neg();
    case FRESHPROOF_DBL: return x.dbl();
    case FRESHPROOF_INVERSE: return x.inverse();
    case FRESHPROOF_TO_MONTGOMERY: return x.to_montgomery();
    case FRESHPROOF_FROM_MONTGOMERY: return x.from_montgomery();
    default: throw std::invalid_argument("no such operation");
  }
}

template <class F>
Affine<F> group_operation(uint32_t operation, const uint8_t* a, const uint8_t* b, uint64_t i) {
  const F two = F::one().dbl(), three = two + F::one();
  const Affine<F> p = load<Affine<F>>(a, i);
  switch (operation) {
    case FRESHPROOF_MIXED_ADD: return to_affine(add(rescaled(p, two), load<Affine<F>>(b, i)));
    case FRESHPROOF_XYZZ_ADD: return to_affine(add(rescaled(p, two), rescaled(load<Affine<F>>(b, i), three)));
    case FRESHPROOF_AFFINE_DBL: return to_affine(dbl(p));
    case FRESHPROOF_XYZZ_DBL: return to_affine(dbl(rescaled(p, two)));
    default: throw std::invalid_argument("no such operation");
  }
}

}  // namespace freshproof

FRESHPROOF_EXPORT uint32_t freshproof_abi_version(void) { return 1; }

FRESHPROOF_EXPORT const char* freshproof_curve(void) { return freshproof::TheCurve::name(); }

FRESHPROOF_EXPORT int32_t freshproof_field(uint32_t field, uint32_t operation, const uint8_t* a,
                                           const uint8_t* b, uint8_t* out, uint64_t n) {
  using namespace freshproof;
  return guarded([&] {
    with_field(field, [&](auto zero) {
      for (uint64_t i = 0; i < n; ++i) store(out, i, field_operation<decltype(zero)>(operation, a, b, i));
    });
  });
}

FRESHPROOF_EXPORT int32_t freshproof_group(uint32_t group, uint32_t operation, const uint8_t* a,
                                           const uint8_t* b, uint8_t* out, uint64_t n) {
  using namespace freshproof;
  return guarded([&] {
    with_group(group, [&](auto tag) {
      using F = typename decltype(tag)::F;
      for (uint64_t i = 0; i < n; ++i) store(out, i, group_operation<F>(operation, a, b, i));
    });
  });
}

FRESHPROOF_EXPORT int32_t freshproof_check_points(uint32_t group, const uint8_t* points, uint64_t n,
                                                  uint32_t threads, uint64_t* first_bad) {
  using namespace freshproof;
  return guarded([&] {
    with_group(group, [&](auto tag) {
      *first_bad = first_off_curve<decltype(tag)>(points, n, thread_count(threads));
    });
  });
}

FRESHPROOF_EXPORT int32_t freshproof_multiples(uint32_t group, const uint8_t* base, const uint8_t* scalars,
                                               uint8_t* out, uint64_t n, uint32_t threads) {
  using namespace freshproof;
  return guarded([&] {
    with_group(group, [&](auto tag) {
      multiples(load<Affine<typename decltype(tag)::F>>(base, 0), scalars, out, n, thread_count(threads));
    });
  });
}

FRESHPROOF_EXPORT int32_t freshproof_msm(uint32_t group, const uint8_t* points, const uint8_t* scalars,
                                         uint64_t n, uint32_t window, uint32_t threads, uint8_t* out) {
  using namespace freshproof;
  return guarded([&] {
    require(n < uint64_t(1) << 31 && (window == 0 || (window >= 3 && window <= 20)));
    with_group(group, [&](auto tag) {
      store(out, 0,
            msm<typename decltype(tag)::F, Scalar>(points, scalars, n, window, thread_count(threads)));
    });
  });
}

FRESHPROOF_EXPORT int32_t freshproof_domain(FreshproofVector tables, uint32_t log_n, uint32_t threads) {
  using namespace freshproof;
  return guarded([&] { fill_domain(domain_of(tables, log_n), thread_count(threads)); });
}

FRESHPROOF_EXPORT int32_t freshproof_ntt(FreshproofVector values, uint32_t log_n,
                                         const FreshproofVector tables, uint32_t inverse, uint32_t threads) {
  using namespace freshproof;
  return guarded(
      [&] { ntt(vector_of(values), domain_of(tables, log_n), inverse != 0, thread_count(threads)); });
}

FRESHPROOF_EXPORT int32_t freshproof_to_coset(FreshproofVector values, uint32_t log_n,
                                              const FreshproofVector tables, uint32_t threads) {
  using namespace freshproof;
  return guarded([&] { to_coset(vector_of(values), domain_of(tables, log_n), thread_count(threads)); });
}

FRESHPROOF_EXPORT int32_t freshproof_sort_entries(const uint8_t* entries, uint32_t n_entries, uint64_t domain,
                                                  uint32_t* order, uint32_t* starts) {
  using namespace freshproof;
  return guarded([&] { sort_entries(entries, n_entries, domain, order, starts); });
}

FRESHPROOF_EXPORT int32_t freshproof_sparse_products(const uint8_t* entries, const uint32_t* order,
                                                     const uint32_t* starts, uint64_t domain,
                                                     const uint8_t* witness, uint64_t n_vars,
                                                     FreshproofVector a, FreshproofVector b,
                                                     uint32_t threads) {
  using namespace freshproof;
  return guarded([&] {
    sparse_products(entries, order, starts, domain, witness, n_vars, vector_of(a), vector_of(b),
                    thread_count(threads));
  });
}

FRESHPROOF_EXPORT int32_t freshproof_multiply(const FreshproofVector a, const FreshproofVector b,
                                              FreshproofVector out, uint64_t n, uint32_t threads) {
  using namespace freshproof;
  return guarded([&] { multiply(vector_of(a), vector_of(b), vector_of(out), n, thread_count(threads)); });
}

FRESHPROOF_EXPORT int32_t freshproof_quotient(const FreshproofVector a, const FreshproofVector b,
                                              const FreshproofVector c, FreshproofVector out, uint64_t n,
                                              uint32_t threads) {
  using namespace freshproof;
  return guarded(
      [&] { quotient(vector_of(a), vector_of(b), vector_of(c), vector_of(out), n, thread_count(threads)); });
}
