// Runs CUDA kernels on a CPU: one fiber a thread, one block after the other. Included before the kernels' source, in a
// plain C++ compile with -DFRESHPROOF_EMULATE_PTX and -DFRESHPROOF_EMULATED_GRID.
//
// Barriers and warp shuffles switch fibers; whole, converged warps are asked for, as the kernels promise. Shared
// memory is filled with garbage before each block, so that a read of what nobody wrote shows. Races do not show: the
// fibers of a block never run at once.
#pragma once
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __host__
#define __device__
#define __forceinline__ inline

struct uint4 {
  uint32_t x, y, z, w;
};

struct uint2 {
  uint32_t x, y;
};

struct Dimensions {
  unsigned x = 1, y = 1, z = 1;
};

inline Dimensions threadIdx, blockIdx, blockDim, gridDim;

using std::max;
using std::min;

namespace emulator {

constexpr size_t STACK = 256 * 1024;
constexpr unsigned WARP = 32;
enum class Waiting { nothing, quad, warp, block, done };

struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  Waiting waiting = Waiting::nothing;
};

inline ucontext_t scheduler;
inline std::vector<Fiber> fibers;
inline unsigned current;
inline void (*body)(const uint64_t*);
inline const uint64_t* arguments;
inline std::vector<uint4> shared_memory;
inline std::vector<std::vector<char>> exchange;  // what each lane offers in a shuffle

inline void wait(Waiting what) {
  fibers[current].waiting = what;
  swapcontext(&fibers[current].context, &scheduler);
}

inline void enter() {
  body(arguments);
  wait(Waiting::done);
}

inline void resume(unsigned t) {
  current = t;
  threadIdx.x = t;
  fibers[t].waiting = Waiting::nothing;
  swapcontext(&scheduler, &fibers[t].context);
}

// Lets the threads of a group go on if all that are not done wait for the group.
inline bool release(unsigned first, unsigned last, Waiting what) {
  unsigned waiting = 0;
  for (unsigned t = first; t < last; ++t) {
    if (fibers[t].waiting == what) {
      ++waiting;
    } else if (fibers[t].waiting != Waiting::done) {
      return false;
    }
  }
  for (unsigned t = first; t < last; ++t) {
    if (fibers[t].waiting == what) fibers[t].waiting = Waiting::nothing;
  }
  return waiting > 0;
}

// Lets a warp run until all its threads wait for the block or are done.
inline void run_warp(unsigned first, unsigned last) {
  for (;;) {
    for (unsigned t = first; t < last; ++t) {
      if (fibers[t].waiting == Waiting::nothing) resume(t);
    }
    bool released = release(first, last, Waiting::warp);
    for (unsigned t = first; t < last; t += 4) released |= release(t, std::min(t + 4, last), Waiting::quad);
    if (!released) return;
  }
}

inline void run_block(unsigned threads) {
  for (auto& piece : shared_memory) piece = {0xdeadbeef, 0xdeadbeef, 0xdeadbeef, 0xdeadbeef};
  for (unsigned t = 0; t < threads; ++t) {
    Fiber& fiber = fibers[t];
    fiber.stack.resize(STACK);
    fiber.waiting = Waiting::nothing;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, enter, 0);
  }
  for (;;) {
    for (unsigned first = 0; first < threads; first += WARP) run_warp(first, std::min(first + WARP, threads));
    if (release(0, threads, Waiting::block)) continue;
    for (unsigned t = 0; t < threads; ++t) {
      if (fibers[t].waiting == Waiting::done) continue;
      fprintf(stderr, "thread %u waits for others that never come\n", t);
      abort();
    }
    return;
  }
}

}  // namespace emulator

inline void __syncthreads() { emulator::wait(emulator::Waiting::block); }

template <class T> T atomicAdd(T* at, T value) {
  T old = *at;
  *at += value;
  return old;
}

namespace freshproof {

inline uint32_t* dynamic_shared() { return reinterpret_cast<uint32_t*>(emulator::shared_memory.data()); }

template <class Piece> void copy_to_shared(Piece* to, const Piece* from) { *to = *from; }

inline void end_copies() {}

template <unsigned later> void await_copies() {}

// What thread `from` of the block offers, when all lanes of the group have come here.
template <class T> T offered(const T& value, unsigned from, emulator::Waiting group) {
  auto& own = emulator::exchange[emulator::current];
  own.resize(sizeof(T));
  memcpy(own.data(), &value, sizeof(T));
  emulator::wait(group);
  T out;
  memcpy(&out, emulator::exchange[from].data(), sizeof(T));
  emulator::wait(group);
  return out;
}

template <class T> T shuffle_down(const T& value, unsigned distance) {
  const unsigned t = emulator::current;
  return offered(value, t % emulator::WARP + distance < emulator::WARP ? t + distance : t, emulator::Waiting::warp);
}

template <class T> T quad_get(const T& value, unsigned from) {
  return offered(value, emulator::current / 4 * 4 + from, emulator::Waiting::quad);
}

}  // namespace freshproof

// Launches a kernel whose parameters are pointers and 32- or 64-bit integers, one 8-byte slot each.
extern "C" inline __attribute__((used)) void emulate(void (*kernel)(const uint64_t*), unsigned grid, unsigned block,
                                                     unsigned shared_bytes, const uint64_t* slots) {
  emulator::body = kernel;
  emulator::arguments = slots;
  emulator::shared_memory.resize((shared_bytes + 15) / 16);
  emulator::exchange.resize(block);
  if (emulator::fibers.size() < block) emulator::fibers.resize(block);
  gridDim.x = grid;
  blockDim.x = block;
  for (unsigned b = 0; b < grid; ++b) {
    blockIdx.x = b;
    emulator::run_block(block);
  }
}

template <class T> T slot_as(uint64_t slot) {
  T out;
  memcpy(&out, &slot, sizeof(T));
  return out;
}

template <class... Parameters, size_t... index>
void call_with_slots(void (*kernel)(Parameters...), const uint64_t* slots, std::index_sequence<index...>) {
  kernel(slot_as<Parameters>(slots[index])...);
}

template <class... Parameters> void call_with_slots(void (*kernel)(Parameters...), const uint64_t* slots) {
  call_with_slots(kernel, slots, std::index_sequence_for<Parameters...>{});
}

// Makes `emulated_<kernel>`, which `emulate` can run.
#define EMULATED(kernel) \
  extern "C" __attribute__((used)) void emulated_##kernel(const uint64_t* slots) { call_with_slots(kernel, slots); }
