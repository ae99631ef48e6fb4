// Races between blocks that several host threads run: two blocks that meet at a place are reported
// once, or not at all, however their steps fall; and what is too much to keep track of.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "emulator/testing/kernel_fixture.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

uint64_t CountFaults(const std::vector<Fault>& faults) {
  uint64_t count = 0;
  for (const Fault& fault : faults) {
    EXPECT_EQ(fault.kind, FaultKind::kGlobalRace) << Describe(faults);
    count += fault.count;
  }
  return count;
}

// Blocks of even and of odd number, each pair at places of its own: one for each of their threads,
// at [%d1]. %r6 is a number that no other block has, %r7 is 5.
struct PairCase {
  const char* name;
  const char* even;
  const char* odd;
  bool races;
};
constexpr PairCase kPairs[] = {
    {"StoreAndStore", "st.global.u32 [%d1], %r6;", "st.global.u32 [%d1], %r6;", true},
    {"StoreAndAtomic", "st.global.u32 [%d1], %r6;", "red.global.add.u32 [%d1], 1;", true},
    {"AtomicAndStore", "red.global.add.u32 [%d1], 1;", "st.global.u32 [%d1], %r6;", true},
    {"StoreOfWhatWasThereAndAtomic", "st.global.u32 [%d1], 0;", "red.global.add.u32 [%d1], 1;",
     true},
    {"LoadAndStore", "ld.global.u32 %r8, [%d1];", "st.global.u32 [%d1], %r6;", true},
    {"StoreAndLoad", "st.global.u32 [%d1], %r6;", "ld.global.u32 %r8, [%d1];", true},
    {"StoreAndVolatileStore", "st.global.u32 [%d1], %r6;", "st.volatile.global.u32 [%d1], %r6;",
     true},
    {"ByteAndWord", "st.global.u8 [%d1], %r6;", "st.global.u32 [%d1], %r6;", true},
    {"LoadOfAByteAndStore", "ld.global.u8 %r8, [%d1+1];", "st.global.u32 [%d1], %r6;", true},
    {"GenericStoreAndStore", "st.u32 [%d1], %r6;", "st.global.u32 [%d1], %r6;", true},
    {"SameStores", "st.global.u32 [%d1], %r7;", "st.global.u32 [%d1], %r7;", false},
    {"SameStoresOfAByte", "st.global.u8 [%d1], %r7;", "st.global.u8 [%d1], %r7;", false},
    {"TwoBytes", "st.global.u8 [%d1], %r6;", "st.global.u8 [%d1+1], %r6;", false},
    {"LoadAndLoad", "ld.global.u32 %r8, [%d1];", "ld.global.u32 %r8, [%d1];", false},
    {"LoadAndAtomic", "ld.global.u32 %r8, [%d1];", "red.global.add.u32 [%d1], 1;", false},
    {"AtomicAndAtomic", "red.global.add.u32 [%d1], 1;", "red.global.add.u32 [%d1], 1;", false},
};

class EnginePairTest : public testing::TestWithParam<PairCase> {};

TEST_P(EnginePairTest, IsReportedOnceAtEveryPlaceOrNever) {
  constexpr uint32_t kPairCount = 1000;
  constexpr uint32_t kThreads = 64;
  constexpr uint32_t kStride = 36;  // Lanes of a warp lie at several places of PlaceSet.
  const PairCase& c = GetParam();
  const std::string ptx = absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 words)
{
  .reg .pred %p<1>;
  .reg .b32 %r<9>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [words];
  mov.u32 %r0, %ctaid.x;
  shr.u32 %r1, %r0, 1;
  and.b32 %r2, %r0, 1;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.u32 %r5, %r1, %r4, %r3;
  mul.wide.u32 %d1, %r5, )",
                                       kStride, R"(;
  add.u64 %d1, %d0, %d1;
  add.u32 %r6, %r0, 7;
  mov.u32 %r7, 5;
  setp.eq.u32 %p0, %r2, 0;
  @%p0 bra EVEN;
  )",
                                       c.odd, "\n  ret;\nEVEN:\n  ", c.even, "\n  ret;\n}\n");
  for (const uint64_t seed : {0, 1}) {
    for (const int threads : {1, 2, 4}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", host threads ", threads));
      KernelFixture device(ptx);
      const uint64_t words = device.Put(
          "words", std::vector<uint32_t>(size_t{kPairCount} * kThreads * kStride / 4, 0));
      LaunchOptions options = GridOf(2 * kPairCount, kThreads, seed);
      options.threads = threads;
      const LaunchResult result = device.Run("kernel", KernelArguments::Of(words), options);
      const uint64_t faults = CountFaults(result.faults);
      EXPECT_EQ(faults, c.races ? uint64_t{kPairCount} * kThreads : 0) << Describe(result.faults);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EnginePairTest, testing::ValuesIn(kPairs),
                         [](const testing::TestParamInfo<PairCase>& info) {
                           return std::string(info.param.name);
                         });

// Two blocks scatter fenced atomics over places of their own, so that nothing orders the two, and
// then write one word.
TEST(EngineSyncTest, ALaunchThatFencesTooMuchIsNotAccused) {
  const std::string ptx = absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 places, .param .u64 word)
{
  .reg .pred %p<1>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [places];
  ld.param.u64 %d1, [word];
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %d2, %r0, 256;
  add.u64 %d2, %d0, %d2;
  mov.u32 %r1, 0;
NEXT:
  membar.gl;
  atom.global.add.u32 %r2, [%d2], 1;
  add.u64 %d2, %d2, 4;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p0, %r1, 64;
  @%p0 bra NEXT;
  add.u32 %r3, %r0, 1;
  st.global.u32 [%d1], %r3;
  ret;
})");
  struct Limit {
    uint64_t bytes;
    bool watched;
  };
  for (const Limit& limit :
       {Limit{LaunchOptions().sync_bytes_max, true}, Limit{20'000, false}, Limit{0, false}}) {
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(absl::StrCat(limit.bytes, " bytes, host threads ", threads));
      KernelFixture device(ptx);
      const uint64_t places = device.Put("places", std::vector<uint32_t>(2 * 64, 0));
      const uint64_t word = device.Put("word", std::vector<uint32_t>(1, 0));
      LaunchOptions options = GridOf(2, 1);
      options.threads = threads;
      options.sync_bytes_max = limit.bytes;
      const LaunchResult result = device.Run("kernel", KernelArguments::Of(places, word), options);
      EXPECT_EQ(CountFaults(result.faults), uint64_t{limit.watched}) << Describe(result.faults);
      EXPECT_EQ(device.Get<uint32_t>(places, 128), std::vector<uint32_t>(128, 1));
    }
  }
}

}  // namespace
}  // namespace assay::emulator
