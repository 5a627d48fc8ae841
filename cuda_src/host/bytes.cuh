// Values in byte buffers of any alignment, and the erasing of secret ones.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

namespace freshproof {

template <class T> inline T load(const uint8_t* bytes, uint64_t index) {
  static_assert(std::is_trivially_copyable<T>::value, "elements and points are plain words");
  T out;
  memcpy(&out, bytes + index * sizeof(T), sizeof(T));
  return out;
}

template <class T> inline void store(uint8_t* bytes, uint64_t index, const T& value) {
  static_assert(std::is_trivially_copyable<T>::value, "elements and points are plain words");
  memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

// Erases memory before it goes back, also when a vector grows out of it.
template <class T> struct ErasingAllocator : std::allocator<T> {
  template <class U> struct rebind {
    using other = ErasingAllocator<U>;
  };

  ErasingAllocator() = default;
  template <class U> ErasingAllocator(const ErasingAllocator<U>&) {}

  void deallocate(T* memory, size_t count) {
    memset(static_cast<void*>(memory), 0, count * sizeof(T));
    asm volatile("" : : "r"(memory) : "memory");  // keeps the compiler from dropping the memset
    std::allocator<T>::deallocate(memory, count);
  }
};

// A vector whose contents derive from the witness.
template <class T> using SecretVector = std::vector<T, ErasingAllocator<T>>;

}  // namespace freshproof
