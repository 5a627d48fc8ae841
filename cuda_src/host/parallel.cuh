// Work shared among threads: tasks are numbered, and each thread takes the next number until none is left.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace freshproof {

inline unsigned thread_count(uint32_t asked) {
  if (asked > 0) return asked;
  const unsigned processors = std::thread::hardware_concurrency();
  return processors > 0 ? processors : 1;
}

// Calls body(context, i) for every i < tasks, on up to `threads` threads, the caller's among them. The first
// exception stops the handing out of tasks and is thrown again here, after every thread has ended. A system
// that gives no more threads slows the work down and changes nothing else.
inline void run_tasks(unsigned threads, uint64_t tasks, void (*body)(const void*, uint64_t),
                      const void* context) {
  std::atomic<uint64_t> next{0};
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&] {
    try {
      for (uint64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) body(context, i);
    } catch (...) {
      next.store(tasks, std::memory_order_relaxed);
      const std::lock_guard<std::mutex> hold(failure_lock);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  const uint64_t wanted = tasks < threads ? tasks : threads;
  others.reserve(wanted);
  for (uint64_t i = 1; i < wanted; ++i) {
    try {
      others.emplace_back(work);
    } catch (const std::system_error&) {
      break;
    }
  }
  work();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

// run_tasks with any callable: body(i).
template <class Body> void parallel_for(unsigned threads, uint64_t tasks, const Body& body) {
  run_tasks(
      threads, tasks, [](const void* context, uint64_t i) { (*static_cast<const Body*>(context))(i); },
      &body);
}

// parallel_for over [0, n) in slices of `slice`: body(begin, end).
template <class Body> void parallel_slices(unsigned threads, uint64_t n, uint64_t slice, const Body& body) {
  parallel_for(threads, (n + slice - 1) / slice, [&](uint64_t i) {
    const uint64_t begin = i * slice;
    body(begin, n - begin < slice ? n : begin + slice);
  });
}

}  // namespace freshproof
