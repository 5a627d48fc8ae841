// One dialect for three compilers: nvcc's device pass, nvcc's host pass, and a plain C++ compiler
// (`nvcc -x c++`, which defines no __CUDACC__ and does not know CUDA's qualifiers).
//
// FRESHPROOF_WORDS32 is defined where field arithmetic runs on 32-bit words: on the device, and on a host
// that emulates the device's carry chains (-DFRESHPROOF_EMULATE_PTX) to test that very algorithm.
#pragma once

#ifndef __CUDACC__
#ifndef __host__
#define __host__
#endif
#ifndef __device__
#define __device__
#endif
// A plain hint here: with whole point additions forced inline, a CPU's code is five times as large and no
// faster, and takes five times as long to compile.
#ifndef __forceinline__
#define __forceinline__ inline
#endif
#endif

// What stays a call. (`__noinline__` itself cannot be a macro here: the C++ library spells an attribute so.)
#ifdef __CUDACC__
#define FRESHPROOF_NOINLINE __noinline__
#else
#define FRESHPROOF_NOINLINE __attribute__((noinline))
#endif

// For the few operations of a CPU that are shorter than a call.
#define FRESHPROOF_ALWAYS_INLINE inline __attribute__((always_inline))

#if defined(__CUDA_ARCH__) || defined(FRESHPROOF_EMULATE_PTX)
#define FRESHPROOF_WORDS32
#endif

// Assembly for x86-64; -DFRESHPROOF_PORTABLE tests what other processors run.
#if defined(__x86_64__) && !defined(FRESHPROOF_PORTABLE)
#define FRESHPROOF_X86_64
#endif
