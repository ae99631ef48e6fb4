// Random numbers: unpredictable bytes from the kernel, and a fast seeded generator for inputs and
// simulations.
#ifndef ASSAY_BASE_RANDOM_H_
#define ASSAY_BASE_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace assay {

// Unpredictable. Aborts when the kernel has no randomness, which does not happen after boot.
uint64_t SecureRandom64();

// `bytes` random bytes as lower-case hexadecimal (2 * bytes characters).
std::string SecureRandomHex(size_t bytes);

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection on 64 bits with good
// avalanche. MixBits(seed + i * kGoldenGamma) is a counter-based generator: element i without its
// predecessors.
inline constexpr uint64_t kGoldenGamma = 0x9e3779b97f4a7c15u;
constexpr uint64_t MixBits(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// SplitMix64. Deterministic for a seed; satisfies UniformRandomBitGenerator. Not thread-safe.
class Random {
 public:
  using result_type = uint64_t;
  explicit Random(uint64_t seed) : state_(seed) {}
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return MixBits(state_ += kGoldenGamma); }
  // Uniform in [0, bound); bound > 0. The bias is below bound / 2^64.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>((*this)()) * bound) >> 64);
  }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }
  // True with the given probability.
  bool Chance(double probability) { return Uniform() < probability; }

 private:
  uint64_t state_;
};

}  // namespace assay

#endif  // ASSAY_BASE_RANDOM_H_
