// Turns at places of global memory, for the host threads of one launch.
//
// An access looks at the race words of its place, says there that it was, and, when it writes,
// changes the place. Between these steps no other may come: of an atomic update and a plain store
// that both look before either has said anything, nobody would be reported, and a store that meets
// the stamp of another whose value has not reached memory yet would be compared with an older one.
// So whoever changes race words of global memory holds the place meanwhile, and whoever writes
// holds it until the value is there.
//
// A read that leaves nothing to record (IsRecordedRead) needs to hold nothing: whoever writes after
// it holds the place when looking at the readers, and finds the stamp that the read found.
#ifndef ASSAY_EMULATOR_MEMORY_PLACE_LOCKS_H_
#define ASSAY_EMULATOR_MEMORY_PLACE_LOCKS_H_

#include <immintrin.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace assay::emulator {

// Places that are held together. A naturally aligned value of at most 32 bytes lies in one.
struct PlaceSet {
  static constexpr uint64_t kPlaceShift = 10;
  static constexpr size_t kCount = 256;  // places further apart share locks
  uint64_t bits[kCount / 64] = {};

  void Add(uint64_t address) {
    const uint64_t place = (address >> kPlaceShift) % kCount;
    bits[place / 64] |= uint64_t{1} << place % 64;
  }
  void AddRange(uint64_t address, uint64_t bytes) {
    const uint64_t last = (address + bytes - 1) >> kPlaceShift;
    for (uint64_t place = address >> kPlaceShift; place <= last; ++place) Add(place << kPlaceShift);
  }
  // Calls f(index) in ascending order, in which all take them, so that nobody waits in a circle.
  template <typename F>
  void Each(F&& f) const {
    for (size_t word = 0; word < kCount / 64; ++word) {
      for (uint64_t rest = bits[word]; rest != 0; rest &= rest - 1)
        f(word * 64 + static_cast<size_t>(std::countr_zero(rest)));
    }
  }
};

class PlaceLocks {
 public:
  void Lock(const PlaceSet& places) {
    places.Each([this](size_t i) { locks_[i].Lock(); });
  }
  void Unlock(const PlaceSet& places) {
    places.Each([this](size_t i) { locks_[i].Unlock(); });
  }

 private:
  // Held for less than it takes to put a thread to sleep, unless the host has taken the CPU away
  // from whoever holds it.
  class alignas(64) PlaceLock {
   public:
    void Lock() {
      for (int spin = 0; spin < kSpins; ++spin) {
        uint32_t seen = kFree;
        if (state_.load(std::memory_order_relaxed) == kFree &&
            state_.compare_exchange_strong(seen, kHeld, std::memory_order_acquire))
          return;
        _mm_pause();
      }
      while (state_.exchange(kAwaited, std::memory_order_acquire) != kFree)
        state_.wait(kAwaited, std::memory_order_relaxed);
    }
    void Unlock() {
      if (state_.exchange(kFree, std::memory_order_release) == kAwaited) state_.notify_one();
    }

   private:
    static constexpr int kSpins = 200;
    static constexpr uint32_t kFree = 0;
    static constexpr uint32_t kHeld = 1;
    static constexpr uint32_t kAwaited = 2;  // held, and others sleep, perhaps
    std::atomic<uint32_t> state_{kFree};
  };
  PlaceLock locks_[PlaceSet::kCount];
};

// Holds places, or nothing, until it goes. One thread has one of them at a time.
class PlaceHold {
 public:
  PlaceHold() = default;
  PlaceHold(const PlaceHold&) = delete;
  PlaceHold& operator=(const PlaceHold&) = delete;
  ~PlaceHold() { Release(); }

  void Take(PlaceLocks* locks, const PlaceSet& places) {
    locks->Lock(places);
    locks_ = locks;
    places_ = places;
  }
  void Release() {
    if (locks_ == nullptr) return;
    locks_->Unlock(places_);
    locks_ = nullptr;
  }

 private:
  PlaceLocks* locks_ = nullptr;
  PlaceSet places_;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_MEMORY_PLACE_LOCKS_H_
