#include "emulator/driver/copies.h"

#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

class CopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    DeviceMemory::Options options;
    options.bytes = 4 << 20;
    absl::StatusOr<std::unique_ptr<DeviceMemory>> memory = DeviceMemory::Create(options);
    ASSERT_TRUE(memory.ok()) << memory.status();
    memory_ = *std::move(memory);
    from_ = *memory_->Allocate(kBytes, "from");
    to_ = *memory_->Allocate(kBytes, "to");
  }

  CopyEnd Device(uint64_t address) {
    CopyEnd end;
    end.device = address;
    return end;
  }
  CopyEnd Host(std::vector<uint8_t>* bytes) {
    CopyEnd end;
    end.host = reinterpret_cast<std::byte*>(bytes->data());
    return end;
  }
  bool Initialized(uint64_t address) {
    uint64_t count = 0;
    uint64_t first = 0;
    EXPECT_TRUE(CountUninitialized(*memory_, address, 1, &count, &first).ok());
    return count == 0;
  }

  static constexpr uint64_t kBytes = 1000;
  std::unique_ptr<DeviceMemory> memory_;
  uint64_t from_ = 0;
  uint64_t to_ = 0;
};

TEST_F(CopiesTest, ThereAndBack) {
  std::vector<uint8_t> in(kBytes);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 7);
  std::vector<uint8_t> out(kBytes);
  ASSERT_TRUE(CopyBytes(memory_.get(), Device(from_), Host(&in), kBytes).ok());
  ASSERT_TRUE(CopyBytes(memory_.get(), Device(to_), Device(from_), kBytes).ok());
  ASSERT_TRUE(CopyBytes(memory_.get(), Host(&out), Device(to_), kBytes).ok());
  EXPECT_EQ(in, out);
}

TEST_F(CopiesTest, WhatWasNeverWrittenStaysSoInACopy) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    ASSERT_TRUE(memory_->SetInitialized(from_, kBytes, false).ok());
    ASSERT_TRUE(memory_->SetInitialized(to_, kBytes, seed % 2 == 0).ok());
    std::vector<bool> expected(kBytes, false);
    for (int i = 0; i < 6; ++i) {
      const uint64_t start = random.Below(kBytes);
      const uint64_t length = random.Below(kBytes - start) + 1;
      const bool initialized = random.Chance(0.5);
      ASSERT_TRUE(memory_->SetInitialized(from_ + start, length, initialized).ok());
      for (uint64_t b = start; b < start + length; ++b) expected[b] = initialized;
    }
    const uint64_t start = random.Below(kBytes / 2);
    const uint64_t target = random.Below(kBytes / 2);
    const uint64_t length = random.Below(kBytes / 2) + 1;
    ASSERT_TRUE(CopyBytes(memory_.get(), Device(to_ + target), Device(from_ + start), length).ok());
    uint64_t missing = 0;
    uint64_t first = length;
    for (uint64_t b = 0; b < length; ++b) {
      EXPECT_EQ(Initialized(to_ + target + b), expected[start + b]) << "seed " << seed;
      if (expected[start + b]) continue;
      if (missing++ == 0) first = b;
    }
    uint64_t count_found = 0;
    uint64_t first_found = 0;
    ASSERT_TRUE(
        CountUninitialized(*memory_, to_ + target, length, &count_found, &first_found).ok());
    EXPECT_EQ(count_found, missing) << "seed " << seed;
    EXPECT_EQ(first_found, first) << "seed " << seed;
    if (target > 0) {
      EXPECT_EQ(Initialized(to_ + target - 1), seed % 2 == 0);
    }
  }
}

TEST_F(CopiesTest, OverlappingRangesMoveWithTheirShadow) {
  std::vector<uint8_t> in(100);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i);
  ASSERT_TRUE(CopyBytes(memory_.get(), Device(from_), Host(&in), in.size()).ok());
  ASSERT_TRUE(memory_->SetInitialized(from_ + 50, 10, false).ok());
  ASSERT_TRUE(CopyBytes(memory_.get(), Device(from_ + 30), Device(from_), in.size()).ok());
  std::vector<uint8_t> out(100);
  ASSERT_TRUE(CopyBytes(memory_.get(), Host(&out), Device(from_ + 30), out.size()).ok());
  EXPECT_EQ(in, out);
  uint64_t count = 0;
  uint64_t first = 0;
  ASSERT_TRUE(CountUninitialized(*memory_, from_ + 30, 100, &count, &first).ok());
  EXPECT_EQ(count, 10u);
  EXPECT_EQ(first, 50u);
}

TEST_F(CopiesTest, RangesOutsideAreRefused) {
  std::vector<uint8_t> bytes(2 * kBytes);
  const struct {
    uint64_t address;
    uint64_t bytes;
    bool ok;
  } cases[] = {
      {from_, 0, true},
      {0, 0, true},
      {from_, kBytes, true},
      {from_, kBytes + 1, false},
      {from_ + kBytes, 1, false},
      {from_ - 1, 2, false},
      {0, 1, false},
      {~uint64_t{0}, 2, false},
      {from_ + 1, ~uint64_t{0}, false},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(CopyBytes(memory_.get(), Device(test.address), Host(&bytes), test.bytes).ok(),
              test.ok)
        << std::hex << test.address << " + " << test.bytes;
    if (test.bytes > bytes.size()) continue;
    EXPECT_EQ(CopyBytes(memory_.get(), Host(&bytes), Device(test.address), test.bytes).ok(),
              test.ok)
        << std::hex << test.address << " + " << test.bytes;
  }
  ASSERT_TRUE(memory_->Free(from_).ok());
  EXPECT_FALSE(CopyBytes(memory_.get(), Host(&bytes), Device(from_), 1).ok());
}

TEST_F(CopiesTest, Fills) {
  std::vector<uint8_t> out(8);
  const struct {
    uint32_t value;
    int width;
    std::vector<uint8_t> expected;
  } cases[] = {
      {0x1ab, 1, {0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab, 0xab}},
      {0x1234, 2, {0x34, 0x12, 0x34, 0x12, 0x34, 0x12, 0x34, 0x12}},
      {0x12345678, 4, {0x78, 0x56, 0x34, 0x12, 0x78, 0x56, 0x34, 0x12}},
  };
  for (const auto& test : cases) {
    ASSERT_TRUE(memory_->SetInitialized(from_, kBytes, false).ok());
    ASSERT_TRUE(FillDevice(memory_.get(), from_, test.value, test.width,
                           8 / static_cast<uint64_t>(test.width))
                    .ok());
    ASSERT_TRUE(CopyBytes(memory_.get(), Host(&out), Device(from_), 8).ok());
    EXPECT_EQ(out, test.expected);
    EXPECT_TRUE(Initialized(from_ + 7));
    EXPECT_FALSE(Initialized(from_ + 8));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(FillDevice(memory_.get(), from_ + 2, 0, 4, 1)));
  EXPECT_TRUE(absl::IsOutOfRange(FillDevice(memory_.get(), from_, 0, 4, kBytes / 4 + 1)));
  // 2^62 values of 4 bytes would be 0 bytes.
  EXPECT_TRUE(absl::IsOutOfRange(FillDevice(memory_.get(), from_, 0, 4, uint64_t{1} << 62)));
}

}  // namespace
}  // namespace assay::emulator
