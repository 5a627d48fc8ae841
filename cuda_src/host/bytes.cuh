// Values in byte buffers of any alignment, and the erasing of secret ones.
#pragma once
#include <cstdint>
#include <cstring>
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

// A vector whose contents derive from the witness: erased before its memory goes back.
template <class T> struct SecretVector : std::vector<T> {
  using std::vector<T>::vector;
  SecretVector() = default;
  SecretVector(SecretVector&&) = default;
  SecretVector(const SecretVector&) = delete;
  ~SecretVector() {
    memset(static_cast<void*>(this->data()), 0, this->capacity() * sizeof(T));
    asm volatile("" : : "r"(this->data()) : "memory");  // keeps the compiler from dropping the memset
  }
};

}  // namespace freshproof
